package project

import (
	"maps"
	"slices"

	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

// tree compiles a collection's fields, with their translations if it has languages.
func (c *compiler) tree(col *schema.Collection, strict bool, at string) *fieldtype.Tree {
	fields := c.fields(col.Fields, at+".fields", "", strict)
	if col.Meta == nil || col.Meta.I18n == nil || col.Meta.I18n.Off || c.isBroken(at+".meta.i18n") {
		return fieldtype.NewTree(fields, strict)
	}
	if c.translations += len(col.Meta.I18n.Languages) * fieldCount(col.Fields); c.translations > maxTranslations {
		c.fail(at+".meta.i18n.languages", schema.CodeRange, "too many languages for so many fields: of all collections, fields times languages may be %d", maxTranslations)
		return fieldtype.NewTree(fields, strict)
	}
	found := false
	for _, f := range fields {
		i := slices.IndexFunc(col.Fields, func(x *schema.Field) bool { return x.Name == f.Name })
		f.Translated = i >= 0 && isTranslated(col.Fields[i], f)
		found = found || f.Translated
	}
	if !found && !c.isBroken(at+".fields") {
		c.fail(at+".meta.i18n", schema.CodeInvalid, "there is no field to translate: declare one of type string, string[], object, object[] or any")
	}
	l := fieldtype.Languages{Default: col.Meta.I18n.Default}
	if l.Default == "" {
		l.Default = col.Meta.I18n.Languages[0]
	}
	for _, lang := range col.Meta.I18n.Languages {
		if lang != l.Default {
			l.Others = append(l.Others, lang)
		}
	}
	return fieldtype.NewTranslatedTree(fields, strict, l)
}

// fieldCount is the number of fields, with those inside others.
func fieldCount(fields []*schema.Field) int {
	n := len(fields)
	for _, f := range fields {
		n += fieldCount(f.SubFields)
	}
	return n
}

// isTranslated says that a field may have a value for each language: not one that is told apart by its value.
func isTranslated(config *schema.Field, f *fieldtype.Field) bool {
	off := config.Meta != nil && config.Meta.I18n != nil
	return !off && fieldtype.Translates(f.Type) && f.Foreign == nil && !f.Has("unique") && !slices.Contains(config.Index, "unique")
}

// translated is permission sets whose hidden and readonly fields are so in every language.
func translated(p *schema.Permissions, tree *fieldtype.Tree) *schema.Permissions {
	if p == nil || tree.Languages() == nil {
		return p
	}
	out := *p
	in := func(set schema.PermissionSet) schema.PermissionSet {
		set.HiddenFields, set.ReadonlyFields = tree.WithTranslations(set.HiddenFields), tree.WithTranslations(set.ReadonlyFields)
		return set
	}
	out.Public, out.User = in(p.Public), in(p.User)
	out.Tokens, out.Teams = maps.Clone(p.Tokens), maps.Clone(p.Teams)
	for key, set := range out.Tokens {
		out.Tokens[key] = in(set)
	}
	for key, set := range out.Teams {
		out.Teams[key] = in(set)
	}
	return &out
}
