package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestLookup: an aggregation that reads a second collection is of old records and new ones where it goes on while they are replaced, as it does on a server. Through the gate it never
// ends well then: what it has put together is refused.
func TestLookup(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		const database, records = "gate_lookup", 300
		_ = s.DropDatabase(t.Context(), database)
		t.Cleanup(func() { _ = s.DropDatabase(context.Background(), database) })
		raw, g := s.Database(database), gate.New(s)
		collections := []string{"items", "others"}
		fill := func(prefix string, state int) {
			t.Helper()
			for _, name := range collections {
				var ops []store.Op
				for n := range records {
					doc, err := bson.Marshal(bson.D{{Key: "_id", Value: n}, {Key: "state", Value: state}})
					if err != nil {
						t.Fatal(err)
					}
					ops = append(ops, store.Op{Kind: store.Insert, Doc: doc})
				}
				if err := store.WriteAll(t.Context(), raw.Collection(prefix+name), ops...); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill("", 0)
		join, err := pipeline.Compile(bson.A{
			bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: "others"}, {Key: "localField", Value: "_id"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "o"}}}},
			bson.D{{Key: "$project", Value: bson.D{{Key: "state", Value: 1}, {Key: "others", Value: "$o.state"}}}},
		}, pipeline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// answer says which states an answer has, and how many results.
		answer := func(db store.Database) (states map[string]bool, results int, err error) {
			states = map[string]bool{}
			err = db.Collection("items").Aggregate(t.Context(), join, store.AggregateOptions{}, func(doc bson.Raw) error {
				results++
				states[fmt.Sprint(doc.Lookup("state"))] = true
				values, err := doc.Lookup("others").Array().Values()
				for _, v := range values {
					states[fmt.Sprint(v)] = true
				}
				if len(values) != 1 {
					states["none"] = true
				}
				return err
			})
			return states, results, err
		}
		ctx, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		var mixes, whole, refused atomic.Int64
		for range 3 {
			readers.Go(func() {
				for ctx.Err() == nil {
					switch states, results, err := answer(g.Database(database)); {
					case errors.Is(err, gate.ErrShut):
						refused.Add(1)
						time.Sleep(time.Millisecond)
					case err != nil:
						t.Error(err)
						return
					case len(states) != 1 || results != records:
						t.Errorf("an answer of %d results is of the states %v", results, states)
						return
					default:
						whole.Add(1)
					}
				}
			})
		}
		readers.Go(func() { // by no gate
			for ctx.Err() == nil {
				if states, _, err := answer(raw); err == nil && len(states) != 1 {
					mixes.Add(1)
				}
			}
		})
		swaps := 0
		for ; swaps < 200 && (swaps < 10 || refused.Load() == 0 || mixes.Load() == 0 && s.Name() != "embedded") && !t.Failed(); swaps++ {
			const aside = "svc.aside."
			fill(aside, swaps+1)
			shut, err := g.Shut(t.Context(), database)
			if err == nil {
				err = shut.Reads(t.Context())
			}
			for _, name := range collections {
				if err == nil {
					err = raw.RenameCollection(t.Context(), aside+name, name, true)
				}
			}
			if err != nil {
				t.Error(err)
			}
			if shut != nil {
				shut.Open()
			}
		}
		stop()
		readers.Wait()
		t.Logf("%d swaps: %d answers through the gate were whole, %d were refused; %d were mixed without it", swaps, whole.Load(), refused.Load(), mixes.Load())
		if whole.Load() == 0 || refused.Load() == 0 || mixes.Load() == 0 && s.Name() != "embedded" {
			t.Error("this tested little")
		}
	})
}
