package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// clock is one that tests turn.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }

// timed gives a world its own clock.
func timed(t *testing.T, s store.Store) (*world, *clock) {
	t.Helper()
	w := newWorld(t, s, articles)
	w.close()
	c := &clock{}
	c.ms.Store(1_000_000)
	w.now = c.now
	w.open()
	return w, c
}

func (c *clock) date(ms int64) bson.DateTime { return bson.DateTime(c.ms.Load() + ms) }

// asOfNow sees what a filter lets through that is made with the time of now.
func asOfNow(c *clock, filter func(now bson.DateTime) bson.D) with {
	return func(q *engine.Query) {
		q.Now = c.now()
		seeing(filter(bson.NewDateTimeFromTime(q.Now)))(q)
	}
}

// movingFilters are filters with the time in them in all places where it can be.
var movingFilters = map[string]func(now bson.DateTime) bson.D{
	"before": func(now bson.DateTime) bson.D { return bson.D{{Key: "from", Value: bson.D{{Key: "$lt", Value: now}}}} },
	"up to": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "status", Value: "published"}, {Key: "from", Value: bson.D{{Key: "$lte", Value: now}}}}
	},
	"not yet over": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "to", Value: nil}}, bson.D{{Key: "to", Value: bson.D{{Key: "$gte", Value: now}}}},
		}}}
	},
	"at": func(now bson.DateTime) bson.D { return bson.D{{Key: "from", Value: now}} },
	"between": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "from", Value: bson.D{{Key: "$lte", Value: now}}}, {Key: "to", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$lt", Value: now}}}}}}
	},
	"inside": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "times", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "from", Value: bson.D{{Key: "$lt", Value: now}}}, {Key: "to", Value: bson.D{{Key: "$gt", Value: now}}}}}}}}
	},
	"in a list": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "from", Value: bson.D{{Key: "$in", Value: bson.A{now}}}}}
	},
	"of the element": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "dates", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$gt", Value: now}}}}}}
	},
	"none of": func(now bson.DateTime) bson.D {
		return bson.D{{Key: "$nor", Value: bson.A{bson.D{{Key: "dates", Value: bson.D{{Key: "$gte", Value: now}}}}}}}
	},
}

// TestFilterOfNow is about row S7: whatever comes and goes, a search finds what a filter with the time of now in it lets through then.
func TestFilterOfNow(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w, c := timed(t, s)
		r := rand.New(rand.NewPCG(seed(), uint64(len(s.Name()))))
		records := map[int]bson.Raw{}
		for step := range 250 {
			c.ms.Add(r.Int64N(4))
			n := r.IntN(30)
			if r.IntN(8) == 0 {
				w.put("articles", doc(n))
				delete(records, n)
				continue
			}
			date := func() bson.DateTime { return c.date(r.Int64N(60) - 20) }
			d := doc(n, "title", "a word", "status", []string{"published", "draft"}[r.IntN(2)], "from", date(), "dates", bson.A{date(), date()},
				"times", bson.A{bson.D{{Key: "from", Value: date()}, {Key: "to", Value: date()}}})
			if r.IntN(2) == 0 {
				d = append(d, bson.E{Key: "to", Value: date()})
			}
			w.put("articles", d)
			raw, err := bson.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			records[n] = raw
			for name, filter := range movingFilters {
				f, err := mql.Compile(filter(bson.NewDateTimeFromTime(c.now())))
				if err != nil {
					t.Fatal(err)
				}
				var want []int
				for n, raw := range records {
					if f.Match(raw) {
						want = append(want, n)
					}
				}
				got, err := w.look("articles", "main", "word", asOfNow(c, filter))
				slices.Sort(got)
				slices.Sort(want)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("step %d: %s finds %v, %v, want %v", step, name, got, err, want)
				}
			}
		}
	})
}

// TestFilterOfNowIsFilledOnce is about what such a filter costs: records are read anew only when one of them comes or goes by time.
func TestFilterOfNowIsFilledOnce(t *testing.T) {
	t.Parallel()
	s := &reads{Store: teststore.Memory(t)}
	w, c := timed(t, s)
	w.put("articles", doc(1, "title", "word", "from", c.date(-1000)), doc(2, "title", "word", "from", c.date(10_000)))
	before := asOfNow(c, movingFilters["before"])
	w.finds("articles", "main", "word", []int{1}, before)
	filled := s.of.Load()
	for range 100 {
		c.ms.Add(1)
		w.finds("articles", "main", "word", []int{1}, before)
	}
	if got := s.of.Load(); got != filled {
		t.Errorf("the records were read %d times more while nothing came or went", got-filled)
	}
	w.put("articles", doc(3, "title", "word", "from", c.date(0))) // as one that is published now
	c.ms.Add(1)
	w.finds("articles", "main", "word", []int{1, 3}, before)
	filled = s.of.Load()
	for range 100 {
		c.ms.Add(1)
		w.finds("articles", "main", "word", []int{1, 3}, before)
	}
	if got := s.of.Load(); got != filled {
		t.Errorf("the records were read %d times more after one was written", got-filled)
	}
	c.ms.Add(10_000)
	w.finds("articles", "main", "word", []int{1, 2, 3}, before)
}

// reads counts how often records are looked for by more than their ids.
type reads struct {
	store.Store
	of atomic.Int64
}

func (s *reads) Database(name string) store.Database { return readDatabase{s.Store.Database(name), s} }

type readDatabase struct {
	store.Database
	s *reads
}

func (d readDatabase) Collection(name string) store.Collection {
	return readCollection{d.Database.Collection(name), d.s}
}

type readCollection struct {
	store.Collection
	s *reads
}

func (c readCollection) Find(ctx context.Context, q store.Query, fn func(doc bson.Raw) error) error {
	if q.Project != nil { // what is indexed is read whole
		c.s.of.Add(1)
	}
	return c.Collection.Find(ctx, q, fn)
}
