package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/hash"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// groups opens embedding groups, each with one provider of its name, of the type hash, that fails on demand. What is behind a colon is
// the revision of its model, which is its name else.
func groups(t *testing.T, sparse bool, names ...string) (*embedding.Groups, map[string]*embeddingtest.Faulty) {
	t.Helper()
	faulty := map[string]*embeddingtest.Faulty{}
	config := embedding.Config{CooldownAfterUnhealthy: 50 * time.Millisecond, CheckInterval: 50 * time.Millisecond}
	for _, name := range names {
		name, revision, _ := strings.Cut(name, ":")
		faulty[name] = &embeddingtest.Faulty{Delay: time.Minute}
		config.Providers = append(config.Providers, embedding.ProviderConfig{Name: name, Type: "faulty", Model: "m", Revision: cmp.Or(revision, name), Sparse: sparse})
		config.Groups = append(config.Groups, embedding.GroupConfig{Name: name, Members: []string{name}})
	}
	out, err := embedding.Open(t.Context(), config, embedding.Types{"faulty": func(c embedding.ProviderConfig) (embedding.Provider, error) {
		p, err := hash.New(c)
		faulty[c.Name].Provider = p
		return faulty[c.Name], err
	}}, embedding.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return out, faulty
}

const meanings = `
  - name: articles
    meta: {i18n: {default: en, languages: [en, de]}}
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
    fields:
      - {name: title, type: string}
      - {name: body, type: string}
      - {name: at, type: date}
      - {name: n, type: number}
    search:
      - {name: mean, mode: vector, vector: {group: %s, fields: [title, body]}, filter: {n: {$ne: 9}}, autoRegenerate: true}
      - {name: far, mode: vector, fields: [title, body], vector: {group: %[1]s}, score: {minScore: 0.3, recency: {field: at, halfLife: 1h, weight: 1}}}
      - {name: words, mode: text, fields: [title], autoRegenerate: true}
      - {name: both, mode: rrf, rrf: {sources: [words, mean]}}
`

// vectorWorld has articles that are searched by their meaning.
func vectorWorld(t *testing.T, s store.Store, g *embedding.Groups) *world {
	t.Helper()
	w := &world{t: t, store: s, groups: g, now: time.Now}
	w.begin(fmt.Sprintf(meanings, "a"))
	return w
}

// vectors gives how many vectors are kept.
func (w *world) vectors(filter bson.D) int64 {
	w.t.Helper()
	n, err := w.store.Database(w.database()).Collection("svc.vectors").Count(w.t.Context(), mql.MustCompile(filter), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// until waits for something to be so.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// mean is how the search by vectors is doing.
func (w *world) mean() engine.SearchStatus {
	w.t.Helper()
	q := w.engine.Queue(w.project, w.project.Collections["articles"])
	i := slices.IndexFunc(q.Searches, func(s engine.SearchStatus) bool { return s.Name == "mean" })
	if i < 0 {
		w.t.Fatal("there is no search mean")
	}
	return q.Searches[i]
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, sparse := range []bool{false, true} {
		teststore.Each(t, func(t *testing.T, s store.Store) {
			g, _ := groups(t, sparse, "a")
			w := vectorWorld(t, s, g)
			w.write("articles", doc(1, "title", "the cat sat on the mat"), doc(9, "title", "a cat", "n", 9))
			w.put("articles",
				doc(2, "title", "cats", "body", "a cat sleeps all day"),
				doc(3, "title", "stocks and bonds", "at", time.Now().Add(-100*time.Hour)),
				doc(4, "title", "bonds", "at", time.Now(), "_i18n", bson.D{{Key: "de", Value: bson.D{{Key: "title", Value: "Anleihen"}}}}),
				doc(5, "title", " ", "n", 5),
			)
			w.soon("mean", "cat mat", []int{1, 2}, first(2))
			w.soon("mean", "bonds", []int{4, 3}, first(2))
			w.finds("articles", "mean", "+bonds* -cat", []int{4, 3}, first(2))
			w.finds("articles", "mean", "Anleihen", []int{4}, inGerman, first(1))
			w.finds("articles", "mean", "cat", []int{2}, seeing(bson.D{{Key: "body", Value: "a cat sleeps all day"}}))
			w.soon("far", "stocks bonds", []int{4, 3})
			w.finds("articles", "both", "bonds", []int{4, 3}, first(2))
			w.finds("articles", "both", "bonds", []int{4, 3}, hiding("body")) // one source is left
			for _, hidden := range []string{"title", "body"} {
				if _, err := w.look("articles", "mean", "cat", hiding(hidden)); err != engine.ErrNothingToSearch { //nolint:errorlint // itself
					t.Errorf("with %s hidden: %v", hidden, err)
				}
			}
			if got, _ := w.look("articles", "mean", "Anleihen", inGerman, hiding("_i18n.de.title")); len(got) > 0 && !slices.Contains(got, 4) {
				t.Errorf("a record whose translation is hidden is not found by its own text: %v", got)
			}
			w.until("a vector is kept for each of 6 texts", func() bool { return w.vectors(bson.D{}) == 6 })
			// What changes, and what goes.
			w.put("articles", doc(2, "title", "dogs"), doc(3))
			w.soon("mean", "dogs", []int{2}, first(1))
			if got, err := w.look("articles", "mean", "stocks"); err != nil || slices.Contains(got, 3) {
				t.Errorf("what is gone is found: %v, %v", got, err)
			}
			// After a restart there are the same.
			w.close()
			w.open()
			w.soon("mean", "cat mat", []int{1}, first(1))
		})
	}
}

// first looks at the best only.
func first(n int) with { return func(q *engine.Query) { q.TopK = n } }

// TestVectorsWait: records are written whatever becomes of the group, and get their vectors when it can give them.
func TestVectorsWait(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		g, faulty := groups(t, false, "a")
		w := &world{t: t, store: s, groups: g, now: time.Now, registry: prometheus.NewRegistry()}
		w.begin(fmt.Sprintf(meanings, "a"))
		w.put("articles", doc(1, "title", "cats"))
		w.soon("mean", "cats", []int{1})
		faulty["a"].Set(embeddingtest.Down)
		w.put("articles", doc(2, "title", "dogs"))
		w.soon("words", "dogs", []int{2})
		w.until("it is told that the record waits", func() bool {
			x := w.mean()
			return x.Waiting == 1 && x.Failure != nil && w.metric("svc_search_waiting") == 2 // for two searches
		})
		w.until("the group is offline", func() bool {
			_, err := w.look("articles", "mean", "something else")
			return err != nil && errs.From(err).Code == embedding.CodeOffline && strings.Contains(err.Error(), "group a ")
		})
		if _, err := w.look("articles", "both", "dogs at last"); errs.From(err).Code != embedding.CodeOffline {
			t.Errorf("a fusion with a group that is offline: %v", err)
		}
		// A restart does not forget what waits.
		w.close()
		w.open()
		w.until("it is known that a record waits", func() bool { return w.mean().Waiting == 1 })
		faulty["a"].Set(embeddingtest.None)
		w.soon("mean", "dogs", []int{2, 1})
		w.until("nothing waits any more", func() bool {
			q := w.engine.Queue(w.project, w.project.Collections["articles"])
			return q.Pending == 0 && q.LastError == nil && w.metric("svc_search_waiting") == 0
		})
	})
}

// TestVectorsRefused: a text that is refused has no part in what becomes of others, and is tried again when the index is made anew.
func TestVectorsRefused(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		g, faulty := groups(t, false, "a")
		faulty["a"].Refuse("poison")
		w := vectorWorld(t, s, g)
		var docs []bson.D
		for i := range 40 {
			docs = append(docs, doc(i, "title", fmt.Sprint("title ", i)))
		}
		docs[17] = doc(17, "title", "a poison")
		w.put("articles", docs...)
		w.until("39 have vectors", func() bool {
			x := w.mean()
			return x.Records == 39 && x.Refused == 1 && x.Waiting == 0
		})
		n := faulty["a"].Total("title 18")
		w.put("articles", doc(18, "title", "title 18", "n", 1)) // the same text
		w.until("it is indexed", func() bool { return w.engine.Queue(w.project, w.project.Collections["articles"]).Pending == 0 })
		if faulty["a"].Total("title 18") != n {
			t.Error("a vector that is known was computed once more")
		}
		faulty["a"].Refuse("")
		if err := w.engine.Regenerate(t.Context(), w.project, nil, "", func(string, string, int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		w.until("all have vectors", func() bool { x := w.mean(); return x.Records == 40 && x.Refused == 0 })
		if got, err := w.look("articles", "mean", "a poison", first(1)); err != nil || !slices.Equal(got, []int{17}) {
			t.Errorf("found %v, %v", got, err)
		}
	})
}

// TestVectorsOfAProviderThatRefusesAll: what a provider says of any text it says of none, and records get their vectors when it takes texts again.
func TestVectorsOfAProviderThatRefusesAll(t *testing.T) {
	t.Parallel()
	g, faulty := groups(t, false, "a")
	w := vectorWorld(t, teststore.Memory(t), g)
	w.put("articles", doc(1, "title", "cats"))
	w.soon("mean", "cats", []int{1})
	faulty["a"].Set(embeddingtest.Refusing)
	w.put("articles", doc(2, "title", "dogs"), doc(3, "title", "birds"))
	w.until("it is told why records wait", func() bool {
		x := w.mean()
		return x.Waiting == 2 && x.Refused == 0 && x.Failure != nil && strings.Contains(x.Failure.Error(), "refuses every text")
	})
	faulty["a"].Set(embeddingtest.None)
	w.until("all have vectors", func() bool { x := w.mean(); return x.Records == 3 && x.Waiting == 0 && x.Failure == nil })
}

// TestVectorsOfOthersThanWhatFails: a text with which the provider fails, without refusing it, keeps no other from its vector.
func TestVectorsOfOthersThanWhatFails(t *testing.T) {
	t.Parallel()
	g, faulty := groups(t, false, "a")
	faulty["a"].Fail("poison")
	w := vectorWorld(t, teststore.Memory(t), g)
	var docs []bson.D
	for i := range 40 {
		docs = append(docs, doc(i, "title", fmt.Sprint("title ", i)))
	}
	docs[17] = doc(17, "title", "a poison")
	w.put("articles", docs...)
	w.until("39 have vectors, and one waits", func() bool {
		x := w.mean()
		return x.Records == 39 && x.Waiting == 1 && x.Refused == 0
	})
	faulty["a"].Fail("")
	w.until("all have vectors", func() bool { x := w.mean(); return x.Records == 40 && x.Waiting == 0 })
}

// TestVectorsOfAnotherModel: the vectors of before answer until those of another group, or of another model, are there.
func TestVectorsOfAnotherModel(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		g, faulty := groups(t, false, "a", "b")
		w := vectorWorld(t, s, g)
		w.put("articles", doc(1, "title", "cats"), doc(2, "title", "dogs"))
		w.soon("mean", "dogs", []int{2, 1})
		// Another group, which does not answer yet.
		faulty["b"].Set(embeddingtest.Down)
		w.reload(fmt.Sprintf(meanings, "b"))
		w.until("the other one is being made", func() bool { return w.mean().State == engine.Rebuilding })
		w.put("articles", doc(3, "title", "birds"))
		w.soon("mean", "birds", []int{3}, first(1))
		if x := w.mean(); x.State != engine.Rebuilding {
			t.Errorf("the index without vectors answers: %+v", x)
		}
		faulty["b"].Set(embeddingtest.None)
		w.until("the other one answers", func() bool { return w.mean().State == engine.Ready })
		w.finds("articles", "mean", "birds", []int{3}, first(1))
		if n := w.vectors(bson.D{}); n != 6 {
			t.Errorf("%d vectors are kept, want 3 of each group", n)
		}
		// Another model behind the group, while another group still has the one before.
		w.close()
		w.groups, faulty = groups(t, false, "b:2", "old:b")
		faulty["b"].Set(embeddingtest.Down)
		w.open()
		w.soon("mean", "birds", []int{3}, first(1))
		if x := w.mean(); x.State != engine.Rebuilding {
			t.Errorf("there is no index for the new model: %+v", x)
		}
		faulty["b"].Set(embeddingtest.None)
		w.until("the new model answers", func() bool { return w.mean().State == engine.Ready })
		w.finds("articles", "mean", "birds", []int{3}, first(1))
		// Without the one before, the new index answers with what it has.
		w.close()
		w.groups, faulty = groups(t, false, "b:3")
		w.open()
		w.soon("mean", "birds", []int{3}, first(1))
		w.until("all have vectors", func() bool { x := w.mean(); return x.State == engine.Ready && x.Waiting == 0 })
		// A group that is in the settings no more, and comes back.
		records := w.mean().Records
		w.close()
		before := w.groups
		w.groups = nil
		w.open()
		if _, err := w.look("articles", "mean", "birds"); errs.From(err).Code != embedding.CodeOffline {
			t.Errorf("without the group: %v", err)
		}
		w.close()
		w.groups = before
		n := faulty["b"].Total("dogs")
		w.open()
		w.soon("mean", "birds", []int{3}, first(1))
		if x := w.mean(); x.Records != records || x.State != engine.Ready {
			t.Errorf("after the group came back: %+v", x)
		}
		if faulty["b"].Total("dogs") != n {
			t.Error("a vector that is kept was computed once more")
		}
	})
}

