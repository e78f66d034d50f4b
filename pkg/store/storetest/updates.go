package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// updateCase is an update of one document. want is the document afterwards, without _id as given is: "" if it stays as
// it is, to the byte, or "invalid" if the update can't be applied to it.
type updateCase struct {
	given, update, want string
}

// filteredCase is an update whose filter or array filters say which elements of lists it means.
type filteredCase struct {
	updateCase
	filter       string // on the document
	arrayFilters []string
}

// testUpdates applies every update by id and by filter, and asks for the document before and after, all under every
// kind of index on what it changes.
func testUpdates(t *testing.T, s store.Store) {
	var cases []filteredCase
	for _, c := range updateCases() {
		cases = append(cases, filteredCase{updateCase: c})
	}
	cases = append(cases, positionCases()...)
	ways := []string{"by id", "before", "after"}
	f := newFixture(t, s)
	for i, c := range cases {
		f.checkUpdate(i, c, ways...)
	}
	f.empty()
	f.underIndexes(t, admitting(permutations("a", "a.b")), func(f *fixture) {
		for i, c := range cases {
			f.checkUpdate(i, c, ways[i%len(ways)])
		}
		f.checkQueries()
		f.empty()
	})
	t.Run("the time now", func(t *testing.T) { testCurrentDate(newFixture(t, s)) })
	t.Run("too large", func(t *testing.T) { testTooLarge(newFixture(t, s)) })
	t.Run("unique", func(t *testing.T) { testUniqueUpdate(newFixture(t, s)) })
}

// checkUpdate runs c on a document for each way: by id, by filter with the document before, or by filter with the one
// after.
func (f *fixture) checkUpdate(number int, c filteredCase, ways ...string) {
	f.t.Helper()
	u := update(c.update, c.arrayFilters...)
	want := c.want
	switch want {
	case "":
		want = c.given
	case "invalid":
		want = c.given
	}
	for way, name := range ways {
		id := fmt.Sprintf(`{"_id":%d`, 3*number+way)
		with := func(fields string) bson.Raw {
			if fields == "" {
				return doc(id + "}")
			}
			return doc(id + "," + fields + "}")
		}
		given, then := with(c.given), with(want)
		f.mustWrite(store.Op{Kind: store.Insert, Doc: given})
		op := store.Op{Kind: store.Update, Update: u, Filter: mql.And(filter(id+"}"), filter(c.filter))}
		wantResult := "ok 1/1"
		if c.want == "" {
			wantResult = "ok 1/0"
		}
		switch name {
		case "by id":
			op.ID = given.Lookup("_id")
			if c.filter == "" { // else the filter has to be there to say which element is meant
				op.Filter = nil
			}
		case "before":
			op.Return = store.ReturnBefore
			wantResult += " doc " + given.String()
		default:
			op.Return = store.ReturnAfter
			wantResult += " doc " + then.String()
		}
		if c.want == "invalid" {
			wantResult = c.want
		}
		results, err := f.Write(f.t.Context(), []store.Op{op}, number%2 == 0)
		if err != nil {
			f.t.Fatalf("%s on {%s}, %s: %v", c.update, c.given, name, err)
		}
		if got := result(results[0]); got != wantResult {
			f.t.Errorf("%s on {%s}, %s:\ngot  %s\nwant %s", c.update, c.given, name, got, wantResult)
		}
		if got, err := f.Get(f.t.Context(), given.Lookup("_id")); err != nil || got.String() != then.String() {
			f.t.Errorf("%s on {%s}, %s:\nstored %v, %v\nwant   %v", c.update, c.given, name, got, err, then)
		}
	}
}

