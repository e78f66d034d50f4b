package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/store"
)

// testUnique inserts documents one after the other under a unique index. Each case names which of them are refused.
func testUnique(t *testing.T, s store.Store) {
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name  string
		index store.Index
		docs  []string // without _id, which is the position
		want  string   // "+" for each accepted, "-" for each refused
	}{
		{"a value", on("a"), []string{`"a":1`, `"a":2`, `"a":1`}, "++-"},
		{"descending", on("-a"), []string{`"a":1`, `"a":2`, `"a":1`}, "++-"},
		{"missing counts as null", on("a"), []string{`"b":1`, `"b":2`, `"a":null`}, "+--"},
		{"null counts as missing", on("a"), []string{`"a":null`, `"b":2`, `"a":null`}, "+--"},
		{"an empty list is neither", on("a"), []string{`"a":[]`, `"b":1`, `"a":[]`}, "++-"},
		{"a list with null is null", on("a"), []string{`"a":[null]`, `"b":1`, `"a":null`}, "+--"},
		{"numbers are equal across types", on("a"), []string{
			`"a":1`, `"a":1.0`, `"a":{"$numberLong":"1"}`, `"a":{"$numberDecimal":"1.0"}`, `"a":1.5`,
		}, "+---+"},
		{"large numbers are exact", on("a"), []string{
			`"a":{"$numberLong":"9007199254740993"}`, `"a":9007199254740992.0`, `"a":{"$numberDecimal":"9007199254740993"}`,
		}, "++-"},
		{"0.1 is not the decimal 0.1", on("a"), []string{`"a":0.1`, `"a":{"$numberDecimal":"0.1"}`, `"a":0.1`}, "++-"},
		{"NaN equals NaN", on("a"), []string{
			`"a":{"$numberDouble":"NaN"}`, `"a":{"$numberDouble":"NaN"}`, `"a":{"$numberDecimal":"NaN"}`,
		}, "+--"},
		{"minus zero is zero", on("a"), []string{`"a":0`, `"a":{"$numberDouble":"-0.0"}`}, "+-"},
		{"types differ", on("a"), []string{`"a":1`, `"a":"1"`, `"a":true`, `"a":[[1]]`, `"a":{"a":1}`}, "+++++"},
		{"false is not zero is not empty", on("a"), []string{`"a":0`, `"a":false`, `"a":""`, `"a":{}`, `"a":null`}, "+++++"},
		{"dates are not numbers", on("a"), []string{`"a":5`, `"a":{"$date":{"$numberLong":"5"}}`}, "++"},
		{"strings are exact", on("a"), []string{`"a":"x"`, `"a":"X"`, `"a":"x "`, `"a":"x\u0000"`, `"a":"x"`}, "++++-"},
		{"long strings", on("a"), []string{`"a":"` + long + `1"`, `"a":"` + long + `2"`, `"a":"` + long + `1"`}, "++-"},
		{"objects keep their order", on("a"), []string{
			`"a":{"x":1,"y":2}`, `"a":{"y":2,"x":1}`, `"a":{"x":1.0,"y":2}`, `"a":{"x":1}`,
		}, "++-+"},
		{"each element of a list", on("a"), []string{`"a":[1,2]`, `"a":[3,4]`, `"a":[5,1]`, `"a":4`, `"a":6`}, "++--+"},
		{"elements repeat inside one document", on("a"), []string{`"a":[1,1,1.0]`, `"a":[2,1]`}, "+-"},
		{"a list in a list is one value", on("a"), []string{`"a":[[1,2]]`, `"a":[1,2]`, `"a":[[1,2]]`, `"a":[[2]]`}, "++-+"},
		{"a dotted path", on("a.b"), []string{`"a":{"b":1}`, `"a":{"b":2}`, `"a":{"b":1,"c":2}`}, "++-"},
		{"a dotted path into nothing is null", on("a.b"), []string{`"a":{}`, `"a":5`, `"b":1`}, "+--"},
		{"a dotted path through a list", on("a.b"), []string{`"a":[{"b":1},{"b":2}]`, `"a":[{"b":3}]`, `"a":{"b":2}`}, "++-"},
		{"a list of objects that lack the field", on("a.b"), []string{`"a":[{"c":1},{"b":1}]`, `"a":[{"b":2},{"c":1}]`}, "+-"},
		{"compound", on("a b"), []string{`"a":1,"b":1`, `"a":1,"b":2`, `"a":2,"b":1`, `"a":1,"b":1`}, "+++-"},
		{"compound with missing fields", on("a b"), []string{`"a":1`, `"a":2`, `"b":1`, `"a":1`, `"a":1,"b":null`}, "+++--"},
		{"compound with a list", on("a b"), []string{`"a":[1,2],"b":1`, `"a":[3,2],"b":2`, `"a":2,"b":1`}, "++-"},
		{"compound keys do not run together", on("a b"), []string{`"a":"x","b":"yz"`, `"a":"xy","b":"z"`}, "++"},
		{"sparse: missing is free", sparse(on("a")), []string{`"b":1`, `"b":2`, `"a":1`, `"a":1`}, "+++-"},
		{"sparse: null is a value", sparse(on("a")), []string{`"a":null`, `"b":1`, `"a":null`}, "++-"},
		{"sparse compound: only when all are missing", sparse(on("a b")), []string{
			`"c":1`, `"c":2`, `"a":1`, `"a":1`, `"b":1`, `"a":null,"b":1`,
		}, "+++-+-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, s)
			f.index(unique(c.index))
			var got strings.Builder
			for i, fields := range c.docs {
				switch outcome := f.write(false, insert(fmt.Sprintf(`{"_id":%d,%s}`, i, fields)))[0]; outcome {
				case "ok":
					got.WriteString("+")
				case dupOf(c.index):
					got.WriteString("-")
				default:
					t.Errorf("document %d: %s", i, outcome)
				}
			}
			if got.String() != c.want {
				t.Errorf("got %s, want %s", got.String(), c.want)
			}
		})
	}

	t.Run("replace", func(t *testing.T) { testUniqueReplace(t, s) })
}

