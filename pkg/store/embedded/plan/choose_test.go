package plan_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// TestChoose tells which plans there are for a query. An index is its fields ("a,-b"), then what it is: unique, sparse,
// if with a partial filter, and lists with the fields that may lead to lists. A plan is its scans, each an index with
// ranges: = for one value, else from and to before; x+ is what is just behind x. What is written behind is the plan's.
func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		name    string
		indexes string // each on a line
		filter  string
		sort    string
		limit   int64
		after   []any
		want    string // each plan on a line
	}{
		{name: "no index", filter: `{"a":1}`, want: "_id: all"},
		{name: "equality", indexes: "a", filter: `{"a":1}`, want: "a: =1; exact"},
		{name: "range", indexes: "a", filter: `{"a":{"$gte":1,"$lt":5}}`, want: "a: [1 5); exact"},
		{name: "descending", indexes: "-a", filter: `{"a":{"$gte":1,"$lt":5}}`, want: "-a: [5+ 1+); exact"},
		{name: "by id", indexes: "a", filter: `{"_id":3,"a":1}`, want: "_id: =3"},
		{name: "unique wins", indexes: "a unique\nb", filter: `{"a":1,"b":2}`, want: "a: =1"},
		{name: "half of a unique index is not unique", indexes: "a,b unique\nb", filter: `{"a":1}`, want: "a,b: =1; exact"},
		{name: "more fields win", indexes: "a\na,b", filter: `{"a":1,"b":2}`, want: "a,b: =1,2; exact"},
		{name: "two of the same worth are tried", indexes: "a\nb", filter: `{"a":1,"b":2}`, want: `a: =1
			b: =2`},
		{name: "a range ends the bounds", indexes: "a,b", filter: `{"a":{"$gt":1},"b":2}`, want: "a,b: [1+ numbers+)"},
		{name: "a gap ends the bounds", indexes: "a,b,c", filter: `{"a":1,"c":2}`, want: "a,b,c: =1"},
		{name: "in", indexes: "a", filter: `{"a":{"$in":[3,1,"a"]}}`, want: "a: =1 =3 ='a'; exact"},
		{name: "in of nothing", indexes: "a", filter: `{"a":{"$in":[]}}`, want: "a: ; exact"},
		{name: "impossible", indexes: "a", filter: `{"a":{"$gt":5,"$lt":1}}`, want: "a: ; exact"},
		{name: "ne", indexes: "a", filter: `{"a":{"$ne":1}}`, want: "a: [… 1) [1+ …); exact"},
		{name: "not of a range leaves what is missing", indexes: "a", filter: `{"a":{"$not":{"$gt":1}}}`, want: "a: [… 1+) [numbers+ …); exact"},
		{name: "null is also what is missing", indexes: "a", filter: `{"a":null}`, want: "a: =null; exact"},
		{name: "null below lists: a list may be empty, so look", indexes: "a lists a", filter: `{"a":null}`, want: "a: [empty null+); repeats"},
		{name: "exists false", indexes: "a", filter: `{"a":{"$exists":false}}`, want: "a: =null"},
		{name: "exists true", indexes: "a", filter: `{"a":{"$exists":true}}`, want: "_id: all"},
		{name: "kinds bracket", indexes: "a", filter: `{"a":{"$gt":"a"}}`, want: "a: ['a'+ texts+); exact"},
		{name: "nothing is below NaN", indexes: "a", filter: `{"a":{"$lt":{"$numberDouble":"NaN"}}}`, want: "a: ; exact"},
		{name: "at most NaN is NaN", indexes: "a", filter: `{"a":{"$lte":{"$numberDouble":"NaN"}}}`, want: "a: =nan; exact"},
		{name: "below a number, without NaN", indexes: "a", filter: `{"a":{"$lt":1}}`, want: "a: [nan+ 1); exact"},
		{name: "above the least of all", indexes: "a", filter: `{"a":{"$gt":{"$minKey":1}}}`, want: "a: [min+ …); exact"},
		{name: "regex prefix", indexes: "a", filter: `{"a":{"$regex":"^ab"}}`, want: "a: =ab* =regexes"},
		{name: "regex that begins within", indexes: "a", filter: `{"a":{"$regex":"ab"}}`, want: "a: =texts =regexes"},
		{name: "regex prefix without case", indexes: "a", filter: `{"a":{"$regex":"^ab","$options":"i"}}`, want: "a: =texts =regexes"},
		{name: "not of a regex", indexes: "a", filter: `{"a":{"$not":{"$regex":"^ab"}}}`, want: "a: [… ab*) [ab*+ …)"},
		{name: "list without lists", indexes: "a", filter: `{"a":[1,2]}`, want: "a: ; exact"},
		{name: "list as a whole or as an element", indexes: "a lists a", filter: `{"a":[1,2]}`, want: "a: =1 =[1 2]; repeats"},
		{name: "empty list", indexes: "a lists a", filter: `{"a":[]}`, want: "a: =empty =[]; repeats"},
		{name: "greater than a list", indexes: "a lists a", filter: `{"a":{"$gt":[1,2]}}`, want: "_id: all"},
		{name: "size", indexes: "a lists a", filter: `{"a":{"$size":2}}`, want: "_id: all"},
		{name: "no list has a size", indexes: "a", filter: `{"a":{"$size":2}}`, want: "a: ; exact"},
		{name: "of a list one side only", indexes: "a lists a", filter: `{"a":{"$gte":1,"$lt":5}}`, want: "a: [1 numbers+); repeats"},
		{name: "of one element both sides", indexes: "a lists a", filter: `{"a":{"$elemMatch":{"$gte":1,"$lt":5}}}`, want: "a: [1 5); repeats"},
		{name: "two fields of one list", indexes: "l.a,l.b lists l.a,l.b", filter: `{"l.a":1,"l.b":2}`, want: "l.a,l.b: =1; repeats"},
		{name: "two fields of one element", indexes: "l.a,l.b lists l.a,l.b", filter: `{"l":{"$elemMatch":{"a":1,"b":2}}}`, want: "l.a,l.b: =1,2"},
		{name: "two elements", indexes: "l.a,l.b lists l.a,l.b", filter: `{"$and":[{"l":{"$elemMatch":{"a":1}}},{"l":{"$elemMatch":{"b":2}}}]}`, want: "l.a,l.b: =1; repeats"},
		{name: "a list beside a plain field", indexes: "a,b lists b", filter: `{"a":{"$gte":1,"$lt":5},"b":{"$gte":1,"$lt":5}}`, want: "a,b: [1 5); repeats"},
		{name: "a plain field behind a list", indexes: "b,a lists b", filter: `{"b":1,"a":{"$gte":1,"$lt":5}}`, want: "b,a: [1,1 1,5)"},
		{name: "ne over lists", indexes: "a lists a", filter: `{"a":{"$ne":1}}`, want: "a: [… 1) [1+ …); repeats"},
		{name: "sparse and a value", indexes: "a sparse", filter: `{"a":1}`, want: "a: =1; exact"},
		{name: "sparse and null", indexes: "a sparse", filter: `{"a":null}`, want: "_id: all"},
		{name: "sparse and exists false", indexes: "a sparse", filter: `{"a":{"$exists":false}}`, want: "_id: all"},
		{name: "sparse and ne", indexes: "a sparse", filter: `{"a":{"$ne":1}}`, want: "_id: all"},
		{name: "sparse and ne null", indexes: "a sparse", filter: `{"a":{"$ne":null}}`, want: "a: [… null) [null+ …); exact"},
		{name: "sparse and exists", indexes: "a sparse", filter: `{"a":{"$exists":true}}`, want: "a: all"},
		{name: "sparse and a sort", indexes: "a sparse", sort: "a", want: "_id: all; exact"},
		{name: "sparse and in with null", indexes: "a sparse", filter: `{"a":{"$in":[1,null]}}`, want: "_id: all"},
		{name: "sparse on two, of which one is there", indexes: "a,b sparse", filter: `{"b":1}`, sort: "a,b", want: "a,b: all; sorted"},
		{name: "sparse on two and nothing", indexes: "a,b sparse", filter: `{"a":null,"b":null}`, want: "_id: all"},
		{name: "partial and implied", indexes: `a if {"b":{"$gte":1}}`, filter: `{"a":1,"b":5}`, want: "a: =1"},
		{name: "partial and not implied", indexes: `a if {"b":{"$gte":3}}`, filter: `{"a":1,"b":{"$gt":1}}`, want: "_id: all"},
		{name: "partial and nothing of it", indexes: `a if {"b":{"$gte":3}}`, filter: `{"a":1}`, want: "_id: all"},
		{name: "a branch alone does not imply a partial index", indexes: `a if {"b":1}
			c`, filter: `{"$or":[{"a":1,"b":1},{"c":2}]}`, want: "_id: all"},
		{name: "sort", indexes: "a", sort: "a", want: "a: all; sorted; exact"},
		{name: "sort backwards", indexes: "a", sort: "-a,-_id", want: "a backwards: all; sorted; exact"},
		{name: "sort by two", indexes: "a,-b", sort: "-a,b", want: "a,-b backwards: all; sorted; exact"},
		{name: "sort by two, one turned", indexes: "a,b", sort: "a,-b", want: "_id: all; exact"},
		{name: "sort behind an equality", indexes: "a,b", filter: `{"a":1}`, sort: "b", want: "a,b: =1; sorted; exact"},
		{name: "sort behind a range", indexes: "a,b", filter: `{"a":{"$gt":1}}`, sort: "b", want: "a,b: [1+ numbers+); exact"},
		{name: "a page takes the order, too", indexes: "a\nb", filter: `{"a":{"$gt":1}}`, sort: "b", limit: 5, want: `a: [1+ numbers+); exact
			b: all; sorted`},
		{name: "merged points", indexes: "a,b", filter: `{"a":{"$in":[1,2]}}`, sort: "b", limit: 5, want: "a,b: =1 merged a,b: =2; sorted; exact"},
		{name: "merged points, with the field", indexes: "a,b", filter: `{"a":{"$in":[1,2]}}`, sort: "a,b", limit: 5, want: "a,b: =1 =2; sorted; exact"},
		{name: "sort of a list", indexes: "a lists a", sort: "a", want: "a: all; sorted; repeats"},
		{name: "sort of a list that is bound", indexes: "a lists a", filter: `{"a":{"$gt":1}}`, sort: "a", want: "a: [1+ numbers+); repeats"},
		{name: "sort behind a list that is bound", indexes: "a,b lists a", filter: `{"a":1}`, sort: "b", want: "a,b: =1; sorted"},
		{name: "position", indexes: "a", sort: "a,_id", limit: 5, after: []any{1, 2}, want: "a: [1,2+ …); sorted; seeked; exact"},
		{name: "position backwards", indexes: "a", sort: "-a,-_id", limit: 5, after: []any{1, 2}, want: "a backwards: [… 1,2); sorted; seeked; exact"},
		{name: "position in merged points", indexes: "a,b", filter: `{"a":{"$in":[1,2]}}`, sort: "b,_id", limit: 5, after: []any{3, 7}, want: "a,b: [1,3,7+ 1+) merged a,b: [2,3,7+ 2+); sorted; seeked; exact"},
		{name: "position among lists", indexes: "a lists a", sort: "a,_id", limit: 5, after: []any{1, 2}, want: "a: [1,2+ …); sorted; repeats"},
		{name: "or", indexes: "a\nb", filter: `{"$or":[{"a":1},{"b":2}]}`, want: "a: =1 then b: =2; repeats"},
		{name: "or with a branch without an index", indexes: "a", filter: `{"$or":[{"a":1},{"b":2}]}`, want: "_id: all"},
		{name: "or in order", indexes: "a,c\nb,c", filter: `{"$or":[{"a":1},{"b":2}]}`, sort: "c", limit: 5, want: "a,c: =1 by value b,c: =2; sorted; repeats"},
		{name: "or beside a condition", indexes: "a\nb\nc", filter: `{"c":3,"$or":[{"a":1},{"b":2}]}`, want: `c: =3
			a: =1 then b: =2; repeats`},
		{name: "or of or", indexes: "a\nb", filter: `{"$or":[{"a":1},{"$or":[{"b":2},{"b":3}]}]}`, want: "a: =1 then b: =2 then b: =3; repeats"},
		{name: "or of one", indexes: "a", filter: `{"$or":[{"a":1}]}`, want: "a: =1; exact"},
		{name: "nor", indexes: "a", filter: `{"$nor":[{"a":1},{"a":{"$gt":5}}]}`, want: "a: [… 1) [1+ 5+) [numbers+ …); exact"},
		{name: "mod", indexes: "a", filter: `{"a":{"$mod":[2,1]}}`, want: "a: =numbers"},
		{name: "type", indexes: "a", filter: `{"a":{"$type":["number","bool"]}}`, want: "a: =numbers =bools; exact"},
		{name: "type array", indexes: "a lists a", filter: `{"a":{"$type":"array"}}`, want: "_id: all"},
		{name: "all of nothing", indexes: "a", filter: `{"a":{"$all":[]}}`, want: "a: ; exact"},
		{name: "all over lists", indexes: "a lists a", filter: `{"a":{"$all":[1,2]}}`, want: "a: =1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := store.Query{Filter: filter(t, tt.filter), Limit: tt.limit, Sort: sortBy(tt.sort)}
			for _, v := range tt.after {
				q.After = append(q.After, value(v))
			}
			var got []string
			for _, pl := range plan.Choose(&q, []byte{1}, indexes(t, tt.indexes)) {
				got = append(got, describe(pl))
			}
			var want []string
			for line := range strings.SplitSeq(tt.want, "\n") {
				want = append(want, strings.TrimSpace(line))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s by %s:\n%s", tt.filter, tt.sort, diff)
			}
		})
	}
}

