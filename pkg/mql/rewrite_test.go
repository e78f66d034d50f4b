package mql_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/mqltest"
)

func TestRewrite(t *testing.T) {
	tests := []struct {
		filter string
		calls  []string // path operator constant
		want   string   // with every int raised by 1
	}{
		{`{"a":1}`, []string{"a $eq 1"}, `{"a":{"$eq":2}}`},
		{`{"a":{"$gt":1,"$ne":3}}`, []string{"a $gt 1", "a $ne 3"}, `{"a":{"$gt":2,"$ne":4}}`},
		{`{"a":{"b":1}}`, []string{`a $eq [{b 1}]`}, `{"a":{"$eq":{"b":1}}}`},
		{`{"a":[1]}`, []string{"a $eq [1]"}, `{"a":{"$eq":[1]}}`},
		{`{"a":{"$in":[1,2]},"b":{"$nin":[]}}`, []string{"a $in 1", "a $in 2", "b $nin <nil>"}, `{"a":{"$in":[2,3]},"b":{"$nin":[]}}`},
		{`{"a.b":{"$all":[1]}}`, []string{"a.b $all 1"}, `{"a.b":{"$all":[2]}}`},
		{`{"a":{"$not":{"$lt":1}}}`, []string{"a $lt 1"}, `{"a":{"$not":{"$lt":2}}}`},
		{`{"$or":[{"a":1},{"$nor":[{"$and":[{"b":2}]}]}]}`, []string{"a $eq 1", "b $eq 2"}, `{"$or":[{"a":{"$eq":2}},{"$nor":[{"$and":[{"b":{"$eq":3}}]}]}]}`},
		{`{"a":{"$elemMatch":{"$gt":1}}}`, []string{"a $elemMatch <nil>", "a $gt 1"}, `{"a":{"$elemMatch":{"$gt":2}}}`},
		{`{"a":{"$elemMatch":{}}}`, []string{"a $elemMatch <nil>"}, `{"a":{"$elemMatch":{}}}`},
		{
			`{"a.b":{"$elemMatch":{"c":1,"$or":[{"d":{"$elemMatch":{"e":2}}}]}}}`,
			[]string{"a.b $elemMatch <nil>", "a.b.c $eq 1", "a.b.d $elemMatch <nil>", "a.b.d.e $eq 2"},
			`{"a.b":{"$elemMatch":{"c":{"$eq":2},"$or":[{"d":{"$elemMatch":{"e":{"$eq":3}}}}]}}}`,
		},
		{`{"a":{"$all":[{"$elemMatch":{"b":1}}]}}`, []string{"a $elemMatch <nil>", "a.b $eq 1"}, `{"a":{"$all":[{"$elemMatch":{"b":{"$eq":2}}}]}}`},
		{`{"a":{"$exists":true},"b":{"$size":1},"c":{"$type":"int"}}`, []string{"a $exists true", "b $size 1", "c $type int"}, `{"a":{"$exists":true},"b":{"$size":2},"c":{"$type":"int"}}`},
		{`{"b":{"$gt":1,"$regex":"x","$options":"i"}}`, []string{"b $gt 1", "b $regex x"}, `{"b":{"$gt":2,"$regex":"x","$options":"i"}}`},
		{`{"a":{"$mod":[2,1]}}`, []string{"a $mod [2 1]"}, `{"a":{"$mod":[2,1]}}`},
	}
	for _, test := range tests {
		in := parse(t, test.filter)
		before := fmt.Sprint(in)
		var calls []string
		got, err := mql.Rewrite(in, func(path, op string, v any) (any, error) {
			calls = append(calls, fmt.Sprintf("%s %s %v", path, op, plain(v)))
			if n, ok := v.(int32); ok {
				return n + 1, nil
			}
			return v, nil
		})
		if err != nil {
			t.Errorf("%s: %v", test.filter, err)
			continue
		}
		if diff := cmp.Diff(test.calls, calls); diff != "" {
			t.Errorf("%s: calls (-want +got)\n%s", test.filter, diff)
		}
		if diff := cmp.Diff(parse(t, test.want), got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.filter, diff)
		}
		if fmt.Sprint(in) != before {
			t.Errorf("%s: the filter was changed to %v", test.filter, in)
		}
	}
}

