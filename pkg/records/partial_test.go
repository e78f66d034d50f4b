package records_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// failing is a store that takes a number of writes, and then none.
type failing struct {
	store.Store
	writes int
}

type failingDatabase struct {
	store.Database
	f *failing
}

type failingCollection struct {
	store.Collection
	f *failing
}

func (f *failing) Database(name string) store.Database {
	return failingDatabase{f.Store.Database(name), f}
}

func (d failingDatabase) Collection(name string) store.Collection {
	return failingCollection{d.Database.Collection(name), d.f}
}

func (c failingCollection) Write(ctx context.Context, ops []store.Op, atomic bool) ([]store.Result, error) {
	if c.f.writes--; c.f.writes < 0 {
		return nil, errs.New(errs.Unavailable, "store_unavailable", "the database can't be reached; try again later")
	}
	return c.Collection.Write(ctx, ops, atomic)
}

// A store that fails in the middle of a bulk write leaves nobody in doubt about what is written: it is not the whole
// that fails when some of it is done.
func TestBulkWhenTheStoreFails(t *testing.T) {
	const n, down = 1100, "store_unavailable: the database can't be reached; try again later"
	for _, verb := range []string{"create", "update", "delete"} {
		for _, tt := range []struct {
			mode   string
			writes int
			want   string // the error, or the items that are not written
		}{
			{"continue", 0, down},
			{"continue", 1, "600 of 1100"},
			{"continue", 2, "100 of 1100"},
			{"continue", 3, "0 of 1100"},
			{"atomic", 0, down},
			{"atomic", 1, "0 of 1100"},
		} {
			t.Run(fmt.Sprint(verb, " ", tt.mode, " ", tt.writes), func(t *testing.T) {
				w := newWorld(t, teststore.Memory(t), bulkConfig("{maxItems: 2000, mode: "+tt.mode+"}"))
				items := make(bson.A, n)
				for i := range items {
					items[i] = bson.D{{Key: "n", Value: int64(i % 50)}}
				}
				if verb != "create" {
					if _, err := w.service.BulkCreate(t.Context(), w.call("admin"), items); err != nil {
						t.Fatal(err)
					}
				}
				broken := records.New(&failing{Store: w.store, writes: tt.writes}, w.now, w.logs, nil, nil)
				var res records.BulkResult
				var err error
				switch verb {
				case "create":
					res, err = broken.BulkCreate(t.Context(), w.call("admin"), items)
				case "update":
					res, err = broken.BulkUpdate(t.Context(), w.call("admin"), where(t, `{}`), doc(t, `{"owner": "all"}`))
				case "delete":
					res, err = broken.BulkDelete(t.Context(), w.call("admin"), where(t, `{}`))
				}
				got := show(err)
				if err == nil {
					got = fmt.Sprintf("%d of %d", res.Failed(), len(res.Items))
				}
				if got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				for i, it := range res.Items {
					if it.Err != nil && (show(it.Err) != down || i < 500*tt.writes) {
						t.Fatalf("item %d: %s", i, show(it.Err))
					}
				}
				left := strings.Count(w.everything(), "\n")
				if want := len(res.Items) - res.Failed(); verb == "create" && left != want {
					t.Errorf("%d are stored, %d are said to be", left, want)
				}
				if want := n - len(res.Items) + res.Failed(); verb == "delete" && left != want {
					t.Errorf("%d are left, %d are said to be", left, want)
				}
			})
		}
	}
}

// Records that others delete while a bulk write is under way are no failure of one that is all or nothing: they count as
// not matched, whether they go before it reads them or after.
func TestAtomicBulkWithoutTheDeleted(t *testing.T) {
	for _, verb := range []string{"update", "delete"} {
		t.Run(verb, func(t *testing.T) {
			teststore.Each(t, func(t *testing.T, s store.Store) {
				var ids []string
				w := meddled(t, s, bulkConfig("{mode: atomic}"), 2, func(w *world) {
					if _, err := w.service.Delete(t.Context(), w.call("admin"), ids[0]); err != nil {
						t.Error(err)
					}
					ids = ids[1:]
				})
				for i := range 4 {
					ids = append(ids, w.put(fmt.Sprintf(`{"n": %d, "_rev": 1}`, i)))
				}
				var res records.BulkResult
				var err error
				if verb == "update" {
					res, err = w.service.BulkUpdate(t.Context(), w.call("admin"), where(t, `{}`), doc(t, `{"n": 9}`))
				} else {
					res, err = w.service.BulkDelete(t.Context(), w.call("admin"), where(t, `{}`))
				}
				if got := outcome(res, err); got != "0 failed: ok | ok" || res.Matched != 2 || res.Items[0].ID != ids[0] || res.Items[1].ID != ids[1] {
					t.Errorf("%s, %d matched: %+v", got, res.Matched, res.Items)
				}
				want := map[string]string{"update": "9 9", "delete": ""}[verb]
				if got := w.numbers(); got != want {
					t.Errorf("stored %q, want %q", got, want)
				}
			})
		})
	}
}