func testUniqueReplace(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	f.index(unique(on("a")))
	f.index(unique(on("b.c -d")))
	f.given(`{"_id":1,"a":1,"b":{"c":1}}`, `{"_id":2,"a":2,"b":{"c":2}}`)
	steps := []struct{ doc, want string }{
		{`{"_id":1,"a":1,"b":{"c":1},"x":1}`, "ok"}, // its own keys do not stand in its way
		{`{"_id":1,"a":2,"b":{"c":1}}`, "dup a[a]"},
		{`{"_id":1,"a":1,"b":{"c":2}}`, "dup b.c_-d[b.c d]"},
		{`{"_id":1,"a":[1,3],"b":{"c":1}}`, "ok"},
		{`{"_id":2,"a":3,"b":{"c":2}}`, "dup a[a]"},
		{`{"_id":1,"a":1,"b":{"c":1}}`, "ok"}, // gives 3 back
		{`{"_id":2,"a":3,"b":{"c":2}}`, "ok"}, // and 2
		{`{"_id":1,"a":2,"b":{"c":1}}`, "ok"},
	}
	for i, step := range steps {
		if diff := cmp.Diff([]string{step.want}, f.write(false, replace(step.doc))); diff != "" {
			t.Fatalf("step %d: %s: %s", i, step.doc, diff)
		}
	}
	f.mustWrite(remove(`1`), insert(`{"_id":3,"a":2,"b":{"c":1}}`))
}

// dupOf is the outcome of a write that violates index.
func dupOf(index store.Index) string {
	paths := make([]string, len(index.Keys))
	for i, k := range index.Keys {
		paths[i] = k.Path
	}
	return outcome(&store.DuplicateKeyError{Index: index.Name, Paths: paths})
}
