package mql_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
)

func update(tb testing.TB, text string) *mql.Update {
	tb.Helper()
	u, err := mql.CompileUpdate(parse(tb, text), nil)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return u
}

func TestUpdateRefused(t *testing.T) {
	for _, test := range []struct {
		update  string
		filters []string
		message string // part of it
	}{
		{`{}`, nil, "no operator"},
		{`{"a":1}`, nil, `"a" is no operator`},
		{`{"$set":{"a":1},"b":2}`, nil, `"b" is no operator`},
		{`{"$where":{"a":1}}`, nil, `operator "$where" is not supported`},
		{`{"$set":5}`, nil, "$set needs an object"},
		{`{"$set":{"":1}}`, nil, `"" is not a field path`},
		{`{"$set":{"a..b":1}}`, nil, `"a..b" is not a field path`},
		{`{"$set":{"$a":1}}`, nil, `"$a" is not a field path`},
		{`{"$set":{"a.$b":1}}`, nil, `"a.$b" is not a field path`},
		{`{"$set":{"a.$.$":1}}`, nil, "more than one $"},
		{`{"$set":{"$[]":1}}`, nil, "begins with a position"},
		{`{"$set":{"a":1},"$inc":{"a":1}}`, nil, `$inc a: another path of the update changes the same at "a"`},
		{`{"$set":{"a":1,"a.b":1}}`, nil, `$set a.b: another path`},
		{`{"$set":{"a.b.c":1},"$unset":{"a.b":1}}`, nil, `$unset a.b: another path`},
		{`{"$set":{"a.$[]":1,"a.0":1}}`, nil, `at "a"`},
		{`{"$set":{"a.0":1,"a.00":1}}`, nil, "the same element"},
		{`{"$set":{"a.$[x]":1}}`, nil, `no array filter "x"`},
		{`{"$set":{"a":1}}`, []string{`{"x":1}`}, `"x" is not used`},
		{`{"$set":{"a.$[x]":1}}`, []string{`{"x":1}`, `{"x":2}`}, "two array filters"},
		{`{"$set":{"a.$[X]":1}}`, []string{`{"X":1}`}, "the first a small letter"},
		{`{"$set":{"a.$[x]":1}}`, []string{`{"x":1,"y":1}`}, "begin with one name"},
		{`{"$set":{"a.$[x]":1}}`, []string{`{}`}, "begin with one name"},
		{`{"$set":{"a.$[x]":1}}`, []string{`{"x":{"$where":"1"}}`}, `operator "$where"`},
		{`{"$inc":{"a":"1"}}`, nil, "$inc a needs a number"},
		{`{"$bit":{"a":{"nor":1}}}`, nil, `"nor" is none of`},
		{`{"$bit":{"a":{"and":1.5}}}`, nil, "needs an integer"},
		{`{"$bit":{"a":{}}}`, nil, "$bit a needs"},
		{`{"$rename":{"a":5}}`, nil, "$rename a needs a text"},
		{`{"$rename":{"a":"a.b"}}`, nil, "not above or below"},
		{`{"$rename":{"a":"b.$"}}`, nil, "can't be positions"},
		{`{"$rename":{"a":"b"},"$set":{"b":1}}`, nil, "$set b: another path"},
		{`{"$currentDate":{"a":"date"}}`, nil, `$currentDate a needs true`},
		{`{"$currentDate":{"a":{"$type":"time"}}}`, nil, `$currentDate a needs true`},
		{`{"$push":{"a":{"$each":1}}}`, nil, "$push a: $each needs a list"},
		{`{"$push":{"a":{"$each":[],"$slice":1.5}}}`, nil, "$slice needs a whole number"},
		{`{"$push":{"a":{"$each":[],"$sort":{}}}}`, nil, "$sort needs"},
		{`{"$push":{"a":{"$each":[],"$limit":1}}}`, nil, `"$limit" is none of`},
		{`{"$addToSet":{"a":{"$each":[],"$slice":1}}}`, nil, "nothing but $each"},
		{`{"$pull":{"a":{"$not":{"$gt":1}}}}`, nil, "can't begin with $not"},
		{`{"$pull":{"a":{"$gt":1,"b":1}}}`, nil, `$pull a: a: operator "b"`},
		{`{"$pullAll":{"a":1}}`, nil, "$pullAll needs a list"},
		{`{"$pop":{"a":2}}`, nil, "$pop a needs 1"},
		{`{"$set":{"` + strings.Repeat("a.", 40) + `a":1}}`, nil, "more than 32 names"},
		{`{"$set":{"a.b":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}}`, nil, "nested more than 100 levels"},
	} {
		var filters []bson.D
		for _, f := range test.filters {
			filters = append(filters, parse(t, f))
		}
		_, err := mql.CompileUpdate(parse(t, test.update), filters)
		if e := errs.From(err); err == nil || e.Kind != errs.Invalid || e.Code != "bad_update" || !strings.Contains(e.Message, test.message) {
			t.Errorf("%s: %v, want %q", test.update, err, test.message)
		}
	}
	_, err := mql.CompileUpdate(bson.D{{Key: "$set", Value: bson.D{}}, {Key: "$set", Value: bson.D{}}}, nil)
	if errs.From(err).Code != "bad_update" {
		t.Errorf("an operator given twice: %v", err)
	}
}

