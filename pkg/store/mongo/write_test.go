package mongo_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

func update(t *testing.T, id, json string) store.Op {
	t.Helper()
	u, err := mql.CompileUpdate(object(t, json), nil)
	if err != nil {
		t.Fatalf("%s: %v", json, err)
	}
	op := store.Op{Kind: store.Update, Update: u}
	if id != "" {
		op.ID = value(t, id)
	}
	return op
}

// result gives what came of an op, as in "matched 1 modified 0 upserted x error".
func result(r store.Result) string {
	text := fmt.Sprintf("%d %d", r.Matched, r.Modified)
	if r.Upserted.Type != 0 {
		text += " upserted " + name(r.Upserted)
	}
	if r.Doc != nil {
		text += " " + r.Doc.String()
	}
	if r.Err != nil {
		text += " " + outcome(r.Err)
	}
	return text
}

// TestWriteResults checks each kind of op on the ways that it can take: alone, in an atomic write, in a transaction,
// within a bulk, and behind a router.
func TestWriteResults(t *testing.T) {
	t.Parallel()
	project, err := mql.CompileProjection(object(t, `{"n":1,"_id":0}`))
	if err != nil {
		t.Fatal(err)
	}
	first := mql.Sort{{Path: "n", Desc: true}}
	with := func(op store.Op, change func(*store.Op)) store.Op {
		change(&op)
		return op
	}
	setN := `{"$set":{"n":5}}`
	cases := map[string]struct {
		op   store.Op
		want string
	}{
		"insert":                 {insertion(t, `{"_id":9}`), "0 0"},
		"insert and give":        {with(insertion(t, `{"n":1,"_id":9}`), func(o *store.Op) { o.Return = store.ReturnAfter }), `0 0 {"_id": {"$numberInt":"9"},"n": {"$numberInt":"1"}}`},
		"insert twice":           {insertion(t, `{"_id":1}`), "0 0 dup _id"},
		"insert without _id":     {insertion(t, `{"n":1}`), "0 0 bad_id"},
		"insert with a list":     {insertion(t, `{"_id":[1]}`), "0 0 bad_id"},
		"update":                 {update(t, "1", setN), "1 1"},
		"update to what it is":   {update(t, "1", `{"$set":{"n":1}}`), "1 0"},
		"update nobody":          {update(t, "7", setN), "0 0 not_found"},
		"update stale":           {with(update(t, "1", setN), func(o *store.Op) { o.If = filter(t, `{"n":3}`) }), "0 0 stale"},
		"update on condition":    {with(update(t, "1", setN), func(o *store.Op) { o.If = filter(t, `{"n":1}`) }), "1 1"},
		"update the _id":         {update(t, "1", `{"$set":{"_id":2}}`), "0 0 update_failed"},
		"update of a wrong type": {update(t, "1", `{"$inc":{"l":1}}`), "0 0 update_failed"},
		"update through a value": {update(t, "1", `{"$set":{"n.x":1}}`), "0 0 update_failed"},
		"update by filter":       {with(update(t, "", setN), func(o *store.Op) { o.Filter = filter(t, `{"n":2}`) }), "1 1"},
		"update none by filter":  {with(update(t, "", setN), func(o *store.Op) { o.Filter = filter(t, `{"n":8}`) }), "0 0"},
		"update the first": {with(update(t, "", `{"$inc":{"n":10}}`), func(o *store.Op) {
			o.Filter, o.Sort, o.Return, o.Project = filter(t, `{}`), first, store.ReturnAfter, project
		}), `1 1 {"n": {"$numberInt":"13"}}`},
		"give before":        {with(update(t, "2", `{"$inc":{"n":10}}`), func(o *store.Op) { o.Return, o.Project = store.ReturnBefore, project }), `1 1 {"n": {"$numberInt":"2"}}`},
		"give after nothing": {with(update(t, "2", `{"$set":{"n":2}}`), func(o *store.Op) { o.Return, o.Project = store.ReturnAfter, project }), `1 0 {"n": {"$numberInt":"2"}}`},
		"give nobody":        {with(update(t, "7", setN), func(o *store.Op) { o.Return = store.ReturnAfter }), "0 0 not_found"},
		"position": {with(update(t, "", `{"$set":{"l.$":7}}`), func(o *store.Op) {
			o.Filter, o.Return, o.Project = filter(t, `{"_id":1,"l":2}`), store.ReturnAfter, mustProject(t, `{"l":1,"_id":0}`)
		}), `1 1 {"l": [{"$numberInt":"1"},{"$numberInt":"7"}]}`},
		"position by a guarded filter": {with(update(t, "", `{"$set":{"l.$":7}}`), func(o *store.Op) {
			o.Filter = filter(t, `{"l":2,"x":{"$gte":null}}`)
		}), "1 1"},
		"update many":              {with(update(t, "", `{"$inc":{"n":1}}`), func(o *store.Op) { o.Filter, o.Many = filter(t, `{"n":{"$gte":2}}`), true }), "2 2"},
		"update many, one of them": {with(update(t, "", `{"$set":{"n":2}}`), func(o *store.Op) { o.Filter, o.Many = filter(t, `{"n":{"$gt":0}}`), true }), "3 2"},
		"delete many":              {with(store.Op{Kind: store.Delete}, func(o *store.Op) { o.Filter, o.Many = filter(t, `{"n":{"$lt":3}}`), true }), "2 2"},
		"delete":                   {deletion(t, "1"), "1 1"},
		"delete nobody":            {deletion(t, "7"), "0 0 not_found"},
		"delete the first": {with(store.Op{Kind: store.Delete}, func(o *store.Op) {
			o.Filter, o.Sort, o.Return, o.Project = filter(t, `{}`), first, store.ReturnBefore, project
		}), `1 1 {"n": {"$numberInt":"3"}}`},
		"replace":             {replacement(t, `{"_id":1,"x":1}`), "1 1"},
		"replace by the same": {replacement(t, `{"_id":2,"n":2}`), "1 0"},
		"replace nobody":      {replacement(t, `{"_id":7}`), "0 0 not_found"},
		"replace by filter":   {with(replacement(t, `{"x":1}`), func(o *store.Op) { o.Filter = filter(t, `{"n":2}`) }), "1 1"},
		"replace the first":   {with(replacement(t, `{"x":1}`), func(o *store.Op) { o.Filter, o.Sort, o.Return = filter(t, `{}`), first, store.ReturnAfter }), `1 1 {"_id": {"$numberInt":"3"},"x": {"$numberInt":"1"}}`},
		"replace another _id": {with(replacement(t, `{"_id":8}`), func(o *store.Op) { o.Filter = filter(t, `{"n":2}`) }), "0 0 update_failed"},
		"upsert none":         {with(update(t, "7", setN), func(o *store.Op) { o.Upsert = true }), "0 0 upserted 7"},
		"upsert one":          {with(update(t, "2", setN), func(o *store.Op) { o.Upsert = true }), "1 1"},
		"upsert by filter":    {with(update(t, "", setN), func(o *store.Op) { o.Upsert, o.Filter = true, filter(t, `{"_id":"u","k":{"$gt":1}}`) }), "0 0 upserted u"},
		"upsert and give": {with(update(t, "", setN), func(o *store.Op) {
			o.Upsert, o.Return, o.Filter = true, store.ReturnAfter, filter(t, `{"_id":"u","k":2}`)
		}), `0 0 upserted u {"_id": "u","k": {"$numberInt":"2"},"n": {"$numberInt":"5"}}`},
		"upsert, before": {with(update(t, "7", setN), func(o *store.Op) { o.Upsert, o.Return = true, store.ReturnBefore }), "0 0 upserted 7"},
		"upsert a replacement": {with(replacement(t, `{"x":1}`), func(o *store.Op) {
			o.Upsert, o.Return, o.Filter = true, store.ReturnAfter, filter(t, `{"_id":"u","k":2}`)
		}), `0 0 upserted u {"_id": "u","x": {"$numberInt":"1"}}`},
		"upsert a duplicate": {with(update(t, "", setN), func(o *store.Op) { o.Upsert, o.Filter = true, filter(t, `{"_id":1,"k":2}`) }), "0 0 dup _id"},
		"nonsense":           {with(update(t, "1", setN), func(o *store.Op) { o.Many = true }), "0 0 bad_write"},
	}
	plain := open(t, mongotest.URI(t))
	router := open(t, mongotest.URI(t))
	router.SetSharded(true)
	alone := func(t *testing.T, db store.Database, op store.Op) store.Result {
		t.Helper()
		return written(t, db.Collection("c"), false, op)[0]
	}
	for way, tt := range map[string]struct {
		on    store.Store
		write func(t *testing.T, db store.Database, op store.Op) store.Result
	}{
		"alone":  {plain, alone},
		"routed": {router, alone},
		"together": {plain, func(t *testing.T, db store.Database, op store.Op) store.Result {
			t.Helper()
			other := func(i int) store.Op { return insertion(t, fmt.Sprintf(`{"_id":"other%d"}`, i)) }
			return written(t, db.Collection("c"), false, other(1), other(2), op, deletion(t, `"other1"`), replacement(t, `{"_id":"other2","z":1}`))[2]
		}},
		"atomic": {plain, func(t *testing.T, db store.Database, op store.Op) store.Result {
			t.Helper()
			return written(t, db.Collection("c"), true, op, insertion(t, `{"_id":"other"}`))[0]
		}},
		"in a transaction": {plain, func(t *testing.T, db store.Database, op store.Op) (r store.Result) {
			t.Helper()
			_ = db.Transact(t.Context(), func(_ context.Context, tx store.Tx) error {
				r = written(t, tx.Collection("c"), false, op)[0]
				return r.Err
			})
			return r
		}},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			db := tt.on.Database("test_" + bson.NewObjectID().Hex())
			c := db.Collection("c")
			given := []store.Op{insertion(t, `{"_id":1,"n":1,"l":[1,2]}`), insertion(t, `{"_id":2,"n":2}`), insertion(t, `{"_id":3,"n":3}`)}
			for name, tc := range cases {
				mustWrite(t, c, given...)
				if got := result(tt.write(t, db, tc.op)); got != tc.want {
					t.Errorf("%s: %s, want %s", name, got, tc.want)
				}
				if strings.Contains(tc.want, "_failed") { // nothing was written
					if n, err := c.Count(t.Context(), filter(t, `{"$or":[{"_id":1,"n":1},{"_id":2,"n":2},{"_id":3,"n":3}]}`), 0); n != 3 {
						t.Errorf("%s: %d of 3 are as they were, %v", name, n, err)
					}
				}
				mustWrite(t, c, store.Op{Kind: store.Delete, Filter: filter(t, `{}`), Many: true})
			}
			if err := db.DropCollection(t.Context(), "c"); err != nil {
				t.Error(err)
			}
		})
	}
}

