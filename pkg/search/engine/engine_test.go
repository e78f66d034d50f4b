package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// world is a project whose records are searched.
type world struct {
	t       *testing.T
	store   store.Store
	dir     string // of the indexes
	engine  *engine.Engine
	groups  *embedding.Groups
	now     func() time.Time
	project *project.Project
	names   project.Names // of renamed fields
	rev     int64

	scripts  engine.Scripts // nil: none
	retries  []time.Duration
	registry *prometheus.Registry
}

var worlds atomic.Int64

func newWorld(t *testing.T, s store.Store, collections string, more ...func(w *world)) *world {
	t.Helper()
	w := &world{t: t, store: s, now: time.Now}
	for _, change := range more {
		change(w)
	}
	w.begin(collections)
	return w
}

// begin makes the project.
func (w *world) begin(collections string) {
	w.t.Helper()
	w.dir = w.t.TempDir()
	namespace := fmt.Sprintf("search-%d-%d", os.Getpid(), worlds.Add(1))
	w.project = w.load(namespace, collections)
	w.t.Cleanup(func() {
		w.close()
		if err := w.store.DropDatabase(context.WithoutCancel(w.t.Context()), w.database()); err != nil {
			w.t.Error(err)
		}
	})
	w.open()
}

func (w *world) load(namespace, collections string) *project.Project {
	w.t.Helper()
	dir := w.t.TempDir()
	config := "namespace: " + namespace + "\ncollections:\n" + collections
	if err := os.WriteFile(filepath.Join(dir, "project.yaml"), []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
	p, problems := project.Load(dir, "project.yaml", nil)
	if p == nil {
		w.t.Fatal(problems)
	}
	return p
}

// reload serves another config.
func (w *world) reload(collections string) {
	w.t.Helper()
	p := w.load(w.project.Namespace, collections)
	p.Generation = w.project.Generation + 1
	w.project = p
	if err := w.engine.Serve(p); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open() {
	w.t.Helper()
	if w.registry != nil { // of the engine before
		w.registry = prometheus.NewRegistry()
	}
	o := engine.Options{
		Store: w.store, Dir: w.dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), Now: w.now,
		Groups: w.groups, Retries: w.retries,
	}
	if w.registry != nil {
		o.Registerer = w.registry
	}
	e, err := engine.Open(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.scripts != nil {
		e.Scripted(w.scripts)
	}
	if err := e.Serve(w.project); err != nil {
		w.t.Fatal(err)
	}
	w.engine = e
}

func (w *world) close() {
	w.t.Helper()
	if w.engine == nil {
		return
	}
	if err := w.engine.Close(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Error(err)
	}
	w.engine = nil
}

func (w *world) database() string { return project.DatabaseName(w.project.Namespace) }

func (w *world) records(collection string) store.Collection {
	return w.store.Database(w.database()).Collection(w.project.Collections[collection].StoredName())
}

// put writes records as the service does, and says so to the engine.
func (w *world) put(collection string, docs ...bson.D) {
	w.t.Helper()
	c := w.project.Collections[collection]
	since := w.engine.Writing(w.project, c)
	w.engine.Written(w.t.Context(), w.project, c, since, w.write(collection, docs...))
}

// putUnread is put of records that have to be read, since the engine knows nothing of what happened while they were written.
func (w *world) putUnread(collection string, docs ...bson.D) {
	w.t.Helper()
	w.engine.Written(w.t.Context(), w.project, w.project.Collections[collection], engine.Writing{}, w.write(collection, docs...))
}

// write writes records behind the engine's back.
func (w *world) write(collection string, docs ...bson.D) (written []engine.Record) {
	w.t.Helper()
	var ops []store.Op
	for _, d := range docs {
		w.rev++
		id, _ := document.Member(d, "_id")
		filter, err := mql.Compile(bson.D{{Key: "_id", Value: id}})
		if err != nil {
			w.t.Fatal(err)
		}
		d = append(slices.Clone(d), bson.E{Key: "_rev", Value: w.rev})
		if _, has := document.Member(d, "updatedAt"); !has {
			d = append(d, bson.E{Key: "updatedAt", Value: bson.DateTime(1)})
		}
		raw, err := bson.Marshal(d)
		if err != nil {
			w.t.Fatal(err)
		}
		op := store.Op{Kind: store.Replace, Doc: raw, Filter: filter, Upsert: true}
		if len(d) == len(doc(0))+2 {
			op, raw = store.Op{Kind: store.Delete, Filter: filter}, nil
		}
		ops = append(ops, op)
		written = append(written, engine.Record{ID: id.(bson.ObjectID), Doc: raw})
	}
	results, err := w.records(collection).Write(w.t.Context(), ops, false)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, errs.ErrNotFound) {
			w.t.Fatal(r.Err)
		}
	}
	return written
}

