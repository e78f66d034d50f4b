package expr_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/expr"
)

func parse(tb testing.TB, text string) any {
	tb.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+text+`}`), true, &d); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return d[0].Value
}

func raw(tb testing.TB, text string) bson.Raw {
	tb.Helper()
	d, ok := parse(tb, text).(bson.D)
	if !ok {
		tb.Fatalf("%s is no document", text)
	}
	doc, err := document.Marshal(d)
	if err != nil {
		tb.Fatal(err)
	}
	return doc
}

func TestVariables(t *testing.T) {
	t.Parallel()
	e, err := expr.Compile(parse(t, `["$$outer.a", "$$NOW", "$b", "$$ROOT.b", "$$CURRENT.b", {"$let": {"vars": {"x": "$b"}, "in": "$$x"}}]`), "outer")
	if err != nil {
		t.Fatal(err)
	}
	outer := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw(t, `{"a": "out"}`)}
	env := expr.Env{Vars: []bson.RawValue{outer}, Now: time.UnixMilli(5)}
	env.Reset(raw(t, `{"b": "in"}`))
	got, err := e.Eval(&env)
	if err != nil {
		t.Fatal(err)
	}
	want := `["out",{"$date":{"$numberLong":"5"}},"in","in","in","in"]`
	if got.String() != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr string
		want []string
	}{
		{`"$a.b"`, []string{"ROOT a.b"}},
		{`{"$add": ["$a", 1, {"$sum": "$b.c"}]}`, []string{"ROOT a", "ROOT b.c"}},
		{`"$$ROOT"`, []string{"ROOT "}},
		{`{"$getField": "secret"}`, []string{"ROOT "}},
		{`{"$objectToArray": "$$CURRENT"}`, []string{"ROOT "}},
		{`{"$let": {"vars": {"x": "$a"}, "in": "$$x.b"}}`, []string{"ROOT a"}},
		{`{"$let": {"vars": {"CURRENT": "$a"}, "in": "$b"}}`, []string{"ROOT a"}},
		{`{"$map": {"input": "$$outer.l", "in": "$$this.x"}}`, []string{"outer l"}},
		{`{"$cond": [true, "$seen", "$never"]}`, []string{"ROOT seen"}},
		{`{"$dateToString": {"date": "$d", "timezone": "$z"}}`, []string{"ROOT d", "ROOT z"}},
		{`{"$literal": "$a"}`, nil},
	} {
		e, err := expr.Compile(parse(t, c.expr), "outer")
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		var got []string
		e.Paths(func(variable, path string) { got = append(got, variable+" "+path) })
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.expr, diff)
		}
	}
}

