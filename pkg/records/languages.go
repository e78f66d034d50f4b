package records

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

// A record holds its fields in the collection's default language, and what differs in another one in _i18n.<language>. A
// call in a language reads and writes records as if they were in that language alone. What is stored keeps its form, and
// so do filters, hooks and the audit log, which see that.

// speak finds the language of the call among the collection's. One that has none answers in any.
func (c *Call) speak() error {
	l := c.Collection.Tree.Languages()
	if c.Lang == "" || l == nil {
		return nil
	}
	known, ok := l.Language(c.Lang)
	if !ok {
		return errs.New(errs.Invalid, "unknown_language", "unknown language: %.35s; %s has %s",
			c.Lang, c.Collection.Name, strings.Join(append([]string{l.Default}, l.Others...), ", "))
	}
	c.Lang = known
	return nil
}

// langIn is the language in which a call into another collection reads: the call's, or what there is instead.
func (c *Call) langIn(tree *fieldtype.Tree) string {
	l := tree.Languages()
	if c.Lang == "" || l == nil {
		return ""
	}
	if known, ok := l.Language(c.Lang); ok {
		return known
	}
	return l.Default
}

// isLocal says that the call is in a language.
func (c *Call) isLocal() bool { return c.Lang != "" && c.Collection.Tree.Languages() != nil }

// isTranslating says that the call is in another language than the fields themselves.
func (c *Call) isTranslating() bool {
	return c.isLocal() && c.Lang != c.Collection.Tree.Languages().Default
}

// local is a record in the language of the call: its fields with what of their translations the caller may see.
func (c *Call) local(doc bson.Raw, hidden *document.PathSet) bson.Raw {
	if !c.isLocal() {
		return doc
	}
	all, ok := document.Field(doc, fieldtype.I18n)
	if !ok {
		return doc
	}
	var own bson.Raw
	if c.isTranslating() {
		only := document.Close(document.AppendElement(make([]byte, 4), fieldtype.I18n, all), 0)
		own, _ = document.Without(hidden).Apply(only).Lookup(fieldtype.I18n, c.Lang).DocumentOK()
	}
	return c.Collection.Tree.Translate(doc, own, c.Lang)
}

// withLanguage gives the problems of a body that speaks of translations and of fields in a language at once.
func (c *Call) withLanguage(body bson.D) []errs.FieldError {
	if _, has := document.Member(body, fieldtype.I18n); !has || !c.isLocal() {
		return nil
	}
	return []errs.FieldError{{
		Path: fieldtype.I18n, Rule: "lang", Message: "can't be given together with lang, by which the fields themselves are those of the language",
	}}
}

// told gives problems with the places that the body has: in a language, those of the fields themselves.
func (c *Call) told(problems []errs.FieldError) []errs.FieldError {
	if !c.isTranslating() {
		return problems
	}
	out := slices.Clone(problems)
	for i := range out {
		out[i].Path = strings.TrimPrefix(out[i].Path, fieldtype.I18n+"."+c.Lang+".")
	}
	return out
}

// inLanguage is a body as it is to be stored: in another language than the fields' own, what can be translated is a
// translation.
func (c *Call) inLanguage(body bson.D) bson.D {
	if !c.isTranslating() {
		return body
	}
	out, _ := c.translate(nil, body, nil, nil, Overwrite)
	return out
}

// translate is what a body in the call's language makes of the record's own fields, and the names of what it touches. A
// value that is the same as what shows without a translation is none, so that a record can be read, edited and sent again.
func (c *Call) translate(own, body bson.D, hidden *document.PathSet, touched map[string]bool, mode UpdateMode) (bson.D, map[string]bool) {
	shown, was := c.shown(own, hidden)
	plain, theirs := make(bson.D, 0, len(body)), bson.D{}
	if mode == Merge {
		theirs, touched = slices.Clone(was), make(map[string]bool, len(body))
	}
	for _, e := range body {
		f := c.Collection.Tree.Translation(c.Lang, e.Key)
		if f == nil {
			plain = append(plain, e)
			if mode == Merge {
				touched[e.Key] = true
			}
			continue
		}
		theirs = put(theirs, translation(f, shown, was, e, mode != Merge))
		if mode == Merge {
			touched[fieldtype.I18n] = true
		}
	}
	for name, is := range touched {
		if mode != Merge && c.Collection.Tree.Translation(c.Lang, name) != nil {
			delete(touched, name)
			touched[fieldtype.I18n] = touched[fieldtype.I18n] || is
		}
	}
	var next bson.D
	if mode == Merge {
		next = document.MergePatch(own, plain)
	} else {
		next = plain
		for _, e := range own { // what is said in one language is not said of the others
			if e.Key == fieldtype.I18n || c.Collection.Tree.Translation(c.Lang, e.Key) != nil {
				next = append(next, e)
			}
		}
	}
	all, _ := document.Member(own, fieldtype.I18n)
	others, _ := all.(bson.D)
	var v any
	if len(theirs) > 0 {
		v = theirs
	}
	others = put(slices.Clone(others), bson.E{Key: c.Lang, Value: v})
	return put(slices.Clone(next), bson.E{Key: fieldtype.I18n, Value: others}), touched
}

// shown is the record's own fields as the caller sees them in the call's language, and the translations that there are.
func (c *Call) shown(own bson.D, hidden *document.PathSet) (shown, was bson.D) {
	raw, err := document.Marshal(own)
	if err != nil {
		return own, nil
	}
	raw = document.Without(hidden).Apply(raw)
	if theirs, ok := raw.Lookup(fieldtype.I18n, c.Lang).DocumentOK(); ok {
		was, _ = document.Unmarshal(theirs)
	}
	shown, err = document.Unmarshal(c.local(raw, nil))
	if err != nil {
		return own, was
	}
	return shown, was
}

// translation is what becomes of a member that is given in a language, with the value nil for none. In a partial object
// each member stands for itself.
func translation(f *fieldtype.Field, shown, was bson.D, given bson.E, replace bool) bson.E {
	sees, _ := document.Member(shown, given.Key)
	had, translated := document.Member(was, given.Key)
	d, isObject := given.Value.(bson.D)
	seen, seesObject := sees.(bson.D)
	switch {
	case given.Value == nil:
		return given
	case isObject && f.Partial():
		before, _ := had.(bson.D)
		var out bson.D
		if !replace {
			out = slices.Clone(before)
		}
		for _, e := range d {
			out = put(out, translation(f.Member(e.Key), seen, before, e, replace))
		}
		if len(out) == 0 {
			return bson.E{Key: given.Key}
		}
		return bson.E{Key: given.Key, Value: out}
	case isObject && seesObject && !replace:
		given.Value = document.MergePatch(seen, d)
	}
	if !translated && equalValues(publicForm(sees), publicForm(given.Value)) {
		given.Value = nil
	}
	return given
}

// put sets a member, or takes it out where its value is nil.
func put(d bson.D, e bson.E) bson.D {
	i := slices.IndexFunc(d, func(x bson.E) bool { return x.Key == e.Key })
	switch {
	case e.Value == nil && i >= 0:
		return slices.Delete(d, i, i+1)
	case e.Value == nil:
		return d
	case i >= 0:
		d[i] = e
		return d
	}
	return append(d, e)
}
