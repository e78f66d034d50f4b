package index_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/search/index"
)

var (
	seed   = flag.Uint64("seed", 1, "of what is random")
	rounds = flag.Int("rounds", 40, "of writes that are compared with a model")
)

func open(t *testing.T, dir string) *index.DB {
	t.Helper()
	db, err := index.Open(index.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func closeDB(t *testing.T, db *index.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a test that failed may have left a view open
	defer cancel()
	if err := db.Close(ctx); err != nil {
		t.Error(err)
	}
}

// openOn opens a database on another file system.
func openOn(t *testing.T, fs vfs.FS) *index.DB {
	t.Helper()
	db, err := index.OpenOn(index.Options{Dir: "search"}, fs)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func openIndex(t *testing.T, db *index.DB, name string) *index.Index {
	t.Helper()
	ix, err := db.Index(name)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// record is what a test knows of a record.
type record struct {
	rev    int64
	fields map[index.Field]string // words
	day    int64                  // 0: none
	vector []float32
	public bool
}

func (r record) tokens() map[index.Field][]index.Token {
	out := map[index.Field][]index.Token{}
	for f, text := range r.fields {
		for i, w := range strings.Fields(text) {
			out[f] = append(out[f], index.Token{Term: w, Position: uint32(i)})
		}
	}
	return out
}

func (r record) change(id string) index.Change {
	c := index.Change{ID: []byte(id), Rev: r.rev, Fields: r.tokens(), In: func(set *index.Set) bool { return set.Data.(func(record) bool)(r) }}
	if r.day != 0 {
		c.Values = map[index.Field]int64{7: r.day * day.Milliseconds()}
	}
	if r.vector != nil {
		c.Vectors = map[index.Field][]float32{9: r.vector}
	}
	return c
}

// world is an index beside the records that it should have.
type world struct {
	*testing.T
	r       *rand.Rand
	dir     string
	db      *index.DB
	ix      *index.Index
	records map[string]record
	rev     int64
}

func (w *world) text(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("w%d", int(math.Pow(w.r.Float64(), 3)*60))
	}
	return strings.Join(out, " ")
}

func (w *world) write() {
	changes, position := w.change(&sync.Mutex{})
	if err := w.ix.Apply(w.Context(), changes, position); err != nil {
		w.Fatal(err)
	}
}

// change changes the records.
func (w *world) change(store *sync.Mutex) (changes []index.Change, position []byte) {
	store.Lock()
	defer store.Unlock()
	changes = make([]index.Change, 1+w.r.IntN(20))
	for i := range changes {
		id := fmt.Sprintf("%03d", w.r.IntN(300))
		if w.r.IntN(4) == 0 {
			delete(w.records, id)
			changes[i] = index.Change{ID: []byte(id), Gone: true}
			continue
		}
		w.rev++
		r := record{rev: w.rev, public: w.r.IntN(2) == 0, fields: map[index.Field]string{1: w.text(1 + w.r.IntN(6))}}
		if w.r.IntN(3) > 0 {
			r.fields[2] = w.text(w.r.IntN(40))
		}
		if w.r.IntN(3) > 0 {
			r.day = 1 + w.r.Int64N(40)
		}
		if w.r.IntN(2) == 0 {
			r.vector = unit(w.r, 8)
		}
		w.records[id] = r
		changes[i] = r.change(id)
	}
	return changes, fmt.Appendf(nil, "%d", w.rev)
}

func unit(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		x := r.NormFloat64()
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// seen are the records of a set.
func (w *world) seen(set string) map[string]record {
	out := map[string]record{}
	for id, r := range w.records {
		if set == "" || r.public {
			out[id] = r
		}
	}
	return out
}

// counts gives how often a leaf is in a text.
func counts(l index.Leaf, text string) int {
	words, n := strings.Fields(text), 0
	for i, word := range words {
		matches := slices.Contains(l.Terms, word)
		if l.Phrase != nil {
			matches = true
			for j, at := range l.Phrase {
				matches = matches && i+int(at) < len(words) && words[i+int(at)] == l.Terms[j]
			}
		}
		if matches {
			n++
		}
	}
	return n
}

// find is what a search of records should give.
func find(records map[string]record, q index.Query) map[string]float64 {
	scores, groups := map[string]float64{}, map[string][]bool{}
	for id := range records {
		groups[id] = make([]bool, len(q.Groups))
	}
	must := 0
	for g, group := range q.Groups {
		if group.Occur == index.Must {
			must++
		}
		for _, l := range group.Leaves {
			df, with, total := 0.0, 0.0, 0.0
			for _, r := range records {
				if counts(l, r.fields[l.Field]) > 0 {
					df++
				}
				if n := len(strings.Fields(r.fields[l.Field])); n > 0 {
					with++
					total += float64(n)
				}
			}
			for id, r := range records {
				tf := float64(counts(l, r.fields[l.Field]))
				if tf == 0 {
					continue
				}
				groups[id][g] = true
				if group.Occur != index.MustNot {
					length := float64(len(strings.Fields(r.fields[l.Field])))
					scores[id] += float64(l.Boost) * math.Log(1+(with-df+0.5)/(df+0.5)) * 2.2 * tf / (tf + 1.2*(0.25+0.75*length/(total/with)))
				}
			}
		}
	}
	out := map[string]float64{}
	for id, got := range groups {
		should, ok := 0, true
		for g, group := range q.Groups {
			switch group.Occur {
			case index.Should:
				if got[g] {
					should++
				}
			case index.Must:
				ok = ok && got[g]
			case index.MustNot:
				ok = ok && !got[g]
			}
		}
		least := q.AtLeast
		if least == 0 && must == 0 {
			least = 1
		}
		score := scores[id] * newer(records[id], q.Recency)
		if ok && should >= least && slices.Contains(got, true) && score >= float64(q.MinScore) {
			out[id] = score
		}
	}
	return out
}

// newer is what the score of a record is multiplied with.
func newer(r record, by *index.Recency) float64 {
	if by == nil || r.day == 0 {
		return 1
	}
	age := by.Now.Sub(time.UnixMilli(r.day * day.Milliseconds()))
	return 1 + float64(by.Weight)*math.Pow(0.5, max(0, age.Hours())/by.HalfLife.Hours())
}

const day = 24 * time.Hour

func (w *world) query() index.Query {
	var q index.Query
	if w.r.IntN(3) == 0 {
		q.Recency = &index.Recency{Field: 7, Now: time.UnixMilli(30 * day.Milliseconds()), HalfLife: 10 * day, Weight: 2}
	}
	for range 1 + w.r.IntN(4) {
		g := index.Group{Occur: []index.Occur{index.Should, index.Should, index.Must, index.MustNot}[w.r.IntN(4)]}
		for range 1 + w.r.IntN(2) {
			l := index.Leaf{Field: index.Field(1 + w.r.IntN(3)), Terms: strings.Fields(w.text(1 + w.r.IntN(3))), Boost: 1 + w.r.Float32()}
			if w.r.IntN(3) > 0 {
				slices.Sort(l.Terms)
				l.Terms = slices.Compact(l.Terms)
			} else {
				for i := range l.Terms {
					l.Phrase = append(l.Phrase, uint32(i+i*w.r.IntN(2)))
				}
			}
			g.Leaves = append(g.Leaves, l)
		}
		q.Groups = append(q.Groups, g)
	}
	if w.r.IntN(4) == 0 {
		q.AtLeast = 1 + w.r.IntN(2)
	}
	return q
}

// check compares what a view gives with what it should.
func (w *world) check(v *index.View, set string) {
	w.Helper()
	err := w.answers(v, set)
	if err = errors.Join(err, v.Close()); err != nil {
		w.Fatal(err)
	}
}

// compare is check of all that an index has, for one that may be damaged.
func (w *world) compare() error {
	v, err := w.ix.View()
	if err != nil {
		return err
	}
	return errors.Join(w.answers(v, ""), v.Close())
}

func (w *world) answers(v *index.View, set string) error {
	records := w.seen(set)
	if v.Len() != len(records) {
		return fmt.Errorf("%d records are seen, want %d", v.Len(), len(records))
	}
	for range 5 {
		q := w.query()
		want := find(records, q)
		m, err := v.Search(w.Context(), q)
		if err != nil {
			return err
		}
		if m.Len() != len(want) {
			return fmt.Errorf("%+v: %d found, want %d", q, m.Len(), len(want))
		}
		limit := 1 + w.r.IntN(20)
		hits := m.Top(limit)
		if len(hits) != min(limit, len(want)) {
			return fmt.Errorf("%+v: %d hits of %d", q, len(hits), len(want))
		}
		err = errors.Join(w.pages(m, hits), w.explain(v, q, hits))
		m.Release()
		if err != nil {
			return err
		}
		best := slices.SortedFunc(maps.Values(want), func(a, b float64) int {
			if a > b {
				return -1
			}
			return 1
		})
		for i, h := range hits {
			if s, ok := want[string(h.ID)]; !ok || math.Abs(s-float64(h.Score)) > 1e-4 || math.Abs(best[i]-s) > 1e-4 {
				return fmt.Errorf("%+v: hit %d is %s with %v, want %v (%v)", q, i, h.ID, h.Score, s, best[i])
			}
		}
	}
	for _, tc := range []struct {
		word     string
		distance int
	}{{"w1", 0}, {"w", 0}, {"w12", 1}, {"w5", 2}, {"x", 0}} {
		want := map[string]bool{}
		for _, r := range records {
			for word := range strings.FieldsSeq(r.fields[1]) {
				if tc.distance == 0 && strings.HasPrefix(word, tc.word) || tc.distance > 0 && differ(tc.word, word) <= tc.distance {
					want[word] = true
				}
			}
		}
		found, err := v.Expand(w.Context(), 1, tc.word, tc.distance, 1000)
		if err != nil {
			return err
		}
		got := map[string]bool{}
		for _, e := range found {
			got[e.Term] = true
		}
		if d := gocmp.Diff(want, got); d != "" {
			return fmt.Errorf("%s~%d: %s", tc.word, tc.distance, d)
		}
	}
	to := unit(w.r, 8)
	type near struct {
		id    string
		score float32
	}
	var want []near
	for id, r := range records {
		if r.vector != nil {
			var s float64
			for i := range to {
				s += float64(to[i]) * float64(r.vector[i])
			}
			want = append(want, near{id, float32(s)})
		}
	}
	slices.SortFunc(want, func(a, b near) int {
		if a.score > b.score {
			return -1
		}
		return 1
	})
	hits, err := v.Nearest(w.Context(), 9, to, 10)
	if err != nil || len(hits) != min(10, len(want)) {
		return fmt.Errorf("%d near, want %d, %w", len(hits), len(want), err)
	}
	for i, h := range hits {
		if string(h.ID) != want[i].id || math.Abs(float64(h.Score-want[i].score)) > 1e-5 {
			return fmt.Errorf("near %d: %s %v, want %v", i, h.ID, h.Score, want[i])
		}
	}
	return nil
}

// pages walks through all that was found.
func (w *world) pages(m *index.Matches, top []index.Hit) error {
	var pages []index.Hit
	for {
		n := 1 + w.r.IntN(50)
		page := m.Next(n)
		pages = append(pages, page...)
		if len(page) < n {
			break
		}
	}
	all := slices.SortedFunc(m.All(), func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), bytes.Compare(a.ID, b.ID))
	})
	if d := gocmp.Diff(all, pages); d != "" || len(all) != m.Len() {
		return fmt.Errorf("%d were found, %d in pages: %s", m.Len(), len(pages), d)
	}
	if d := gocmp.Diff(all[:len(top)], top); d != "" {
		return fmt.Errorf("the best are others than those of the first page: %s", d)
	}
	return nil
}

// explain compares the scores of hits with the sums of what they are explained with.
func (w *world) explain(v *index.View, q index.Query, hits []index.Hit) error {
	numbers := make([]uint32, len(hits))
	for i, h := range hits {
		numbers[i] = h.Number
	}
	whys, err := v.Explain(w.Context(), q, numbers)
	if err != nil || len(whys) != len(hits) {
		return fmt.Errorf("%d explained of %d, %w", len(whys), len(hits), err)
	}
	for i, why := range whys {
		r, sum := w.records[string(hits[i].ID)], float32(0)
		for _, p := range why.Parts {
			l := q.Groups[p.Group].Leaves[p.Leaf]
			sum += p.Score
			if p.Field != l.Field || p.Count != counts(l, r.fields[l.Field]) || p.Length != len(strings.Fields(r.fields[l.Field])) {
				return fmt.Errorf("%+v: of %+v is said %+v", l, r, p)
			}
			for _, term := range l.Terms {
				has := slices.Contains(strings.Fields(r.fields[l.Field]), term)
				if has != slices.Contains(p.Terms, term) {
					return fmt.Errorf("%+v: of %+v is said %+v", l, r, p)
				}
			}
		}
		if math.Abs(float64(sum*why.Recency-hits[i].Score)) > 1e-4 {
			return fmt.Errorf("%+v is explained by %+v", hits[i], why)
		}
		if value, ok := v.Value(7, hits[i].Number); ok != (r.day != 0) || value != r.day*day.Milliseconds() {
			return fmt.Errorf("the value of %+v is %d, %v", r, value, ok)
		}
	}
	return nil
}

// differ is the distance of two words, by its definition.
func differ(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return differ(a[1:], b[1:])
	}
	return 1 + min(differ(a[1:], b), differ(a, b[1:]), differ(a[1:], b[1:]))
}