func TestConstant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"$add": [1, 2]}`:        `{"$numberInt":"3"}`,
		`{"$and": ["$a", false]}`: `false`,
		`{"$dateDiff": {"startDate": {"$date": {"$numberLong": "1384609975645"}}, "endDate": {"$date": {"$numberLong": "-5000000038001"}}, "unit": "minute", "timezone": "America/New_York"}}`: `{"$numberLong":"-106410166"}`,
		`{"$concat": ["a", {"$toUpper": ["b"]}]}`: `"aB"`,
	} {
		e, err := expr.Compile(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := e.Constant(); !ok || v.String() != want {
			t.Errorf("%s: %v %v, want %s", text, v, ok, want)
		}
	}
	for _, text := range []string{`"$a"`, `{"$rand": {}}`, `"$$NOW"`} {
		e, err := expr.Compile(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := e.Constant(); ok {
			t.Errorf("%s is the constant %v", text, v)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, slug string
		code       document.ServerCode
	}{
		{`{"$function": {"body": "x", "args": [], "lang": "js"}}`, "bad_expression", 168},
		{`{"$meta": "textScore"}`, "bad_expression", 168},
		{`{"a": {"$where": "1"}}`, "bad_expression", 168},
		{`"$$nobody"`, "bad_expression", 17276},
		{`{"$add": 1, "x": 2}`, "bad_expression", 15983},
		{`{"$divide": [1, 0]}`, "expression_failed", 2},
		{`{"$dateFromParts": {"isoWeekYear": 2023, "isoWeek": {"$nope": 1}, "hour": {"$arrayElemAt": [3]}}}`, "bad_expression", 16020},
		{`{"$dateTrunc": {"date": {"$date": {"$numberLong": "-315619200000"}}, "unit": "month", "binSize": 1e10}}`, "expression_failed", 5976500},
		{`{"$dateTrunc": {"date": {"$date": {"$numberLong": "-315619200000"}}, "unit": "week", "binSize": 1e11}}`, "expression_failed", 5976500},
		{`{"$log": [{"$numberDecimal": "1E-6176"}, {"$numberDecimal": "NaN"}]}`, "expression_failed", 28758},
		{`{"$regexMatch": {"input": "$a", "regex": "(?=a)"}}`, "expression_failed", 51111},
	} {
		_, err := expr.Compile(parse(t, c.expr))
		if e := errs.From(err); err == nil || e.Kind != errs.Invalid || e.Code != c.slug || document.ServerCodeOf(err) != c.code {
			t.Errorf("%s: %v", c.expr, err)
		}
	}
}

// TestServerPattern checks that a server is sent a pattern that it reads as is done here, and nothing else is touched.
func TestServerPattern(t *testing.T) {
	t.Parallel()
	text := `{"a": {"$regexFind": {"input": "$s", "regex": "(a)$", "options": "i"}}, "b": {"$literal": {"$regexMatch": {"regex": "(a)$", "input": 1}}}}`
	e, err := expr.Compile(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a": {"$regexFind": {"input": "$s","regex": {"$regularExpression":{"pattern":"([Aa])\\z","options":""}}}},` +
		`"b": {"$literal": {"$regexMatch": {"regex": "(a)$","input": {"$numberInt":"1"}}}}}`
	if got := e.Raw().String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, err := expr.Compile(e.Raw()); err != nil {
		t.Errorf("what a server is sent does not compile: %v", err)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"$range": [0, "$n"]}`,
		`{"$map": {"input": {"$range": [0, 5000]}, "in": "$text"}}`,
		`{"$reduce": {"input": {"$range": [0, 20]}, "initialValue": "$text", "in": {"$concat": ["$$value", "$$value"]}}}`,
		`{"$replaceAll": {"input": "$text", "find": "a", "replacement": {"$concat": ["$text", "$text"]}}}`,
	} {
		e, err := expr.Compile(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		env := expr.Env{Memory: 1 << 20}
		env.Reset(raw(t, `{"n": 2000000000, "text": "`+string(slices.Repeat([]byte("a"), 1000))+`"}`))
		if _, err := e.Eval(&env); errs.KindOf(err) != errs.Limit {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReduceReuse makes sure that what a loop throws away counts for nothing.
func TestReduceReuse(t *testing.T) {
	t.Parallel()
	e, err := expr.Compile(parse(t, `{"$strLenCP": {"$reduce": {"input": {"$range": [0, 8000]}, "initialValue": "", "in": {"$concat": ["$$value", "a"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	env := expr.Env{Memory: 4 << 20}
	env.Reset(raw(t, `{}`))
	v, err := e.Eval(&env)
	if err != nil || v.AsInt64() != 8000 {
		t.Errorf("%v %v", v, err)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	e, err := expr.Compile(parse(t, `{"$map": {"input": {"$range": [0, "$n"]}, "in": "$$this"}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := expr.Env{Ended: ctx.Err}
	env.Reset(raw(t, `{"n": 5000}`))
	if _, err := e.Eval(&env); err != context.Canceled { //nolint:errorlint // it is passed on as it is
		t.Errorf("%v", err)
	}
}

func TestRandom(t *testing.T) {
	t.Parallel()
	e, err := expr.Compile(parse(t, `{"$rand": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	env := expr.Env{Random: func() float64 { return 0.25 }}
	if v, err := e.Eval(&env); err != nil || v.Double() != 0.25 {
		t.Errorf("%v %v", v, err)
	}
	env.Random = nil
	if v, err := e.Eval(&env); err != nil || v.Double() < 0 || v.Double() >= 1 {
		t.Errorf("%v %v", v, err)
	}
}
