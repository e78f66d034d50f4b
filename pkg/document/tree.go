package document

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Member gives a member of an object.
func Member(d bson.D, name string) (any, bool) {
	for i := range d {
		if d[i].Key == name {
			return d[i].Value, true
		}
	}
	return nil, false
}

// Get walks a dotted path through a tree of bson.D and bson.A. In a list only an index leads on.
func Get(d bson.D, path string) (any, bool) {
	var cur any = d
	for more := true; more; {
		var seg string
		seg, path, more = strings.Cut(path, ".")
		next, ok := child(cur, seg)
		if !ok {
			return nil, false
		}
		cur = next
	}
	return cur, true
}

// child is the field or element seg of a container.
func child(container any, seg string) (any, bool) {
	switch c := container.(type) {
	case bson.D:
		return Member(c, seg)
	case bson.A:
		if i := ListIndex(seg); i >= 0 && i < len(c) {
			return c[i], true
		}
	}
	return nil, false
}

// Map gives a tree of values with those in the place of which change gives another one. done says that there is nothing more to
// look for inside.
func Map(v any, change func(v any) (changed any, done bool)) any {
	if out, done := change(v); done {
		return out
	}
	switch v := v.(type) {
	case bson.A:
		out := make(bson.A, len(v))
		for i := range v {
			out[i] = Map(v[i], change)
		}
		return out
	case bson.D:
		out := make(bson.D, len(v))
		for i, e := range v {
			out[i] = bson.E{Key: e.Key, Value: Map(e.Value, change)}
		}
		return out
	}
	return v
}

func indexOf(d bson.D, name string) int {
	return slices.IndexFunc(d, func(e bson.E) bool { return e.Key == name })
}

// Set gives a copy of d with v at a dotted path; what is not on the path is shared with d. Objects that are missing on
// the way are made, and a scalar in the way gives place to one. In a list, a segment is the index of an element or the
// list's length, which appends; any other leaves d as it is.
func Set(d bson.D, path string, v any) bson.D {
	return setIn(d, path, v).(bson.D) //nolint:errcheck // a bson.D stays one
}

func setIn(container any, path string, v any) any {
	seg, rest, more := strings.Cut(path, ".")
	if more {
		old, _ := child(container, seg)
		v = setIn(old, rest, v)
	}
	switch c := container.(type) {
	case bson.D:
		return WithMember(c, seg, v)
	case bson.A:
		i := ListIndex(seg)
		switch {
		case i >= 0 && i < len(c):
			return withElement(c, i, v)
		case i == len(c):
			return append(slices.Clip(c), v)
		}
		return c
	default:
		return bson.D{{Key: seg, Value: v}}
	}
}

// WithMember is a copy of d with the member of a name replaced where it stands, or added at the end.
func WithMember(d bson.D, name string, v any) bson.D {
	i := indexOf(d, name)
	if i < 0 {
		return append(slices.Clip(d), bson.E{Key: name, Value: v})
	}
	d = slices.Clone(d)
	d[i].Value = v
	return d
}

func withElement(list bson.A, i int, v any) bson.A {
	list = slices.Clone(list)
	list[i] = v
	return list
}

// Unset gives a copy of d without the field at a dotted path; what is not on the path is shared with d. An element of
// a list becomes null, as in MongoDB. A path that leads nowhere leaves d as it is.
func Unset(d bson.D, path string) bson.D {
	return unsetIn(d, path).(bson.D) //nolint:errcheck // a bson.D stays one
}

func unsetIn(container any, path string) any {
	seg, rest, more := strings.Cut(path, ".")
	old, ok := child(container, seg)
	if !ok {
		return container
	}
	switch c := container.(type) {
	case bson.D:
		if more {
			return WithMember(c, seg, unsetIn(old, rest))
		}
		i := indexOf(c, seg)
		return slices.Delete(slices.Clone(c), i, i+1)
	case bson.A:
		i := ListIndex(seg)
		if more {
			return withElement(c, i, unsetIn(old, rest))
		}
		return withElement(c, i, nil)
	}
	return container
}

// MergePatch applies a JSON merge patch (RFC 7396): null removes a field, an object merges, anything else replaces.
// Fields keep their place and new ones follow in the order of the patch. Neither argument is changed.
func MergePatch(target, patch bson.D) bson.D {
	out := make(bson.D, 0, len(target)+len(patch))
	out = append(out, target...)
	at := make(map[string]int, len(out))
	for i := range out {
		at[out[i].Key] = i
	}
	gone := map[int]bool{}
	for _, e := range patch {
		i, exists := at[e.Key]
		if e.Value == nil {
			if exists {
				gone[i] = true
			}
			continue
		}
		if !exists {
			i = len(out)
			at[e.Key] = i
			out = append(out, bson.E{Key: e.Key})
		}
		if sub, ok := e.Value.(bson.D); ok {
			old, _ := out[i].Value.(bson.D)
			out[i].Value = MergePatch(old, sub)
		} else {
			out[i].Value = e.Value
		}
	}
	kept := out[:0]
	for i := range out {
		if !gone[i] {
			kept = append(kept, out[i])
		}
	}
	return kept
}