// TestR11VectorsOfOtherLength: a model was replaced, behind the name that it had, by one whose vectors are of another length. Records are
// found by their words all the same, and by the vectors of the new model as soon as there are some.
func TestR11VectorsOfOtherLength(t *testing.T) {
	t.Parallel()
	for _, seen := range []string{"by a write", "by a search"} {
		teststore.Each(t, func(t *testing.T, s store.Store) {
			w := vectorWorld(t, s, ofLength(t, 8))
			w.put("articles", doc(1, "title", "cats"), doc(2, "title", "dogs"))
			w.soon("mean", "dogs", []int{2, 1})
			w.close()
			w.groups = ofLength(t, 6)
			w.open()
			if seen == "by a write" {
				w.put("articles", doc(3, "title", "birds"))
				w.soon("words", "birds", []int{3})
				w.until("the index is made anew", func() bool { x := w.mean(); return x.State == engine.Ready && x.Records == 3 && x.Waiting == 0 })
				w.finds("articles", "mean", "birds", []int{3}, first(1))
			}
			w.soon("mean", "dogs", []int{2}, first(1))
			w.until("nothing fails or waits", func() bool {
				q := w.engine.Queue(w.project, w.project.Collections["articles"])
				return q.Pending == 0 && q.LastError == nil
			})
		})
	}
}

