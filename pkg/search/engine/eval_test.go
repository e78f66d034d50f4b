package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// scripts runs the scripts of the tests.
func scripts(t *testing.T, log *slog.Logger) *hooks.Runner {
	t.Helper()
	e := script.NewEngine(script.Options{})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := hooks.New(hooks.Options{Engine: e, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// running has a world run scripts; those that fail are tried again after some times.
func running(t *testing.T, retries ...time.Duration) func(w *world) {
	return func(w *world) {
		w.scripts, w.retries = scripts(t, nil), append([]time.Duration{}, retries...)
	}
}

const (
	quick = time.Millisecond
	never = time.Hour
)

const goods = `
  - name: articles
    defaultLanguage: en
    meta: {i18n: {languages: [en, de]}}
    strictFields: true
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields:
      - {name: title, type: string}
      - {name: price, type: number}
      - {name: made, type: date}
      - {name: size, type: object, subFields: [{name: color, type: string}, {name: length, type: number}]}
      - {name: status, type: string}
    search:
      - {name: main, mode: text, text: {fuzziness: off}, fields: [title, price, made, size], eval: EVAL}
      - {name: parts, mode: ngram, fields: [title, size.color], eval: "[ctx.doc.title || '', (ctx.doc.size || {}).color || '', ctx.lang && 'lang' + ctx.lang]"}
      - {name: both, mode: rrf, rrf: {sources: [main, parts]}}
`

// ofGoods is the goods with an expression of main.
func ofGoods(eval string) string { return strings.ReplaceAll(goods, "EVAL", "'"+eval+"'") }

const described = "`$${ctx.doc.title} for $${ctx.doc.price} EUR in $${(ctx.doc.size || {}).color} of $${ctx.doc.made && ctx.doc.made.getUTCFullYear()} $${Object.keys(ctx.doc)} $${Object.keys(ctx.doc.size || {})} in$${ctx.lang || \"own\"}`"

// TestEval looks for what scripts say of records.
func TestEval(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, ofGoods(described), running(t, never))
		made := bson.NewDateTimeFromTime(time.Date(1987, 5, 1, 0, 0, 0, 0, time.UTC))
		w.put("articles",
			doc(1, "title", "House", "price", int64(450), "made", made, "status", "canary", "undeclared", "canary",
				"size", bson.D{{Key: "color", Value: "crimson"}, {Key: "hidden", Value: "canary"}},
				"_i18n", bson.D{{Key: "de", Value: bson.D{{Key: "title", Value: "Häuser"}, {Key: "size", Value: bson.D{{Key: "color", Value: "rot"}}}}}}),
			doc(2, "title", "Garden", "price", 12.5, "size", bson.D{{Key: "color", Value: "green"}}))
		for _, x := range []struct {
			search, q string
			want      []int
			how       []with
		}{
			{"main", "houses", []int{1}, nil},
			{"main", "450", []int{1}, nil},
			{"main", "1987", []int{1}, nil},
			{"main", `"12.5 EUR"`, []int{2}, nil},
			{"main", "inown", []int{2, 1}, nil},
			{"main", "inde", nil, nil},
			{"main", "canary", nil, nil},
			{"main", "_id", nil, nil},
			{"main", "status", nil, nil},
			{"main", "haus", []int{1}, []with{inGerman}}, // by its stem in German
			{"main", "rot", []int{1}, []with{inGerman}},
			{"main", "crimson", nil, []with{inGerman}},
			{"main", "garden", []int{2}, []with{inGerman}},
			{"main", "inde", []int{2, 1}, []with{inGerman}},
			{"main", "crimson", []int{1}, []with{inGerman, hiding("_i18n.de.title")}}, // they see the fields themselves
			{"main", "rot", nil, []with{inGerman, hiding("_i18n.de.title")}},
			{"main", "houses", []int{1}, []with{hiding("status")}},
			{"parts", "rimso", []int{1}, nil},
			{"parts", "langde", []int{1, 2}, []with{inGerman}},
			{"both", "450", []int{1}, nil},
			{"both", "450", nil, []with{hiding("size.length")}}, // parts has no such field
			{"both", "crimson", []int{1}, []with{hiding("size.length")}},
		} {
			w.finds("articles", x.search, x.q, x.want, x.how...)
		}
		for _, hidden := range []string{"title", "price", "size", "size.color", "size.length"} {
			if got, err := w.look("articles", "main", "house", hiding(hidden)); err == nil {
				t.Errorf("without %s: %v", hidden, got)
			}
		}
		w.put("articles", doc(2, "title", "Meadow", "size", bson.D{}))
		w.finds("articles", "main", "garden", nil)
		w.finds("articles", "main", "meadow", []int{2})
	})
}

