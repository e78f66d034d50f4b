package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	searchRounds   = 3
	searchWords    = 250     // of a body
	searchDistinct = 200_000 // words that there are
	searchAuthors  = 200
	searchSections = 20
	searchPath     = "/api/v1/_/bench/searched"
)

// sought is one kind of request of measureSearch.
type sought struct {
	operation

	target  string
	whileOf *operation // that is done at the same time, over a connection of its own; nil: none is
	one     bool       // it is asked over one connection alone: 16 would be told that too many long reads run
}

// connections are how many it is asked over, at most and by turns.
func (o sought) connections() []int {
	if o.one {
		return []int{1}
	}
	return []int{1, connections}
}

// measureSearch measures searches of a collection, what its indexes cost writes, and how much room they take.
func measureSearch(ctx context.Context, o options) (err error) {
	if err := vectorSettings(); err != nil {
		return err
	}
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := s.addCollection("searched", "searched", nil); err != nil {
		return err
	}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	if _, err := seed(ctx, s, 1); err != nil {
		return err
	}
	t := newTexts(1)
	fmt.Printf("%d records, %s store\n", o.searched, s.store())
	ids, err := s.indexing(ctx, t, o.searched)
	if err != nil {
		return err
	}
	if err := errors.Join(s.searching(ctx, o, ids), s.printMemory(ctx, "after searching, at rest")); err != nil {
		return err
	}
	if o.only != "" {
		return nil // the vectors take long to make
	}
	return errors.Join(s.vectors(ctx, o), s.printMemory(ctx, "with vectors, at rest"))
}

// indexing fills the collection, has its text index made anew, and prints what that takes.
func (s *server) indexing(ctx context.Context, t *texts, records int) (ids []string, err error) {
	err = s.peak(ctx, "importing", func() (took time.Duration, err error) {
		ids, took, err = s.importTexts(ctx, t, records)
		return took, err
	}, records)
	if err != nil {
		return nil, err
	}
	err = s.peak(ctx, "regenerate-search of mode text (target: 3000 records/s)", func() (time.Duration, error) { return s.regenerate(ctx, "words") }, records)
	if err != nil {
		return nil, err
	}
	if err := s.printMemory(ctx, "after indexing, at rest"); err != nil {
		return nil, err
	}
	var worker struct {
		Collections []struct {
			Searches []struct {
				Name          string
				Bytes, Memory int64
			} `json:"searches"`
		} `json:"collections"`
	}
	if err := s.want(ctx, http.MethodGet, "/api/v1/_/bench/_/admin/search-worker/status", nil, http.StatusOK, &worker); err != nil {
		return nil, err
	}
	for _, c := range worker.Collections {
		for _, x := range c.Searches {
			if x.Bytes > 0 {
				fmt.Printf("index %-10s %.1f MB on disk, %.1f MB in memory\n", x.Name, float64(x.Bytes)/1e6, float64(x.Memory)/1e6)
			}
		}
	}
	size, err := sizeOf(filepath.Join(s.dir, "data", "search"))
	fmt.Printf("data.dir/search  %.1f MB, %.2f times the text of %.1f MB (target: 1.2)\n", float64(size)/1e6, float64(size)/float64(t.bytes), float64(t.bytes)/1e6)
	return ids, err
}

// peak runs something that takes records in, and prints how long it takes and the most memory that was seen.
func (s *server) peak(ctx context.Context, what string, f func() (time.Duration, error), records int) error {
	most, stop := s.watchMemory(ctx)
	before, err := s.usage(ctx)
	if err != nil {
		return err
	}
	took, err := f()
	stop()
	if err != nil {
		return err
	}
	after, err := s.usage(ctx)
	fmt.Printf("%s: %.0f records/s, %.0f CPU µs/record, %.0f MiB at most (target: 500)\n",
		what, float64(records)/took.Seconds(), 1e6*(after.cpuSeconds-before.cpuSeconds)/float64(records), *most)
	return err
}

func (s *server) printMemory(ctx context.Context, when string) error {
	u, err := s.atRest(ctx)
	fmt.Printf("memory %s: %.0f MiB (target: 500)\n", when, u.mib)
	return err
}

func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // the index has thrown it away
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// texts makes records whose words are as frequent as those of texts are.
type texts struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	bytes int64 // of all titles and bodies that were made
}

func newTexts(seed uint64) *texts {
	rng := rand.New(rand.NewPCG(seed, 16))
	return &texts{rng: rng, zipf: rand.NewZipf(rng, 1.1, 20, searchDistinct)}
}