// checkQueries holds what is found by filters against what a look at all documents says.
func (f *fixture) checkQueries() {
	f.t.Helper()
	for _, json := range []string{`{"a":{"$gte":2}}`, `{"a":{"$type":"string"}}`, `{"a.b":1}`, `{"a":null}`, `{"a":{"$lte":2}}`, `{"a.b":{"$exists":true}}`} {
		where := filter(json)
		var want []string
		err := f.Find(f.t.Context(), store.Query{Sort: sortBy("_id")}, func(d bson.Raw) error {
			if where.Match(d) {
				want = append(want, show(d.Lookup("_id")))
			}
			return nil
		})
		if err != nil {
			f.t.Fatalf("Find: %v", err)
		}
		if got := f.find(store.Query{Filter: where, Sort: sortBy("_id")}); got != strings.Join(want, " ") {
			f.t.Errorf("%s finds %s, want %v", json, got, want)
		}
	}
}

func updateCases() []updateCase {
	return []updateCase{
		{`"a":1`, `{"$set":{"a":2}}`, `"a":2`},
		{`"a":1`, `{"$set":{"a":1}}`, ""},
		{`"a":1`, `{"$set":{"a":1.0}}`, `"a":1.0`}, // equal, but not the same
		{`"a":1`, `{"$set":{}}`, ""},
		{`"a":1`, `{"$set":{"a":{"b":[1,{}]}}}`, `"a":{"b":[1,{}]}`},
		{`"a":1`, `{"$set":{"b.c":1}}`, `"a":1,"b":{"c":1}`},
		{`"z":1`, `{"$set":{"c":1,"10":2,"b":3,"9":4,"a":5}}`, `"z":1,"9":4,"10":2,"a":5,"b":3,"c":1`}, // new fields come in this order
		{`"a":{"z":1}`, `{"$set":{"a.y":2,"a.b":3}}`, `"a":{"z":1,"b":3,"y":2}`},
		{`"a":1`, `{"$set":{"a.b":1}}`, "invalid"},
		{`"a":null`, `{"$set":{"a.b":1}}`, "invalid"},
		{`"a":[1]`, `{"$set":{"a.b":1}}`, "invalid"},
		{`"a":[0]`, `{"$set":{"a.3":1}}`, `"a":[0,null,null,1]`},
		{`"a":[0]`, `{"$set":{"a.2000000":1}}`, "invalid"},
		{`"x":1`, `{"$set":{"a.0":5}}`, `"x":1,"a":{"0":5}`},
		{`"a":[{"b":1},{"b":2}]`, `{"$set":{"a.1.b":3}}`, `"a":[{"b":1},{"b":3}]`},
		{`"a":[1,2]`, `{"$set":{"a":[]}}`, `"a":[]`},
		{`"a":1`, `{"$set":{"_id":-1}}`, "invalid"},
		{`"a":1,"z":1`, `{"$unset":{"a":""}}`, `"z":1`},
		{`"a":1,"b":2,"c":3`, `{"$unset":{"b":1}}`, `"a":1,"c":3`},
		{`"a":1`, `{"$unset":{"b":""}}`, ""},
		{`"a":1`, `{"$unset":{"a.b":""}}`, ""},
		{`"a":{"b":1}`, `{"$unset":{"a.b":""}}`, `"a":{}`},
		{`"a":[1,2,3]`, `{"$unset":{"a.1":""}}`, `"a":[1,null,3]`},
		{`"a":[1]`, `{"$unset":{"a.5":""}}`, ""},
		{`"a":1`, `{"$unset":{"_id":""}}`, "invalid"},
		{`"a":1`, `{"$inc":{"a":2}}`, `"a":3`},
		{`"a":1`, `{"$inc":{"a":0}}`, ""},
		{`"a":1`, `{"$inc":{"a":0.5}}`, `"a":1.5`},
		{`"a":1`, `{"$inc":{"a":{"$numberLong":"0"}}}`, `"a":{"$numberLong":"1"}`},
		{`"a":1`, `{"$inc":{"a":{"$numberDecimal":"0.10"}}}`, `"a":{"$numberDecimal":"1.10"}`},
		{`"x":1`, `{"$inc":{"a.b":-2}}`, `"x":1,"a":{"b":-2}`},
		{`"a":2147483647`, `{"$inc":{"a":1}}`, `"a":{"$numberLong":"2147483648"}`},
		{`"a":{"$numberLong":"9223372036854775807"}`, `{"$inc":{"a":1}}`, "invalid"},
		{`"a":"1"`, `{"$inc":{"a":1}}`, "invalid"},
		{`"a":null`, `{"$inc":{"a":1}}`, "invalid"},
		{`"a":[1]`, `{"$inc":{"a":1}}`, "invalid"},
		{`"a":[1]`, `{"$inc":{"a.0":1}}`, `"a":[2]`},
		{`"a":3`, `{"$mul":{"a":2}}`, `"a":6`},
		{`"a":3`, `{"$mul":{"a":1}}`, ""},
		{`"x":1`, `{"$mul":{"a":{"$numberLong":"7"}}}`, `"x":1,"a":{"$numberLong":"0"}`},
		{`"a":2147483647`, `{"$mul":{"a":2}}`, `"a":{"$numberLong":"4294967294"}`},
		{`"a":"x"`, `{"$mul":{"a":2}}`, "invalid"},
		{`"a":3`, `{"$min":{"a":2}}`, `"a":2`},
		{`"a":3`, `{"$min":{"a":4}}`, ""},
		{`"a":3`, `{"$min":{"a":3.0}}`, ""},
		{`"x":3`, `{"$min":{"a":4}}`, `"x":3,"a":4`},
		{`"a":3`, `{"$min":{"a":null}}`, `"a":null`},
		{`"a":"x"`, `{"$min":{"a":4}}`, `"a":4`},
		{`"a":3`, `{"$max":{"a":4}}`, `"a":4`},
		{`"a":3`, `{"$max":{"a":2}}`, ""},
		{`"a":3`, `{"$max":{"a":"x"}}`, `"a":"x"`},
		{`"a":"x"`, `{"$max":{"a":4}}`, ""},
		{`"a":[1]`, `{"$max":{"a":[1,2]}}`, `"a":[1,2]`},
		{`"a":1,"b":2`, `{"$rename":{"a":"c"}}`, `"b":2,"c":1`},
		{`"a":1,"b":2,"c":3`, `{"$rename":{"a":"b"}}`, `"b":1,"c":3`},
		{`"a":1`, `{"$rename":{"b":"c"}}`, ""},
		{`"a":{"b":1,"c":2}`, `{"$rename":{"a.b":"x.y"}}`, `"a":{"c":2},"x":{"y":1}`},
		{`"a":[{"b":1}]`, `{"$rename":{"a.0.b":"c"}}`, "invalid"},
		{`"a":1,"b":[{}]`, `{"$rename":{"a":"b.0.c"}}`, "invalid"},
		{`"a":1`, `{"$setOnInsert":{"a":2,"b":3}}`, ""},
		{`"a":13`, `{"$bit":{"a":{"and":10}}}`, `"a":8`},
		{`"a":3`, `{"$bit":{"a":{"or":{"$numberLong":"5"}}}}`, `"a":{"$numberLong":"7"}`},
		{`"a":1`, `{"$bit":{"a":{"xor":5}}}`, `"a":4`},
		{`"a":7`, `{"$bit":{"a":{"and":7}}}`, ""},
		{`"x":1`, `{"$bit":{"a":{"or":5}}}`, `"x":1,"a":5`},
		{`"a":1.0`, `{"$bit":{"a":{"or":5}}}`, "invalid"},
		{`"x":1`, `{"$push":{"a":1}}`, `"x":1,"a":[1]`},
		{`"a":[1]`, `{"$push":{"a":[2]}}`, `"a":[1,[2]]`},
		{`"a":1`, `{"$push":{"a":2}}`, "invalid"},
		{`"a":null`, `{"$push":{"a":2}}`, "invalid"},
		{`"a":[1]`, `{"$push":{"a":{"$each":[2,3]}}}`, `"a":[1,2,3]`},
		{`"a":[1]`, `{"$push":{"a":{"$each":[]}}}`, ""},
		{`"a":[1,2]`, `{"$push":{"a":{"$each":[3,4],"$position":0}}}`, `"a":[3,4,1,2]`},
		{`"a":[1,2]`, `{"$push":{"a":{"$each":[3,4],"$position":-1}}}`, `"a":[1,3,4,2]`},
		{`"a":[1,2]`, `{"$push":{"a":{"$each":[3],"$position":9}}}`, `"a":[1,2,3]`},
		{`"a":[1,2]`, `{"$push":{"a":{"$each":[3,4],"$slice":3}}}`, `"a":[1,2,3]`},
		{`"a":[1,2]`, `{"$push":{"a":{"$each":[3,4],"$slice":-3}}}`, `"a":[2,3,4]`},
		{`"a":[1,2]`, `{"$push":{"a":{"$each":[3],"$slice":0}}}`, `"a":[]`},
		{`"a":[3,1]`, `{"$push":{"a":{"$each":[2],"$sort":1}}}`, `"a":[1,2,3]`},
		{`"a":[3,"x",null]`, `{"$push":{"a":{"$each":[{}],"$sort":-1}}}`, `"a":[{},"x",3,null]`},
		{`"a":[{"b":1},{"b":3}]`, `{"$push":{"a":{"$each":[{"b":2}],"$sort":{"b":-1},"$slice":2}}}`, `"a":[{"b":3},{"b":2}]`},
		{`"x":1`, `{"$addToSet":{"a":1}}`, `"x":1,"a":[1]`},
		{`"a":[1,2]`, `{"$addToSet":{"a":2.0}}`, ""},
		{`"a":[1,1]`, `{"$addToSet":{"a":{"$each":[2,1,2]}}}`, `"a":[1,1,2]`},
		{`"a":[{"x":1,"y":2}]`, `{"$addToSet":{"a":{"y":2,"x":1}}}`, `"a":[{"x":1,"y":2},{"y":2,"x":1}]`},
		{`"a":1`, `{"$addToSet":{"a":1}}`, "invalid"},
		{`"a":[1,2,1,3]`, `{"$pull":{"a":1.0}}`, `"a":[2,3]`},
		{`"a":[1,2,3]`, `{"$pull":{"a":{"$gte":2}}}`, `"a":[1]`},
		{`"a":[1,2]`, `{"$pull":{"a":3}}`, ""},
		{`"a":[{"b":1,"c":1},{"b":2}]`, `{"$pull":{"a":{"b":1}}}`, `"a":[{"b":2}]`},
		{`"a":[{"b":[1,5]},{"b":2}]`, `{"$pull":{"a":{"b":{"$elemMatch":{"$gt":4}}}}}`, `"a":[{"b":2}]`},
		{`"a":[[1],1,[2]]`, `{"$pull":{"a":[1]}}`, `"a":[1,[2]]`},
		{`"a":[null,1,{}]`, `{"$pull":{"a":null}}`, `"a":[1,{}]`},
		{`"a":["x","yx",1]`, `{"$pull":{"a":{"$in":["x",1]}}}`, `"a":["yx"]`},
		{`"x":1`, `{"$pull":{"a":1}}`, ""},
		{`"a":1`, `{"$pull":{"a":1}}`, "invalid"},
		{`"a":[1,2,1.0,[1]]`, `{"$pullAll":{"a":[1,7]}}`, `"a":[2,[1]]`},
		{`"a":"x"`, `{"$pullAll":{"a":["x"]}}`, "invalid"},
		{`"a":[1,2,3]`, `{"$pop":{"a":1}}`, `"a":[1,2]`},
		{`"a":[1,2,3]`, `{"$pop":{"a":-1}}`, `"a":[2,3]`},
		{`"a":[]`, `{"$pop":{"a":1}}`, ""},
		{`"x":1`, `{"$pop":{"a":1}}`, ""},
		{`"a":1`, `{"$pop":{"a":1}}`, "invalid"},
		{`"a":1,"b":[1],"c":1`, `{"$inc":{"a":1},"$push":{"b":2},"$unset":{"c":""},"$set":{"d":1}}`, `"a":2,"b":[1,2],"d":1`},
		{`"a":1,"b":"x"`, `{"$set":{"a":2},"$inc":{"b":1}}`, "invalid"}, // all of it or nothing
	}
}