func filter(t *testing.T, text string) *mql.Filter {
	t.Helper()
	if text == "" {
		return nil
	}
	var doc bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	f, err := mql.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sortBy(text string) mql.Sort {
	var s mql.Sort
	for _, path := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, desc := strings.CutPrefix(path, "-")
		s = append(s, mql.SortField{Path: name, Desc: desc})
	}
	return s
}

func indexes(t *testing.T, text string) []plan.Index {
	t.Helper()
	var out []plan.Index
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		def := &store.Index{Name: words[0]}
		for _, f := range sortBy(words[0]) {
			def.Keys = append(def.Keys, store.IndexKey{Path: f.Path, Desc: f.Desc})
		}
		x := plan.Index{ID: uint32(len(out) + 1), Def: def, Prefix: []byte{2, byte(len(out) + 1)}}
		for i := 1; i < len(words); i++ {
			switch words[i] {
			case "unique":
				def.Unique = true
			case "sparse":
				def.Sparse = true
			case "if":
				i++
				def.Partial = filter(t, words[i])
			case "lists":
				i++
				for k, key := range def.Keys {
					if strings.Contains(","+words[i]+",", ","+key.Path+",") {
						x.Multikey |= 1 << k
					}
				}
			default:
				t.Fatalf("index %q: what is %q?", line, words[i])
			}
		}
		out = append(out, x)
	}
	return out
}

