package mql_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

func compileProjection(tb testing.TB, projection string) *mql.Projection {
	tb.Helper()
	p, err := mql.CompileProjection(parse(tb, projection))
	if err != nil {
		tb.Fatalf("%s: %v", projection, err)
	}
	return p
}

// What MongoDB 6.0.5 answers.
func TestProjection(t *testing.T) {
	const (
		mixed  = `{"_id":0,"x":1,"a":[{"b":1,"c":2},5,[{"b":3,"q":1},7,[{"b":4}]],{},null,{"c":1}],"z":[1,2,3,4]}`
		nested = `{"_id":0,"x":1,"z":[{"y":[1,2,3],"w":1},[{"y":[4,5,6]}],[1,2],5]}`
		lists  = `{"_id":0,"a":[1,2,3],"b":[4,5,6],"x":1,"y":2}`
	)
	tests := []struct{ doc, projection, want string }{
		{lists, `{}`, lists},
		{lists, `{"a":1}`, `{"_id":0,"a":[1,2,3]}`},
		{lists, `{"y":true,"a":-1.5}`, `{"_id":0,"a":[1,2,3],"y":2}`},
		{lists, `{"y":{"$numberDouble":"NaN"},"a":{"$numberDecimal":"NaN"}}`, `{"_id":0,"a":[1,2,3],"y":2}`},
		{lists, `{"_id":1}`, `{"_id":0}`},
		{lists, `{"_id":0}`, `{"a":[1,2,3],"b":[4,5,6],"x":1,"y":2}`},
		{lists, `{"_id":0,"x":1}`, `{"x":1}`},
		{lists, `{"x":0,"_id":1,"a":{"$numberDecimal":"0E+3"}}`, `{"_id":0,"b":[4,5,6],"y":2}`},
		{lists, `{"_id.x":1}`, `{}`},
		{lists, `{"_id.x":0,"a":0,"b":0}`, `{"_id":0,"x":1,"y":2}`},
		{lists, `{"q":1}`, `{"_id":0}`},

		{mixed, `{"a.b":1}`, `{"_id":0,"a":[{"b":1},[{"b":3},[{"b":4}]],{},{}]}`},
		{mixed, `{"a.b":0}`, `{"_id":0,"x":1,"a":[{"c":2},5,[{"q":1},7,[{}]],{},null,{"c":1}],"z":[1,2,3,4]}`},
		{mixed, `{"a.0":1,"z.1":1}`, `{"_id":0,"a":[{},[{},[{}]],{},{}],"z":[]}`},
		{mixed, `{"a.0":0,"z.0":0,"x.y":0}`, mixed},
		{mixed, `{"a":{"b":1},"a.c":1}`, `{"_id":0,"a":[{"b":1,"c":2},[{"b":3},[{"b":4}]],{},{"c":1}]}`},
		{mixed, `{"a":{"b.b":0,"c":0},"z":0}`, `{"_id":0,"x":1,"a":[{"b":1},5,[{"b":3,"q":1},7,[{"b":4}]],{},null,{}]}`},

		{lists, `{"a":{"$slice":1}}`, `{"_id":0,"a":[1],"b":[4,5,6],"x":1,"y":2}`},
		{lists, `{"a":{"$slice":-2},"_id":0}`, `{"a":[2,3],"b":[4,5,6],"x":1,"y":2}`},
		{lists, `{"a":{"$slice":0},"x":1}`, `{"_id":0,"a":[],"x":1}`},
		{lists, `{"a":{"$slice":[1,9]},"_id":1}`, `{"_id":0,"a":[2,3]}`},
		{lists, `{"a":{"$slice":[-2,1]},"b":{"$slice":[-9,2]},"x":0}`, `{"_id":0,"a":[2],"b":[4,5],"y":2}`},
		{lists, `{"a":{"$slice":[9,2]},"x":{"$slice":1},"b":0}`, `{"_id":0,"a":[],"x":1,"y":2}`},
		{lists, `{"a":{"$slice":{"$numberLong":"-9223372036854775808"}},"b":{"$slice":[{"$numberLong":"9223372036854775807"},{"$numberLong":"9223372036854775807"}]}}`, `{"_id":0,"a":[1,2,3],"b":[],"x":1,"y":2}`},
		{nested, `{"z.y":{"$slice":1}}`, `{"_id":0,"x":1,"z":[{"y":[1],"w":1},[{"y":[4,5,6]}],[1,2],5]}`},
		{nested, `{"z.y":{"$slice":1},"x":1}`, `{"_id":0,"x":1,"z":[{"y":[1]},[{"y":[4,5,6]}],[]]}`},
		{nested, `{"z":{"y":{"$slice":1},"w":1}}`, `{"_id":0,"z":[{"y":[1],"w":1},[{"y":[4,5,6]}],[]]}`},
		{nested, `{"z.w":0,"z.y":{"$slice":-1}}`, `{"_id":0,"x":1,"z":[{"y":[3]},[{"y":[4,5,6]}],[1,2],5]}`},
		{nested, `{"z.0":{"$slice":1}}`, nested},

		{lists, `{"a":{"$elemMatch":{"$gt":1}}}`, `{"_id":0,"a":[2]}`},
		{lists, `{"a":{"$elemMatch":{"$gt":9}},"y":1}`, `{"_id":0,"y":2}`},
		{lists, `{"b":{"$elemMatch":{"$gt":1}},"a":{"$elemMatch":{"$gt":1}},"x":1}`, `{"_id":0,"x":1,"b":[4],"a":[2]}`},
		{lists, `{"b":{"$elemMatch":{"$gt":1}},"a":{"$elemMatch":{"$gt":1}},"x":0}`, `{"_id":0,"a":[2],"b":[4],"y":2}`},
		{lists, `{"a":{"$elemMatch":{"$gt":9}},"x":{"$elemMatch":{}},"y":0}`, `{"_id":0,"b":[4,5,6]}`},
		{lists, `{"a":{"$elemMatch":{"$gt":1}},"b":{"$slice":1}}`, `{"_id":0,"a":[2],"b":[4],"x":1,"y":2}`},
		{lists, `{"a":{"$elemMatch":{"$gt":1}},"b":{"$slice":1},"_id":0}`, `{"a":[2],"b":[4],"x":1,"y":2}`},
		{lists, `{"a":{"$elemMatch":{"$gt":1}},"b":{"$slice":1},"_id":1}`, `{"_id":0,"b":[4],"a":[2]}`},
		{lists, `{"_id":{"$elemMatch":{"$gt":1}},"x":1}`, `{"x":1}`},
		{lists, `{"a":{"$elemMatch":{"$gt":1}},"_id":0}`, `{"a":[2]}`},
		{mixed, `{"a":{"$elemMatch":{"c":1}}}`, `{"_id":0,"a":[{"c":1}]}`},
		{mixed, `{"a":{"$elemMatch":{"0":{"$exists":true}}}}`, `{"_id":0,"a":[[{"b":3,"q":1},7,[{"b":4}]]]}`},
	}
	for _, test := range tests {
		p := compileProjection(t, test.projection)
		var sent bson.D
		if err := bson.Unmarshal(p.Raw(), &sent); err != nil {
			t.Fatal(err)
		}
		again, err := mql.CompileProjection(sent)
		if err != nil {
			t.Errorf("%s: Raw does not compile: %v", test.projection, err)
			continue
		}
		for name, p := range map[string]*mql.Projection{"given": p, "sent": again} {
			got, err := p.Apply([]byte("dst"), raw(t, parse(t, test.doc)), nil)
			if err != nil {
				t.Errorf("%s: %v", test.projection, err)
				continue
			}
			if string(got[:3]) != "dst" || bson.Raw(got[3:]).String() != raw(t, parse(t, test.want)).String() || bson.Raw(got[3:]).Validate() != nil {
				t.Errorf("%s (%s): %s\ngot  %s\nwant %s", test.projection, name, test.doc, bson.Raw(got[3:]), test.want)
			}
		}
	}
}

