package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// searched gives a world's service an engine.
func (w *world) searched() *engine.Engine {
	w.t.Helper()
	e, err := engine.Open(w.t.Context(), engine.Options{Store: w.store, Dir: w.t.TempDir(), Logger: slog.New(slog.DiscardHandler), Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(w.t.Context())); err != nil {
			w.t.Error(err)
		}
	})
	if err := e.Serve(w.project); err != nil {
		w.t.Fatal(err)
	}
	w.service.Searching(e)
	return e
}

const searchedNotes = `
collections:
  - name: notes
    defaultLanguage: en
    permissions:
      public: {methods: {get: {allow: true, facet: true, count: true}}, filter: {state: open}, hiddenFields: [secret]}
      user: {methods: {get: {allow: true, facet: true, count: true}, post: {allow: true, bulk: true}, put: true, delete: true}}
    fields:
      - {name: title, type: string}
      - {name: body, type: string}
      - {name: secret, type: string}
      - {name: state, type: string}
      - {name: rank, type: number}
    search:
      - {name: main, mode: text, fields: [title, body, secret], score: {weights: {title: 2}}}
      - {name: parts, mode: ngram, fields: [title]}
      - {name: pattern, mode: regex, fields: [title]}
      - {name: both, mode: rrf, rrf: {sources: [main, parts], topK: 2}}
      - {name: hidden, mode: text, fields: [secret]}
`

// answer gives what a list of notes answers, shortened: titles, and what else is asked for.
func (w *world) answer(who string, p query.Params) (string, *records.Page, error) {
	w.t.Helper()
	return w.answerIn("notes", who, p)
}

func (w *world) answerIn(collection, who string, p query.Params) (string, *records.Page, error) {
	w.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; {
		page, err := w.service.List(w.t.Context(), w.in(collection, who), p)
		if errors.Is(err, engine.ErrBuilding) && time.Now().Before(until) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		var titles []string
		for _, item := range page.Items {
			var rec struct{ Title string }
			if err := json.Unmarshal(item.AppendJSON(nil), &rec); err != nil {
				w.t.Fatal(err)
			}
			titles = append(titles, rec.Title)
		}
		return strings.Join(titles, ","), page, nil
	}
}

func q(text string) query.Params {
	return query.Params{Where: query.Where{Search: query.Search{Text: text}}}
}

func TestSearchOfRecords(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, searchedNotes)
		w.searched()
		for _, note := range []bson.D{
			{{Key: "title", Value: "Red fox"}, {Key: "body", Value: "A fox in the <b>snow</b>"}, {Key: "secret", Value: "badger"}, {Key: "state", Value: "open"}, {Key: "rank", Value: int64(3)}},
			{{Key: "title", Value: "Blue bird"}, {Key: "body", Value: "The fox watches it"}, {Key: "state", Value: "open"}, {Key: "rank", Value: int64(1)}},
			{{Key: "title", Value: "Foxes, closed"}, {Key: "secret", Value: "badger"}, {Key: "state", Value: "closed"}, {Key: "rank", Value: int64(2)}},
		} {
			if _, err := w.service.Create(t.Context(), w.in("notes", "alice"), note); err != nil {
				t.Fatal(err)
			}
		}
		limit := int64(1)
		for _, x := range []struct {
			who, q, name, want, err string
			change                  func(p *query.Params)
		}{
			{"alice", "fox", "", "Red fox,Foxes, closed,Blue bird", "", nil},
			{"public", "fox", "", "Red fox,Blue bird", "", nil},
			{"public", "badger", "", "", "", nil},
			{"alice", "badger", "", "Red fox,Foxes, closed", "", nil},
			{"public", "badger", "hidden", "", "unknown_search", nil},
			{"public", "badger", "nothing", "", "unknown_search", nil},
			{"public", "-fox", "", "", "bad_search", nil},
			{"alice", "fox", "", "Blue bird,Foxes, closed,Red fox", "", func(p *query.Params) { p.Sort = "rank" }},
			{"alice", "fox", "", "Red fox,Blue bird", "", func(p *query.Params) { p.Filter = doc(t, `{"state": "open"}`) }},
			{"alice", "fox", "", "Foxes, closed", "", func(p *query.Params) { p.Limit, p.Offset = &limit, 1 }},
			{"alice", "fox", "", "Blue bird", "", func(p *query.Params) { p.Limit, p.Offset = &limit, 2 }},
			{"alice", "fox", "both", "Red fox,Foxes, closed", "", nil},
			{"alice", "fox", "both", "Red fox,Blue bird", "", func(p *query.Params) { p.Filter = doc(t, `{"state": "open"}`) }},
			{"alice", "^blue|fox$", "pattern", "Red fox,Blue bird", "", nil},
			{"public", "(", "pattern", "", "bad_filter", nil},
		} {
			p := q(x.q)
			p.Search.Name, p.Count = x.name, true
			if x.change != nil {
				x.change(&p)
			}
			got, page, err := w.answer(x.who, p)
			code := ""
			if err != nil {
				code = errs.From(err).Code
			}
			if got != x.want || code != x.err {
				t.Errorf("%s looks for %q in %q: %q, %v, want %q, %s", x.who, x.q, x.name, got, err, x.want, x.err)
			}
			if err == nil && p.Limit == nil && page.Total != int64(len(page.Items)) {
				t.Errorf("%s looks for %q: %d of %d", x.who, x.q, len(page.Items), page.Total)
			}
		}
		n, err := w.service.Count(t.Context(), w.in("notes", "public"), q("fox").Where)
		if err != nil || n != 2 {
			t.Errorf("public counts %d, %v", n, err)
		}
		facets, err := w.service.Facets(t.Context(), w.in("notes", "alice"), records.FacetParams{Where: q("fox").Where, Fields: "state", Window: 2})
		if err != nil || string(facets.AppendJSON(nil)) != `{"facets":{"state":[{"value":"closed","count":1},{"value":"open","count":1}]},"window":2,"truncated":true}` {
			t.Errorf("facets: %s, %v", facets.AppendJSON(nil), err)
		}
		p := q("fox snow")
		p.Search.Highlight, p.Search.Explain = true, true
		_, page, err := w.answer("public", p)
		if err != nil {
			t.Fatal(err)
		}
		got := string(page.Items[0].AppendJSON(nil))
		if !strings.Contains(got, `"_highlights":{"title":["Red <mark>fox</mark>"],"body":["A <mark>fox</mark> in the &lt;b&gt;<mark>snow</mark>&lt;/b&gt;"]}`) || !strings.Contains(got, `"_score":`) || strings.Contains(got, "secret") {
			t.Errorf("highlights: %s", got)
		}
	})
}

