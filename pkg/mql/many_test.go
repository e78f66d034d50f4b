package mql_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// many is so much that whatever looks at each pair takes minutes.
const many = 50_000

// TestManyPaths changes as many fields as a request can name. What takes time in the square of their number does not
// come to its end here.
func TestManyPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of paths")
	}
	fields := func(format string, v any) bson.D {
		d := make(bson.D, many)
		for i := range d {
			d[i] = bson.E{Key: fmt.Sprintf(format, i), Value: v}
		}
		return d
	}
	list := make(bson.A, many)
	moves := fields("f%d", nil)
	for i := range moves {
		moves[i].Value = fmt.Sprintf("g%d", i)
	}
	for name, tt := range map[string]struct {
		update bson.D
		doc    bson.D
		want   int // fields at the top, or in the list, that are there
	}{
		"rename":          {bson.D{{Key: "$rename", Value: moves}}, fields("f%d", 1), many},
		"rename nothing":  {bson.D{{Key: "$rename", Value: moves}}, fields("h%d", 1), many},
		"set":             {bson.D{{Key: "$set", Value: fields("f%d", 2)}}, fields("h%d", 1), 2 * many},
		"set elements":    {bson.D{{Key: "$set", Value: fields("l.%d", 2)}}, bson.D{{Key: "l", Value: list}}, 1},
		"unset":           {bson.D{{Key: "$unset", Value: fields("f%d", "")}}, fields("f%d", 1), 0},
		"set deep":        {bson.D{{Key: "$set", Value: fields("a.b.%d", 2)}}, bson.D{}, 1},
		"increase":        {bson.D{{Key: "$inc", Value: fields("f%d", 2)}}, fields("f%d", 1), many},
		"add to a set":    {bson.D{{Key: "$addToSet", Value: bson.D{{Key: "l", Value: bson.D{{Key: "$each", Value: numbers()}}}}}}, bson.D{{Key: "l", Value: numbers()}}, 1},
		"pull all":        {bson.D{{Key: "$pullAll", Value: bson.D{{Key: "l", Value: numbers()}}}}, bson.D{{Key: "l", Value: numbers()}}, 1},
		"push and sort":   {bson.D{{Key: "$push", Value: bson.D{{Key: "l", Value: bson.D{{Key: "$each", Value: numbers()}, {Key: "$sort", Value: -1}}}}}}, bson.D{}, 1},
		"the same values": {bson.D{{Key: "$max", Value: fields("f%d", 1)}}, fields("f%d", 1), many},
	} {
		u, err := mql.CompileUpdate(tt.update, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, err := u.Apply(encode(t, tt.doc), mql.Applying{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		elements, err := out.Elements()
		if err != nil || len(elements) != tt.want {
			t.Errorf("%s: %d fields, want %d (%v)", name, len(elements), tt.want, err)
		}
	}
	filter := mql.MustCompile(fields("f%d", 1))
	base, err := mql.UpsertBase(filter)
	if err != nil {
		t.Fatal(err)
	}
	if elements, err := base.Elements(); err != nil || len(elements) != many {
		t.Errorf("the base of an upsert has %d fields (%v)", len(elements), err)
	}
	if _, err := mql.UpsertBase(mql.MustCompile(bson.D{{Key: "a.b", Value: 1}, {Key: "a-b", Value: 1}, {Key: "a", Value: 1}})); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a path in another one: %v", err)
	}
	u := update(t, `{"$set":{"l.$":5}}`)
	both := mql.And(filter, mql.MustCompile(bson.D{{Key: "f0", Value: 1}, {Key: "l", Value: 3}}))
	doc := encode(t, bson.D{{Key: "l", Value: bson.A{1, 3}}, {Key: "f0", Value: 1}})
	out, err := u.Apply(doc, mql.Applying{Filter: both})
	if err != nil || !mql.MustCompile(bson.D{{Key: "l.1", Value: 5}}).Match(out) {
		t.Errorf("the position under many conditions: %v", err)
	}
}

func numbers() bson.A {
	list := make(bson.A, many)
	for i := range list {
		list[i] = i
	}
	return list
}

func encode(t *testing.T, doc bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestManyRenames: the values are found in the same way for a few paths and for many.
func TestManyRenames(t *testing.T) {
	doc := encode(t, bson.D{
		{Key: "a", Value: bson.D{{Key: "x", Value: 1}, {Key: "y", Value: bson.A{bson.D{{Key: "z", Value: 2}}}}}},
		{Key: "b", Value: 3},
		{Key: "b", Value: 4},
		{Key: "l", Value: bson.A{1, 2}},
		{Key: "s", Value: "text"},
	})
	for _, tt := range []struct {
		from, to string
		want     string // a field of the result that is 1, 2, 3…; or part of the message
	}{
		{"a.x", "n", `{"n":1}`},
		{"a.x", "n.m", `{"n.m":1}`},
		{"b", "n", `{"n":3}`},
		{"l.0", "n", "leads into a list"},
		{"l.7", "n", `{"n":{"$exists":false}}`},
		{"a.y.0.z", "n", "leads into a list"},
		{"s.t", "n", "leads through a string"},
		{"b", "l.0", "leads into a list"},
		{"b", "a.y.0.w", "leads into a list"},
		{"none", "n", `{"n":{"$exists":false}}`},
	} {
		for _, others := range []int{0, 30} {
			moves := bson.D{{Key: tt.from, Value: tt.to}}
			for i := range others {
				moves = append(moves, bson.E{Key: fmt.Sprintf("from%d", i), Value: fmt.Sprintf("to%d", i)})
			}
			u, err := mql.CompileUpdate(bson.D{{Key: "$rename", Value: moves}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := u.Apply(doc, mql.Applying{})
			switch {
			case tt.want[0] != '{':
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s to %s beside %d: %v, want an error with %q", tt.from, tt.to, others, err, tt.want)
				}
			case err != nil || !mql.MustCompile(parse(t, tt.want)).Match(out):
				t.Errorf("%s to %s beside %d: %v, %v, want %s", tt.from, tt.to, others, out, err, tt.want)
			}
		}
	}
}