// What MongoDB 6.0.5 answers.
func TestProjectionPosition(t *testing.T) {
	const doc = `{"_id":0,"x":1,"a":[{"b":1,"c":2},5,[7]],"z":[1,2,3],"o":{"l":[{"c":1},{"c":2,"d":3}]}}`
	tests := []struct{ filter, projection, want string }{ // without want it fails
		{`{"a":5}`, `{"a.$":1}`, `{"_id":0,"a":[5]}`},
		{`{"a":5}`, `{"z.$":1,"x":1}`, `{"_id":0,"x":1,"z":[2]}`},
		{`{"a":5}`, `{"x.$":1}`, `{"_id":0,"x":1}`},
		{`{"a":5}`, `{"q.$":1,"_id":0}`, `{}`},
		{`{"a":5}`, `{"a.b.$":1}`, ``},
		{`{"a.b":1}`, `{"a.b.$":1}`, `{"_id":0,"a":[{"b":1}]}`},
		{`{"a.b":1,"z":2}`, `{"a.$":1}`, `{"_id":0,"a":[5]}`},
		{`{"z":2,"a.b":1}`, `{"z.$":1}`, `{"_id":0,"z":[1]}`},
		{`{"o.l.c":2}`, `{"o.l.$":1}`, `{"_id":0,"o":{"l":[{"c":2,"d":3}]}}`},
		{`{"o.l.c":2}`, `{"o":{"l.d.$":1},"z":{"$slice":1}}`, `{"_id":0,"z":[1],"o":{"l":[{"d":3}]}}`},
		{`{"x":1}`, `{"a.$":1}`, ``},
		{`{"a":{"$ne":9}}`, `{"a.$":1}`, ``},
	}
	for _, test := range tests {
		p := compileProjection(t, test.projection)
		if !p.Positional() {
			t.Errorf("%s is not positional", test.projection)
		}
		got, err := p.Apply(nil, raw(t, parse(t, doc)), compile(t, test.filter))
		if test.want == "" {
			if e := errs.From(err); e == nil || e.Kind != errs.Invalid || e.Code != "projection_failed" {
				t.Errorf("%s of %s: got %v, want projection_failed", test.projection, test.filter, err)
			}
			continue
		}
		if err != nil || bson.Raw(got).String() != raw(t, parse(t, test.want)).String() {
			t.Errorf("%s of %s: %s, %v, want %s", test.projection, test.filter, bson.Raw(got), err, test.want)
		}
	}
	if compileProjection(t, `{"a":1}`).Positional() || (*mql.Projection)(nil).Positional() {
		t.Error("positional without a $")
	}
}