// TestVectorsThatCannotBeRead are computed anew, and hold up nothing else.
func TestVectorsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		g, _ := groups(t, false, "a")
		w := vectorWorld(t, s, g)
		w.put("articles", doc(1, "title", "cats"), doc(2, "title", "dogs"))
		w.soon("mean", "dogs", []int{2, 1})
		w.close()
		damage := store.Op{
			Kind: store.Update, Filter: mql.MustCompile(bson.D{}), Many: true,
			Update: mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "vector", Value: int64(5)}}}}),
		}
		if err := store.WriteAll(t.Context(), s.Database(w.database()).Collection("svc.vectors"), damage); err != nil {
			t.Fatal(err)
		}
		w.dir = t.TempDir()
		w.open()
		w.put("articles", doc(3, "title", "birds"))
		w.soon("words", "birds", []int{3})
		w.soon("mean", "dogs", []int{2}, first(1))
	})
}

// ofLength opens a group whose settings do not say how long its vectors are.
func ofLength(t *testing.T, dimensions int) *embedding.Groups {
	t.Helper()
	out, err := embedding.Open(t.Context(), embedding.Config{
		Providers: []embedding.ProviderConfig{{Name: "a", Type: "any", Model: "m"}}, Groups: []embedding.GroupConfig{{Name: "a", Members: []string{"a"}}},
	}, embedding.Types{"any": func(c embedding.ProviderConfig) (embedding.Provider, error) {
		c.Dimensions = dimensions
		p, err := hash.New(c)
		return unsaid{p}, err
	}}, embedding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// unsaid is a provider of which only the answers tell how long vectors are.
type unsaid struct{ embedding.Provider }

func (unsaid) Dimensions() int { return 0 }

// TestVectorsAreSwept: what no record needs any more goes.
func TestVectorsAreSwept(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		g, _ := groups(t, false, "a")
		w := vectorWorld(t, s, g)
		var late time.Duration
		w.now = func() time.Time { return time.Now().Add(late) }
		w.put("articles", doc(1, "title", "cats"), doc(2, "title", "dogs"), doc(3, "title", "cats"))
		w.soon("mean", "dogs", []int{2, 1, 3})
		w.put("articles", doc(1), doc(2, "title", "birds"))
		w.soon("mean", "birds", []int{2, 3})
		sweep := func(want int64) {
			t.Helper()
			if err := engine.Sweep(context.WithoutCancel(t.Context()), w.engine, w.project.Namespace); err != nil {
				t.Fatal(err)
			}
			if n := w.vectors(bson.D{}); n != want {
				t.Errorf("%d vectors are left, want %d", n, want)
			}
		}
		sweep(3)
		w.close()
		late = 2 * time.Hour
		w.open()
		sweep(2)
		w.soon("mean", "birds", []int{2, 3})
	})
}

// TestVectorsAreComputedOnce: of two instances one asks the group, and both have the vectors.
func TestVectorsAreComputedOnce(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		g, faulty := groups(t, false, "a")
		w := vectorWorld(t, s, g)
		w.put("articles", doc(1, "title", "cats"))
		w.soon("mean", "cats", []int{1})
		other := *w
		other.dir = t.TempDir()
		other.open()
		defer other.close()
		var docs []bson.D
		for i := range 50 {
			docs = append(docs, doc(i+10, "title", fmt.Sprint("title ", i)))
		}
		w.put("articles", docs...)
		for _, one := range []*world{w, &other} {
			one.until("all have vectors", func() bool { x := one.mean(); return x.Records == 51 && x.Waiting == 0 })
		}
		if n := faulty["a"].Total("title "); n != 50 { // of two searches with the same texts
			t.Errorf("%d vectors were computed for 50 texts", n)
		}
	})
}
