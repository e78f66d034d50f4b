package records_test

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// A hook that changes the record of its own write by db is told so; it does not run again and again.
func TestHookChangesItsOwnRecord(t *testing.T) {
	t.Parallel()
	for stage, text := range map[string]string{
		"put.update":    `await db.collection('items').update(ctx.id, {slug: 'by db'})`,
		"delete.delete": `await db.collection('items').delete(ctx.id)`,
	} {
		teststore.Each(t, func(t *testing.T, s store.Store) {
			w := hooked(t, s, "", map[string]string{stage: "module.exports = async (ctx) => { if (ctx.user && ctx.user.name === 'alice') { " + text + " } }"})
			id := w.create("alice", `{"title": "a", "n": 1}`)
			var err error
			if stage == "put.update" {
				_, err = w.service.Update(t.Context(), w.call("alice"), id, records.Change{Body: doc(t, `{"n": 2}`)})
			} else {
				_, err = w.service.Delete(t.Context(), w.call("alice"), id)
			}
			if errs.From(err).Code != "script_failed" || !strings.Contains(err.Error(), "that same record by db") {
				t.Errorf("%s: %v", stage, err)
			}
			if got := w.stored(id); strings.Contains(got, "by db") || !strings.Contains(got, `"n":1`) {
				t.Errorf("%s: %s", stage, got)
			}
		})
	}
}

// Of many who change the revision that they have read, one wins, with what its hook made of it; the hooks of the others
// leave nothing.
func TestRevisionsWithHooks(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := hooked(t, s, "", map[string]string{"put.update": `module.exports = async (ctx) => {
			await db.collection('notes').insert({n: ctx.doc.n})
			ctx.doc.slug = 'n' + ctx.doc.n
		}`})
		id := w.create("alice", `{"title": "a"}`)
		for round := range 3 {
			rec, err := w.service.Get(t.Context(), w.call("alice"), id, records.GetParams{})
			if err != nil {
				t.Fatal(show(err))
			}
			var won atomic.Int64
			var all sync.WaitGroup
			for i := range 6 {
				all.Go(func() {
					n := round*10 + i
					res, err := w.service.Update(t.Context(), w.call("alice"), id, records.Change{IfRev: []int64{rec.Rev()}, Body: doc(t, `{"n": `+strconv.Itoa(n)+`}`)})
					switch {
					case err == nil:
						if won.Add(1); res.Record.Rev() != rec.Rev()+1 {
							t.Errorf("revision %d behind %d", res.Record.Rev(), rec.Rev())
						}
					case errs.From(err).Code != "stale":
						t.Error(show(err))
					}
				})
			}
			all.Wait()
			notes := w.call("alice")
			notes.Collection = w.project.Collections["notes"]
			n, err := w.service.Count(t.Context(), notes, query.Where{})
			if err != nil || won.Load() != 1 || n != int64(round+1) {
				t.Errorf("%d won, %d notes, %v", won.Load(), n, err)
			}
		}
	})
}
