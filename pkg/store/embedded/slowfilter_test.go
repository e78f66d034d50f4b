package embedded_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// endsIn is a filter by the end of t, of which a text like long is too much work for a commit.
func endsIn(end string) bson.D {
	return bson.D{{Key: "t", Value: bson.D{{Key: "$regex", Value: end + "$|z{450}y{450}"}}}}
}

// What changed after a write with a slow filter had found it is matched again before it is written to.
func TestSlowFilterMatchesAgain(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	long := strings.Repeat("a", 20_000)
	for name, many := range map[string]bool{"one": false, "many": true} {
		must(t, c, store.Op{Kind: store.Delete, Filter: mql.MustCompile(bson.D{}), Many: true})
		for id := range 6 {
			must(t, c, insert(t, bson.D{{Key: "_id", Value: id}, {Key: "t", Value: "x"}}))
		}
		results := make(chan []store.Result, 1)
		err := transact(t.Context(), s, func(ctx context.Context, tx store.TxCollection) error {
			for id := range 5 {
				text := long + "x"
				if id%2 == 0 {
					text = long + "y"
				}
				if _, err := one(ctx, tx, store.Op{Kind: store.Update, ID: value(t, id), Update: setTo("t", text)}); err != nil {
					return err
				}
			}
			go func() {
				done, err := c.Write(t.Context(), []store.Op{{Kind: store.Update, Filter: mql.MustCompile(endsIn("x")), Many: many, Update: setTo("hit", true)}}, false)
				if err != nil {
					t.Error(err)
				}
				results <- done
			}()
			embedded.WaitForWaiting(s, 1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(1)
		if many {
			want = 3 // 1, 3 and 5
		}
		if got := <-results; len(got) != 1 || got[0].Err != nil || got[0].Modified != want {
			t.Errorf("%s: %+v", name, got)
		}
		for _, doc := range find(t, c, store.Query{Filter: where("hit", true)}) {
			if id := doc.Lookup("_id").AsInt64(); id%2 == 0 {
				t.Errorf("%s: %d is written to", name, id)
			}
		}
		wantIdle(t, s)
	}
}

// An upsert whose unique key is taken by a document that a slow filter does not match is refused, and one that it matches
// is written to.
func TestSlowFilterOfUpsert(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	unique := index("u", "u")
	unique.Unique = true
	createIndex(t, c, unique)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: "taken"}, {Key: "t", Value: strings.Repeat("a", 20_000)}}))
	_, err := one(t.Context(), c, store.Op{Kind: store.Update, Filter: mql.MustCompile(endsIn("x")), Upsert: true, Update: setTo("u", "taken")})
	if dup := (*store.DuplicateKeyError)(nil); !errors.As(err, &dup) {
		t.Errorf("no match: %v", err)
	}
	if _, err := one(t.Context(), c, store.Op{Kind: store.Update, Filter: mql.MustCompile(endsIn("a")), Upsert: true, Update: setTo("hit", true)}); err != nil {
		t.Errorf("a match: %v", err)
	}
	if n, err := c.Count(t.Context(), where("hit", true), 0); n != 1 || err != nil {
		t.Errorf("%d are written to, %v", n, err)
	}
}

// While a filter takes very long for a document that changed after it was found, others write, and it ends with its context.
func TestSlowFilterHoldsNobodyUp(t *testing.T) {
	s := open(t, embedded.Options{InMemory: true})
	c := collection(s)
	must(t, c, insert(t, bson.D{{Key: "_id", Value: 1}, {Key: "t", Value: "c"}}))
	slow := mql.MustCompile(bson.D{{Key: "t", Value: bson.D{{Key: "$regex", Value: "(a|b|ab)*(b|a|ba)*(ab|a|b)*c$"}}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	err := transact(t.Context(), s, func(txCtx context.Context, tx store.TxCollection) error {
		huge := setTo("t", strings.Repeat("ab", 4<<20))
		if _, err := one(txCtx, tx, store.Op{Kind: store.Update, ID: value(t, 1), Update: huge}); err != nil {
			return err
		}
		go func() {
			_, err := c.Write(ctx, []store.Op{{Kind: store.Update, Filter: slow, Many: true, Update: setTo("hit", true)}}, false)
			result <- err
		}()
		embedded.WaitForWaiting(s, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	embedded.WaitForWaiting(s, 0)
	for i := range 100 {
		must(t, c, insert(t, bson.D{{Key: "_id", Value: 100 + i}}))
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the write: %v", err)
	}
	wantIdle(t, s)
}