// queue gives that of the articles.
func (w *world) queue() engine.Queue {
	return w.engine.Queue(w.project, w.project.Collections["articles"])
}

// metric gives the value of a gauge; -1: there is none.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	all, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// fails waits until so many records are parked.
func (w *world) fails(want int) engine.Queue {
	w.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		q := w.queue()
		if q.Failed == want && q.Pending+q.InFlight == 0 {
			return q
		}
		if time.Now().After(until) {
			w.t.Fatalf("%d records fail, want %d: %+v", q.Failed, want, q)
		}
	}
}

// TestEvalFails has records for which the script fails be found by nothing until they are written, and others as ever.
func TestEvalFails(t *testing.T) {
	const strict = `ctx.doc.price > 100 ? ctx.doc.title.toLowerCase() : ctx.doc.price < 0 ? ctx.doc.price : ["cheap", ctx.doc.title]`
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		var log bytes.Buffer
		w := newWorld(t, s, ofGoods(strict), func(w *world) {
			w.scripts, w.retries, w.registry = scripts(t, slog.New(slog.NewTextHandler(&log, nil))), []time.Duration{quick, quick}, prometheus.NewRegistry()
		})
		w.put("articles",
			doc(1, "title", "House", "price", 450, "size", bson.D{}),
			doc(2, "price", 450, "size", bson.D{}),                    // it throws
			doc(3, "title", "Nothing", "price", -1, "size", bson.D{}), // that is no text
			doc(4, "title", "Pen", "price", 2, "size", bson.D{}))
		w.finds("articles", "main", "house", []int{1})
		w.finds("articles", "main", "cheap", []int{4})
		w.finds("articles", "main", "nothing", nil)
		w.finds("articles", "parts", "nothing", []int{3})
		q := w.fails(2)
		if q.LastError == nil || !strings.Contains(q.LastError.Error(), "main") || q.Searches[0].Failed != 2 || q.Searches[1].Failed != 0 {
			t.Errorf("queue: %+v", q)
		}
		if n := w.metric("svc_search_failed"); n != 2 {
			t.Errorf("the metric tells %v", n)
		}
		w.put("articles", doc(2, "title", "Castle", "price", 450, "size", bson.D{}))
		w.finds("articles", "main", "castle", []int{2})
		w.fails(1)
		w.put("articles", doc(4, "price", 450, "size", bson.D{}))
		w.finds("articles", "main", "cheap", nil)
		w.fails(2)
		w.close()
		w.open()
		w.finds("articles", "main", "house", []int{1})
		w.fails(2)
		w.soon("parts", "astle", []int{2})
		w.put("articles", doc(3), doc(4))
		if q := w.fails(0); q.LastError != nil {
			t.Errorf("queue: %+v", q)
		}
		if n := strings.Count(log.String(), "script failed"); n != 2 {
			t.Errorf("%d lines in the log:\n%s", n, log.String())
		}
	})
}

// flaky fails for records as long as it is told to.
type flaky struct {
	engine.Scripts

	kind error

	mu   sync.Mutex
	runs int
	left int // runs that fail
}

func (f *flaky) Texts(p *project.Project, c *project.Collection, name string) func(context.Context, string, time.Time, bson.Raw) ([]string, error) {
	run := f.Scripts.Texts(p, c, name)
	return func(ctx context.Context, lang string, at time.Time, doc bson.Raw) ([]string, error) {
		f.mu.Lock()
		f.runs++
		f.left--
		fails := f.left >= 0
		f.mu.Unlock()
		if fails {
			return nil, f.kind
		}
		return run(ctx, lang, at, doc)
	}
}

