package document_test

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// renamed is the names of records whose title was name, whose author's full was fullname, and whose third was first.
func renamed() *document.Names {
	author := document.NewNames(map[string]string{"full": "fullname"}, nil)
	return document.NewNames(map[string]string{"title": "name", "third": "first"}, map[string]*document.Names{"author": author}).Within("_i18n")
}

func TestNamesOfPaths(t *testing.T) {
	t.Parallel()
	n := renamed()
	for path, want := range map[string]string{
		"title": "name", "name": "title", "third": "first", "first": "third", "other": "other", "": "",
		"author.full": "author.fullname", "author.fullname": "author.full", "author.0.full": "author.0.fullname", "author.0.1.full": "author.0.1.fullname",
		"author.$.full": "author.$.fullname", "author.$[].full": "author.$[].fullname", "author.$[x].full": "author.$[x].fullname",
		"author.title": "author.title", "title.title": "name.title", "_i18n.de.title": "_i18n.de.name", "_i18n.de.author.full": "_i18n.de.author.fullname",
		"_i18n.title.name": "_i18n.title.title", "_id": "_id",
	} {
		if got := n.Path(path); got != want {
			t.Errorf("Path(%q) = %q, want %q", path, got, want)
		}
		if back := n.Inverse().Path(want); back != path {
			t.Errorf("Inverse().Path(%q) = %q, want %q", want, back, path)
		}
	}
}

// A chain of names, of which each field is stored as the next one, goes round.
func TestNamesArePermutations(t *testing.T) {
	t.Parallel()
	for _, stored := range []map[string]string{
		{"a": "b"}, {"a": "b", "b": "c"}, {"a": "b", "b": "c", "c": "a"}, {"a": "b", "b": "c", "x": "y", "z": "z"}, {"a": "b", "c": "d"},
	} {
		n := document.NewNames(stored, nil)
		seen := map[string]bool{}
		for _, name := range []string{"a", "b", "c", "d", "x", "y", "z"} {
			as := n.Path(name)
			if want, given := stored[name]; given && as != want || seen[as] {
				t.Errorf("%v: %s is stored as %s", stored, name, as)
			}
			seen[as] = true
			if back := n.Inverse().Path(as); back != name {
				t.Errorf("%v: %s leads back to %s, not %s", stored, as, back, name)
			}
		}
	}
}

func TestNamesOfNothing(t *testing.T) {
	t.Parallel()
	n := document.NewNames(map[string]string{"a": "a"}, map[string]*document.Names{"b": nil})
	if n != nil {
		t.Errorf("NewNames = %v, want nil", n)
	}
	doc, err := document.Marshal(bson.D{{Key: "a", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Within("x").Inverse().Document(doc); &got[0] != &doc[0] || n.Path("a.b") != "a.b" || n.At("a") != nil {
		t.Error("nil changes something")
	}
}

func TestNamesOfDocuments(t *testing.T) {
	t.Parallel()
	n := renamed()
	for _, row := range []struct{ doc, want bson.D }{
		{bson.D{}, bson.D{}},
		{bson.D{{Key: "title", Value: "x"}, {Key: "_id", Value: 1}}, bson.D{{Key: "name", Value: "x"}, {Key: "_id", Value: 1}}},
		{bson.D{{Key: "title", Value: 1}, {Key: "name", Value: 2}}, bson.D{{Key: "name", Value: 1}, {Key: "title", Value: 2}}},
		{
			bson.D{{Key: "author", Value: bson.D{{Key: "full", Value: bson.D{{Key: "title", Value: 1}}}}}},
			bson.D{{Key: "author", Value: bson.D{{Key: "fullname", Value: bson.D{{Key: "title", Value: 1}}}}}},
		},
		{
			bson.D{{Key: "author", Value: bson.A{bson.D{{Key: "full", Value: 1}}, "full", bson.A{bson.D{{Key: "full", Value: nil}}}}}},
			bson.D{{Key: "author", Value: bson.A{bson.D{{Key: "fullname", Value: 1}}, "full", bson.A{bson.D{{Key: "fullname", Value: nil}}}}}},
		},
		{
			bson.D{{Key: "_i18n", Value: bson.D{{Key: "de", Value: bson.D{{Key: "title", Value: 1}}}, {Key: "title", Value: bson.D{{Key: "author", Value: bson.D{{Key: "full", Value: 2}}}}}}}},
			bson.D{{Key: "_i18n", Value: bson.D{{Key: "de", Value: bson.D{{Key: "name", Value: 1}}}, {Key: "title", Value: bson.D{{Key: "author", Value: bson.D{{Key: "fullname", Value: 2}}}}}}}},
		},
	} {
		doc, err := document.Marshal(row.doc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := document.Marshal(row.want)
		if err != nil {
			t.Fatal(err)
		}
		got := n.Document(doc)
		if !bytes.Equal(got, want) {
			t.Errorf("%v is stored as %v, want %v", doc, got, want)
		}
		if back := n.Inverse().Document(got); !bytes.Equal(back, doc) {
			t.Errorf("%v leads back to %v, want %v", got, back, doc)
		}
		v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
		if got := n.Value(v); !bytes.Equal(got.Value, want) {
			t.Errorf("the value %v is stored as %v, want %v", v, got, want)
		}
	}
}

// What is damaged is not made to look sound: the store is to refuse it.
func TestNamesOfDamagedDocuments(t *testing.T) {
	t.Parallel()
	n := renamed()
	sound, err := document.Marshal(bson.D{{Key: "title", Value: "x"}, {Key: "author", Value: bson.D{{Key: "full", Value: "y"}}}})
	if err != nil {
		t.Fatal(err)
	}
	inner := bytes.Clone(sound)
	inner[len(inner)-8] = 0x42
	for name, doc := range map[string][]byte{
		"nothing": nil, "short": sound[:len(sound)-3], "bytes behind": append(bytes.Clone(sound), 0), "inside": inner,
	} {
		if got := n.Document(doc); !bytes.Equal(got, doc) {
			t.Errorf("%s: %x became %x", name, doc, got)
		}
	}
}

func FuzzNames(f *testing.F) {
	n := renamed()
	f.Fuzz(func(t *testing.T, doc []byte) {
		out := n.Document(doc)
		if len(out) > 0 && len(doc) > 0 && &out[0] == &doc[0] {
			return
		}
		if back := n.Inverse().Document(out); !bytes.Equal(back, doc) && bson.Raw(doc).Validate() == nil {
			t.Errorf("%x became %x and then %x", doc, out, back)
		}
	})
}