// word is the word of a rank: two syllables and more.
func (t *texts) word() string {
	var b [32]byte
	out := b[:0]
	for n := t.zipf.Uint64() + uint64(len(syllables)); n > 0; n /= uint64(len(syllables)) {
		out = append(out, syllables[n%uint64(len(syllables))]...)
	}
	return string(out)
}

//nolint:gochecknoglobals // a constant
var syllables = strings.Fields("ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu tri sta plo gre bran")

func (t *texts) text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.word())
	}
	return b.String()
}

func (t *texts) record() map[string]any {
	title, body := t.text(4+t.rng.IntN(5)), t.text(searchWords-50+t.rng.IntN(101))
	t.bytes += int64(len(title) + len(body))
	at := time.Date(2023, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(t.rng.Int64N(int64(3 * 365 * 24 * time.Hour))))
	return map[string]any{
		"title": title, "body": body, "author": fmt.Sprintf("author-%03d", t.rng.IntN(searchAuthors)),
		"section": noteSection(t.rng.IntN(searchSections)), "status": []string{"published", "published", "published", "draft", "archived"}[t.rng.IntN(5)],
		"publishedAt": at.Format("2006-01-02T15:04:05.000Z"),
	}
}

// importTexts creates records in bulks, each when the one before can be found. took is the time of the requests.
func (s *server) importTexts(ctx context.Context, t *texts, n int) (ids []string, took time.Duration, err error) {
	for len(ids) < n {
		items := make([]any, min(batch, n-len(ids)))
		for i := range items {
			items[i] = t.record()
		}
		body, err := json.Marshal(map[string]any{"items": items})
		if err != nil {
			return nil, 0, err
		}
		began := time.Now()
		var answer struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
		}
		if err := s.want(ctx, http.MethodPost, searchPath, json.RawMessage(body), http.StatusCreated, &answer); err != nil {
			return nil, 0, err
		}
		took += time.Since(began)
		for _, item := range answer.Items {
			ids = append(ids, item.ID)
		}
	}
	return ids, took, nil
}