// until waits for runs.
func (f *flaky) until(runs int) {
	for done := false; !done; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		done = f.runs >= runs
		f.mu.Unlock()
	}
}

// single is one search with a script.
const single = `
  - name: articles
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields: [{name: title, type: string}]
    search: [{name: main, mode: text, fields: [title], eval: ctx.doc.title}]
`

// TestEvalIsTriedAgain: what fails for a while is found without being written.
func TestEvalIsTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		failures int
		kind     error
		found    bool
	}{
		"at the last try":             {2, errors.New("not now"), true},
		"no more":                     {3, errors.New("not now"), false},
		"if it is no fault of theirs": {7, &errs.Error{Kind: errs.Unavailable, RetryAfter: quick}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flaky{Scripts: scripts(t, nil), kind: tt.kind, left: tt.failures}
			w := newWorld(t, teststore.Memory(t), single, func(w *world) { w.scripts, w.retries = f, []time.Duration{quick, quick} })
			w.finds("articles", "main", "house", nil)
			w.put("articles", doc(1, "title", "House"))
			if tt.found {
				w.soon("main", "house", []int{1})
				w.fails(0)
				return
			}
			f.until(3) // runs: that of the write, and two more
			if q := w.fails(1); q.LastError == nil || q.LastError.Error() != "not now" {
				t.Errorf("queue: %+v", q)
			}
			w.finds("articles", "main", "house", nil)
			w.close()
			w.open()
			w.soon("main", "house", []int{1}) // who opens the index tries again
			w.fails(0)
		})
	}
}

// TestEvalChanges has another script make the index anew, aside.
func TestEvalChanges(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), ofGoods("ctx.doc.title"), running(t, never))
	w.put("articles", doc(1, "title", "House", "price", 5, "size", bson.D{}), doc(2, "title", "Garden", "price", 6, "size", bson.D{}))
	w.finds("articles", "main", "house", []int{1})
	state := func(want engine.State) {
		t.Helper()
		w.until(fmt.Sprint("its state is ", want), func() bool { return w.queue().Searches[0].State == want })
	}
	w.settle() // what the feed still had to tell would be indexed by the script of then
	w.reload(ofGoods("ctx.doc.title + ctx.doc.price"))
	state(engine.Stale)
	w.finds("articles", "main", "house", []int{1})
	w.put("articles", doc(3, "title", "House", "price", 7, "size", bson.D{})) // by the script of now, for it is given the same
	w.finds("articles", "main", "house7", []int{3})
	w.finds("articles", "main", "house5", nil)
	more := strings.Replace(ofGoods("ctx.doc.title + ctx.doc.status"), "made, size]", "made, size, status]", 1)
	w.reload(more)
	w.put("articles", doc(3, "title", "House", "status", "new", "size", bson.D{})) // not: who does not see status could find it
	w.finds("articles", "main", "housenew", nil)
	w.finds("articles", "main", "house", []int{1})
	w.close()
	w.open()
	w.finds("articles", "main", "house", []int{1})
	if q := w.fails(0); q.LastError != nil {
		t.Error(q.LastError)
	}
	w.reload(strings.Replace(ofGoods("x"), `fields: [title, price, made, size], eval: 'x'`, `fields: [title]`, 1))
	state(engine.Stale)
	w.finds("articles", "main", "house", []int{1})
	if _, err := w.look("articles", "main", "house", hiding("price")); err == nil {
		t.Error("the index of before has what is made of the price")
	}
	w.reload(strings.Replace(more, "ctx.doc.status'", "ctx.doc.status', autoRegenerate: true", 1))
	w.soon("main", "housenew", []int{3})
	w.finds("articles", "main", "house", nil)
	state(engine.Ready)
}

// TestEvalIsPure: neither the time nor chance makes a difference to what a script says.
func TestEvalIsPure(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), ofGoods(`"at" + Date.now() + "x" + Math.floor(Math.random() * 1e9)`), running(t, never))
	at := bson.DateTime(1750000000000)
	w.put("articles", doc(1, "size", bson.D{}, "updatedAt", at), doc(2, "size", bson.D{}, "updatedAt", at))
	w.finds("articles", "main", "at1750000000000x*", []int{1, 2})
	hits, err := w.hits("articles", "main", "at1750000000000x*")
	if err != nil || len(hits) != 2 || hits[0].Score != hits[1].Score {
		t.Errorf("%v, %v", hits, err)
	}
}

