package mql_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

var (
	updateCases = flag.Int("updates", 2000, "random updates to compare with MongoDB")
	updateSeed  = flag.Uint64("updateseed", 0, "their seed; 0 takes one from the clock")
)

// serverCase is one statement of a batch, with what came of it here.
type serverCase struct {
	doc       bson.Raw // nil for an upsert
	update    bson.D
	filters   []bson.D
	filter    bson.D
	want      bson.Raw // nil: none
	err       error
	unchanged bool
}

// TestUpdateAsServer compares random updates with a MongoDB: to the byte, which of them fail, and how many change
// something.
func TestUpdateAsServer(t *testing.T) {
	compareWithServer(t, mqltest.Update)
}

// TestPositionAsServer does so with the position $ and the filters that decide what it is.
func TestPositionAsServer(t *testing.T) {
	compareWithServer(t, func(*rand.Rand) (bson.D, []bson.D) {
		return bson.D{{Key: "$set", Value: bson.D{{Key: "position.$", Value: true}}}}, nil
	})
}

// makeUpdate gives a random update and its array filters.
type makeUpdate func(r *rand.Rand) (update bson.D, arrayFilters []bson.D)

func compareWithServer(t *testing.T, random makeUpdate) {
	t.Helper()
	server := mongotest.Dial(t)
	seed := *updateSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-updates=%d -updateseed=%d", *updateCases, seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const batch = 400
	var total outcomes
	for done := 0; done < *updateCases && !t.Failed(); done += batch {
		runBatch(t, server, r, random, min(batch, *updateCases-done), &total)
	}
	t.Logf("%d changed, %d not, %d failed, %d did not compile", total.changed, total.unchanged, total.failed, total.refused)
	if *updateCases >= 2000 && (total.changed < *updateCases/40 || total.failed == 0) {
		t.Error("too few of the updates could be applied, or none failed")
	}
}

type outcomes struct{ changed, unchanged, failed, refused int }

func runBatch(t *testing.T, server *mongotest.Conn, r *rand.Rand, random makeUpdate, n int, total *outcomes) {
	t.Helper()
	const db = "mql_updates"
	server.Run(t, db, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}}})
	cases := make([]serverCase, n)
	var docs, statements bson.A
	for i := range cases {
		var statement bson.D
		cases[i], statement = randomCase(t, r, random, int32(i), total)
		statements = append(statements, statement)
		if cases[i].doc != nil {
			docs = append(docs, cases[i].doc)
		}
	}
	server.Run(t, db, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	reply := server.Run(t, db, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: statements}, {Key: "ordered", Value: false}})
	failures := writeErrors(t, reply)
	found := server.Run(t, db, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: n + 1}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}})
	got := byID(t, found, n)
	least, most := 0, 0
	for i, c := range cases {
		message, failed := failures[int32(i)]
		switch {
		case failed != (c.err != nil):
			t.Errorf("%s\n  server: %q\n  here:   %v", describe(c), message, c.err)
		case !bytes.Equal(withoutNow(got[i]), withoutNow(c.want)):
			t.Errorf("%s\n  server: %v\n  here:   %v", describe(c), got[i], c.want)
		}
		if c.err == nil && c.doc != nil && !bytes.Equal(c.doc, c.want) {
			least++
		} else if c.err == nil && c.doc != nil && !c.unchanged {
			most++
		}
	}
	modified := int(reply.Lookup("nModified").AsInt64())
	if modified < least || modified > least+most {
		t.Errorf("the server says that %d documents are modified, here it is %d", modified, least)
	}
}

// randomCase makes a statement and applies it here.
func randomCase(t *testing.T, r *rand.Rand, random makeUpdate, id int32, total *outcomes) (serverCase, bson.D) {
	t.Helper()
	var c serverCase
	c.update, c.filters = random(r)
	u, err := mql.CompileUpdate(c.update, c.filters)
	filter := c.choose(t, r, id, u)
	statement := bson.D{{Key: "q", Value: filter.Raw()}}
	if err == nil && (r.IntN(2) == 0 || hasRegex(u)) { // a server reads regular expressions in its own way
		statement = append(statement, bson.E{Key: "u", Value: u.Raw()})
		statement = append(statement, arrayFilters(u.ArrayFilters())...)
	} else {
		statement = append(statement, bson.E{Key: "u", Value: c.update})
		statement = append(statement, arrayFilters(c.filters)...)
	}
	if c.doc == nil {
		statement = append(statement, bson.E{Key: "upsert", Value: true})
	}
	c.want, c.unchanged = c.doc, true
	if err != nil {
		c.err = err
		total.refused++
		return c, statement
	}
	c.apply(t, u, filter, total)
	return c, statement
}