func TestUpdateFails(t *testing.T) {
	for _, test := range []struct{ doc, update, message string }{
		{`{"a":"x"}`, `{"$inc":{"a":1}}`, "$inc a: the value is a string, and this needs a number"},
		{`{"a":{"$numberLong":"9223372036854775807"}}`, `{"$inc":{"a":1}}`, "larger than an integer can be"},
		{`{"a":{"b":null}}`, `{"$set":{"a.b.c":1}}`, "$set a.b.c: the path leads through null"},
		{`{"a":[1]}`, `{"$set":{"a.b":1}}`, "$set a.b: the path leads through a list"},
		{`{"a":5}`, `{"$push":{"a":1}}`, "$push a: the value is a 32-bit integer, and this needs a list"},
		{`{"a":5}`, `{"$pull":{"a":1}}`, "$pull a: the value"},
		{`{"a":1.5}`, `{"$bit":{"a":{"or":1}}}`, "this needs an integer"},
		{`{"a":[1]}`, `{"$set":{"a.$":1}}`, "$set a.$: $ has no element"},
		{`{"a":{}}`, `{"$set":{"a.$[].b":1}}`, "$set a.$[].b: $[] only goes through lists, and here is an object"},
		{`{}`, `{"$set":{"a.$[]":1}}`, "$set a.$[]: there is no list"},
		{`{"a":[1]}`, `{"$set":{"a.1500002":1}}`, "no more than 1500000 nulls"},
		{`{"a":[1]}`, `{"$rename":{"a.0":"b"}}`, "$rename b: the old path leads into a list"},
		{`{"a":[1],"b":1}`, `{"$rename":{"b":"a.0"}}`, "$rename a.0: the new path leads into a list"},
		{`{"_id":1}`, `{"$set":{"_id":2}}`, "_id of a document can't be changed"},
		{`{"_id":1,"a%d":"x"}`, `{"$inc":{"a%d":2}}`, "$inc a%d: the value"},
	} {
		_, err := update(t, test.update).Apply(raw(t, parse(t, test.doc)), mql.Applying{})
		if e := errs.From(err); err == nil || e.Kind != errs.Invalid || e.Code != "update_failed" || !strings.Contains(e.Message, test.message) {
			t.Errorf("%s %s: %v, want %q", test.doc, test.update, err, test.message)
		}
	}
}

func TestUpdateLimits(t *testing.T) {
	u := update(t, `{"$set":{"a.1500001":1}}`)
	after, err := u.Apply(raw(t, parse(t, `{"a":[1]}`)), mql.Applying{})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := document.Lookup(after, "a.1500001"); !ok || v.Int32() != 1 || after.Validate() != nil {
		t.Errorf("%v, %v", v, after.Validate())
	}
	large := raw(t, bson.D{{Key: "a", Value: strings.Repeat("x", 9<<20)}, {Key: "b", Value: bson.A{1, 2, 3}}})
	for _, text := range []string{`{"$push":{"b":"` + strings.Repeat("y", 8<<20) + `"}}`, `{"$set":{"b.$[]":"` + strings.Repeat("y", 8<<20) + `"}}`} {
		if _, err := update(t, text).Apply(large, mql.Applying{}); errs.KindOf(err) != errs.TooLarge {
			t.Errorf("%v", err)
		}
	}
	doc := raw(t, parse(t, `{"a":1,"b":{}}`))
	for i := range 200 { // each step puts it one level deeper
		names := []string{"a", "b.a"}
		from, to := names[i%2], names[(i+1)%2]
		moved, err := update(t, `{"$rename":{"`+from+`":"`+to+`"}}`).Apply(doc, mql.Applying{})
		if err != nil {
			t.Fatal(err)
		}
		doc = moved
	}
	doc = raw(t, parse(t, `{"a":1}`))
	for i := 0; ; i++ {
		from, to := "a"+strconv.Itoa(i), "a"+strconv.Itoa(i+1)+".b"
		if i == 0 {
			from = "a"
		}
		moved, err := update(t, `{"$rename":{"`+from+`":"`+to+`"}}`).Apply(doc, mql.Applying{})
		if err != nil {
			if i != 99 || errs.From(err).Code != "update_failed" {
				t.Errorf("after %d levels: %v", i, err)
			}
			break
		}
		doc = moved
	}
}