// TestEvalIsExplained: the column is called eval, and there is nothing to mark.
func TestEvalIsExplained(t *testing.T) {
	w := newWorld(t, teststore.Memory(t), ofGoods("ctx.doc.title"), running(t, never))
	w.put("articles", doc(1, "title", "House", "size", bson.D{}))
	words, err := search.Parse("house")
	if err != nil {
		t.Fatal(err)
	}
	w.finds("articles", "main", "house", []int{1})
	c := w.project.Collections["articles"]
	r, err := w.engine.Search(t.Context(), engine.Query{Project: w.project, Collection: c, Search: c.Search("main"), Words: words})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	why, err := r.Explain(t.Context(), r.Next(1))
	if err != nil || !strings.Contains(fmt.Sprint(why), `"field":"eval","words":["hous"]`) {
		t.Errorf("%v, %v", why, err)
	}
	seen, err := bson.Marshal(bson.D{{Key: "title", Value: "House"}, {Key: "eval", Value: "House"}})
	if got := r.Highlight(seen); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestEvalOfVectors has what a script says become the vectors.
func TestEvalOfVectors(t *testing.T) {
	const meant = `
  - name: articles
    meta: {i18n: {languages: [en, de]}}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields: [{name: title, type: string}, {name: kind, type: number}, {name: body, type: string}]
    search: [{name: mean, mode: vector, vector: {group: a, fields: [title, kind]}, eval: "ctx.doc.title.trim() + [' cat', ' dog'][ctx.doc.kind]"}]
`
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		g, _ := groups(t, false, "a")
		w := newWorld(t, s, meant, func(w *world) { w.groups, w.scripts, w.retries = g, scripts(t, nil), []time.Duration{never} })
		translated := bson.D{{Key: "de", Value: bson.D{{Key: "title", Value: "Haus"}}}}
		w.put("articles",
			doc(1, "title", "house", "kind", 0, "body", "bird", "_i18n", translated), doc(2, "title", "house", "kind", 1), doc(3, "title", "house", "kind", 1, "body", "cat"), doc(4, "kind", 0))
		w.soon("mean", "cat", []int{1}, first(1))
		w.soon("mean", "dog house", []int{2, 3}, first(2))
		w.soon("mean", "Haus cat", []int{1}, first(1), inGerman)
		w.until("a vector is kept for each of 3 texts", func() bool { return w.vectors(bson.D{}) == 3 })
		if q := w.fails(1); q.Searches[0].Records != 3 {
			t.Errorf("queue: %+v", q)
		}
		if got, err := w.look("articles", "mean", "cat", hiding("kind")); !errors.Is(err, engine.ErrNothingToSearch) {
			t.Errorf("without kind: %v, %v", got, err)
		}
		if err := engine.Sweep(t.Context(), w.engine, w.project.Namespace); err != nil {
			t.Error(err)
		}
		w.put("articles", doc(4, "title", "garden", "kind", 0))
		w.soon("mean", "garden", []int{4}, first(1))
		w.fails(0)
	})
}

// TestS19EvalOfLargeTexts is row S19: scripts that make large texts of small records have few of them taken in at once.
func TestS19EvalOfLargeTexts(t *testing.T) {
	const large = `
  - name: articles
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields: [{name: title, type: string}]
    search: [{name: main, mode: text, fields: [title], eval: "ctx.doc.title + ' ' + 'fill '.repeat(ctx.doc.title === 'toolarge' ? 300000 : 100000) + 'last'"}]
`
	// A machine that does much else may take longer for one of them than a script may: it is tried again.
	w := newWorld(t, teststore.Memory(t), large, running(t, slices.Repeat([]time.Duration{time.Second}, 60)...))
	var docs []bson.D
	for n := range 12 {
		docs = append(docs, doc(n, "title", fmt.Sprintf("fox%d", n)))
	}
	w.put("articles", append(docs, doc(100, "title", "toolarge"))...)
	for n := range 12 {
		w.soon("main", fmt.Sprintf("+fox%d +last", n), []int{n})
	}
	w.fails(1)
}