// TestS19SearchesTakeTurns is row S19: what a search does in its index takes turns with other long reads, and ends with the
// collection's time for a query.
func TestS19SearchesTakeTurns(t *testing.T) {
	t.Parallel()
	s := teststore.Memory(t)
	for _, maxTime := range []string{"50ms", "1m"} {
		w := newWorld(t, s, strings.Replace(searchedNotes, "defaultLanguage", "queryLimits: {maxTime: "+maxTime+"}\n    defaultLanguage", 1))
		w.searched()
		text := strings.Repeat("fox red ", 20)
		if _, err := w.service.Create(t.Context(), w.in("notes", "alice"), bson.D{{Key: "title", Value: text}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.answer("alice", q("fox")); err != nil {
			t.Fatal(err)
		}
		places := w.service.LongReads()
		var leaves []func()
		for i := range places.All() { // of callers enough to have them all
			leave, err := places.Take(t.Context(), strconv.Itoa(i))
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		long := q("fox red snow bird badger cat dog")
		long.Search.Name = "both"
		if maxTime == "50ms" {
			// On a machine that has other things to do, the wait may have been the least of it.
			if _, _, err := w.answer("alice", long); err == nil || !slices.Contains([]string{"too_many_queries", "query_too_slow"}, errs.From(err).Code) {
				t.Errorf("a search came to its end without a place: %v", err)
			}
			continue
		}
		done := make(chan error, 1)
		go func() {
			_, _, err := w.answer("alice", long)
			done <- err
		}()
		for places.Waiting() == 0 {
			runtime.Gosched()
		}
		for _, leave := range leaves {
			leave()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := places.Taken(); n != 0 {
			t.Errorf("a search has kept %d places", n)
		}
	}
}

// TestS19PagesOfLargeRecords is row S19: a page of records that were found ends where it is too large, and what is skipped is not held
// in memory.
func TestS19PagesOfLargeRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), strings.NewReplacer(
		"fields: [title, body, secret]", "fields: [title]", "    search:\n", "    queryLimits: {maxTime: 1m}\n    search:\n", // for busy machines
	).Replace(searchedNotes))
	w.searched()
	body := strings.Repeat("x", 9<<20)
	for i := range 6 {
		if _, err := w.service.Create(t.Context(), w.in("notes", "alice"), bson.D{
			{Key: "title", Value: "fox" + strings.Repeat(" red", i)}, {Key: "body", Value: body}, {Key: "rank", Value: int64(i)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		offset int64
		items  int
		more   bool
	}{{0, 4, true}, {1, 4, true}, {3, 3, false}, {6, 0, false}} {
		p := q("fox")
		p.Offset = x.offset
		_, page, err := w.answer("alice", p)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) != x.items || page.HasMore != x.more {
			t.Errorf("from %d on: %d records, more %v; want %d, %v", x.offset, len(page.Items), page.HasMore, x.items, x.more)
		}
		for i, item := range page.Items {
			var rec struct{ Rank int64 }
			if err := json.Unmarshal(item.AppendJSON(nil), &rec); err != nil || rec.Rank != x.offset+int64(i) {
				t.Errorf("from %d on: record %d is %d, %v", x.offset, i, rec.Rank, err)
			}
		}
	}
}