func value(v any) bson.RawValue {
	out, err := document.MarshalValue(v)
	if err != nil {
		panic(err)
	}
	return out
}

func describe(pl *plan.Plan) string {
	var scans []string
	for _, s := range pl.Scans {
		name := "_id"
		if s.Index != nil {
			name = s.Index.Def.Name
		}
		if s.Reverse {
			name += " backwards"
		}
		var ranges []string
		for _, r := range s.Ranges {
			ranges = append(ranges, describeRange(s.Prefix, r))
		}
		scans = append(scans, name+": "+strings.Join(ranges, " "))
	}
	parts := []string{strings.Join(scans, map[plan.Order]string{plan.InTurn: " then ", plan.ByKey: " merged ", plan.ByValue: " by value "}[pl.Order])}
	for _, flag := range []struct {
		set  bool
		name string
	}{{pl.Sorted, "sorted"}, {pl.Seeked, "seeked"}, {pl.Exact, "exact"}, {pl.Repeats, "repeats"}} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	return strings.Join(parts, "; ")
}

func describeRange(prefix []byte, r plan.Range) string {
	lo, ok := bytes.CutPrefix(r.Lo, prefix)
	if !ok && !bytes.Equal(r.Lo, document.KeyAfter(prefix)) {
		return fmt.Sprintf("from %x, outside of the index", r.Lo)
	}
	switch hi, inside := bytes.CutPrefix(r.Hi, prefix); {
	case bytes.Equal(r.Lo, prefix) && bytes.Equal(r.Hi, document.KeyAfter(prefix)):
		return "all"
	case bytes.Equal(r.Hi, document.KeyAfter(r.Lo)):
		return "=" + spell(lo)
	case inside:
		return "[" + spell(lo) + " " + spell(hi) + ")"
	default:
		return "[" + spell(lo) + " …)"
	}
}