func id(n int) bson.ObjectID { return bson.ObjectID{10: byte(n >> 8), 11: byte(n)} }

func doc(n int, members ...any) bson.D {
	out := bson.D{{Key: "_id", Value: id(n)}}
	for i := 0; i < len(members); i += 2 {
		out = append(out, bson.E{Key: members[i].(string), Value: members[i+1]})
	}
	return out
}

// with changes a query.
type with func(q *engine.Query)

func seeing(filter bson.D) with {
	return func(q *engine.Query) {
		f, err := mql.Compile(filter)
		if err != nil {
			panic(err)
		}
		q.Filter = f
	}
}

func hiding(paths ...string) with {
	return func(q *engine.Query) { q.Hidden = document.NewPathSet(paths...) }
}

func inGerman(q *engine.Query) { q.Lang = "de" }

// look gives what is found, as the last bytes of ids.
func (w *world) look(collection, name, q string, how ...with) (found []int, err error) {
	w.t.Helper()
	hits, err := w.hits(collection, name, q, how...)
	for _, h := range hits {
		found = append(found, int(h.ID[10])<<8|int(h.ID[11]))
	}
	return found, err
}

func (w *world) hits(collection, name, q string, how ...with) ([]engine.Hit, error) {
	w.t.Helper()
	words, err := search.Parse(q)
	if err != nil {
		w.t.Fatal(err)
	}
	c := w.project.Collections[collection]
	query := engine.Query{Project: w.project, Collection: c, Search: c.Search(name), Text: q, Words: words}
	for _, change := range how {
		change(&query)
	}
	for until := time.Now().Add(30 * time.Second); ; {
		r, err := w.engine.Search(w.t.Context(), query)
		if errors.Is(err, engine.ErrBuilding) && time.Now().Before(until) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return r.Next(cmp.Or(query.TopK, 1000)), r.Close()
	}
}

func (w *world) finds(collection, name, q string, want []int, how ...with) {
	w.t.Helper()
	got, err := w.look(collection, name, q, how...)
	if err != nil || !slices.Equal(got, want) {
		w.t.Errorf("%s %s: %q finds %v, %v, want %v", collection, name, q, got, err, want)
	}
}

// soon waits for what the feed tells.
func (w *world) soon(name, q string, want []int, how ...with) {
	w.t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if got, err := w.look("articles", name, q, how...); err == nil && slices.Equal(got, want) {
			return
		}
	}
	w.finds("articles", name, q, want, how...)
}

const articles = `
  - name: articles
    defaultLanguage: en
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields:
      - {name: title, type: string}
      - {name: body, type: string}
      - {name: tags, type: "string[]"}
      - {name: status, type: string}
    search:
      - {name: main, mode: text, fields: [title, body, tags], score: {weights: {title: 3}}}
      - {name: parts, mode: ngram, fields: [title]}
      - {name: both, mode: rrf, rrf: {sources: [main, parts]}}
`

// TestSearch looks for words in every form.
func TestSearch(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		w.put("articles",
			doc(1, "title", "Growing tomatoes", "body", "Water the plants in the morning.", "tags", bson.A{"garden", "food"}, "status", "published"),
			doc(2, "title", "A garden in winter", "body", "Tomatoes don't grow in the snow, and plants sleep.", "status", "draft"),
			doc(3, "title", "Cooking", "body", "Cook the soup slowly.", "tags", bson.A{"food"}, "status", "published"),
		)
		for _, x := range []struct {
			search, q string
			want      []int
			how       []with
		}{
			{"main", "tomato", []int{1, 2}, nil}, // by its stem; the title counts more
			{"main", "plants sleep", []int{2, 1}, nil},
			{"main", "+plants +sleep", []int{2}, nil},
			{"main", "plants -sleep", []int{1}, nil},
			{"main", `"plants sleep"`, []int{2}, nil},
			{"main", `"sleep plants"`, nil, nil},
			{"main", "slow*", []int{3}, nil},
			{"main", "tomatoez", []int{1, 2}, nil}, // no record has it: what is nearest
			{"main", "the", nil, nil},
			{"main", "garden food", []int{2, 1, 3}, nil},
			{"main", `"garden food"`, nil, nil}, // no phrase goes from one text to the next
			{"parts", "rowin", []int{1}, nil},
			{"parts", "coking", []int{3}, nil},
			{"both", "garden", []int{2, 1}, nil},
			{"main", "food", []int{3, 1}, []with{seeing(bson.D{{Key: "status", Value: "published"}})}},
			{"main", "garden", []int{1}, []with{seeing(bson.D{{Key: "status", Value: "published"}})}},
			{"main", "garden", []int{2}, []with{hiding("tags")}},
			{"both", "garden", []int{1}, []with{hiding("title")}},
		} {
			w.finds("articles", x.search, x.q, x.want, x.how...)
		}
		if _, err := w.look("articles", "parts", "garden", hiding("title")); !errors.Is(err, engine.ErrNothingToSearch) {
			t.Errorf("a search of what is hidden: %v", err)
		}
		w.put("articles", doc(1, "title", "Nothing", "status", "published"), doc(3))
		w.finds("articles", "main", "tomato", []int{2})
		w.finds("articles", "main", "cook", nil)
		w.finds("articles", "main", "nothing", []int{1}, seeing(bson.D{{Key: "status", Value: "published"}}))
		w.write("articles", doc(4, "title", "Written by others: tomatoes"))
		w.soon("main", "tomato", []int{4, 2})
	})
}

