package fieldtype_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

func TestResolve(t *testing.T) {
	declared, open := article(t, false), fieldtype.NewTree(nil, false)
	tests := []struct {
		tree *fieldtype.Tree
		path string
		want string // type and stored path; "" if unknown
	}{
		{declared, "title", "string title"},
		{declared, "tags", "string[] tags"},
		{declared, "tags.0", "string tags"},
		{declared, "tags.00", ""},
		{declared, "tags.0.0", ""},
		{declared, "tags.x", ""},
		{declared, "title.x", ""},
		{declared, "title.0", ""},
		{declared, "variants.sku", "string sku"},
		{declared, "variants.2.sku", "string sku"},
		{declared, "variants.2", "object variants"},
		{declared, "variants.2.3", ""},
		{declared, "variants.shelf", ""},
		{declared, "seo.title", "any seo.title"},
		{declared, "seo.list.0.x", "any seo.list.0.x"},
		{declared, "seo.$x", ""},
		{declared, "seo..x", ""},
		{declared, "seo.", ""},
		{declared, "extra.sku", "string sku"},
		{declared, "extra.0.sku", "string sku"},
		{declared, "extra.0", "any extra"},
		{declared, "extra.shelf", ""},
		{declared, "cover.src", "string cover.src"},
		{declared, "cover.width", "number cover.width"},
		{declared, "cover.credit", "any cover.credit"},
		{declared, "cover.src.x", ""},
		{declared, "bogus", ""},
		{declared, "", ""},
		{declared, "$where", ""},
		{declared, ".title", ""},
		{declared, "author.name", ""},
		{declared, "id", "string _id"},
		{declared, "_id", "string _id"},
		{declared, "_id.x", ""},
		{declared, "createdAt", "date createdAt"},
		{declared, "updatedBy", "string updatedBy"},
		{declared, "_rev", "number _rev"},
		{declared, "variants._rev", ""},
		{open, "whatever.0.x", "any whatever.0.x"},
		{open, "_rev", "number _rev"},
		{open, "", ""},
		{open, "$x", ""},
		{open, "a.\x00", ""},
		{open, "a" + strings.Repeat(".a", 31), "any a" + strings.Repeat(".a", 31)},
		{open, "a" + strings.Repeat(".a", 32), ""},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			f, ok := tt.tree.Resolve(tt.path)
			got := ""
			if ok {
				got = f.Type.Name() + " " + f.Path
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFirstList(t *testing.T) {
	declared, open := article(t, false), fieldtype.NewTree(nil, false)
	for path, want := range map[string]string{
		"title": "", "tags": "tags", "tags.0": "tags", "variants": "variants", "variants.sku": "variants", "variants.2.sku": "variants",
		"seo.title": "", "id": "", "tagsy": "", "bogus.tags": "", "": "",
	} {
		if got := declared.FirstList(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	if got := open.FirstList("tags.0"); got != "" {
		t.Errorf("nothing is declared, and %q is a list", got)
	}
}

func TestCast(t *testing.T) {
	date := bson.NewDateTimeFromTime(noon)
	tree := fieldtype.NewTree([]*fieldtype.Field{
		field(t, "s", "string", nil),
		field(t, "ss", "string[]", nil),
		field(t, "n", "number", nil),
		field(t, "ns", "number[]", nil),
		field(t, "b", "boolean", nil),
		field(t, "d", "date", nil),
		field(t, "x", "any", nil),
		field(t, "file", "file", nil),
		with(field(t, "ref", "string", nil), func(f *fieldtype.Field) { f.Foreign = &fieldtype.Foreign{Collection: "c"} }),
		with(field(t, "refs", "string[]", nil), func(f *fieldtype.Field) { f.Foreign = &fieldtype.Foreign{Collection: "c", Key: "_id"} }),
		with(field(t, "o", "object[]", nil), func(f *fieldtype.Field) {
			f.Sub = fieldtype.NewTree([]*fieldtype.Field{field(t, "at", "date", nil)}, false)
		}),
	}, false)
	type u = fieldtype.Untyped
	const object = `is never an object: write an operator with its $, such as {"$gte": 5}, ` +
		`and a field of a related record by its path, such as {"author.name": "Ann"}`
	tests := []struct {
		path, op string
		in, want any
		err      string
	}{
		{"s", "$eq", "5", "5", ""},
		{"s", "$eq", int64(5), int64(5), ""},
		{"s", "$eq", u("5"), "5", ""},
		{"s", "$eq", u("null"), "null", ""},
		{"s", "$eq", id.Hex(), id.Hex(), ""},
		{"ss", "$eq", u("a"), "a", ""},
		{"ss", "$eq", bson.A{"a"}, bson.A{"a"}, ""},
		{"n", "$gte", u("10"), int64(10), ""},
		{"n", "$gte", u("9007199254740993"), int64(9007199254740993), ""},
		{"n", "$gte", u("1e3"), 1000.0, ""},
		{"n", "$gte", u("-0.5"), -0.5, ""},
		{"n", "$gte", u("ten"), nil, `n: must be a number, is "ten"`},
		{"n", "$gte", u("0x10"), nil, `n: must be a number, is "0x10"`},
		{"n", "$gte", u("Inf"), nil, `n: must be a number, is "Inf"`},
		{"n", "$gte", u(""), nil, `n: must be a number, is ""`},
		{"n", "$eq", u("null"), nil, ""},
		{"n", "$eq", "5", "5", ""},
		{"ns.0", "$in", u("3"), int64(3), ""},
		{"b", "$eq", u("true"), true, ""},
		{"b", "$eq", u("1"), nil, `b: must be true or false, is "1"`},
		{"b", "$eq", u("null"), nil, ""},
		{"d", "$lte", "2026-05-01T12:00:00Z", date, ""},
		{"d", "$lte", u("2026-05-01T12:00:00Z"), date, ""},
		{"d", "$lte", noon, date, ""},
		{"d", "$lte", date, date, ""},
		{"d", "$lte", "soon", "soon", ""},
		{"d", "$lte", u("soon"), nil, `d: must be a date in RFC 3339, such as 2006-01-02T15:04:05Z, is "soon"`},
		{"x", "$eq", u("10"), int64(10), ""},
		{"x.y", "$eq", u("true"), true, ""},
		{"x", "$eq", u("null"), nil, ""},
		{"x", "$eq", u("010"), "010", ""},
		{"x", "$eq", "10", "10", ""},
		{"file", "$eq", u("x"), nil, `file: must be null: an object is compared by its members, or as JSON in filter=, is "x"`},
		{"file.size", "$gt", u("5"), int64(5), ""},
		{"ref", "$eq", id.Hex(), id, ""},
		{"ref", "$eq", u(id.Hex()), id, ""},
		{"ref", "$eq", "x", "x", ""},
		{"ref", "$eq", u("x"), nil, `ref: must be an id: 24 hex digits, is "x"`},
		{"refs", "$in", id.Hex(), id, ""},
		{"refs", "$eq", bson.A{id.Hex(), "x"}, bson.A{id, "x"}, ""},
		{"refs.0", "$eq", id.Hex(), id, ""},
		{"id", "$eq", id.Hex(), id, ""},
		{"_id", "$gt", u(id.Hex()), id, ""},
		{"createdAt", "$gt", u("2026-05-01T12:00:00Z"), date, ""},
		{"createdBy", "$eq", id.Hex(), id.Hex(), ""},
		{"o.at", "$eq", "2026-05-01T12:00:00Z", date, ""},
		{"o", "$eq", bson.D{{Key: "at", Value: "2026-05-01T12:00:00Z"}}, bson.D{{Key: "at", Value: date}}, ""},
		{"o", "$elemMatch", nil, nil, ""},
		{"n", "$exists", u("true"), true, ""},
		{"n", "$exists", u("yes"), nil, `n: must be true or false, is "yes"`},
		{"d", "$exists", true, true, ""},
		{"ss", "$size", u("2"), int64(2), ""},
		{"s", "$size", int64(2), int64(2), ""},
		{"n", "$mod", u("4,1"), bson.A{int64(4), int64(1)}, ""},
		{"n", "$mod", u("4,x"), nil, `n: must be a number, is "x"`},
		{"d", "$type", u("date"), "date", ""},
		{"d", "$type", u("9"), int64(9), ""},
		{"d", "$type", "2026-05-01", "2026-05-01", ""},
		{"s", "$regex", u("^5"), "^5", ""},
		{"ref", "$regex", "^5", "^5", ""},
		{"bogus", "$eq", "x", nil, "unknown field: bogus"},
		{"n", "$eq", bson.D{{Key: "gte", Value: int64(5)}}, nil, "n: " + object},
		{"ref", "$eq", bson.D{{Key: "name", Value: "Ann"}}, nil, "ref: " + object},
		{"ss", "$eq", bson.D{}, nil, "ss: " + object},
		{"x", "$eq", bson.D{{Key: "gte", Value: int64(5)}}, bson.D{{Key: "gte", Value: int64(5)}}, ""},
		{"n", "$eq", bson.D{{Key: "$var", Value: "now"}}, bson.D{{Key: "$var", Value: "now"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.path+tt.op, func(t *testing.T) {
			got, err := tree.Cast(tt.path, tt.op, tt.in)
			if tt.err != "" {
				if err == nil || errs.From(err).Message != tt.err || errs.KindOf(err) != errs.Invalid {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIsSystem(t *testing.T) {
	for _, name := range []string{"_id", "id", "createdAt", "updatedAt", "createdBy", "updatedBy", "_rev"} {
		f, ok := fieldtype.NewTree(nil, false).Resolve(name)
		if !fieldtype.IsSystem(name) || !ok || !f.Readonly {
			t.Errorf("%s must be a readonly system field", name)
		}
	}
	if fieldtype.IsSystem("title") {
		t.Error("title is no system field")
	}
}

// FuzzResolve holds that a path that resolves has only segments that a record may have.
func FuzzResolve(f *testing.F) {
	for _, path := range []string{"title", "variants.0.sku", "seo.a.b", "$x", "a..b", "extra.0.1", "id.x"} {
		f.Add(path)
	}
	declared, open := article(f, true), fieldtype.NewTree(nil, true)
	f.Fuzz(func(t *testing.T, path string) {
		for _, tree := range []*fieldtype.Tree{declared, open} {
			if _, ok := tree.Resolve(path); !ok {
				continue
			}
			for segment := range strings.SplitSeq(path, ".") {
				if segment == "" || segment[0] == '$' || strings.Contains(segment, "\x00") {
					t.Errorf("%q resolves", path)
				}
			}
		}
	})
}
