package fieldtype

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// I18n is the member of a record that holds its translations: _i18n.<language>.<field>.
const I18n = "_i18n"

// Languages are those of a collection. The fields themselves are in the language Default.
type Languages struct {
	Default string
	Others  []string // in the config's order
}

// Translates says that values of a type are for people to read, so that they may differ from language to language.
func Translates(t Type) bool {
	switch t.Name() {
	case "string", "string[]", "object", "object[]", "any":
		return true
	}
	return false
}

// NewTranslatedTree makes a tree whose Translated fields may have a value for each language, in the member _i18n. A
// translation is under the rules of its field, but it may be absent, and no default stands in for it.
func NewTranslatedTree(fields []*Field, strict bool, l Languages) *Tree {
	if len(l.Others) == 0 {
		t := NewTree(fields, strict)
		t.languages = &l
		return t
	}
	holder := &Field{Name: I18n, Path: I18n, Type: objectType{}, Strict: true, holder: true}
	var languages []*Field
	for _, lang := range l.Others {
		path := I18n + "." + lang
		var own []*Field
		for _, f := range fields {
			if f.Translated {
				own = append(own, f.translation(path+".", true))
			}
		}
		sub := newTree(own, true, true)
		languages = append(languages, &Field{Name: lang, Path: path, Type: objectType{}, Strict: true, holder: true, Sub: sub})
	}
	holder.Sub = newTree(languages, true, true)
	t := NewTree(append(slices.Clip(fields), holder), strict)
	t.languages = &l
	return t
}

// translation is a field as it is below prefix. Those that are partial need not be there: what they lack is in the field
// itself. The elements of a list are translated as a whole.
func (f *Field) translation(prefix string, partial bool) *Field {
	out := *f
	out.Path, out.Translated, out.Default, out.partial = prefix+f.Name, false, nil, partial
	if !partial {
		out.Default = f.Default
	}
	if f.Sub != nil {
		partial = partial && f.Type == (objectType{})
		var sub []*Field
		for _, inner := range f.Sub.fields {
			sub = append(sub, inner.translation(out.Path+".", partial))
		}
		out.Sub = newTree(sub, f.Sub.strict, partial)
	}
	return &out
}

// Languages gives the languages of the records; nil: they have none.
func (t *Tree) Languages() *Languages { return t.languages }

// Language gives a language as the config writes it.
func (l *Languages) Language(tag string) (string, bool) {
	for _, known := range append([]string{l.Default}, l.Others...) {
		if strings.EqualFold(known, tag) {
			return known, true
		}
	}
	return "", false
}

// WithTranslations adds to paths where the same is in the translations.
func (t *Tree) WithTranslations(paths []string) []string {
	if t.languages == nil {
		return paths
	}
	out := slices.Clone(paths)
	for _, path := range paths {
		top, _, _ := strings.Cut(path, ".")
		if f := t.byName[top]; f == nil || !f.Translated {
			continue
		}
		for _, lang := range t.languages.Others {
			out = append(out, I18n+"."+lang+"."+path)
		}
	}
	return out
}

// Holds says whether the field is _i18n or one of the languages in it: it is there only for what it holds.
func (f *Field) Holds() bool { return f.holder }

// Partial says that what a value of the field lacks is in the untranslated one, so that the two are one object.
func (f *Field) Partial() bool { return f.partial && f.Type == (objectType{}) && f.Sub != nil }

// Member gives the field of a member of an object; one that is not declared takes anything.
func (f *Field) Member(name string) *Field {
	if f.Sub != nil && f.Sub.byName[name] != nil {
		return f.Sub.byName[name]
	}
	return &Field{Name: name, Path: f.Path + "." + name, Type: anyType{}}
}

// Translation gives the field of a top-level field in a language; nil where there is none.
func (t *Tree) Translation(lang, name string) *Field {
	for _, field := range []string{I18n, lang} {
		f := t.byName[field]
		if t.languages == nil && field == I18n || f == nil || f.Sub == nil {
			return nil
		}
		t = f.Sub
	}
	return t.byName[name]
}

// Translate gives a record as who reads it in a language sees it: with what over, the member of that language of its _i18n, has in
// the place of its own.
func (t *Tree) Translate(doc, over bson.Raw, lang string) bson.Raw {
	return overlay(make([]byte, 0, len(doc)), doc, over, func(name string) *Field { return t.Translation(lang, name) })
}

// overlay appends doc with the members of over in the place of its own. Of an object that is translated in part, each
// member stands for itself. field gives the field of a member of over; those without one are left out. Where doc has
// _i18n, there comes what only over has.
func overlay(dst []byte, doc, over bson.Raw, field func(name string) *Field) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	placed := false
	rest := func() {
		placed = true
		for it := document.NewIter(over); it.Next(); {
			if _, had := document.Field(doc, string(it.Key())); !had && field(string(it.Key())) != nil {
				dst = document.AppendElement(dst, it.Key(), it.Value())
			}
		}
	}
	for it := document.NewIter(doc); it.Next(); {
		name := string(it.Key())
		if name == I18n && start == 0 {
			rest()
			continue
		}
		v, translated := document.Field(over, name)
		f := field(name)
		switch {
		case !translated || f == nil:
			dst = document.AppendElement(dst, it.Key(), it.Value())
		case f.Partial() && v.Type == bson.TypeEmbeddedDocument && it.Value().Type == bson.TypeEmbeddedDocument:
			dst = append(append(append(dst, byte(v.Type)), name...), 0)
			dst = overlay(dst, it.Value().Value, v.Value, f.Member)
		default:
			dst = document.AppendElement(dst, it.Key(), v)
		}
	}
	if !placed {
		rest()
	}
	return document.Close(dst, start)
}

// Tidy gives a record with its translations last, in the order of the languages, and without a language that has none:
// where they stand, and that they are there, tells nothing of what is hidden in them.
func (t *Tree) Tidy(doc bson.D) bson.D {
	i := slices.IndexFunc(doc, func(e bson.E) bool { return e.Key == I18n })
	if t.languages == nil || i < 0 {
		return doc
	}
	all, ok := doc[i].Value.(bson.D)
	if !ok {
		return doc
	}
	kept := make(bson.D, 0, len(all))
	for _, e := range all {
		if own, isObject := e.Value.(bson.D); !isObject || len(own) > 0 {
			kept = append(kept, e)
		}
	}
	rank := func(e bson.E) int { return slices.Index(t.languages.Others, e.Key) }
	slices.SortStableFunc(kept, func(a, b bson.E) int { return rank(a) - rank(b) })
	out := make(bson.D, 0, len(doc))
	out = append(append(out, doc[:i]...), doc[i+1:]...)
	if len(kept) > 0 {
		out = append(out, bson.E{Key: I18n, Value: kept})
	}
	return out
}