// TestScoresAreOfWhatIsSeen is about row S7: records that a caller may not see change neither scores nor what a misspelled word leads to.
func TestScoresAreOfWhatIsSeen(t *testing.T) {
	published := seeing(bson.D{{Key: "status", Value: "published"}})
	scores := func(w *world, q string) string {
		hits, err := w.hits("articles", "main", q, published)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, h := range hits {
			_, _ = fmt.Fprintln(&out, h.ID.Hex(), h.Score)
		}
		return out.String()
	}
	s := teststore.Memory(t)
	alone, among := newWorld(t, s, articles), newWorld(t, s, articles)
	for n := range 40 {
		d := doc(n, "title", []string{"A red house", "The green garden", "Gardens and houses"}[n%3], "body", strings.Repeat("stone ", n%5), "status", "published")
		alone.put("articles", d)
		among.put("articles", d, doc(1000+n, "title", "A secret garden with gardens", "body", "wordz secretly stoned", "status", "draft"))
	}
	for _, q := range []string{"garden", "red garden", "stone*", "secret", "wordz", "words", "gardan"} {
		if a, b := scores(alone, q), scores(among, q); a != b {
			t.Errorf("%q: %s alone, %s among others", q, a, b)
		}
	}
}

// TestIndexEqualsStore is row R3 in small: whatever happens, the index is what the records are.
func TestIndexEqualsStore(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		words := strings.Fields("apple banana cherry damson elder fig grape hazel")
		r := rand.New(rand.NewPCG(seed(), uint64(len(s.Name()))))
		have := map[int]string{}
		step := func() {
			n := r.IntN(60)
			switch r.IntN(8) {
			case 0:
				delete(have, n)
				w.put("articles", doc(n))
			case 1: // behind the engine's back
				have[n] = words[r.IntN(len(words))]
				w.write("articles", doc(n, "title", have[n]))
			case 2:
				if r.IntN(6) == 0 {
					w.close()
					if r.IntN(3) == 0 {
						if err := os.RemoveAll(w.dir); err != nil {
							t.Fatal(err)
						}
					}
					have[n] = words[r.IntN(len(words))]
					w.write("articles", doc(n, "title", have[n]))
					w.open()
				}
			default:
				have[n] = words[r.IntN(len(words))]
				w.put("articles", doc(n, "title", have[n]))
			}
		}
		for range 10 {
			for range 40 {
				step()
			}
			for _, word := range words {
				var want []int
				for n, title := range have {
					if title == word {
						want = append(want, n)
					}
				}
				slices.Sort(want)
				w.soon("main", word, want)
			}
		}
	})
}

// TestLanguages looks for translations in their language, and for the field itself where there is none.
func TestLanguages(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), `
  - name: pages
    meta: {i18n: {languages: [en, de]}}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields: [{name: title, type: string}]
    search: [{name: main, mode: text}]
`)
	w.put("pages",
		doc(1, "title", "Houses", "_i18n", bson.D{{Key: "de", Value: bson.D{{Key: "title", Value: "Gärten"}}}}),
		doc(2, "title", "Gardens"))
	w.finds("pages", "main", "house", []int{1})
	w.finds("pages", "main", "gärten", nil)
	w.finds("pages", "main", "garten", []int{1}, inGerman)
	w.finds("pages", "main", "gardens", []int{2}, inGerman)
	w.finds("pages", "main", "houses", nil, inGerman)
	w.finds("pages", "main", "houses", []int{1}, inGerman, hiding("_i18n.de.title"))
}