func TestCompileProjectionRefuses(t *testing.T) {
	tests := []struct{ projection, want string }{
		{`{"a":1,"x":0}`, "a is taken and x left out"},
		{`{"a":0,"x":1}`, "x is taken and a left out"},
		{`{"a":1,"_id.x":0}`, "_id.x left out"},
		{`{"_id":{"x":0},"a":1}`, "_id.x left out"},
		{`{"a":1,"b":{"c":0}}`, "b.c left out"},
		{`{"a":1,"a.b":1}`, "a and a.b are one path"},
		{`{"a.b":1,"a":1}`, "a.b and a are one path"},
		{`{"a":1,"a":1}`, "a and a are one path"},
		{`{"_id":0,"_id":1}`, "_id and _id"},
		{`{"a.b":1,"a":{"c":1,"b":1}}`, "a.b and a.b"},
		{`{"a":{"$slice":1},"a.b":1}`, "one path"},
		{`{"a.b":0,"a":{"$elemMatch":{"b":1}}}`, "one path"},
		{`{"":1}`, `"" is not a field path`},
		{`{"a..b":1}`, `"a..b"`},
		{`{".a":1}`, `".a"`},
		{`{"$a":1}`, `"$a"`},
		{`{"a.$b":1}`, `"a.$b"`},
		{`{"a.$.b":1}`, `only the end`},
		{`{"$":1}`, `"$"`},
		{`{"a":{}}`, "a: an empty object"},
		{`{"a":null}`, "a needs 1, 0"},
		{`{"a":"$b"}`, "expressions are not supported"},
		{`{"a":[]}`, "a needs"},
		{`{"a":{"$meta":"textScore"}}`, `a: operator "$meta"`},
		{`{"a":{"$add":[1,2]}}`, `a: operator "$add"`},
		{`{"a":{"b":{"$add":[1,2]}}}`, `a.b: operator "$add"`},
		{`{"a":{"$slice":1,"b":1}}`, "nothing may stand beside $slice"},
		{`{"a":{"b":1,"$slice":1}}`, `"a.$slice"`},
		{`{"a":{"$slice":"x"}}`, "a: $slice needs"},
		{`{"a":{"$slice":1.5}}`, "$slice needs"},
		{`{"a":{"$slice":[1]}}`, "$slice needs"},
		{`{"a":{"$slice":[1,0]}}`, "$slice needs"},
		{`{"a":{"$slice":[1,-1]}}`, "$slice needs"},
		{`{"a":{"$slice":["$b",1,1]}}`, "$slice needs"},
		{`{"a.b":{"$elemMatch":{"c":1}}}`, "a.b: $elemMatch"},
		{`{"a":{"b":{"$elemMatch":{"c":1}}}}`, "a.b: $elemMatch"},
		{`{"a":{"$elemMatch":1}}`, "a: $elemMatch needs an object"},
		{`{"a":{"$elemMatch":{"$where":"1"}}}`, `a: operator "$where"`},
		{`{"a.$":0}`, "a.$ can't be left out"},
		{`{"a.$":"x"}`, "a.$ needs"},
		{`{"a.$":{"$slice":1}}`, "a.$ needs"},
		{`{"a.$":1,"b.$":1}`, "one $ only"},
		{`{"a.$":1,"x":0}`, "x left out"},
		{`{"x":0,"a.$":1}`, "x left out"},
		{`{"a.$":1,"b":{"$elemMatch":{"c":1}}}`, "do not go together"},
		{`{"b":{"$elemMatch":{"c":1}},"a.$":1}`, "do not go together"},
		{`{"a.$":1,"a":1}`, "one path"},
	}
	for _, test := range tests {
		_, err := mql.CompileProjection(parse(t, test.projection))
		wantBadProjection(t, test.projection, err, test.want)
	}
	wide := bson.D{}
	for i := range 1001 {
		wide = append(wide, bson.E{Key: "f" + strings.Repeat("x", i), Value: true})
	}
	_, err := mql.CompileProjection(wide)
	wantBadProjection(t, "many paths", err, "more than 1000 paths")
	deep := bson.D{{Key: "a", Value: true}}
	for range 100_000 {
		deep = bson.D{{Key: "a", Value: deep}}
	}
	_, err = mql.CompileProjection(deep)
	wantBadProjection(t, "deep", err, "not a field path")
}

