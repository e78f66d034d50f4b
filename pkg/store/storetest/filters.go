package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/store"
)

// filterGroup is a set of documents and what filters find among them. Every filter runs without an index and with
// every index of the group, so an index that changes an answer shows at once.
type filterGroup struct {
	name    string
	docs    []string // without _id, which is the position
	indexes []store.Index
	cases   [][2]string // filter and the ids it finds
}

func testFilters(t *testing.T, s store.Store) {
	for _, group := range append(filterGroups(), nestedFilterGroups()...) {
		t.Run(group.name, func(t *testing.T) {
			f := newFixture(t, s)
			for i, fields := range group.docs {
				f.given(fmt.Sprintf(`{"_id":%d%s}`, i, fields))
			}
			f.underIndexes(t, group.indexes, func(f *fixture) { f.checkFilters(group.cases) })
		})
	}
}

func (f *fixture) checkFilters(cases [][2]string) {
	f.t.Helper()
	for _, c := range cases {
		got := f.find(store.Query{Filter: filter(c[0]), Sort: sortBy("_id")})
		if got != c[1] {
			f.t.Errorf("%s: got %q, want %q", c[0], got, c[1])
		}
		want := int64(len(strings.Fields(c[1])))
		if n, err := f.Count(f.t.Context(), filter(c[0]), 0); err != nil || n != want {
			f.t.Errorf("%s: counted %d, %v, want %d", c[0], n, err, want)
		}
	}
}

