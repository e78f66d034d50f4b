package expr_test

import (
	"cmp"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// byX sorts by the field x.
type byX struct{ desc bool }

func (byX) AppendValues(dst []bson.RawValue, doc bson.Raw) ([]bson.RawValue, error) {
	v, _ := document.Field(doc, "x")
	return append(dst, v), nil
}

func (b byX) CompareKeys(x, y []bson.RawValue) int {
	c := cmp.Compare(document.Compare(x[0], y[0]), 0)
	if b.desc {
		c = -c
	}
	return c
}

func order(sortBy bson.Raw) (expr.SortKeys, error) {
	v, _ := document.Field(sortBy, "x")
	return byX{v.AsInt64() < 0}, nil
}

// TestAccumulatorsAsServer has what MongoDB 6.0.5 makes of these documents.
func TestAccumulatorsAsServer(t *testing.T) {
	t.Parallel()
	docs := []bson.Raw{raw(t, `{"x": 1}`), raw(t, `{"x": null}`), raw(t, `{}`), raw(t, `{"x": 3, "n": 2}`), raw(t, `{"x": 2}`)}
	for _, c := range []struct {
		name, operand, want string
		code                document.ServerCode
	}{
		{name: "$sum", operand: `"$x"`, want: `{"$numberInt":"6"}`},
		{name: "$avg", operand: `"$x"`, want: `{"$numberDouble":"2.0"}`},
		{name: "$avg", operand: `"$none"`, want: `null`},
		{name: "$min", operand: `"$x"`, want: `{"$numberInt":"1"}`},
		{name: "$max", operand: `"$x"`, want: `{"$numberInt":"3"}`},
		{name: "$max", operand: `"$none"`, want: `null`},
		{name: "$first", operand: `"$x"`, want: `{"$numberInt":"1"}`},
		{name: "$last", operand: `"$n"`, want: `null`},
		{name: "$push", operand: `"$x"`, want: `[{"$numberInt":"1"},null,{"$numberInt":"3"},{"$numberInt":"2"}]`},
		{name: "$addToSet", operand: `{"$mod": ["$x", 2]}`, want: `[{"$numberInt":"1"},null,{"$numberInt":"0"}]`},
		{name: "$stdDevPop", operand: `"$x"`, want: `{"$numberDouble":"0.816496580927726"}`},
		{name: "$stdDevSamp", operand: `"$x"`, want: `{"$numberDouble":"1.0"}`},
		{name: "$mergeObjects", operand: `"$$ROOT"`, want: `{"x": {"$numberInt":"2"},"n": {"$numberInt":"2"}}`},
		{name: "$mergeObjects", operand: `"$x"`, code: 40400},
		{name: "$count", operand: `{}`, want: `{"$numberInt":"5"}`},
		{name: "$count", operand: `1`, code: 14},
		{name: "$firstN", operand: `{"input": "$x", "n": 2}`, want: `[{"$numberInt":"1"},null]`},
		{name: "$lastN", operand: `{"input": "$x", "n": 2}`, want: `[{"$numberInt":"3"},{"$numberInt":"2"}]`},
		{name: "$maxN", operand: `{"input": "$x", "n": 2}`, want: `[{"$numberInt":"3"},{"$numberInt":"2"}]`},
		{name: "$minN", operand: `{"input": "$x", "n": 2}`, want: `[{"$numberInt":"1"},{"$numberInt":"2"}]`},
		{name: "$minN", operand: `{"input": "$x", "n": 0}`, code: 5787908},
		{name: "$minN", operand: `{"input": "$x", "n": 1.5}`, code: 5787903},
		{name: "$minN", operand: `{"input": "$x", "n": "a"}`, code: 5787902},
		{name: "$minN", operand: `{"input": "$x"}`, code: 5787906},
		{name: "$minN", operand: `{"n": 1}`, code: 5787907},
		{name: "$top", operand: `{"output": "$x", "sortBy": {"x": -1}}`, want: `{"$numberInt":"3"}`},
		{name: "$top", operand: `{"output": ["$x", "$n"], "sortBy": {"x": -1}}`, want: `[{"$numberInt":"3"},{"$numberInt":"2"}]`},
		{name: "$bottom", operand: `{"output": "$x", "sortBy": {"x": -1}}`, want: `null`},
		{name: "$topN", operand: `{"output": "$x", "sortBy": {"x": 1}, "n": 3}`, want: `[null,null,{"$numberInt":"1"}]`},
		{name: "$bottomN", operand: `{"output": "$x", "sortBy": {"x": 1}, "n": 3}`, want: `[{"$numberInt":"1"},{"$numberInt":"2"},{"$numberInt":"3"}]`},
		{name: "$bottomN", operand: `{"output": "$x", "sortBy": {"x": 1}}`, code: 5788003},
		{name: "$top", operand: `{"output": "$x", "sortBy": 1}`, code: 10065},
		{name: "$sum", operand: `["$x"]`, code: 40237},
		{name: "$sum", operand: `{"$divide": [1, 0]}`, code: 2},
		{name: "$accumulator", operand: `1`, code: 15952},
	} {
		got, err := accumulate(t, c.name, c.operand, docs)
		switch {
		case document.ServerCodeOf(err) != c.code || (err != nil) != (c.code != 0):
			t.Errorf("%s %s: %v", c.name, c.operand, err)
		case err == nil && got != c.want:
			t.Errorf("%s %s: %s, want %s", c.name, c.operand, got, c.want)
		}
	}
}

func accumulate(t *testing.T, name, operand string, docs []bson.Raw) (string, error) {
	t.Helper()
	a, err := expr.CompileAccumulator(name, parse(t, operand), order)
	if err != nil {
		return "", err
	}
	var env expr.Env
	var s expr.State
	if err := a.Start(&s, &env); err != nil {
		return "", err
	}
	for _, doc := range docs {
		env.Reset(doc)
		if err := a.Add(&s, &env); err != nil {
			return "", err
		}
	}
	v, err := a.Value(&s, &env)
	return v.String(), err
}

// TestSum has a sum that adding one by one rounds wrongly.
func TestSum(t *testing.T) {
	t.Parallel()
	var docs []bson.Raw
	for range 10 {
		docs = append(docs, raw(t, `{"x": 0.1}`))
	}
	if got, err := accumulate(t, "$sum", `"$x"`, docs); err != nil || got != `{"$numberDouble":"1.0"}` {
		t.Errorf("%s %v", got, err)
	}
}

func TestAccumulatorMemory(t *testing.T) {
	t.Parallel()
	a, err := expr.CompileAccumulator("$push", "$x", order)
	if err != nil {
		t.Fatal(err)
	}
	var env expr.Env
	var s expr.State
	if err := a.Start(&s, &env); err != nil {
		t.Fatal(err)
	}
	doc := raw(t, `{"x": "0123456789"}`)
	for range 100 {
		env.Reset(doc)
		if err := a.Add(&s, &env); err != nil {
			t.Fatal(err)
		}
	}
	if s.Memory() < 1000 || s.Memory() > 20000 {
		t.Errorf("%d bytes", s.Memory())
	}
}