func wantBadProjection(t *testing.T, projection string, err error, contains string) {
	t.Helper()
	var e *errs.Error
	switch {
	case !errors.As(err, &e) || e.Kind != errs.Invalid || e.Code != "bad_projection":
		t.Errorf("%s: got %v, want bad_projection", projection, err)
	case !strings.Contains(e.Message, contains) || len(e.Message) > 400:
		t.Errorf("%s: message %q does not contain %q", projection, e.Message, contains)
	}
}

func TestProjectionDoesNotAllocate(t *testing.T) {
	doc := article(t)
	for _, projection := range []string{
		`{"title":1,"author.name":1}`, `{"_id":0,"body":0,"author.age":0,"tags.x":0}`, `{"tags":{"$slice":-1},"title":1}`,
	} {
		p := compileProjection(t, projection)
		dst := make([]byte, 0, 1024)
		if n := testing.AllocsPerRun(100, func() {
			if out, err := p.Apply(dst, doc, nil); err != nil || len(out) < 5 {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", projection, n)
		}
	}
}

func BenchmarkProjection(b *testing.B) {
	doc := article(b)
	dst := make([]byte, 0, 1024)
	for name, projection := range map[string]string{
		"inclusion": `{"title":1,"slug":1,"author.name":1}`,
		"exclusion": `{"body":0,"author.age":0}`,
	} {
		b.Run(name, func(b *testing.B) {
			p := compileProjection(b, projection)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Apply(dst, doc, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