// choose makes the document, if there is to be one, and the filter that finds it. Mostly it does, and u can be applied.
func (c *serverCase) choose(t *testing.T, r *rand.Rand, id int32, u *mql.Update) *mql.Filter {
	t.Helper()
	idOnly := bson.D{{Key: "_id", Value: id}}
	c.filter = idOnly
	position := strings.Contains(describe(*c), `.$.`) || strings.Contains(describe(*c), `.$"`)
	upsert, tries := r.IntN(6) == 0, 20
	if position {
		upsert, tries = r.IntN(100) == 0, 60
	}
	switch {
	case upsert:
		c.filter = append(c.filter, mqltest.Upsert(r)...)
	case position || r.IntN(4) == 0:
		c.filter = append(c.filter, mqltest.Filter(r)...)
	}
	filter, err := mql.Compile(c.filter)
	if err == nil && upsert {
		if base, err := mql.UpsertBase(filter); err != nil || base.Lookup("_id").Type != 0 {
			return filter
		}
	}
	if err != nil || upsert { // there would be no id to find it by
		c.filter = idOnly
		if filter, err = mql.Compile(c.filter); err != nil {
			t.Fatal(err)
		}
	}
	for range 1 + r.IntN(tries) {
		if c.doc = raw(t, mqltest.Doc(r, id)); !filter.Match(c.doc) || u == nil {
			continue
		}
		if _, err := u.Apply(c.doc, mql.Applying{Filter: filter}); err == nil {
			break
		}
	}
	return filter
}

func (c *serverCase) apply(t *testing.T, u *mql.Update, filter *mql.Filter, total *outcomes) {
	t.Helper()
	before, insert := c.doc, false
	if before == nil {
		if before, c.err = mql.UpsertBase(filter); c.err != nil {
			total.failed++
			return
		}
		insert = true
	} else if !filter.Match(before) {
		total.unchanged++
		return
	}
	kept := bytes.Clone(before)
	after, err := u.Apply(before, mql.Applying{Filter: filter, Now: time.Now(), Insert: insert})
	if !bytes.Equal(before, kept) {
		t.Errorf("%s: the document was written to", describe(*c))
	}
	if err != nil {
		c.err = err
		total.failed++
		return
	}
	c.want, c.unchanged = after, false
	if err := after.Validate(); err != nil {
		t.Errorf("%s: %v", describe(*c), err)
	}
	checkTouches(t, c, u, before, after)
	if bytes.Equal(before, after) {
		total.unchanged++
		if &before[0] != &after[0] {
			t.Errorf("%s: nothing changes, and yet there is another document", describe(*c))
		}
		return
	}
	total.changed++
}

// checkTouches asks Touches for all paths that have changed.
func checkTouches(t *testing.T, c *serverCase, u *mql.Update, before, after bson.Raw) {
	t.Helper()
	for _, path := range []string{"a", "b", "c", "a.b", "a.c", "a.0", "a.b.c", "a.0.b", "b.c", "b.0.1", "d", "_id", "e", "e.f", "a.1.c"} {
		x, xOK := document.Lookup(before, path)
		y, yOK := document.Lookup(after, path)
		if (xOK != yOK || !x.Equal(y)) && !u.Touches(path) {
			t.Errorf("%s: %s changes, and Touches does not say so", describe(*c), path)
		}
	}
}

func arrayFilters[T any](filters []T) bson.D {
	if len(filters) == 0 {
		return nil
	}
	return bson.D{{Key: "arrayFilters", Value: filters}}
}

func writeErrors(t *testing.T, reply bson.Raw) map[int32]string {
	t.Helper()
	out := map[int32]string{}
	v, err := reply.LookupErr("writeErrors")
	if err != nil {
		return out
	}
	values, err := v.Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		d := v.Document()
		out[d.Lookup("index").Int32()] = d.Lookup("errmsg").StringValue()
	}
	return out
}

func byID(t *testing.T, reply bson.Raw, n int) []bson.Raw {
	t.Helper()
	values, err := reply.Lookup("cursor", "firstBatch").Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]bson.Raw, n)
	for _, v := range values {
		id, ok := v.Document().Lookup("_id").Int32OK()
		if !ok {
			t.Errorf("the server has a document %v", v)
			continue
		}
		out[id] = v.Document()
	}
	return out
}

// withoutNow zeroes what $currentDate gives, which the server does by its own clock.
func withoutNow(doc bson.Raw) bson.Raw {
	if doc == nil {
		return nil
	}
	doc = bytes.Clone(doc)
	zeroDates(doc)
	return doc
}

func zeroDates(doc []byte) {
	for it := document.NewIter(doc); it.Next(); {
		v := it.Value()
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			zeroDates(v.Value)
		}
		if v.Type == bson.TypeDateTime && v.Time().Year() > 2020 {
			clear(v.Value)
		}
	}
}

func describe(c serverCase) string {
	d := bson.D{{Key: "filter", Value: c.filter}, {Key: "update", Value: c.update}, {Key: "arrayFilters", Value: c.filters}}
	if c.doc != nil {
		d = append(bson.D{{Key: "doc", Value: c.doc}}, d...)
	}
	text, err := bson.MarshalExtJSON(d, false, false)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
