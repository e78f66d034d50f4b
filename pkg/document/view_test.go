package document_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func TestView(t *testing.T) {
	const product = `{"_id":1,"title":"T","seo":{"title":"S","deep":{"x":1,"y":2}},"tags":["a","b"],
		"variants":[{"sku":"1","cost":5,"parts":[{"no":1,"secret":2}]},"scalar",[{"sku":"2","cost":6}],{"cost":7}],"0":"zero"}`
	tests := map[string]struct {
		include, exclude, hidden []string
		want                     string
	}{
		"include":              {include: []string{"title"}, want: `{"id":1,"title":"T"}`},
		"include keeps order":  {include: []string{"tags", "title"}, want: `{"id":1,"title":"T","tags":["a","b"]}`},
		"include id only":      {include: []string{"id"}, want: `{"id":1}`},
		"include missing":      {include: []string{"nope", "title.x", "tags.x"}, want: `{"id":1,"tags":[]}`},
		"include nested":       {include: []string{"seo.deep.x"}, want: `{"id":1,"seo":{"deep":{"x":1}}}`},
		"parent wins":          {include: []string{"seo.title", "seo", "seo.deep.x"}, want: `{"id":1,"seo":{"title":"S","deep":{"x":1,"y":2}}}`},
		"include in lists":     {include: []string{"variants.sku"}, want: `{"id":1,"variants":[{"sku":"1"},[{"sku":"2"}],{}]}`},
		"digits are a name":    {include: []string{"variants.0", "0"}, want: `{"id":1,"variants":[{},[{}],{}],"0":"zero"}`},
		"exclude":              {exclude: []string{"variants", "seo", "_id", "id"}, want: `{"id":1,"title":"T","tags":["a","b"],"0":"zero"}`},
		"exclude in lists":     {exclude: []string{"variants.cost", "variants.parts.secret", "seo.deep", "tags.x"}, want: `{"id":1,"title":"T","seo":{"title":"S"},"tags":["a","b"],"variants":[{"sku":"1","parts":[{"no":1}]},"scalar",[{"sku":"2"}],{}],"0":"zero"}`},
		"hidden":               {hidden: []string{"variants", "seo.deep", "_id"}, want: `{"id":1,"title":"T","seo":{"title":"S"},"tags":["a","b"],"0":"zero"}`},
		"hidden beats include": {include: []string{"seo", "variants.cost", "variants.parts"}, hidden: []string{"seo.deep.x", "variants.cost", "variants.parts.secret"}, want: `{"id":1,"seo":{"title":"S","deep":{"y":2}},"variants":[{"parts":[{"no":1}]},[{}],{}]}`},
		"hidden parent":        {include: []string{"seo.deep.x", "title"}, hidden: []string{"seo"}, want: `{"id":1,"title":"T"}`},
		"hidden and exclude":   {exclude: []string{"variants", "tags", "0"}, hidden: []string{"seo"}, want: `{"id":1,"title":"T"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			view, err := document.NewView(test.include, test.exclude, document.NewPathSet(test.hidden...))
			if err != nil {
				t.Fatal(err)
			}
			doc, err := document.ParseJSON([]byte(product))
			if err != nil {
				t.Fatal(err)
			}
			raw := mustMarshal(t, doc)
			if diff := cmp.Diff(test.want, string(document.AppendJSON(nil, raw, view))); diff != "" {
				t.Errorf("AppendJSON (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, string(document.AppendJSON(nil, view.Apply(raw), nil))); diff != "" {
				t.Errorf("Apply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestViewOfNothing(t *testing.T) {
	view, err := document.NewView(nil, []string{"id"}, document.NewPathSet())
	if view != nil || err != nil {
		t.Errorf("NewView = %v, %v; want nil, the view of everything", view, err)
	}
	doc := mustMarshal(t, bson.D{{Key: "a", Value: 1}})
	if diff := cmp.Diff(`{"a":1}`, string(document.AppendJSON(nil, doc, view))); diff != "" {
		t.Error(diff)
	}
}

func TestViewRefuses(t *testing.T) {
	for name, lists := range map[string][2][]string{
		"both":           {{"a"}, {"b"}},
		"empty":          {{""}, nil},
		"empty segment":  {{"a..b"}, nil},
		"dot at the end": {nil, {"a."}},
		"operator":       {{"a.$slice"}, nil},
		"NUL":            {{"a\x00"}, nil},
	} {
		view, err := document.NewView(lists[0], lists[1], nil)
		if e := errs.From(err); e == nil || e.Kind != errs.Invalid || e.Code != "bad_select" || view != nil {
			t.Errorf("%s: %v, %v; want bad_select", name, view, err)
		}
	}
}

func TestAppendJSONValueWithView(t *testing.T) {
	view, err := document.NewView([]string{"a"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := rawOf(t, bson.A{bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}}, 3})
	if got, want := string(document.AppendJSONValue(nil, value, view)), `[{"a":1}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(document.AppendJSONValue(nil, bson.RawValue{}, nil)); got != "null" {
		t.Errorf("missing: %s", got)
	}
}

// TestPathTree has a set of everything but a and b, of everything but b.x below b, and of c.d.
func TestPathTree(t *testing.T) {
	closed := document.NewPathTree(map[string]*document.PathSet{
		"a": nil, "b": document.NewPathTree(map[string]*document.PathSet{"x": nil}, true), "c": document.NewPathSet("d"),
	}, true)
	open := document.NewPathTree(map[string]*document.PathSet{"b": document.NewPathTree(map[string]*document.PathSet{"x": nil}, true)}, false)
	both := document.NewPathSet("a.q", "b.x.y", "z").Union(closed)
	for _, test := range []struct {
		set             *document.PathSet
		path            string
		covers, touches bool
	}{
		{closed, "", false, true},
		{closed, "a", false, false},
		{closed, "a.x", false, false},
		{closed, "b", false, true},
		{closed, "b.x", false, false},
		{closed, "b.x.y", false, false},
		{closed, "b.y", true, true},
		{closed, "b.0.x", false, false},
		{closed, "b.0.y", true, true},
		{closed, "c.d", true, true},
		{closed, "c.e", false, false},
		{closed, "d", true, true},
		{closed, "d.e", true, true},
		{open, "a", false, false},
		{open, "b.y", true, true},
		{open.Union(closed), "d", true, true},
		{closed.Union(open), "b.x", false, false},
		{both, "a", false, true},
		{both, "a.q", true, true},
		{both, "a.r", false, false},
		{both, "b.x", false, true},
		{both, "b.x.y", true, true},
		{both, "b.y", true, true},
		{both, "z", true, true},
	} {
		if got := test.set.Covers(test.path); got != test.covers {
			t.Errorf("Covers(%q) = %v", test.path, got)
		}
		if got := test.set.Touches(test.path); got != test.touches {
			t.Errorf("Touches(%q) = %v", test.path, got)
		}
	}
	for path, want := range map[string]bool{"": true, "a": false, "b": false, "b.x": false, "b.y": true, "b.0.y": true, "c": true, "c.d": true, "c.e": false, "d": true} {
		if closed.Reaches(path) != want {
			t.Errorf("Reaches(%q) = %v", path, !want)
		}
	}
	if open.Reaches("") || !both.Reaches("a") || !both.Reaches("b") {
		t.Error("what has no name is reached, or what has one is not")
	}
	for text, want := range map[string]bool{
		`{}`: false, `{"a": {"q": 1}, "b": [{"x": 1}], "c": 1}`: false, `{"d": null}`: true, `{"b": [[{"x": 1, "y": 1}]]}`: true, `{"c": {"d": 1}}`: true,
	} {
		doc, err := document.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if closed.Finds(doc) != want {
			t.Errorf("Finds(%s) = %v", text, !want)
		}
	}
}

func TestBehind(t *testing.T) {
	set := document.NewPathSet("b", "a", "c.x")
	for text, want := range map[string]string{
		`{}`:                                     `{}`,
		`{"b": 1, "z": 2, "a": 3, "y": 4}`:       `{"z":2,"y":4,"a":3,"b":1}`,
		`{"c": {"x": 1, "y": {"x": 2, "q": 3}}}`: `{"c":{"y":{"x":2,"q":3},"x":1}}`,
		`{"c": [[{"x": {"b": 1, "c": 2}, "y": 2}], 1]}`: `{"c":[[{"y":2,"x":{"b":1,"c":2}}],1]}`,
		`{"c": 1, "d": {"a": 1, "z": 2}}`:               `{"c":1,"d":{"a":1,"z":2}}`,
	} {
		doc, err := document.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		before := string(document.AppendJSON(nil, mustMarshal(t, doc), nil))
		if got := string(document.AppendJSON(nil, mustMarshal(t, set.Behind(doc)), nil)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if after := string(document.AppendJSON(nil, mustMarshal(t, doc), nil)); after != before {
			t.Errorf("%s has become %s", before, after)
		}
	}
	var none *document.PathSet
	if doc := (bson.D{{Key: "b"}, {Key: "a"}}); !cmp.Equal(none.Behind(doc), doc) {
		t.Error("the empty set changes the order")
	}
}

func TestPathSet(t *testing.T) {
	set := document.NewPathSet("a.b", "c", "c.d", "stats.2024", "x.y.z", "")
	tests := []struct {
		path            string
		covers, touches bool
	}{
		{"a", false, true},
		{"a.b", true, true},
		{"a.b.c", true, true},
		{"a.0.b", true, true},
		{"a.0.1.b.2.x", true, true},
		{"a.0", false, true},
		{"a.00.b", true, true},
		{"a.bb", false, false},
		{"ab", false, false},
		{"c", true, true},
		{"c.d", true, true},
		{"stats.2024", true, true},
		{"stats.2024.x", true, true},
		{"stats.3.2024", true, true},
		{"stats.2025", false, true},
		{"x.y", false, true},
		{"x.1.y.2", false, true},
		{"x.q", false, false},
		{"d", false, false},
		{"", false, true},
	}
	for _, test := range tests {
		if got := set.Covers(test.path); got != test.covers {
			t.Errorf("Covers(%q) = %v", test.path, got)
		}
		if got := set.Touches(test.path); got != test.touches {
			t.Errorf("Touches(%q) = %v", test.path, got)
		}
		if got := set.Reaches(test.path); got != test.touches { // nothing but names is in the set
			t.Errorf("Reaches(%q) = %v", test.path, got)
		}
	}
	if diff := cmp.Diff([]string{"a.b", "c", "stats.2024", "x.y.z"}, set.Paths()); diff != "" {
		t.Errorf("Paths (-want +got):\n%s", diff)
	}
	union := set.Union(document.NewPathSet("a", "q"))
	if diff := cmp.Diff([]string{"a", "c", "q", "stats.2024", "x.y.z"}, union.Paths()); diff != "" {
		t.Errorf("Union (-want +got):\n%s", diff)
	}
	var none *document.PathSet
	if none.Reaches("a") || none.Reaches("") {
		t.Error("the empty set is reached")
	}
	if none.Covers("a") || none.Touches("a") || none.Touches("") || len(none.Paths()) != 0 || document.NewPathSet().Touches("") {
		t.Error("the empty set has paths")
	}
	if !none.Union(set).Covers("c") || !set.Union(none).Covers("c") {
		t.Error("the union with the empty set lost paths")
	}
}