// view gives all records, or those of a set.
func (w *world) view(set string) *index.View {
	if set == "" {
		v, err := w.ix.View()
		if err != nil {
			w.Fatal(err)
		}
		return v
	}
	v, err := w.ix.ViewSet(w.Context(), set, func(r record) bool { return r.public }, func(_ context.Context, add func(id []byte, rev int64) error) error {
		for id, r := range w.records {
			if r.public {
				if err := add([]byte(id), r.rev); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// TestAgainstRecords writes at random and compares every answer with what the records themselves say, in memory, while it is
// written, on disk, and after it was opened again.
func TestAgainstRecords(t *testing.T) {
	t.Parallel()
	w := &world{T: t, r: rand.New(rand.NewPCG(*seed, 0)), dir: t.TempDir(), records: map[string]record{}}
	w.db = open(t, w.dir)
	w.ix = openIndex(t, w.db, "a")
	for range *rounds {
		w.write()
		switch w.r.IntN(20) {
		case 0:
			if err := w.ix.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 1:
			closeDB(t, w.db)
			w.db = open(t, w.dir)
			w.ix = openIndex(t, w.db, "a")
			if got, want := string(w.ix.Position()), strconv.FormatInt(w.rev, 10); got != want {
				t.Fatalf("opened at %s, want %s", got, want)
			}
		case 2:
			w.ix.Forget("public")
		}
		w.check(w.view(""), "")
		w.check(w.view("public"), "public")
	}
	closeDB(t, w.db)
}