// positionCases are updates with the positions $, $[] and $[name].
func positionCases() []filteredCase {
	return []filteredCase{
		{updateCase{`"a":[1,2,3]`, `{"$set":{"a.$":9}}`, `"a":[1,9,3]`}, `{"a":2}`, nil},
		{updateCase{`"a":[{"b":1},{"b":2}]`, `{"$set":{"a.$.c":9}}`, `"a":[{"b":1},{"b":2,"c":9}]`}, `{"a.b":2}`, nil},
		{
			updateCase{`"a":[{"b":1,"c":1},{"b":1,"c":2}]`, `{"$inc":{"a.$.b":1}}`, `"a":[{"b":1,"c":1},{"b":2,"c":2}]`},
			`{"a":{"$elemMatch":{"b":1,"c":2}}}`, nil,
		},
		{updateCase{`"a":[1,2,3]`, `{"$unset":{"a.$":""}}`, `"a":[1,2,null]`}, `{"a":{"$gt":2}}`, nil},
		{updateCase{`"a":[1,2,3]`, `{"$set":{"a.$":1}}`, ""}, `{"a":{"$lt":2}}`, nil},
		{updateCase{`"a":[1,2]`, `{"$set":{"a.$":1}}`, "invalid"}, "", nil},
		{updateCase{`"a":[1,2]`, `{"$set":{"a.$":1}}`, "invalid"}, `{"a":{"$ne":5}}`, nil},
		{updateCase{`"a":1`, `{"$set":{"a.$":1}}`, "invalid"}, `{"a":1}`, nil},
		{updateCase{`"a":[1,2]`, `{"$inc":{"a.$[]":10}}`, `"a":[11,12]`}, "", nil},
		{updateCase{`"a":[]`, `{"$inc":{"a.$[]":10}}`, ""}, "", nil},
		{updateCase{`"a":[{"b":1},{"b":2}]`, `{"$set":{"a.$[].b":0}}`, `"a":[{"b":0},{"b":0}]`}, "", nil},
		{updateCase{`"a":[[1,2],[3]]`, `{"$mul":{"a.$[].$[]":2}}`, `"a":[[2,4],[6]]`}, "", nil},
		{updateCase{`"x":1`, `{"$set":{"a.$[]":1}}`, "invalid"}, "", nil},
		{updateCase{`"a":5`, `{"$set":{"a.$[]":1}}`, "invalid"}, "", nil},
		{updateCase{`"a":[1,5,9]`, `{"$set":{"a.$[x]":0}}`, `"a":[1,0,0]`}, "", []string{`{"x":{"$gte":5}}`}},
		{updateCase{`"a":[1,5,9]`, `{"$set":{"a.$[x]":0}}`, ""}, "", []string{`{"x":{"$gt":9}}`}},
		{
			updateCase{`"a":[{"b":1},{"b":2},{"b":3}]`, `{"$set":{"a.$[x].c":0,"a.$[y].d":0}}`, `"a":[{"b":1,"d":0},{"b":2,"c":0},{"b":3,"c":0}]`},
			"",
			[]string{`{"x.b":{"$gte":2}}`, `{"y.b":1}`},
		},
		{
			updateCase{`"a":[{"b":[1,2]},{"b":[3]}]`, `{"$inc":{"a.$[].b.$[x]":10}}`, `"a":[{"b":[1,12]},{"b":[13]}]`},
			"",
			[]string{`{"x":{"$gt":1}}`},
		},
		{
			updateCase{`"a":[{"b":1,"l":[1,2]},{"b":2,"l":[1,2]}]`, `{"$set":{"a.$.l.$[x]":0}}`, `"a":[{"b":1,"l":[1,2]},{"b":2,"l":[1,0]}]`},
			`{"a.b":2}`,
			[]string{`{"x":2}`},
		},
		{updateCase{`"a":[1,2,3,4]`, `{"$pull":{"a":{"$in":[2,4]}}}`, `"a":[1,3]`}, `{"a":{"$gte":2}}`, nil},
	}
}

