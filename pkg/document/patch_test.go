package document_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func mustParse(tb testing.TB, s string) bson.D {
	tb.Helper()
	doc, err := document.ParseJSON([]byte(s))
	if err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return doc
}

func jsonOf(tb testing.TB, doc bson.D) string {
	tb.Helper()
	return string(document.AppendJSON(nil, mustMarshal(tb, doc), nil))
}

func TestMergePatch(t *testing.T) {
	tests := []struct{ target, patch, want string }{ // most from RFC 7396, appendix A
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1,null]}`, `{"a":[1,null]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{"a":"foo"}`, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"c":1,"b":2,"a":3}`, `{"z":0,"a":4,"b":null,"c":5}`, `{"c":5,"a":4,"z":0}`},
	}
	for _, test := range tests {
		target := mustParse(t, test.target)
		if got := jsonOf(t, document.MergePatch(target, mustParse(t, test.patch))); got != test.want {
			t.Errorf("%s + %s = %s, want %s", test.target, test.patch, got, test.want)
		}
		if got := jsonOf(t, target); got != test.target {
			t.Errorf("the target %s became %s", test.target, got)
		}
	}
}

func TestJSONPatch(t *testing.T) {
	tests := []struct{ target, ops, want string }{ // many from RFC 6902, appendix A
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"foo":"bar","baz":"qux"}`},
		{`{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"a":3,"b":2}`},
		{`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/1","value":"end"}]`, `{"foo":["bar","end"]}`},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc"]}]`, `{"foo":["bar",["abc"]]}`},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":null}]`, `{"foo":["bar",null]}`},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		{`{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
		{`{"a":[1,[2,{"b":3}]]}`, `[{"op":"replace","path":"/a/1/1/b","value":4}]`, `{"a":[1,[2,{"b":4}]]}`},
		{`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		{`{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
		{`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/a/c"},{"op":"replace","path":"/a/c/b","value":2}]`, `{"a":{"b":1,"c":{"b":2}}}`},
		{`{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
		{`{"a":1}`, `[{"op":"replace","path":"","value":{"b":2}}]`, `{"b":2}`},
		{`{"a":1}`, `[{"op":"add","path":"","value":[]},{"op":"add","path":"","value":{}}]`, `{}`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, `{"foo":"bar","baz":"qux"}`},
		{`{"a/b":1,"m~n":2,"":3,"~1":4}`, `[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"},{"op":"replace","path":"/","value":5},{"op":"test","path":"/~01","value":4}]`, `{"":5,"~1":4}`},
		{`{"0":1,"-":2}`, `[{"op":"remove","path":"/0"},{"op":"replace","path":"/-","value":3}]`, `{"-":3}`},
		{`{"a":{"x":1,"y":[1.0,"s",null,true]}}`, `[{"op":"test","path":"/a","value":{"y":[1,"s",null,true],"x":1.0}}]`, `{"a":{"x":1,"y":[1,"s",null,true]}}`},
		{`{"a":1}`, `[{"op":"test","path":"","value":{"a":1}}]`, `{"a":1}`},
		{`{"a":1}`, `[]`, `{"a":1}`},
	}
	for _, test := range tests {
		target := mustParse(t, test.target)
		before := mustMarshal(t, target)
		got, err := document.JSONPatch(target, []byte(test.ops))
		if err != nil {
			t.Errorf("%s with %s: %v", test.target, test.ops, err)
			continue
		}
		if got := jsonOf(t, got); got != test.want {
			t.Errorf("%s with %s = %s, want %s", test.target, test.ops, got, test.want)
		}
		if diff := cmp.Diff(before, mustMarshal(t, target)); diff != "" {
			t.Errorf("%s changed the target:\n%s", test.ops, diff)
		}
	}
}

func TestJSONPatchTestsStoredTypes(t *testing.T) {
	target := bson.D{
		{Key: "oid", Value: bson.ObjectID{0xab}},
		{Key: "date", Value: bson.DateTime(1000)},
		{Key: "i32", Value: int32(5)},
		{Key: "decimal", Value: decimalOf(t, "2.50")},
		{Key: "null", Value: nil},
		{Key: "list", Value: bson.A{}},
	}
	for value, holds := range map[string]bool{
		`"oid","value":"ab0000000000000000000000"`:       true,
		`"oid","value":"ac0000000000000000000000"`:       false,
		`"date","value":"1970-01-01T00:00:01Z"`:          true,
		`"date","value":"1970-01-01T01:00:01.000+01:00"`: true,
		`"date","value":"1970-01-01T00:00:02Z"`:          false,
		`"date","value":1000`:                            false,
		`"i32","value":5.0`:                              true,
		`"i32","value":"5"`:                              false,
		`"decimal","value":2.5`:                          true,
		`"null","value":null`:                            true,
		`"null","value":false`:                           false,
		`"list","value":null`:                            false,
		`"list","value":{}`:                              false,
		`"list","value":[]`:                              true,
		`"list","value":0`:                               false,
		`"missing","value":null`:                         false,
	} {
		_, err := document.JSONPatch(target, fmt.Appendf(nil, `[{"op":"test","path":"/%s}]`, value[1:]))
		if holds && err != nil {
			t.Errorf("test %s: %v", value, err)
		}
		if e := errs.From(err); !holds && (e == nil || e.Kind != errs.Conflict || e.Code != "patch_test_failed") {
			t.Errorf("test %s: error %v, want patch_test_failed", value, err)
		}
	}
}

func TestJSONPatchRefuses(t *testing.T) {
	value := strings.Repeat(`{"a":`, 31) + "{}" + strings.Repeat("}", 31)
	double := `{"op":"copy","from":"/list","path":"/list/-"}`
	tests := map[string]struct{ ops, code, message string }{
		"no JSON":              {`[`, "bad_json", "malformed JSON at line 1, column 2: expected a value, found end"},
		"no list":              {`{"op":"add"}`, "bad_patch", "send a list of operations, not an object"},
		"no object":            {`[1]`, "bad_patch", "operation 0: an operation is an object, not a number"},
		"no op":                {`[{"path":"/a"}]`, "bad_patch", `operation 0: "op" is missing`},
		"unknown op":           {`[{"op":"spam","path":"/a"}]`, "bad_patch", `operation 0: unknown op "spam"; there are add, remove, replace, move, copy and test`},
		"op in capitals":       {`[{"op":"ADD","path":"/a","value":1}]`, "bad_patch", `operation 0: unknown op "ADD"; there are add, remove, replace, move, copy and test`},
		"op no string":         {`[{"op":1,"path":"/a"}]`, "bad_patch", `operation 0: "op" is a string, not a number`},
		"no path":              {`[{"op":"remove"}]`, "bad_patch", `operation 0: "path" is missing`},
		"path null":            {`[{"op":"remove","path":null}]`, "bad_patch", `operation 0: "path" is a string, not null`},
		"no value":             {`[{"op":"add","path":"/x"}]`, "bad_patch", `operation 0: add needs a "value"`},
		"no from":              {`[{"op":"move","path":"/x"}]`, "bad_patch", `operation 0: "from" is missing`},
		"no slash":             {`[{"op":"remove","path":"a"}]`, "bad_patch", `operation 0: "path": the pointer "a" must begin with "/"`},
		"bad escape":           {`[{"op":"remove","path":"/~2"}]`, "bad_patch", `operation 0: "path": in the pointer "/~2", write "~" as "~0" and "/" inside a name as "~1"`},
		"tilde at the end":     {`[{"op":"remove","path":"/a~"}]`, "bad_patch", `operation 0: "path": in the pointer "/a~", write "~" as "~0" and "/" inside a name as "~1"`},
		"remove missing":       {`[{"op":"add","path":"/x","value":1},{"op":"remove","path":"/nope"}]`, "bad_patch", `operation 1: there is no such place: "/nope"`},
		"replace missing":      {`[{"op":"replace","path":"/nope","value":1}]`, "bad_patch", `operation 0: there is nothing at "/nope"`},
		"add below missing":    {`[{"op":"add","path":"/nope/x","value":1}]`, "bad_patch", `operation 0: there is nothing at "/nope"`},
		"add below a scalar":   {`[{"op":"add","path":"/n/x","value":1}]`, "bad_patch", `operation 0: there is no such place: "/n/x"`},
		"index past the end":   {`[{"op":"add","path":"/list/3","value":1}]`, "bad_patch", `operation 0: there is no such place: "/list/3"`},
		"index with zero":      {`[{"op":"add","path":"/list/01","value":1}]`, "bad_patch", `operation 0: there is no such place: "/list/01"`},
		"negative index":       {`[{"op":"remove","path":"/list/-1"}]`, "bad_patch", `operation 0: there is no such place: "/list/-1"`},
		"remove the end":       {`[{"op":"remove","path":"/list/-"}]`, "bad_patch", `operation 0: there is no such place: "/list/-"`},
		"name in a list":       {`[{"op":"add","path":"/list/x","value":1}]`, "bad_patch", `operation 0: there is no such place: "/list/x"`},
		"remove all":           {`[{"op":"remove","path":""}]`, "bad_patch", "operation 0: the whole record can't be removed by a patch; delete it"},
		"move into itself":     {`[{"op":"move","from":"/o","path":"/o/x"}]`, "bad_patch", `operation 0: "/o" can't be moved into itself`},
		"move missing":         {`[{"op":"move","from":"/nope","path":"/x"}]`, "bad_patch", `operation 0: there is nothing at "/nope"`},
		"result no object":     {`[{"op":"replace","path":"","value":"x"}]`, "bad_patch", "the result is a string; a record must be an object"},
		"value too deep":       {`[{"op":"add","path":"/x","value":` + value + `}]`, "too_deep", "the result is nested more than 32 levels deep; flatten it"},
		"copies of copies":     {"[" + strings.Repeat(double+",", 60) + double + "]", "bad_patch", "operation 18: the copies are too large or too deep"},
		"too many":             {"[" + strings.Repeat(`{"op":"test","path":"/n","value":1},`, 1000) + `{"op":"test","path":"/n","value":1}]`, "bad_patch", "1001 operations are too many; send at most 1000 at once"},
		"duplicate member":     {`[{"op":"remove","op":"add","path":"/n","value":1}]`, "bad_json", `malformed JSON at line 1, column 17: duplicate key "op": give each name once`},
		"test fails":           {`[{"op":"test","path":"/n","value":2}]`, "patch_test_failed", `operation 0: the value at "/n" is not the one tested for`},
		"pointer in a message": {`[{"op":"remove","path":"/a~1b~0"}]`, "bad_patch", `operation 0: there is no such place: "/a~1b~0"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := document.JSONPatch(mustParse(t, `{"n":1,"list":[1,2],"o":{}}`), []byte(test.ops))
			e := errs.From(err)
			if e == nil {
				t.Fatalf("no error, but %v", got)
			}
			if e.Code != test.code || e.Message != test.message {
				t.Errorf("got  %s %s\nwant %s %s", e.Code, e.Message, test.code, test.message)
			}
		})
	}
}

// FuzzMergePatch holds merge patches against RFC 7396 as it is written down there.
func FuzzMergePatch(f *testing.F) {
	f.Add([]byte(`{"a":"b","c":{"d":1}}`), []byte(`{"a":null,"c":{"d":null,"e":[null]}}`))
	f.Add([]byte(`{"a":[1]}`), []byte(`{"a":{"b":{"c":null}},"":{}}`))
	f.Add([]byte(`{"a":null}`), []byte(`{"a":{}}`))
	f.Fuzz(func(t *testing.T, target, patch []byte) {
		from, err := document.ParseJSON(target)
		if err != nil {
			return
		}
		with, err := document.ParseJSON(patch)
		if err != nil {
			return
		}
		before := [2]string{jsonOf(t, from), jsonOf(t, with)}
		got := document.MergePatch(from, with)
		if after := [2]string{jsonOf(t, from), jsonOf(t, with)}; after != before {
			t.Fatalf("%v became %v", before, after)
		}
		if diff := cmp.Diff(merged(plain(from), plain(with)), plain(got)); diff != "" {
			t.Fatalf("%s + %s (-RFC 7396 +ours):\n%s", target, patch, diff)
		}
	})
}

// merged is the algorithm of RFC 7396, section 2.
func merged(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	from, _ := target.(map[string]any)
	out := maps.Clone(from)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range p {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merged(out[name], value)
		}
	}
	return out
}

// plain is a value with maps in the place of documents.
func plain(v any) any {
	switch v := v.(type) {
	case bson.D:
		out := map[string]any{}
		for _, e := range v {
			out[e.Key] = plain(e.Value)
		}
		return out
	case bson.A:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

func FuzzJSONPatch(f *testing.F) {
	f.Add([]byte(`[{"op":"add","path":"/a/-","value":{"b":[1]}},{"op":"copy","from":"/a","path":"/c"}]`))
	f.Add([]byte(`[{"op":"move","from":"/o/x","path":"/list/0"},{"op":"remove","path":"/n"},{"op":"test","path":"","value":{}}]`))
	f.Add([]byte(`[{"op":"replace","path":"","value":{"~1/":1}},{"op":"remove","path":"/~01~1"}]`))
	f.Fuzz(func(t *testing.T, ops []byte) {
		target := mustParse(t, `{"n":1,"a":[1,{"b":2}],"list":[[]],"o":{"x":{"y":null}}}`)
		before := mustMarshal(t, target)
		got, err := document.JSONPatch(target, ops)
		if after := mustMarshal(t, target); string(after) != string(before) {
			t.Fatalf("%s changed the target to %v", ops, target)
		}
		if err != nil {
			if kind := errs.KindOf(err); kind != errs.Invalid && kind != errs.Conflict {
				t.Fatalf("%s: %v", ops, err)
			}
			return
		}
		if _, err := document.ParseJSON(document.AppendJSON(nil, mustMarshal(t, got), nil)); err != nil {
			t.Fatalf("%s gives a document that does not come back: %v", ops, err)
		}
	})
}

func TestTree(t *testing.T) {
	const text = `{"a":{"b":[1,{"c":2}]},"s":"x"}`
	d := mustParse(t, text)
	for path, want := range map[string]any{"a.b.0": int64(1), "a.b.1.c": int64(2), "s": "x"} {
		if got, ok := document.Get(d, path); !ok || got != want {
			t.Errorf("Get(%q) = %v, %v", path, got, ok)
		}
	}
	for _, path := range []string{"", "x", "a.x", "a.b.2", "a.b.01", "a.b.c", "s.x"} {
		if got, ok := document.Get(d, path); ok {
			t.Errorf("Get(%q) = %v", path, got)
		}
	}
	set := map[string]string{
		"s":       `{"a":{"b":[1,{"c":2}]},"s":9}`,
		"new.x.y": `{"a":{"b":[1,{"c":2}]},"s":"x","new":{"x":{"y":9}}}`,
		"a.b.0":   `{"a":{"b":[9,{"c":2}]},"s":"x"}`,
		"a.b.2":   `{"a":{"b":[1,{"c":2},9]},"s":"x"}`,
		"a.b.3":   text,
		"a.b.x":   text,
		"a.b.1.c": `{"a":{"b":[1,{"c":9}]},"s":"x"}`,
		"s.x":     `{"a":{"b":[1,{"c":2}]},"s":{"x":9}}`,
	}
	for path, want := range set {
		if got := jsonOf(t, document.Set(d, path, int64(9))); got != want {
			t.Errorf("Set(%q) = %s, want %s", path, got, want)
		}
	}
	unset := map[string]string{
		"s":       `{"a":{"b":[1,{"c":2}]}}`,
		"a.b":     `{"a":{},"s":"x"}`,
		"a.b.0":   `{"a":{"b":[null,{"c":2}]},"s":"x"}`,
		"a.b.1.c": `{"a":{"b":[1,{}]},"s":"x"}`,
		"a.b.5":   text,
		"s.x":     text,
		"nope.x":  text,
	}
	for path, want := range unset {
		if got := jsonOf(t, document.Unset(d, path)); got != want {
			t.Errorf("Unset(%q) = %s, want %s", path, got, want)
		}
	}
	if got := jsonOf(t, d); got != text {
		t.Errorf("the document changed to %s", got)
	}
}