func TestUpdateDamagedDocument(t *testing.T) {
	doc := raw(t, parse(t, `{"a":[{"b":[1,"x",{"c":null}]},2],"d":{"$numberDecimal":"1"},"e":"text"}`))
	u := update(t, `{"$set":{"a.0.b.2.c":1,"a.3":1,"f":1},"$inc":{"d":1.5},"$rename":{"e":"g"}}`)
	if _, err := u.Apply(doc, mql.Applying{}); err != nil {
		t.Fatal(err)
	}
	for i := range doc {
		if _, err := u.Apply(doc[:i], mql.Applying{}); err == nil {
			t.Errorf("the first %d bytes are taken", i)
		}
		for _, b := range []byte{0, 1, 4, 0x7f, 0xff} {
			damaged := bytes.Clone(doc)
			damaged[i] = b
			_, _ = u.Apply(damaged, mql.Applying{}) // whatever it says, it must come back
		}
	}
}

func TestCurrentDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	u := update(t, `{"$currentDate":{"a":true,"b":{"$type":"date"},"c":{"$type":"timestamp"}}}`)
	after, err := u.Apply(raw(t, parse(t, `{"a":"x"}`)), mql.Applying{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	date := bson.DateTime(now.UnixMilli())
	seconds, _ := after.Lookup("c").Timestamp()
	if after.Lookup("a").DateTime() != int64(date) || after.Lookup("b").DateTime() != int64(date) || int64(seconds) != now.Unix() {
		t.Errorf("%v", after)
	}
}

func TestSetOnInsert(t *testing.T) {
	u := update(t, `{"$setOnInsert":{"_id":7,"a":1},"$set":{"b":2}}`)
	doc := raw(t, parse(t, `{"x":1}`))
	for insert, want := range map[bool]string{false: `{"x":1,"b":2}`, true: `{"_id":7,"x":1,"a":1,"b":2}`} {
		after, err := u.Apply(doc, mql.Applying{Insert: insert})
		if err != nil || !bytes.Equal(after, raw(t, parse(t, want))) {
			t.Errorf("insert %v: %v, %v", insert, after, err)
		}
	}
}

func TestTouches(t *testing.T) {
	u := update(t, `{"$set":{"a.b":1,"list.$[].x":1,"l.0.y":1},"$rename":{"old":"new.name"}}`)
	for path, want := range map[string]bool{
		"a": true, "a.b": true, "a.b.c": true, "a.c": false, "ab": false, "b": false, "list": true, "list.3.x": true, "list.x": true,
		"list.y": false, "l.y": true, "l.7.y": true, "l.x": false, "old": true, "new": true, "new.name": true, "new.other": false,
	} {
		if u.Touches(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

func TestUpsertBase(t *testing.T) {
	for filter, want := range map[string]string{
		`{}`:                                 `{}`,
		`{"b":1,"_id":5,"a.c":2,"a.b":null}`: `{"_id":5,"a":{"b":null,"c":2},"b":1}`,
		`{"a":{"$gt":1},"b":{"$in":[1]},"$or":[{"c":1}]}`:              `{"b":1,"c":1}`,
		`{"$or":[{"a":1},{"b":1}],"c":{"$in":[1,2]}}`:                  `{}`,
		`{"a":{"$all":[]},"b":1}`:                                      `{}`,
		`{"$nor":[{"a":1}],"b":{"$not":{"$eq":1}},"c":{"$all":[[1]]}}`: `{"c":[1]}`,
	} {
		got, err := mql.UpsertBase(compile(t, filter))
		if err != nil || !bytes.Equal(got, raw(t, parse(t, want))) {
			t.Errorf("%s: %v, %v", filter, got, err)
		}
	}
	if got, err := mql.UpsertBase(nil); err != nil || len(got) != 5 {
		t.Errorf("nil: %v, %v", got, err)
	}
	for _, filter := range []string{`{"$and":[{"a":1},{"a":1}]}`, `{"a":1,"a.b":1}`, `{"_id":{"$all":[[1]]}}`} {
		if _, err := mql.UpsertBase(compile(t, filter)); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

// What sets a state gives the same when it is applied again.
func TestUpdateTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	applied := 0
	for range 8_000 {
		doc, filters := mqltest.Update(r)
		if !idempotent(doc) {
			continue
		}
		u, err := mql.CompileUpdate(doc, filters)
		if err != nil {
			continue
		}
		once, err := u.Apply(raw(t, mqltest.Doc(r, 1)), mql.Applying{})
		if err != nil {
			continue
		}
		applied++
		twice, err := u.Apply(once, mql.Applying{})
		if err != nil || &once[0] != &twice[0] {
			t.Fatalf("%v: %v, then %v, %v", doc, once, twice, err)
		}
	}
	if applied < 1000 {
		t.Errorf("only %d", applied)
	}
}

func idempotent(doc bson.D) bool {
	for _, e := range doc {
		switch e.Key {
		case "$min", "$max", "$addToSet", "$pullAll":
		case "$set", "$unset": // with array filters, what they set may be chosen by another then
			for _, f := range e.Value.(bson.D) {
				if strings.Contains(f.Key, "$") {
					return false
				}
			}
		default:
			return false
		}
		for _, f := range e.Value.(bson.D) {
			if strings.Contains(f.Key, "$[") {
				return false
			}
		}
	}
	return true
}

func TestUpdateAllocates(t *testing.T) {
	doc, u := article(t), update(t, `{"$set":{"status":"draft"},"$inc":{"views":1}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := u.Apply(doc, mql.Applying{}); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCompileUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"$set":{"a.b":1,"c.$[x].d":null}}`, `{"$push":{"a":{"$each":[1,"x"],"$sort":{"b":-1},"$slice":3,"$position":0}}}`,
		`{"$pull":{"a":{"b":{"$gt":1}}},"$rename":{"c":"d.e"}}`, `{"$inc":{"a.$":1.5},"$currentDate":{"d":{"$type":"timestamp"}}}`,
		`{"$bit":{"a":{"xor":5}},"$addToSet":{"b":{"$each":[1,1.0]}},"$pop":{"c":-1},"$unset":{"a.$[].b":""}}`,
	} {
		f.Add([]byte(seed), []byte(`{"x":{"$gte":1}}`), []byte(`{"a":[{"b":null},1,"x",[1.5]],"b":[2],"c":[{"d":1}]}`))
	}
	f.Fuzz(func(t *testing.T, text, filter, doc []byte) {
		d, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		var filters []bson.D
		if af, err := document.ParseJSON(filter); err == nil && len(af) > 0 {
			filters = append(filters, af)
		}
		u, err := mql.CompileUpdate(d, filters)
		if err != nil && filters != nil {
			u, err = mql.CompileUpdate(d, nil)
		}
		if err != nil {
			return
		}
		if err := u.Raw().Validate(); err != nil {
			t.Errorf("Raw is damaged: %v", err)
		}
		recompile(t, u)
		u.Touches("a.b")
		parsed, err := document.ParseJSON(doc)
		if err != nil {
			return
		}
		before, err := document.Marshal(parsed)
		if err != nil {
			return
		}
		for _, how := range []mql.Applying{{}, {Insert: true}, {Filter: mql.MustCompile(bson.D{{Key: "a", Value: bson.D{{Key: "$exists", Value: true}}}})}} {
			after, err := u.Apply(before, how)
			if err == nil && after.Validate() != nil {
				t.Errorf("%v makes of %v what is no document: %x", u.Raw(), before, []byte(after))
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	doc := article(b)
	for name, text := range map[string]string{
		"set":   `{"$set":{"status":"draft"}}`,
		"inc":   `{"$inc":{"views":1}}`,
		"deep":  `{"$set":{"author.name":"Bob","x":1},"$inc":{"views":{"$numberLong":"1"}}}`,
		"push":  `{"$push":{"tags":"four"}}`,
		"slice": `{"$push":{"tags":{"$each":["four"],"$slice":-3}}}`,
		"each":  `{"$set":{"tags.$[]":"x"}}`,
	} {
		b.Run(name, func(b *testing.B) {
			u := update(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := u.Apply(doc, mql.Applying{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