func testCurrentDate(f *fixture) {
	f.given(`{"_id":1,"a":1}`)
	before := time.Now().Add(-time.Hour) // a server's clock may be another one
	f.mustWrite(store.Op{Kind: store.Update, ID: value(`1`), Update: update(`{"$currentDate":{"a":true,"b.c":{"$type":"date"}}}`)})
	d, err := f.Get(f.t.Context(), value(`1`))
	if err != nil {
		f.t.Fatal(err)
	}
	at, ok := d.Lookup("a").TimeOK()
	if !ok || at.Before(before) || at.After(time.Now().Add(time.Hour)) || !d.Lookup("b", "c").Equal(d.Lookup("a")) {
		f.t.Errorf("the date now: %v", d)
	}
}

// testTooLarge lets a document grow beyond 16 MiB.
func testTooLarge(f *fixture) {
	f.mustWrite(large(1, 0, 9<<20))
	set := mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "more", Value: strings.Repeat("y", 9<<20)}}}})
	results, err := f.Write(f.t.Context(), []store.Op{{Kind: store.Update, ID: value(`1`), Update: set}}, false)
	if err != nil {
		f.t.Fatal(err)
	}
	if got := result(results[0]); got != "too large" {
		f.t.Errorf("got %s, want too large", got)
	}
	if d, err := f.Get(f.t.Context(), value(`1`)); err != nil || len(d) > 10<<20 {
		f.t.Errorf("the document has %d bytes: %v", len(d), err)
	}
}

