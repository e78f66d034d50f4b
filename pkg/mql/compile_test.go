package mql_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
)

func wantBadFilter(t *testing.T, err error, contains string) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Code != "bad_filter" {
		t.Fatalf("got %v, want bad_filter", err)
	}
	if !strings.Contains(e.Message, contains) {
		t.Errorf("message %q does not contain %q", e.Message, contains)
	}
}

func TestCompileRefuses(t *testing.T) {
	re := bson.Regex{Pattern: "x"}
	d := func(name string, v any) bson.D { return bson.D{{Key: name, Value: v}} }
	tests := map[string]struct {
		filter bson.D
		want   string // in the message
	}{
		"unknown at the top":           {d("$where", "1"), `"$where"`},
		"expression":                   {d("$expr", d("$eq", bson.A{1, 1})), `"$expr"`},
		"unknown on a field":           {d("a.b", d("$near", 1)), `a.b: operator "$near"`},
		"unknown in $and":              {d("$and", bson.A{d("a", 1), d("$text", 1)}), `"$text"`},
		"unknown in $not":              {d("a", d("$not", d("$where", 1))), `a: operator "$where"`},
		"unknown in $elemMatch":        {d("a", d("$elemMatch", d("b", d("$geoWithin", 1)))), `a.b: operator "$geoWithin"`},
		"unknown of elements":          {d("a", d("$elemMatch", d("$where", 1))), `"$where"`},
		"unknown in $all":              {d("a", d("$all", bson.A{d("$elemMatch", d("b", d("$x", 1)))})), `a.b: operator "$x"`},
		"unknown behind a known one":   {d("a", bson.D{{Key: "$gt", Value: 1}, {Key: "$where", Value: 1}}), `"$where"`},
		"unknown in an object":         {d("a", d("b", d("$where", 1))), `a: operator "$where"`},
		"unknown in a list":            {d("a", bson.A{d("$function", 1)}), `"$function"`},
		"unknown in $in":               {d("a", d("$in", bson.A{d("b", d("$where", 1))})), `"$where"`},
		"Extended JSON left":           {d("a", d("$oid", "0102030405060708090a0b0c")), `"$oid"`},
		"field among operators":        {d("a", bson.D{{Key: "$gt", Value: 1}, {Key: "b", Value: 1}}), `"b"`},
		"operator twice":               {d("a", bson.D{{Key: "$gt", Value: 1}, {Key: "$gt", Value: 2}}), `"$gt" is given twice`},
		"$not at the top":              {d("$not", d("a", 1)), `"$not"`},
		"$eq at the top":               {d("$eq", 1), `"$eq"`},
		"no name":                      {d("", 1), "path"},
		"empty part of a path":         {d("a..b", 1), `"a..b"`},
		"operator in a path":           {d("a.$b", 1), `"a.$b"`},
		"NUL in a path":                {d("a\x00", 1), "valid text"},
		"long path":                    {d(strings.Repeat("a.", 200)+"a", 1), "names"},
		"empty $and":                   {d("$and", bson.A{}), "$and needs"},
		"$or without a list":           {d("$or", d("a", 1)), "$or needs"},
		"$nor of values":               {d("$nor", bson.A{1}), "$nor needs"},
		"$in without a list":           {d("a", d("$in", 1)), "$in needs"},
		"$in with operators":           {d("a", d("$in", bson.A{d("$gt", 1)})), "not operators"},
		"$nin with operators":          {d("a", d("$nin", bson.A{d("$gt", 1)})), "not operators"},
		"$in with encoded operators":   {d("a", d("$in", bson.A{raw(t, d("$gt", 1))})), "not operators"},
		"$all without a list":          {d("a", d("$all", 1)), "$all needs"},
		"$all mixed":                   {d("a", d("$all", bson.A{1, d("$elemMatch", bson.D{})})), "not both"},
		"$all with operators":          {d("a", d("$all", bson.A{d("$gt", 1)})), "no other operators"},
		"$elemMatch of a value":        {d("a", d("$elemMatch", 1)), "$elemMatch needs"},
		"$elemMatch of both":           {d("a", d("$elemMatch", bson.D{{Key: "$gt", Value: 1}, {Key: "b", Value: 1}})), `"b"`},
		"$not of a value":              {d("a", d("$not", 1)), "$not needs"},
		"$not of nothing":              {d("a", d("$not", bson.D{})), "$not needs"},
		"$not of an object":            {d("a", d("$not", d("b", 1))), "$not needs"},
		"$ne of a pattern":             {d("a", d("$ne", re)), "regular expression"},
		"$gt of a pattern":             {d("a", d("$gt", re)), "regular expression"},
		"$exists of text":              {d("a", d("$exists", "false")), "$exists needs"},
		"$size below 0":                {d("a", d("$size", -1)), "$size needs"},
		"$size of a fraction":          {d("a", d("$size", 1.5)), "$size needs"},
		"$size of text":                {d("a", d("$size", "1")), "$size needs"},
		"$mod by 0":                    {d("a", d("$mod", bson.A{0, 0})), "$mod needs"},
		"$mod of one":                  {d("a", d("$mod", bson.A{2})), "$mod needs"},
		"$mod of three":                {d("a", d("$mod", bson.A{2, 1, 0})), "$mod needs"},
		"$mod of text":                 {d("a", d("$mod", bson.A{"2", 1})), "$mod needs"},
		"$type unknown":                {d("a", d("$type", "integer")), "there is no type integer"},
		"$type 0":                      {d("a", d("$type", 0)), "there is no type 0"},
		"$type 20":                     {d("a", d("$type", 20)), "there is no type 20"},
		"$type of none":                {d("a", d("$type", bson.A{})), "at least one"},
		"$options alone":               {d("a", d("$options", "i")), "needs a $regex"},
		"$options no text":             {d("a", bson.D{{Key: "$regex", Value: "x"}, {Key: "$options", Value: 1}}), "$options needs"},
		"$options twice":               {d("a", bson.D{{Key: "$regex", Value: bson.Regex{Pattern: "x", Options: "i"}}, {Key: "$options", Value: "m"}}), "both"},
		"extended patterns":            {d("a", bson.D{{Key: "$regex", Value: "x"}, {Key: "$options", Value: "x"}}), "i, m and s only"},
		"$regex no text":               {d("a", d("$regex", 1)), "$regex needs"},
		"lookahead":                    {d("a", d("$regex", "(?=x)")), "RE2"},
		"backreference":                {d("a", d("$regex", `(x)\1`)), "RE2"},
		"half a pattern":               {d("a", d("$regex", "(")), "RE2"},
		"closing the options":          {d("a", bson.D{{Key: "$regex", Value: "a)(b"}, {Key: "$options", Value: "i"}}), "RE2"},
		"long pattern":                 {d("a", d("$regex", strings.Repeat("x", 257))), "256"},
		"large pattern":                {d("a", d("$regex", `\pL{100}`)), "too large"},
		"pattern in $in":               {d("a", d("$in", bson.A{bson.Regex{Pattern: "("}})), "RE2"},
		"pattern in $all":              {d("a", d("$all", bson.A{bson.Regex{Pattern: "("}})), "RE2"},
		"implicit pattern":             {d("a", bson.Regex{Pattern: "("}), "RE2"},
		"undefined":                    {d("a", bson.Undefined{}), "undefined"},
		"code":                         {d("a", d("$eq", bson.JavaScript("1"))), "can't be compared"},
		"code in a list":               {d("a", d("$in", bson.A{bson.A{bson.Symbol("x")}})), "can't be compared"},
		"a Go type outside the model":  {d("a", struct{}{}), "can't be compared"},
		"text that is not UTF-8":       {d("a", "\xff"), "can't be compared"},
		"an operator that is very big": {d("$"+strings.Repeat("é", 1000), 1), "…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := mql.Compile(test.filter)
			wantBadFilter(t, err, test.want)
			if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestCompileRefusesDepth(t *testing.T) {
	ways := map[string]func(inner bson.D) bson.D{
		"$and":       func(d bson.D) bson.D { return bson.D{{Key: "$and", Value: bson.A{d}}} },
		"$elemMatch": func(d bson.D) bson.D { return bson.D{{Key: "a", Value: bson.D{{Key: "$elemMatch", Value: d}}}} },
		"object":     func(d bson.D) bson.D { return bson.D{{Key: "a", Value: d}} },
		"$all": func(d bson.D) bson.D {
			return bson.D{{Key: "a", Value: bson.D{{Key: "$all", Value: bson.A{bson.D{{Key: "$elemMatch", Value: d}}}}}}}
		},
	}
	for name, wrap := range ways {
		filter := bson.D{{Key: "a", Value: 1}}
		for range 100_000 {
			filter = wrap(filter)
		}
		_, err := mql.Compile(filter)
		wantBadFilter(t, err, "")
		if stats := mql.Measure(filter); name != "object" && stats.Depth < 60 {
			t.Errorf("%s: measured depth %d", name, stats.Depth)
		}
	}
	not := bson.D{{Key: "$gt", Value: 1}}
	for range 100_000 {
		not = bson.D{{Key: "$not", Value: not}}
	}
	_, err := mql.Compile(bson.D{{Key: "a", Value: not}})
	wantBadFilter(t, err, "nested")
}

func TestCompileTakesGoLists(t *testing.T) {
	for _, v := range []any{bson.A{"x", "y"}, []any{"x", "y"}, []string{"x", "y"}} {
		f := mql.MustCompile(bson.D{{Key: "a", Value: bson.D{{Key: "$in", Value: v}}}})
		if !f.Match(raw(t, bson.D{{Key: "a", Value: "y"}})) {
			t.Errorf("%T: no match", v)
		}
	}
	f := mql.MustCompile(bson.D{{Key: "$or", Value: []bson.D{{{Key: "a", Value: 1}}, {{Key: "b", Value: 1}}}}})
	if !f.Match(raw(t, bson.D{{Key: "b", Value: 1}})) {
		t.Error("no match")
	}
}

func TestRaw(t *testing.T) {
	tests := []struct{ filter, want string }{
		{`{}`, `{}`},
		{`{"a":1,"b":null}`, `{"a":{"$eq":1},"b":{"$eq":null}}`},
		{`{"a":{"$gte":1,"$lt":2}}`, `{"a":{"$gte":1,"$lt":2}}`},
		{`{"a":{"$ne":1},"b":{"$nin":[2,1,2.0]}}`, `{"a":{"$ne":1},"b":{"$nin":[1,2]}}`},
		{`{"$and":[{"a":1},{"b":2}]}`, `{"a":{"$eq":1},"b":{"$eq":2}}`},
		{`{"$and":[{"a":1},{"a":2}]}`, `{"$and":[{"a":{"$eq":1}},{"a":{"$eq":2}}]}`},
		{`{"$and":[{"$or":[{"a":1}]},{"$or":[{"b":1}]}]}`, `{"$and":[{"$or":[{"a":{"$eq":1}}]},{"$or":[{"b":{"$eq":1}}]}]}`},
		{`{"a":{"$not":{"$gt":1,"$type":["int","number"]}}}`, `{"a":{"$not":{"$gt":1,"$type":["number",{"$numberLong":"16"}]}}}`},
		{`{"a":{"$elemMatch":{"b":1}}}`, `{"a":{"$elemMatch":{"b":{"$eq":1}}}}`},
		{`{"a":{"$all":[1,{"$regularExpression":{"pattern":"x$","options":"i"}}]}}`, `{"a":{"$all":[1,{"$regularExpression":{"pattern":"[Xx]\\z","options":""}}]}}`},
		{`{"a":{"$size":1.0,"$mod":[2,1]}}`, `{"a":{"$size":{"$numberLong":"1"},"$mod":[{"$numberLong":"2"},{"$numberLong":"1"}]}}`},
		{`{"a":{"$exists":1}}`, `{"a":{"$exists":true}}`},
	}
	for _, test := range tests {
		want := raw(t, parse(t, test.want))
		if diff := cmp.Diff(want.String(), compile(t, test.filter).Raw().String()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.filter, diff)
		}
	}
}

// What a server is sent means what was compiled.
func TestRawMeansTheSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	compared := 0
	for range 1500 {
		filter := mqltest.Filter(r)
		f, err := mql.Compile(filter)
		if err != nil {
			t.Fatalf("%v: %v", filter, err)
		}
		var sent bson.D
		if err := bson.Unmarshal(f.Raw(), &sent); err != nil {
			t.Fatal(err)
		}
		again, err := mql.Compile(sent)
		if err != nil {
			// A rewritten pattern may be longer than patterns from outside, and look behind itself.
			if len(mql.Measure(filter).Regexes) > 0 {
				continue
			}
			t.Fatalf("%v: %v", sent, err)
		}
		for range 20 {
			doc := raw(t, mqltest.Doc(r, 1))
			if f.Match(doc) != again.Match(doc) {
				t.Fatalf("%v and %v differ on %v", filter, sent, doc)
			}
			compared++
		}
	}
	if compared < 15_000 {
		t.Errorf("only %d compared", compared)
	}
}