// regenerate has an index made anew.
func (s *server) regenerate(ctx context.Context, search string) (time.Duration, error) {
	began := time.Now()
	var run struct{ ID, Status string }
	path := "/api/v1/_/bench/_/admin/regenerate-search"
	if err := s.want(ctx, http.MethodPost, path+"?collection=searched&search="+search, nil, http.StatusAccepted, &run); err != nil {
		return 0, err
	}
	for {
		if err := s.want(ctx, http.MethodGet, path+"/"+run.ID, nil, http.StatusOK, &run); err != nil {
			return 0, err
		}
		switch run.Status {
		case "succeeded":
			return time.Since(began), nil
		case "failed", "cancelled":
			return 0, errors.New("regenerate-search: " + run.Status)
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// searching measures all kinds of searches, and writes.
func (s *server) searching(ctx context.Context, o options, ids []string) error {
	writes := s.searchWrites(ids)
	update := writes[0].operation
	return s.measured(ctx, o, append(searches(&update), writes...))
}

// measured measures some kinds of requests.
func (s *server) measured(ctx context.Context, o options, all []sought) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(one sought) bool { return !only.MatchString(one.name) })
	if len(all) == 0 {
		return nil
	}
	rows := make([][2][]run, len(all))
	sizes := make([]int, len(all))
	for i, one := range all {
		fmt.Fprintf(os.Stderr, "measuring %s …\n", one.name)
		var err error
		if sizes[i], err = s.answerSize(ctx, one.operation); err != nil {
			return err
		}
		by := one.connections()
		if _, err := load(ctx, s, one.operation, by[len(by)-1], o.duration/4, nil); err != nil { // warm-up
			return err
		}
		for range searchRounds {
			for j, n := range by {
				r, err := s.beside(ctx, one, n, o.duration/4)
				if err != nil {
					return err
				}
				rows[i][j] = append(rows[i][j], r)
			}
		}
	}
	var w strings.Builder
	w.WriteString("\tbytes\tp50 ms of 1\tp99 ms of 1\trequests/s of 16\tp50 ms of 16\tCPU µs/request\ttarget\t\n")
	for i, one := range all {
		alone, most := rows[i][0], rows[i][len(one.connections())-1]
		many := "-\t-" // of 16
		if !one.one {
			many = fmt.Sprintf("%.0f\t%.2f", median(column(most, perSecondOf)), median(column(most, p50Of)))
		}
		fmt.Fprintf(&w, "%s\t%d\t%.2f\t%.2f\t%s\t%.0f\t%s\t\n", one.name, sizes[i], median(column(alone, p50Of)), median(column(alone, p99Of)),
			many, median(column(most, cpuOf)), one.target)
	}
	return printTable(w.String() + "\n")
}

// beside is a load, while another operation is done.
func (s *server) beside(ctx context.Context, one sought, connections int, duration time.Duration) (run, error) {
	if one.whileOf == nil {
		return load(ctx, s, one.operation, connections, duration, nil)
	}
	var writing sync.WaitGroup
	var failed error
	writing.Go(func() {
		_, failed = connection(ctx, s.addr, *one.whileOf, uint64(connections), time.Now().Add(duration))
	})
	r, err := load(ctx, s, one.operation, connections, duration, nil)
	writing.Wait()
	return r, errors.Join(err, failed)
}

// answerSize is how long answers are.
func (s *server) answerSize(ctx context.Context, op operation) (int, error) {
	const samples = 20
	rng := rand.New(rand.NewPCG(1, 2))
	size := 0
	for range samples {
		method, path, body := op.make(rng)
		var data any
		if body != "" {
			data = json.RawMessage(body)
		}
		as := "Accept: application/json"
		if op.header != "" {
			as = strings.TrimSpace(op.header)
		}
		status, answer, err := s.callAs(ctx, as, method, path, data)
		if err != nil || status != op.status {
			return 0, errors.Join(fmt.Errorf("%s: status %d: %.300s", path, status, answer), err)
		}
		size += len(answer)
	}
	return size / samples, nil
}

// searches are all kinds of them. To measure one more search of the collection, name it here.
func searches(update *operation) []sought {
	token := func(name string) string { return "Token: bench-search-token-of-" + name + "\r\n" }
	two := func(name, target, header, more string) sought {
		return sought{operation: query(name, header, searchPath+"?limit=20&"+more+"&q="), target: target}
	}
	out := []sought{
		two("text, 2 words", "5 ms of 1, 1500/s of 16", "", "qName=words"),
		two("text, titles alone", "", "", "qName=words&select=title"),
		two("ngram of titles", "10 ms of 1", "", "qName=parts"),
		two("rrf of text and ngram", "30 ms of 1", "", "qName=both"),
		two("text, count", "", "", "qName=words&count=true"),
		two("text, highlight", "", "", "qName=words&highlight=true"),
		two("text, explain", "", "", "qName=words&explain=true"),
		two("text, filter of a 20th", "", "", "qName=words&filter="+url.QueryEscape(`{"section":"`+noteSection(7)+`"}`)),
		two("text, who sees a 200th", "", token("an-author"), "qName=words"),
		two("text, who sees 60 %", "", token("what-is-published"), "qName=words"),
		two("text, who sees up to now", "", token("before-now"), "qName=words"),
		{operation: query("facet of 2 fields", "", searchPath+"/_facet?fields=section,status&qName=words&q="), one: true},
		{operation: query("facet, the best 1000", "", searchPath+"/_facet?fields=section,status&qLimit=1000&qName=words&q=")},
	}
	return append(out, sought{operation: query("text, while records are updated", "", searchPath+"?limit=20&qName=words&q="), whileOf: update})
}

// query looks for two words. path ends in "q=".
func query(name, header, path string) operation {
	var drawing sync.Mutex
	t := newTexts(2)
	return operation{name, http.StatusOK, 10, header, func(*rand.Rand) (string, string, string) {
		drawing.Lock()
		defer drawing.Unlock()
		return http.MethodGet, path + url.QueryEscape(t.text(2)), ""
	}}
}

// searchWrites are writes of records that are searched.
func (s *server) searchWrites(ids []string) []sought {
	t := newTexts(3)
	bodies := make([]string, 500)
	for i := range bodies {
		record := t.record()
		record["title"] = "@N@ " + record["title"].(string) //nolint:errcheck // it is one
		data, err := json.Marshal(record)
		if err != nil {
			panic(err) // strings
		}
		bodies[i] = string(data)
	}
	var n atomic.Int64
	body := func(rng *rand.Rand) string {
		return strings.Replace(bodies[rng.IntN(len(bodies))], "@N@", "n"+strconv.FormatInt(n.Add(1), 10), 1)
	}
	const target = "3 ms of 1, 1500/s of 16"
	return []sought{
		{operation: operation{"update", http.StatusOK, 500, "", func(rng *rand.Rand) (string, string, string) {
			return http.MethodPut, searchPath + "/" + ids[rng.IntN(len(ids))], body(rng)
		}}, target: target},
		{operation: operation{"create", http.StatusCreated, 500, "", func(rng *rand.Rand) (string, string, string) {
			return http.MethodPost, searchPath, body(rng)
		}}, target: target},
	}
}