// plain makes a bson.D print as its elements.
func plain(v any) any {
	if d, ok := v.(bson.D); ok {
		return []bson.E(d)
	}
	return v
}

func TestRewriteRefuses(t *testing.T) {
	keep := func(_, _ string, v any) (any, error) { return v, nil }
	for _, filter := range []string{
		`{"$where":"1"}`, `{"a":{"$where":1}}`, `{"a":{"$elemMatch":{"$where":1}}}`, `{"$and":[{"$expr":{}}]}`, `{"a":{"$not":{"$where":1}}}`,
		`{"a":{"$not":{"b":1}}}`, `{"a":{"$in":1}}`, `{"a":{"$in":[{"$gt":1}]}}`, `{"a":{"$all":[{"$gt":1}]}}`, `{"a":{"$elemMatch":1}}`,
		`{"$or":[]}`, `{"$or":[1]}`, `{"a..b":1}`, `{"a":{"$elemMatch":{"$b.c":1}}}`, `{"a":{"$gt":1,"b":2}}`,
	} {
		_, err := mql.Rewrite(parse(t, filter), keep)
		if err == nil {
			t.Errorf("%s is taken", filter)
			continue
		}
		wantBadFilter(t, err, "")
	}
}

func TestRewriteStopsAtAnError(t *testing.T) {
	stop := errors.New("hidden")
	for _, filter := range []string{
		`{"x":1}`, `{"x":{"$in":[]}}`, `{"x":{"$in":[1]}}`, `{"x":{"$exists":true}}`, `{"x":{"$elemMatch":{}}}`, `{"$nor":[{"a":1,"x":null}]}`,
		`{"x":{"$not":{"$gt":1}}}`, `{"x":{"$all":[{"$elemMatch":{}}]}}`, `{"x":{"$regularExpression":{"pattern":"","options":""}}}`,
		`{"x":{"$size":0}}`, `{"x":{"$type":"int"}}`, `{"x":{"$mod":[1,0]}}`, `{"x":{"$not":{"$regex":"y"}}}`, `{"x":{}}`, `{"x":[]}`,
	} {
		_, err := mql.Rewrite(parse(t, filter), func(path, _ string, v any) (any, error) {
			if path == "x" {
				return nil, stop
			}
			return v, nil
		})
		if !errors.Is(err, stop) {
			t.Errorf("%s: got %v", filter, err)
		}
	}
}

// A Rewrite that changes nothing keeps the meaning, and sees every path that the compiled filter reads.
func TestRewriteKeepsMeaning(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		filter := mqltest.Filter(r)
		seen := map[string]bool{}
		same, err := mql.Rewrite(filter, func(path, _ string, v any) (any, error) {
			seen[path] = true
			return v, nil
		})
		if err != nil {
			t.Fatalf("%v: %v", filter, err)
		}
		f, g := mql.MustCompile(filter), mql.MustCompile(same)
		if string(f.Raw()) != string(g.Raw()) {
			t.Fatalf("%v became %v", f.Raw(), g.Raw())
		}
		for _, path := range paths(f.Root(), "") {
			if !seen[path] {
				t.Fatalf("%v: %s was not shown", filter, path)
			}
		}
	}
}

func paths(n mql.Node, prefix string) []string {
	var out []string
	switch n := n.(type) {
	case *mql.AndNode:
		for _, child := range n.Nodes {
			out = append(out, paths(child, prefix)...)
		}
	case *mql.OrNode:
		for _, child := range n.Nodes {
			out = append(out, paths(child, prefix)...)
		}
	case *mql.NorNode:
		for _, child := range n.Nodes {
			out = append(out, paths(child, prefix)...)
		}
	case *mql.Field:
		out = append(append(out, prefix+n.Path), predPaths(n.Preds, prefix+n.Path+".")...)
	}
	return out
}

func predPaths(preds []mql.Pred, prefix string) []string {
	var out []string
	for _, p := range preds {
		switch p := p.(type) {
		case *mql.Not:
			out = append(out, predPaths(p.Preds, prefix)...)
		case *mql.All:
			out = append(out, predPaths(p.Preds, prefix)...)
		case *mql.ElemMatch:
			out = append(out, predPaths(p.Preds, prefix)...)
			if p.Node != nil {
				out = append(out, paths(p.Node, prefix)...)
			}
		}
	}
	return out
}