// spell reads a key: it knows some values, the begins of their kinds and of texts, and what is just behind all of them.
func spell(key []byte) string {
	known := spellings()
	var words []string
	for len(key) > 0 {
		n := len(key)
		for n > 0 && known[string(key[:n])] == "" {
			n--
		}
		if n == 0 {
			return strings.Join(append(words, hex.EncodeToString(key)), ",")
		}
		words, key = append(words, known[string(key[:n])]), key[n:]
	}
	if words == nil {
		return "…"
	}
	return strings.Join(words, ",")
}

func spellings() map[string]string {
	known := map[string]string{}
	name := func(key []byte, name string) {
		inverted := document.InvertKey(bytes.Clone(key))
		for _, k := range [][]byte{document.KeyAfter(inverted), document.KeyAfter(key)} {
			if known[string(k)] == "" {
				known[string(k)] = name + "+"
			}
		}
		known[string(key)], known[string(inverted)] = name, name
	}
	for _, kind := range []struct {
		t    bson.Type
		name string
	}{
		{bson.TypeInt32, "numbers"},
		{bson.TypeString, "texts"},
		{bson.TypeEmbeddedDocument, "objects"},
		{bson.TypeArray, "lists"},
		{bson.TypeBoolean, "bools"},
		{bson.TypeDateTime, "dates"},
		{bson.TypeRegex, "regexes"},
		{bson.TypeObjectID, "oids"},
	} {
		name([]byte{byte(document.TypeOrder(kind.t))}, kind.name)
	}
	for _, text := range []string{"a", "ab"} {
		key := document.AppendKey(nil, value(text), false)
		name(key[:1+len(text)], text+"*")
	}
	for _, v := range []any{nil, 0, 1, 2, 3, 5, 7, "a", "ab", "b", true, bson.MinKey{}, bson.MaxKey{}, bson.A{1, 2}, bson.A{}, bson.D{}} {
		text := fmt.Sprint(v)
		switch v := v.(type) {
		case nil:
			text = "null"
		case string:
			text = "'" + v + "'"
		case bson.MinKey:
			text = "min"
		case bson.MaxKey:
			text = "max"
		}
		name(document.AppendKey(nil, value(v), false), text)
	}
	name(document.AppendKey(nil, value(math.NaN()), false), "nan")
	name(document.AppendUndefinedKey(nil, false), "empty")
	return known
}