// TestConfigChanges has the index before answer until the new one is made, if that is asked for.
func TestConfigChanges(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), articles)
	w.put("articles", doc(1, "title", "Tomatoes", "body", "red"), doc(2, "title", "Cooking", "body", "tomatoes"))
	w.finds("articles", "main", "tomato", []int{1, 2})
	w.reload(strings.Replace(articles, "fields: [title, body, tags], score: {weights: {title: 3}}", "fields: [body]", 1))
	w.finds("articles", "main", "tomato", []int{1, 2}) // nobody has asked for another index
	w.put("articles", doc(3, "title", "Tomatoes, too"))
	w.finds("articles", "main", "tomato", []int{1, 3, 2})
	w.close()
	w.open()
	w.finds("articles", "main", "tomato", []int{1, 3, 2})
	w.reload(strings.Replace(articles, "fields: [title, body, tags], score: {weights: {title: 3}}", "fields: [body], autoRegenerate: true", 1))
	w.soon("main", "tomato", []int{2})
	w.reload(strings.Replace(articles, "main, parts", "main", 1))
	w.reload(strings.ReplaceAll(articles, "name: articles", "name: others"))
	w.put("others", doc(1, "title", "Tomatoes"))
	w.finds("others", "main", "tomato", []int{1})
}

// seed is 7, or what SEED says.
func seed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		return 7
	}
	return n
}

// patience is how long a test waits for what comes by itself: generous, since a loaded machine is no failure.
const patience = 2 * time.Minute

// TestRegenerate makes indexes anew, here and where the project is served the next time.
func TestRegenerate(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		w.put("articles", doc(1, "title", "Tomatoes"), doc(2, "title", "Cooking"))
		other, err := engine.Open(t.Context(), engine.Options{Store: s, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := other.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		if err := other.Serve(w.project); err != nil {
			t.Fatal(err)
		}
		w.finds("articles", "main", "tomato", []int{1})
		w.finds("articles", "parts", "tomato", []int{1})
		c := w.project.Collections["articles"]
		var told []string
		err = w.engine.Regenerate(t.Context(), w.project, c, "main", func(collection, search string, done, total int64) {
			told = append(told, fmt.Sprint(collection, "/", search, " ", done, " of ", total))
		})
		if err != nil || len(told) == 0 || told[len(told)-1] != "articles/main 2 of 2" {
			t.Errorf("regenerate: %v, %v", told, err)
		}
		w.finds("articles", "main", "tomato", []int{1})
		if err := w.engine.Regenerate(t.Context(), w.project, c, "none", nil); errs.From(err).Code != "unknown_search" {
			t.Errorf("regenerate what is not there: %v", err)
		}
		if err := other.Serve(w.project); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			q := other.Queue(w.project, c)
			if len(q.Searches) == 2 && q.Searches[0].State == engine.Ready && q.Searches[0].Done == 0 && q.Searches[1].State == engine.Ready {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("the other instance: %+v", q)
			}
		}
	})
}

// TestSearchWhileItIsMadeAnew looks for records while their index is replaced again and again.
func TestSearchWhileItIsMadeAnew(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), articles)
	w.put("articles", doc(1, "title", "Tomatoes"))
	w.finds("articles", "main", "tomato", []int{1})
	done := make(chan error)
	go func() {
		var err error
		for range 20 {
			err = errors.Join(err, w.engine.Regenerate(t.Context(), w.project, nil, "", func(string, string, int64, int64) {}))
		}
		done <- err
	}()
	for {
		w.finds("articles", "main", "tomato", []int{1})
		w.put("articles", doc(1, "title", "Tomatoes"))
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// TestSharedDirectory has two instances with one data directory have indexes of their own.
func TestSharedDirectory(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), articles)
	first := w.engine
	w.open()
	w.put("articles", doc(1, "title", "Tomatoes"))
	w.finds("articles", "main", "tomato", []int{1})
	w.close()
	w.engine = first
	w.soon("main", "tomato", []int{1})
	for name, want := range map[string]bool{"": true, "-2": true, "-3": false} {
		if _, err := os.Stat(w.dir + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIndexesThatNothingNeeds are of projects whose searches, or which themselves, went while the instance was stopped.
func TestIndexesThatNothingNeeds(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, articles)
		w.put("articles", doc(1, "title", "a garden"))
		w.finds("articles", "main", "garden", []int{1})
		served := w.project
		w.close()
		w.project = w.load(served.Namespace, "  - {name: articles, permissions: {public: {methods: {}}, user: {methods: {}}}}\n")
		w.open()
		if n := engine.Indexes(w.engine); n != 0 {
			t.Errorf("%d indexes of a project without searches", n)
		}
		w.project = served
		w.close()
		w.open()
		w.finds("articles", "main", "garden", []int{1})
		w.close()
		w.project = w.load(served.Namespace+"-other", articles)
		w.open()
		if err := engine.DropUnserved(w.engine); err != nil {
			t.Fatal(err)
		}
		if n := engine.Indexes(w.engine); n > 2 {
			t.Errorf("%d indexes, some of a project that is not served", n)
		}
		if err := s.DropDatabase(t.Context(), w.database()); err != nil {
			t.Error(err)
		}
		w.project = served
	})
}
