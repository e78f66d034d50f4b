package project

import (
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/schema"
)

// The most that MongoDB takes.
const (
	maxIndexes   = 63 // of a collection, beside the one on _id
	maxIndexKeys = 32
)

const textKey = "$text:"

func isTextKey(key string) bool { return strings.HasPrefix(key, textKey) }

// indexes joins the indexes that a collection declares, those of its fields and those that keep unique rules. One key
// has one index: a field that asks for what is declared already only adds its uniqueness.
func (c *compiler) indexes(col *schema.Collection, paths *paths, at string) []Index {
	var out []Index
	for i, x := range col.Indexes {
		here := at + ".indexes[" + strconv.Itoa(i) + "]"
		index, ok := c.declared(x, paths, here)
		if !ok {
			continue
		}
		if slices.ContainsFunc(out, func(other Index) bool { return other.Name == index.Name }) {
			if x.Name == "" || !c.isBroken(here+".name") {
				c.fail(here, schema.CodeDuplicate, "there is another index named %q", index.Name)
			}
			continue
		}
		if j := slices.IndexFunc(out, func(other Index) bool { return slices.Equal(other.Keys, index.Keys) }); j >= 0 {
			c.fail(here+".key", schema.CodeDuplicate, "the index %q has the same key", out[j].Name)
			continue
		}
		out = append(out, index)
	}
	eachField(col.Fields, at+".fields", "", func(f *schema.Field, here, path string) {
		out = ofField(f, path, here, out)
	})
	for _, ix := range out {
		if ix.RenamedFrom == "" {
			continue
		}
		if slices.ContainsFunc(out, func(other Index) bool { return other.Name == ix.RenamedFrom }) {
			c.fail(ix.Path+".renamedFrom", schema.CodeConflict, "the index %s is still there: leave it out, or renamedFrom", ix.RenamedFrom)
		}
	}
	if len(out) > maxIndexes {
		c.fail(at+".indexes", schema.CodeRange, "has %d indexes; %d are possible", len(out), maxIndexes)
	}
	return out
}

// declared compiles one indexConfig.
func (c *compiler) declared(x *schema.Index, paths *paths, at string) (Index, bool) {
	index := Index{Name: x.Name, Unique: x.Unique, Sparse: x.Sparse, RenamedFrom: x.RenamedFrom, Path: at}
	if slices.ContainsFunc(x.Key, isTextKey) { // a search comes of it, see textIndexes
		other := func(key string) bool { return !isTextKey(key) }
		if x.Unique || x.Sparse || slices.ContainsFunc(x.Key, other) {
			c.fail(at+".key", schema.CodeConflict, "$text: keys stand in an index of their own, which is neither unique nor sparse")
		}
		if x.RenamedFrom != "" {
			c.warn(at+".renamedFrom", "has no effect: a text index has no name in the store")
		}
		return index, false
	}
	ok := len(x.Key) > 0
	lists := map[string]bool{}
	for i, key := range x.Key {
		here := at + ".key[" + strconv.Itoa(i) + "]"
		path, desc := strings.CutPrefix(key, "-")
		stored, known := paths.resolve(path, here)
		if !known {
			ok = false
			continue
		}
		if list := paths.tree.FirstList(path); list != "" {
			lists[list] = true
		}
		index.Keys = append(index.Keys, IndexKey{Path: stored, Desc: desc})
	}
	if len(lists) > 1 {
		c.fail(at+".key", schema.CodeConflict, "an index can go through one list only")
		ok = false
	}
	if index.Name == "" {
		index.Name = indexName(index.Keys)
	}
	if n := len(index.Keys); n > 1 && !x.Unique && !x.Sparse && index.Keys[n-1] == (IndexKey{Path: "_id", Desc: index.Keys[n-2].Desc}) {
		index.Keys = index.Keys[:n-1] // an index ends in the id by itself
	}
	if len(x.Key) > maxIndexKeys {
		c.fail(at+".key", schema.CodeRange, "has %d fields; %d are possible", len(x.Key), maxIndexKeys)
	}
	return index, ok
}

// indexName makes the name of an index that has none, as MongoDB does.
func indexName(keys []IndexKey) string {
	var parts []string
	for _, k := range keys {
		direction := "1"
		if k.Desc {
			direction = "-1"
		}
		parts = append(parts, k.Path, direction)
	}
	return strings.Join(parts, "_")
}

// ofField adds the index that a field asks for by index or by the rule unique.
func ofField(f *schema.Field, path, at string, out []Index) []Index {
	single := slices.ContainsFunc(f.Index, func(kind string) bool { return kind == "single" || kind == "unique" }) ||
		len(f.Index) > 0 && !slices.Contains(f.Index, "text") // sparse or background alone
	rule := hasRule(f.Validator, "unique")
	if !single && !rule {
		return out
	}
	index := Index{
		Keys:   []IndexKey{{Path: path}},
		Unique: rule || slices.Contains(f.Index, "unique"),
		Sparse: slices.Contains(f.Index, "sparse"),
		Path:   at + ".index",
	}
	if rule && !single { // records without the field don't take the value from each other
		index.Sparse = !hasRule(f.Validator, "required")
		index.Path = at + ".validator"
	}
	index.Name = indexName(index.Keys)
	if i := slices.IndexFunc(out, func(other Index) bool { return slices.Equal(other.Keys, index.Keys) }); i >= 0 {
		out[i].Unique = out[i].Unique || index.Unique
		return out
	}
	return append(out, index)
}
