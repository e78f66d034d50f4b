package mql_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// parse reads canonical Extended JSON; 1 is an int32, 1.0 a double.
func parse(tb testing.TB, s string) bson.D {
	tb.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return d
}

func raw(tb testing.TB, d bson.D) bson.Raw {
	tb.Helper()
	r, err := document.Marshal(d)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func compile(tb testing.TB, filter string) *mql.Filter {
	tb.Helper()
	f, err := mql.Compile(parse(tb, filter))
	if err != nil {
		tb.Fatalf("%s: %v", filter, err)
	}
	return f
}

// What MongoDB 6.0 answers.
func TestMatch(t *testing.T) {
	tests := []struct {
		name, filter string
		yes, no      []string
	}{
		{"everything", `{}`, []string{`{}`, `{"a":1}`}, nil},
		{"equal", `{"a":1}`, []string{`{"a":1}`, `{"a":[2,1]}`}, []string{`{"a":2}`, `{}`, `{"a":[[1]]}`, `{"a":"1"}`}},
		{"several fields", `{"a":1,"b":2}`, []string{`{"a":1,"b":2}`}, []string{`{"a":1}`, `{"a":1,"b":3}`}},

		{"null", `{"a":null}`, []string{`{}`, `{"a":null}`, `{"a":[null]}`, `{"a":[1,null]}`}, []string{`{"a":[]}`, `{"a":0}`, `{"a":[1]}`}},
		{"type null", `{"a":{"$type":10}}`, []string{`{"a":null}`, `{"a":[null]}`}, []string{`{}`, `{"a":1}`}},
		{
			"null below", `{"a.b":null}`,
			[]string{`{}`, `{"a":1}`, `{"a":{}}`, `{"a":[{"b":null},{}]}`, `{"a":[{"c":1}]}`},
			[]string{`{"a":[]}`, `{"a":[null]}`, `{"a":[1,2]}`, `{"a":[1,"x",null]}`, `{"a":{"b":1}}`},
		},
		{"not null", `{"a":{"$ne":null}}`, []string{`{"a":1}`, `{"a":[]}`}, []string{`{}`, `{"a":null}`, `{"a":[1,null]}`}},
		{"at least null", `{"a":{"$gte":null}}`, []string{`{}`, `{"a":null}`}, []string{`{"a":1}`}},
		{"above null", `{"a":{"$gt":null}}`, nil, []string{`{}`, `{"a":null}`, `{"a":1}`}},

		{"exists", `{"a":{"$exists":true}}`, []string{`{"a":null}`, `{"a":[]}`}, []string{`{}`, `{"b":1}`}},
		{"exists not", `{"a":{"$exists":false}}`, []string{`{}`}, []string{`{"a":null}`, `{"a":[]}`}},
		{"exists not below", `{"a.b":{"$exists":false}}`, []string{`{"a":1}`, `{"a":[1,2]}`, `{"a":[]}`, `{}`}, []string{`{"a":{"b":1}}`, `{"a":[1,{"b":null}]}`}},
		{"exists by a number", `{"a":{"$exists":0}}`, []string{`{}`}, []string{`{"a":1}`}},

		{"list", `{"a":[1,2]}`, []string{`{"a":[1,2]}`, `{"a":[[1,2]]}`, `{"a":[1.0,2]}`}, []string{`{"a":[2,1]}`, `{"a":[1,2,3]}`, `{"a":1}`, `{"a":[[[1,2]]]}`}},
		{"empty list", `{"a":[]}`, []string{`{"a":[]}`, `{"a":[[]]}`}, []string{`{"a":[1]}`, `{}`, `{"a":null}`}},

		{"unequal", `{"a":{"$ne":1}}`, []string{`{}`, `{"a":2}`, `{"a":[]}`}, []string{`{"a":1}`, `{"a":[2,1]}`}},
		{"none of", `{"a":{"$nin":[1,null]}}`, []string{`{"a":2}`}, []string{`{}`, `{"a":1}`, `{"a":[3,1]}`}},
		{"not", `{"a":{"$not":{"$gt":1}}}`, []string{`{}`, `{"a":1}`, `{"a":"x"}`, `{"a":[0,1]}`}, []string{`{"a":2}`, `{"a":[0,2]}`}},
		{"not of two", `{"a":{"$not":{"$gt":1,"$lt":5}}}`, []string{`{"a":9}`, `{}`}, []string{`{"a":2}`, `{"a":[0,9]}`}},
		{"nor", `{"$nor":[{"a":1},{"b":1}]}`, []string{`{}`, `{"a":2}`}, []string{`{"a":1}`, `{"a":2,"b":[1]}`}},
		{"or", `{"$or":[{"a":1},{"b":1}]}`, []string{`{"a":1}`, `{"b":1}`}, []string{`{}`}},
		{"and", `{"$and":[{"a":1},{"a":2}]}`, []string{`{"a":[1,2]}`}, []string{`{"a":1}`}},

		{"range on different elements", `{"a":{"$gte":1,"$lt":2}}`, []string{`{"a":1}`, `{"a":[0,5]}`}, []string{`{"a":2}`, `{"a":[5]}`}},
		{"range on one element", `{"a":{"$elemMatch":{"$gte":1,"$lt":2}}}`, []string{`{"a":[0,1]}`}, []string{`{"a":[0,5]}`, `{"a":1}`, `{"a":[[1]]}`}},
		{"objects in a list", `{"a":{"$elemMatch":{"b":1,"c":2}}}`, []string{`{"a":[{"b":1,"c":2}]}`}, []string{`{"a":[{"b":1},{"c":2}]}`, `{"a":{"b":1,"c":2}}`}},
		{"nested list as object", `{"a":{"$elemMatch":{"b":null}}}`, []string{`{"a":[[1,2]]}`, `{"a":[{}]}`}, []string{`{"a":[1]}`, `{"a":[{"b":1}]}`}},
		{"nested list by index", `{"a":{"$elemMatch":{"0":1}}}`, []string{`{"a":[[1,2]]}`}, []string{`{"a":[1]}`, `{"a":[[2,1]]}`}},
		{"any object", `{"a":{"$elemMatch":{}}}`, []string{`{"a":[{}]}`, `{"a":[1,[]]}`}, []string{`{"a":[1]}`, `{"a":[]}`}},
		{"elements of elements", `{"a":{"$elemMatch":{"$elemMatch":{"$gt":1}}}}`, []string{`{"a":[[2]]}`}, []string{`{"a":[2]}`}},
		{"alternatives in an element", `{"a":{"$elemMatch":{"$or":[{"b":1},{"c":1}]}}}`, []string{`{"a":[{"c":1}]}`}, []string{`{"a":[{"b":2}]}`}},

		{"only one kind", `{"a":{"$gt":1}}`, []string{`{"a":2}`, `{"a":2.5}`, `{"a":{"$numberLong":"2"}}`}, []string{`{"a":"2"}`, `{"a":true}`, `{"a":{"b":2}}`, `{"a":{"$date":"2026-01-01T00:00:00Z"}}`, `{}`}},
		{"above the lowest", `{"a":{"$gt":{"$minKey":1}}}`, []string{`{}`, `{"a":1}`, `{"a":"x"}`}, []string{`{"a":{"$minKey":1}}`}},
		{"below the highest", `{"a":{"$lte":{"$maxKey":1}}}`, []string{`{}`, `{"a":1}`, `{"a":{"$maxKey":1}}`}, nil},
		{"above an empty list", `{"a":{"$gt":[]}}`, []string{`{"a":[1]}`, `{"a":[[1]]}`}, []string{`{"a":[]}`, `{"a":1}`}},
		{"above an empty object", `{"a":{"$gt":{}}}`, []string{`{"a":{"b":1}}`, `{"a":[{"b":1}]}`}, []string{`{"a":{}}`, `{"a":1}`, `{"a":[1]}`}},

		{"exact number", `{"a":{"$numberLong":"9007199254740993"}}`, []string{`{"a":{"$numberDecimal":"9007199254740993"}}`}, []string{`{"a":9007199254740992.0}`}},
		{"decimal below double", `{"a":{"$gt":{"$numberDecimal":"0.1"}}}`, []string{`{"a":0.1}`}, []string{`{"a":{"$numberDecimal":"0.1"}}`}},
		{"negative zero", `{"a":0}`, []string{`{"a":-0.0}`, `{"a":{"$numberDecimal":"0E+3"}}`}, nil},
		{"NaN", `{"a":{"$numberDouble":"NaN"}}`, []string{`{"a":{"$numberDouble":"NaN"}}`, `{"a":{"$numberDecimal":"NaN"}}`}, []string{`{"a":1}`, `{}`}},
		{"at most NaN", `{"a":{"$lte":{"$numberDouble":"NaN"}}}`, []string{`{"a":{"$numberDouble":"NaN"}}`}, []string{`{"a":-1}`}},
		{"below NaN", `{"a":{"$lt":{"$numberDouble":"NaN"}}}`, nil, []string{`{"a":{"$numberDouble":"NaN"}}`, `{"a":-1}`}},
		{"NaN is not below 0", `{"a":{"$lt":0}}`, []string{`{"a":{"$numberDouble":"-Infinity"}}`}, []string{`{"a":{"$numberDouble":"NaN"}}`}},

		{"true is no number", `{"a":1}`, nil, []string{`{"a":true}`}},
		{"order of fields", `{"a":{"b":1,"c":2}}`, []string{`{"a":{"b":1.0,"c":2}}`}, []string{`{"a":{"c":2,"b":1}}`, `{"a":{"b":1}}`}},

		{"index", `{"a.1":6}`, []string{`{"a":[5,6]}`, `{"a":[5,{"1":6}]}`, `{"a":{"1":6}}`}, []string{`{"a":[6,5]}`}},
		{"no index", `{"a.00":5}`, []string{`{"a":{"00":5}}`}, []string{`{"a":[5]}`}},
		{"one level", `{"a.b":1}`, []string{`{"a":[{"b":1}]}`, `{"a":{"b":[1]}}`}, []string{`{"a":[[{"b":1}]]}`}},
		{"index then field", `{"a.0.b":1}`, []string{`{"a":[[{"b":1}]]}`, `{"a":[{"b":1}]}`}, []string{`{"a":[1]}`}},

		{"all", `{"a":{"$all":[1,2]}}`, []string{`{"a":[2,1,3]}`}, []string{`{"a":[1]}`, `{"a":1}`}},
		{"all of one", `{"a":{"$all":[1]}}`, []string{`{"a":1}`}, []string{`{}`}},
		{"all of none", `{"a":{"$all":[]}}`, nil, []string{`{}`, `{"a":[]}`, `{"a":1}`}},
		{"all of a list", `{"a":{"$all":[[1,2]]}}`, []string{`{"a":[1,2]}`, `{"a":[[1,2]]}`}, []string{`{"a":[2,1]}`}},
		{"all with elements", `{"a":{"$all":[{"$elemMatch":{"b":1}},{"$elemMatch":{"b":2}}]}}`, []string{`{"a":[{"b":2},{"b":1}]}`}, []string{`{"a":[{"b":1}]}`}},

		{"in", `{"a":{"$in":[1,"x"]}}`, []string{`{"a":1.0}`, `{"a":["y","x"]}`}, []string{`{"a":2}`, `{}`}},
		{"in with null", `{"a":{"$in":[null,7]}}`, []string{`{}`, `{"a":null}`, `{"a":7}`}, []string{`{"a":1}`, `{"a":[]}`}},
		{"in with a pattern", `{"a":{"$in":[{"$regularExpression":{"pattern":"^x","options":""}},1]}}`, []string{`{"a":"xy"}`, `{"a":1}`}, []string{`{"a":"yx"}`}},
		{"in of none", `{"a":{"$in":[]}}`, nil, []string{`{}`, `{"a":1}`}},
		{"not in none", `{"a":{"$nin":[]}}`, []string{`{}`, `{"a":1}`}, nil},

		{"pattern", `{"a":{"$regex":"^x"}}`, []string{`{"a":"xy"}`, `{"a":[1,"x"]}`}, []string{`{"a":"yx"}`, `{"a":1}`, `{}`}},
		{"pattern as value", `{"a":{"$regularExpression":{"pattern":"x","options":""}}}`, []string{`{"a":"x"}`, `{"a":{"$regularExpression":{"pattern":"x","options":""}}}`}, []string{`{"a":{"$regularExpression":{"pattern":"x","options":"i"}}}`}},
		{"equal to a pattern", `{"a":{"$eq":{"$regularExpression":{"pattern":"x","options":"i"}}}}`, []string{`{"a":{"$regularExpression":{"pattern":"x","options":"i"}}}`}, []string{`{"a":"x"}`}},
		{"pattern without case", `{"a":{"$regex":"É","$options":"i"}}`, []string{`{"a":"é"}`}, []string{`{"a":"e"}`}},
		{"not a pattern", `{"a":{"$not":{"$regex":"x"}}}`, []string{`{}`, `{"a":"y"}`, `{"a":1}`}, []string{`{"a":"x"}`, `{"a":["y","x"]}`}},
		{"end of text", `{"a":{"$regex":"x$"}}`, []string{`{"a":"x"}`}, []string{`{"a":"x\n"}`}},

		{"modulo", `{"a":{"$mod":[5,0]}}`, []string{`{"a":5.7}`, `{"a":0}`, `{"a":{"$numberDecimal":"-5.9"}}`, `{"a":[1,10]}`}, []string{`{"a":6}`, `{"a":"5"}`, `{"a":{"$numberDouble":"NaN"}}`, `{"a":{"$numberDecimal":"1E+30"}}`}},
		{"negative modulo", `{"a":{"$mod":[2,-1]}}`, []string{`{"a":-5}`}, []string{`{"a":5}`}},
		{"modulo minus one", `{"a":{"$mod":[-1,0]}}`, []string{`{"a":{"$numberLong":"-9223372036854775808"}}`}, []string{`{"a":null}`}},
		{"size", `{"a":{"$size":2}}`, []string{`{"a":[1,2]}`}, []string{`{"a":[1]}`, `{"a":2}`, `{}`, `{"a":[[1,2]]}`}},
		{"type array", `{"a":{"$type":"array"}}`, []string{`{"a":[]}`, `{"a":[1]}`}, []string{`{"a":1}`}},
		{"type of several", `{"a":{"$type":["string","number"]}}`, []string{`{"a":"x"}`, `{"a":1.5}`, `{"a":[true,{"$numberDecimal":"1"}]}`}, []string{`{"a":true}`, `{}`}},

		{"literal by its first name", `{"a":{"b":1,"$exists":1}}`, nil, []string{`{"a":{"b":1}}`, `{"a":{"b":1,"c":1}}`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := compile(t, test.filter)
			for _, doc := range test.yes {
				if !f.Match(raw(t, parse(t, doc))) {
					t.Errorf("%s does not match %s", test.filter, doc)
				}
			}
			for _, doc := range test.no {
				if f.Match(raw(t, parse(t, doc))) {
					t.Errorf("%s matches %s", test.filter, doc)
				}
			}
		})
	}
}

func TestMatchDamagedDocument(t *testing.T) {
	doc := raw(t, parse(t, `{"a":[{"b":[1,"x",{"c":null}]},2],"d":{"$numberDecimal":"1"},"e":"text"}`))
	f := compile(t, `{"$or":[{"a.b.c":1},{"a.0.b":{"$elemMatch":{"c":5}}},{"d":{"$mod":[2,5]}},{"e":{"$regex":"y"}},{"a":{"$size":9}}]}`)
	for i := range doc {
		f.Match(doc[:i])
		for _, b := range []byte{0, 1, 4, 0x7f, 0xff} {
			damaged := slices.Clone(doc)
			damaged[i] = b
			f.Match(damaged) // whatever it says, it must come back
		}
	}
}

func TestAndOr(t *testing.T) {
	a, b := compile(t, `{"a":1}`), compile(t, `{"$and":[{"b":1},{"c":1}]}`)
	one, both := raw(t, parse(t, `{"a":1}`)), raw(t, parse(t, `{"a":1,"b":1,"c":1}`))
	for name, test := range map[string]struct {
		f        *mql.Filter
		one, two bool
	}{
		"no and":      {mql.And(), true, true},
		"and of nil":  {mql.And(nil, nil), true, true},
		"nil and a":   {mql.And(nil, a), true, true},
		"a and b":     {mql.And(a, b), false, true},
		"no or":       {mql.Or(), false, false},
		"or with nil": {mql.Or(b, nil), true, true},
		"or of one":   {mql.Or(b), false, true},
		"a or b":      {mql.Or(a, b), true, true},
	} {
		if test.f.Match(one) != test.one || test.f.Match(both) != test.two {
			t.Errorf("%s: %v, %v", name, test.f.Match(one), test.f.Match(both))
		}
	}
	if mql.And(nil, a) != a {
		t.Error("And(nil, f) is not f")
	}
	if and, ok := mql.And(a, b).Root().(*mql.AndNode); !ok || len(and.Nodes) != 3 {
		t.Errorf("And is not flat: %#v", mql.And(a, b).Root())
	}
	var none *mql.Filter
	if _, ok := none.Root().(*mql.AndNode); !ok || len(none.Raw()) != 5 {
		t.Error("the nil filter is not the empty one")
	}
}

func TestMustCompile(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	mql.MustCompile(bson.D{{Key: "$where", Value: "1"}})
}
