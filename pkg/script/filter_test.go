package script_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/script"
)

// TestFiltersLoseNothing has filters from which a part would be left out, so that they would match more.
func TestFiltersLoseNothing(t *testing.T) {
	t.Parallel()
	const undefined = "is undefined, which a filter can't have: without that member it would match more"
	const class = "a filter consists of plain objects: what a Map, or an object of a class, holds would be left out"
	h := host{"db.delete": func(_ context.Context, args bson.A) (any, error) { return args[1], nil }}
	for _, c := range []struct {
		filter string
		want   any    // nil: it is refused
		why    string // it is refused
	}{
		{"{a: undefined}", nil, "a: " + undefined},
		{"{a: ctx.doc.none}", nil, "a: " + undefined},
		{"{$or: [{a: 1}, {b: undefined}]}", nil, "$or: b: " + undefined},
		{"{a: {$in: [1, undefined]}}", nil, "a: $in: 1: " + undefined},
		{"{a: {$in: [1, , 2]}}", nil, "a: $in: 1: " + undefined},
		{"(ctx.doc.x = undefined, ctx.doc)", nil, "x: " + undefined},
		{"new Map([['a', 1]])", nil, class},
		{"Object.create({a: 1})", nil, class},
		{"new (class { get a() { return 1 } })", nil, class},
		{"{a: new Set([1])}", nil, "a: " + class},
		{"{}", bson.D{}, ""},
		{"Object.create(null)", bson.D{}, ""},
		{"{a: null, b: {$in: []}}", bson.D{{Key: "a", Value: nil}, {Key: "b", Value: bson.D{{Key: "$in", Value: bson.A{}}}}}, ""},
		{"(delete ctx.doc.x, ctx.doc)", bson.D{{Key: "t", Value: "x"}}, ""},
	} {
		for what, text := range map[string]string{
			"call": "async (ctx) => { try { return await db.collection('x').delete(" + c.filter + ") } catch (e) { return e.message } }", "return": "(ctx) => (" + c.filter + ")",
		} {
			for where, e := range map[string]*script.Engine{"here": engine(t), "in a worker": workerEngine(t)} {
				result, err := e.Run(t.Context(), script.Call{
					Program: compile(t, "module.exports = "+text), Host: h, Filter: what == "return", Isolate: where != "here",
					Ctx: []script.Member{{Name: "doc", Value: bson.D{{Key: "t", Value: "x"}, {Key: "x", Value: 1}}}},
				})
				got := result.Value
				if err != nil {
					got = err.Error()
				}
				if c.want != nil {
					if !cmp.Equal(got, c.want) {
						t.Errorf("%s, %s %s: %v", c.filter, what, where, got)
					}
				} else if message, ok := got.(string); !ok || !strings.HasSuffix(message, c.why) {
					t.Errorf("%s, %s %s: %v", c.filter, what, where, got)
				}
			}
		}
	}
}