func mustProject(t *testing.T, json string) *mql.Projection {
	t.Helper()
	p, err := mql.CompileProjection(object(t, json))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func written(t *testing.T, w store.Writer, atomic bool, ops ...store.Op) []store.Result {
	t.Helper()
	results, err := w.Write(t.Context(), ops, atomic)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return results
}

// TestManyCountsUpToWhatFails updates more documents than are written at once, one of which can't be updated.
func TestManyCountsUpToWhatFails(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	const n = 1700
	var ops []store.Op
	for i := range n {
		ops = append(ops, store.Op{Kind: store.Insert, Doc: number(t, i)})
	}
	mustWrite(t, c, ops...)
	many := update(t, "", `{"$inc":{"n":1}}`)
	many.Filter, many.Many = filter(t, `{"_id":{"$gte":0}}`), true
	if got := result(written(t, c, false, many)[0]); got != "1700 1700" {
		t.Errorf("all: %s", got)
	}
	mustWrite(t, c, replacement(t, `{"_id":1234,"n":"text"}`))
	r := written(t, c, false, many)[0]
	if outcome(r.Err) != "update_failed" || r.Matched != r.Modified {
		t.Errorf("with one that fails: %s", result(r))
	}
	if twice, err := c.Count(t.Context(), filter(t, `{"n":2}`), 0); err != nil || twice != r.Modified {
		t.Errorf("%d were updated (%v), %s", twice, err, result(r))
	}
	if got := result(written(t, c, true, many)[0]); got != "0 0 update_failed" {
		t.Errorf("atomic: %s", got)
	}
	if again, err := c.Count(t.Context(), filter(t, `{"n":2}`), 0); err != nil || again != r.Modified {
		t.Errorf("an atomic write that fails leaves %d, %v", again, err)
	}
}

// TestBulkTellsOpsApart mixes ops whose results a bulk write's sums can't tell.
func TestBulkTellsOpsApart(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	var ops []store.Op
	for i := range 40 {
		ops = append(ops, store.Op{Kind: store.Insert, Doc: number(t, i)})
	}
	mustWrite(t, c, ops...)
	ops = nil
	var want []string
	for i := range 40 {
		op, text := update(t, strconv.Itoa(i), `{"$set":{"n":1}}`), "1 1"
		switch i {
		case 7, 8:
			op, text = update(t, strconv.Itoa(i), `{"$unset":{"n":1}}`), "1 0"
		case 20:
			op, text = update(t, "100", `{"$set":{"n":1}}`), "0 0 not_found"
		case 21:
			op, text = update(t, "21", `{"$inc":{"_id":1}}`), "0 0 update_failed"
		case 30:
			op, text = update(t, "30", `{"$set":{"n":1}}`), "1 1"
			op.Upsert = true
		case 31:
			op, text = update(t, "131", `{"$set":{"n":1}}`), "0 0 upserted 131"
			op.Upsert = true
		}
		ops, want = append(ops, op), append(want, text)
	}
	for i, r := range written(t, c, false, ops...) {
		if got := result(r); got != want[i] {
			t.Errorf("op %d: %s, want %s", i, got, want[i])
		}
	}
}

// TestFindAndModifyCounts lets many take numbers from one document: nobody gets one twice.
func TestFindAndModifyCounts(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	c := db.Collection("c")
	taken := make(chan int64, 400)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			for range 25 {
				op := update(t, `"counter"`, `{"$inc":{"n":1}}`)
				op.Upsert, op.Return = true, store.ReturnAfter
				rs, err := c.Write(t.Context(), []store.Op{op}, false)
				if err != nil {
					return err
				}
				if rs[0].Err != nil {
					return rs[0].Err
				}
				n, _ := rs[0].Doc.Lookup("n").AsInt64OK()
				taken <- n
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	close(taken)
	seen := map[int64]bool{}
	for n := range taken {
		if seen[n] {
			t.Errorf("%d was given twice", n)
		}
		seen[n] = true
	}
	if len(seen) != 200 || !seen[1] || !seen[200] {
		t.Errorf("%d numbers were given", len(seen))
	}
}