func TestMeasure(t *testing.T) {
	tests := []struct {
		filter string
		want   mql.Stats
	}{
		{`{}`, mql.Stats{}},
		{`{"a":1,"b":{"$gt":1,"$lt":2}}`, mql.Stats{Depth: 1, Clauses: 3}},
		{`{"$or":[{"a":1},{"$and":[{"b":1}]}]}`, mql.Stats{Depth: 3, Clauses: 4}},
		{`{"a":{"$elemMatch":{"b":{"$not":{"$in":[1,2,3]}}}}}`, mql.Stats{Depth: 3, Clauses: 3, MaxIn: 3}},
		{`{"a":{"$all":[{"$elemMatch":{"b":1}},{"$elemMatch":{"b":2}}]}}`, mql.Stats{Depth: 3, Clauses: 5, MaxIn: 2}},
		{
			`{"a":{"$gt":1,"$regex":"^x","$options":"i"}}`,
			mql.Stats{Depth: 1, Clauses: 2, Regexes: []mql.RegexUse{{Path: "a", Pattern: "^x", Options: "i", Anchored: true}}},
		},
		{
			`{"a":{"$elemMatch":{"b":{"$in":[{"$regularExpression":{"pattern":"x","options":""}}]},"c":{"$regularExpression":{"pattern":"^x|(^y)","options":""}}}}}`,
			mql.Stats{Depth: 2, Clauses: 3, MaxIn: 1, Regexes: []mql.RegexUse{{Path: "a.b", Pattern: "x"}, {Path: "a.c", Pattern: "^x|(^y)", Anchored: true}}},
		},
		{`{"a":{"$regularExpression":{"pattern":"^x|y","options":""}}}`, mql.Stats{Depth: 1, Clauses: 1, Regexes: []mql.RegexUse{{Path: "a", Pattern: "^x|y"}}}},
		{`{"a":{"$regularExpression":{"pattern":"^x","options":"m"}}}`, mql.Stats{Depth: 1, Clauses: 1, Regexes: []mql.RegexUse{{Path: "a", Pattern: "^x", Options: "m"}}}},
		{`{"a":{"$not":{"$regularExpression":{"pattern":"\\Ax","options":""}}}}`, mql.Stats{Depth: 2, Clauses: 2, Regexes: []mql.RegexUse{{Path: "a", Pattern: `\Ax`, Anchored: true}}}},
		{`{"$where":1,"$or":5,"a":{"$elemMatch":1,"$in":2}}`, mql.Stats{Depth: 1, Clauses: 4}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, mql.Measure(parse(t, test.filter))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.filter, diff)
		}
	}
}

func TestStoredID(t *testing.T) {
	for filter, want := range map[string]string{
		`{"a":1,"id":2}`:                                    `{"a":1,"_id":2}`,
		`{"id":{"$not":{"$in":[1]}}}`:                       `{"_id":{"$not":{"$in":[1]}}}`,
		`{"_id":1,"a.id":2,"ids":3}`:                        `{"_id":1,"a.id":2,"ids":3}`,
		`{"$or":[{"id":1},{"$and":[{"$nor":[{"id":2}]}]}]}`: `{"$or":[{"_id":1},{"$and":[{"$nor":[{"_id":2}]}]}]}`,
		`{"a":{"$elemMatch":{"id":1,"$or":[{"id":2}]}}}`:    `{"a":{"$elemMatch":{"id":1,"$or":[{"id":2}]}}}`,
		`{"a":{"id":1},"b":[{"id":2}]}`:                     `{"a":{"id":1},"b":[{"id":2}]}`,
		`{"$or":{"id":1},"$and":[1],"$x":[{"id":1}]}`:       `{"$or":{"id":1},"$and":[1],"$x":[{"id":1}]}`, // Compile refuses it
	} {
		in := parse(t, filter)
		if diff := cmp.Diff(parse(t, want), mql.StoredID(in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", filter, diff)
		}
		if diff := cmp.Diff(parse(t, filter), in); diff != "" {
			t.Errorf("%s was changed:\n%s", filter, diff)
		}
	}
}