func testUniqueUpdate(f *fixture) {
	f.index(unique(on("a")))
	f.index(unique(partial(on("b"), `{"on":true}`)))
	f.given(`{"_id":1,"a":1,"b":1,"on":true}`, `{"_id":2,"a":2,"b":1,"on":false}`, `{"_id":3,"a":[3,4]}`)
	for _, step := range []struct{ id, update, want string }{
		{`1`, `{"$inc":{"a":1}}`, "dup a[a]"},
		{`1`, `{"$set":{"a":4}}`, "dup a[a]"},
		{`3`, `{"$push":{"a":1}}`, "dup a[a]"},
		{`3`, `{"$push":{"a":4}}`, "ok 1/1"}, // twice in one document
		{`3`, `{"$unset":{"a":""}}`, "ok 1/1"},
		{`2`, `{"$unset":{"a":""}}`, "dup a[a]"},
		{`1`, `{"$set":{"a":4}}`, "ok 1/1"},
		{`2`, `{"$set":{"on":true}}`, "dup b[b]"}, // it comes into the index
		{`1`, `{"$set":{"on":false}}`, "ok 1/1"},  // it goes from there
		{`2`, `{"$set":{"on":true}}`, "ok 1/1"},
		{`1`, `{"$set":{"on":true,"a":7}}`, "dup b[b]"},
		{`1`, `{"$set":{"on":true,"b":2}}`, "ok 1/1"},
	} {
		results, err := f.Write(f.t.Context(), []store.Op{{Kind: store.Update, ID: value(step.id), Update: update(step.update)}}, false)
		if err != nil {
			f.t.Fatal(err)
		}
		if got := result(results[0]); got != step.want {
			f.t.Errorf("%s on %s: got %s, want %s", step.update, step.id, got, step.want)
		}
	}
}