func filterGroups() []filterGroup {
	return []filterGroup{
		{
			name: "null, missing and lists", indexes: permutations("a"),
			//             0          1   2            3            4              5           6         7           8
			docs: []string{`,"a":null`, ``, `,"a":[]`, `,"a":[null]`, `,"a":[1,null]`, `,"a":[1,2]`, `,"a":1`, `,"a":[[]]`, `,"a":[[1,2]]`},
			cases: [][2]string{
				{`{"a":null}`, "0 1 3 4"},
				{`{"a":{"$ne":null}}`, "2 5 6 7 8"},
				{`{"a":{"$in":[null,2]}}`, "0 1 3 4 5"},
				{`{"a":{"$nin":[null,2]}}`, "2 6 7 8"},
				{`{"a":{"$gte":null}}`, "0 1 3 4"},
				{`{"a":{"$lte":null}}`, "0 1 3 4"},
				{`{"a":{"$gt":null}}`, ""},
				{`{"a":{"$exists":true}}`, "0 2 3 4 5 6 7 8"},
				{`{"a":{"$exists":false}}`, "1"},
				{`{"a":{"$type":"null"}}`, "0 3 4"},
				{`{"a":{"$type":10}}`, "0 3 4"},
				{`{"a":{"$type":"array"}}`, "2 3 4 5 7 8"},
				{`{"a":{"$type":["int","null"]}}`, "0 3 4 5 6"},
				{`{"a":{"$type":"number"}}`, "4 5 6"},
				{`{"a":[]}`, "2 7"},
				{`{"a":[1,2]}`, "5 8"},
				{`{"a":{"$in":[[1,2],[]]}}`, "2 5 7 8"},
				{`{"a":{"$gt":[]}}`, "3 4 5 7 8"},
				{`{"a":{"$gte":[1]}}`, "4 5 7 8"},
				{`{"a":{"$lt":[1]}}`, "2 3 7"},
				{`{"a":{"$size":0}}`, "2"},
				{`{"a":{"$size":1}}`, "3 7 8"},
				{`{"a":{"$size":2}}`, "4 5"},
				{`{"a":{"$not":{"$size":2}}}`, "0 1 2 3 6 7 8"},
				{`{"a":{"$elemMatch":{"$eq":null}}}`, "3 4"},
				{`{"a":{"$elemMatch":{"$gte":1}}}`, "4 5"},
				{`{"a":{"$all":[]}}`, ""},
				{`{"a":{"$all":[1]}}`, "4 5 6"},
				{`{"a":{"$all":[1,2]}}`, "5"},
				{`{"a":{"$all":[[1,2]]}}`, "5 8"},
				{`{"a":{"$all":[null]}}`, "0 1 3 4"},
				{`{"a":{"$in":[]}}`, ""},
				{`{"a":{"$nin":[]}}`, "0 1 2 3 4 5 6 7 8"},
			},
		}, {
			name: "ranges on lists", indexes: permutations("a"),
			//             0          1          2            3         4        5           6
			docs: []string{`,"a":1`, `,"a":5`, `,"a":[0,9]`, `,"a":[2,3]`, `,"a":3`, `,"a":[5]`, `,"a":["x",1]`},
			cases: [][2]string{
				{`{"a":{"$gte":1,"$lt":4}}`, "0 2 3 4 6"},
				{`{"a":{"$gt":3,"$lt":3}}`, "2"},
				{`{"a":{"$elemMatch":{"$gte":1,"$lt":4}}}`, "3 6"},
				{`{"a":{"$elemMatch":{"$gt":3,"$lt":9}}}`, "5"},
				{`{"$and":[{"a":{"$gt":4}},{"a":{"$lt":2}}]}`, "2"},
				{`{"a":{"$not":{"$gt":3}}}`, "0 3 4 6"},
				{`{"a":{"$ne":5}}`, "0 2 3 4 6"},
				{`{"a":{"$nin":[3,9]}}`, "0 1 5 6"},
				{`{"$nor":[{"a":{"$gt":3}},{"a":1}]}`, "3 4"},
				{`{"$or":[{"a":9},{"a":{"$lt":1}},{"a":3}]}`, "2 3 4"},
				{`{"a":{"$all":[0,9]}}`, "2"},
				{`{"a":{"$all":[{"$elemMatch":{"$gt":1,"$lt":3}}]}}`, "3"},
				{`{"a":{"$in":[3,5]},"_id":{"$gt":3}}`, "4 5"},
				{`{"a":{"$mod":[2,1]}}`, "0 1 2 3 4 5 6"},
				{`{"a":{"$mod":[3,2]}}`, "1 3 5"},
				{`{"a":"x"}`, "6"},
			},
		}, {
			name: "numbers", indexes: permutations("a"),
			docs: []string{
				/* 0 */ `,"a":1`, `,"a":1.0`, `,"a":{"$numberLong":"1"}`, `,"a":{"$numberDecimal":"1.00"}`,
				/* 4 */ `,"a":{"$numberLong":"9007199254740993"}`, `,"a":9007199254740992.0`, `,"a":0.1`, `,"a":{"$numberDecimal":"0.1"}`,
				/* 8 */ `,"a":{"$numberDouble":"NaN"}`, `,"a":{"$numberDecimal":"NaN"}`, `,"a":{"$numberDouble":"Infinity"}`,
				/* 11 */ `,"a":{"$numberDouble":"-Infinity"}`, `,"a":{"$numberDouble":"-0.0"}`, `,"a":true`, `,"a":"1"`, `,"a":5.7`, `,"a":-5`,
			},
			cases: [][2]string{
				{`{"a":1}`, "0 1 2 3"},
				{`{"a":{"$in":[1.0,"1"]}}`, "0 1 2 3 14"},
				{`{"a":{"$numberDecimal":"9007199254740993"}}`, "4"},
				{`{"a":{"$gt":9007199254740992.0}}`, "4 10"},
				{`{"a":{"$gte":{"$numberLong":"9007199254740993"}}}`, "4 10"},
				{`{"a":0.1}`, "6"},
				{`{"a":{"$numberDecimal":"0.1"}}`, "7"},
				{`{"a":{"$gt":{"$numberDecimal":"0.1"},"$lt":1}}`, "6"},
				{`{"a":0}`, "12"},
				{`{"a":{"$numberDouble":"NaN"}}`, "8 9"},
				{`{"a":{"$gte":{"$numberDouble":"NaN"}}}`, "8 9"},
				{`{"a":{"$lte":{"$numberDouble":"NaN"}}}`, "8 9"},
				{`{"a":{"$gt":{"$numberDouble":"NaN"}}}`, ""},
				{`{"a":{"$lt":{"$numberDouble":"NaN"}}}`, ""},
				{`{"a":{"$in":[{"$numberDecimal":"NaN"}]}}`, "8 9"},
				{`{"a":{"$lt":0}}`, "11 16"},
				{`{"a":{"$lte":0}}`, "11 12 16"},
				{`{"a":{"$gte":{"$numberDouble":"-Infinity"}}}`, "0 1 2 3 4 5 6 7 10 11 12 15 16"},
				{`{"a":{"$not":{"$gte":1}}}`, "6 7 8 9 11 12 13 14 16"},
				{`{"a":true}`, "13"},
				{`{"a":{"$type":"bool"}}`, "13"},
				{`{"a":{"$type":"long"}}`, "2 4"},
				{`{"a":{"$type":"double"}}`, "1 5 6 8 10 11 12 15"},
				{`{"a":{"$type":"decimal"}}`, "3 7 9"},
				{`{"a":{"$type":16}}`, "0 16"},
				{`{"a":{"$mod":[5,0]}}`, "6 7 12 15 16"},
				{`{"a":{"$mod":[2,-1]}}`, "16"},
				{`{"a":{"$mod":[2,1]}}`, "0 1 2 3 4 15"},
			},
		}, {
			name: "types are bracketed", indexes: permutations("a"),
			docs: []string{
				/* 0 */ `,"a":5`, `,"a":"5"`, `,"a":{"x":5}`, `,"a":[5]`, `,"a":{"$oid":"5f43a1b2c3d4e5f60718293a"}`, `,"a":false`,
				/* 6 */ `,"a":{"$date":"2020-01-01T00:00:00Z"}`, `,"a":{"$minKey":1}`, `,"a":{"$maxKey":1}`, ``, `,"a":null`, `,"a":{}`,
				/* 12 */ `,"a":{"$binary":{"base64":"BQ==","subType":"00"}}`, `,"a":{"$date":"2021-01-01T00:00:00Z"}`,
			},
			cases: [][2]string{
				{`{"a":{"$gt":4}}`, "0 3"},
				{`{"a":{"$lt":6}}`, "0 3"},
				{`{"a":{"$gt":"4"}}`, "1"},
				{`{"a":{"$lt":"6"}}`, "1"},
				{`{"a":{"$gte":""}}`, "1"},
				{`{"a":{"$gt":{}}}`, "2"},
				{`{"a":{"$gte":{}}}`, "2 11"},
				{`{"a":{"$lt":{"x":6}}}`, "2 11"},
				{`{"a":{"$lt":true}}`, "5"},
				{`{"a":{"$gt":{"$date":"2020-06-01T00:00:00Z"}}}`, "13"},
				{`{"a":{"$lte":{"$date":"2020-06-01T00:00:00Z"}}}`, "6"},
				{`{"a":{"$gte":{"$oid":"000000000000000000000000"}}}`, "4"},
				{`{"a":{"$oid":"5f43a1b2c3d4e5f60718293a"}}`, "4"},
				{`{"a":{"$type":"objectId"}}`, "4"},
				{`{"a":{"$type":"date"}}`, "6 13"},
				{`{"a":{"$type":"object"}}`, "2 11"},
				{`{"a":{"$type":"binData"}}`, "12"},
				{`{"a":{"$not":{"$lt":"6"}}}`, "0 2 3 4 5 6 7 8 9 10 11 12 13"},
			},
		}, {
			name: "the ends compare with everything", indexes: permutations("a.b"),
			docs: []string{
				/* 0 */ `,"a":{"b":5}`, `,"a":{"b":null}`, `,"a":{}`, ``, `,"a":5`, `,"a":[]`, `,"a":["x",[1]]`, `,"a":[{"b":[]},3]`,
				/* 8 */ `,"a":{"b":{"$minKey":1}}`, `,"a":{"b":{"$maxKey":1}}`, `,"a":[{"b":1},{}]`, `,"a":{"b":[1,[2]]}`,
			},
			cases: [][2]string{
				{`{"a.b":{"$gt":{"$minKey":1}}}`, "0 1 2 3 4 7 9 10 11"},
				{`{"a.b":{"$gte":{"$minKey":1}}}`, "0 1 2 3 4 7 8 9 10 11"},
				{`{"a.b":{"$lt":{"$minKey":1}}}`, ""},
				{`{"a.b":{"$lte":{"$minKey":1}}}`, "8"},
				{`{"a.b":{"$gt":{"$maxKey":1}}}`, ""},
				{`{"a.b":{"$gte":{"$maxKey":1}}}`, "9"},
				{`{"a.b":{"$lt":{"$maxKey":1}}}`, "0 1 2 3 4 7 8 10 11"},
				{`{"a.b":{"$lte":{"$maxKey":1}}}`, "0 1 2 3 4 7 8 9 10 11"},
				{`{"a.b":{"$not":{"$gte":{"$maxKey":1}}}}`, "0 1 2 3 4 5 6 7 8 10 11"},
				{`{"a.b":{"$not":{"$gt":{"$minKey":1}}}}`, "5 6 8"},
				{`{"a.b":{"$gte":{"$minKey":1},"$lt":{"$maxKey":1}}}`, "0 1 2 3 4 7 8 10 11"},
				{`{"a":{"$elemMatch":{"b":{"$lte":{"$maxKey":1}}}}}`, "6 7 10"},
				{`{"a.b":{"$minKey":1}}`, "8"},
				{`{"a.b":{"$in":[{"$minKey":1},{"$maxKey":1}]}}`, "8 9"},
			},
		}, {
			name: "strings and patterns", indexes: permutations("a"),
			//             0            1             2            3           4                  5        6            7    8
			docs: []string{`,"a":"abc"`, `,"a":"ABC"`, `,"a":"abd"`, `,"a":"b"`, `,"a":["x","abz"]`, `,"a":5`, `,"a":"a\nb"`, ``, `,"a":"Äpfel"`},
			cases: [][2]string{
				{`{"a":{"$regex":"^ab"}}`, "0 2 4"},
				{`{"a":{"$regex":"^ab","$options":"i"}}`, "0 1 2 4"},
				{`{"a":{"$regex":"b"}}`, "0 2 3 4 6"},
				{`{"a":{"$regex":"^b","$options":"m"}}`, "3 6"},
				{`{"a":{"$regex":"a.b","$options":"s"}}`, "6"},
				{`{"a":{"$regex":"a.b"}}`, ""},
				{`{"a":{"$regex":"^ä","$options":"i"}}`, "8"},
				{`{"a":{"$not":{"$regex":"^ab"}}}`, "1 3 5 6 7 8"},
				{`{"a":{"$regex":"^a.*c$"}}`, "0"},
				{`{"a":{"$regex":"^(abc|b)$"}}`, "0 3"},
				{`{"a":{"$regex":"^abc?"}}`, "0 2 4"},
				{`{"a":{"$regex":"^ab*d"}}`, "2"},
				{`{"a":{"$regex":"^"}}`, "0 1 2 3 4 6 8"},
				{`{"a":{"$regex":"^ab","$gte":"abd"}}`, "2 4"},
				{`{"a":{"$gte":"ab","$lt":"ac"}}`, "0 2 4"},
				{`{"a":"abz"}`, "4"},
				{`{"a":{"$gt":"abc"}}`, "2 3 4 8"},
				{`{"a":{"$elemMatch":{"$regex":"^ab"}}}`, "4"},
				{`{"$or":[{"a":"b"},{"a":{"$regex":"^A"}}]}`, "1 3"},
			},
		},
	}
}
