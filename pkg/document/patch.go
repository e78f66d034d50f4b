package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// maxPatchOps bounds the work of one JSON patch.
const maxPatchOps = 1000

// JSONPatch applies a JSON patch (RFC 6902), given as JSON, and gives the result; target is not changed and may share
// parts with the result. All operations apply or none. A test compares by JSON value: the order of fields does not
// matter, an ObjectID equals its hexadecimal text, a date any text of the same instant.
//
// Errors: errs.Conflict with code "patch_test_failed"; errs.Invalid with "bad_json", "too_deep" or "bad_patch", the
// last naming the operation by its index.
func JSONPatch(target bson.D, ops []byte) (bson.D, error) {
	v, err := parse(ops, MaxDepth+2) // the list and the operation are two levels around a value
	if err != nil {
		return nil, err
	}
	list, ok := v.(bson.A)
	if !ok {
		return nil, badPatch("send a list of operations, not %s", jsonKind(v))
	}
	if len(list) > maxPatchOps {
		return nil, badPatch("%d operations are too many; send at most %d at once", len(list), maxPatchOps)
	}
	p := patcher{doc: target, budget: MaxSize}
	for i, v := range list {
		if err := p.apply(v); err != nil {
			err.Message = fmt.Sprintf("operation %d: %s", i, err.Message)
			return nil, err
		}
	}
	doc, ok := p.doc.(bson.D)
	if !ok {
		return nil, badPatch("the result is %s; a record must be an object", jsonKind(p.doc))
	}
	if deeperThan(doc, MaxDepth) {
		return nil, errs.New(errs.Invalid, "too_deep", "the result is nested more than %d levels deep; flatten it", MaxDepth)
	}
	return doc, nil
}

func badPatch(format string, args ...any) *errs.Error {
	return errs.New(errs.Invalid, "bad_patch", format, args...)
}

// patcher holds the document between operations. Trees are never changed in place: each operation copies the
// containers on its path, so values may be shared.
type patcher struct {
	doc    any
	budget int // what may still be copied, so that copies of copies can't grow without bound
}

func (p *patcher) apply(v any) *errs.Error {
	op, ok := v.(bson.D)
	if !ok {
		return badPatch("an operation is an object, not %s", jsonKind(v))
	}
	name, err := opString(op, "op")
	if err != nil {
		return err
	}
	path, err := opPointer(op, "path")
	if err != nil {
		return err
	}
	switch name {
	case "remove":
		return p.remove(path)
	case "add", "replace", "test":
		value, ok := child(op, "value")
		if !ok {
			return badPatch(`%s needs a "value"`, name)
		}
		return p.applyValue(name, path, value)
	case "move", "copy":
		from, err := opPointer(op, "from")
		if err != nil {
			return err
		}
		return p.transfer(name == "move", from, path)
	}
	return badPatch("unknown op %q; there are add, remove, replace, move, copy and test", shorten(name))
}

func opString(op bson.D, member string) (string, *errs.Error) {
	v, ok := child(op, member)
	if !ok {
		return "", badPatch("%q is missing", member)
	}
	s, ok := v.(string)
	if !ok {
		return "", badPatch("%q is a string, not %s", member, jsonKind(v))
	}
	return s, nil
}

// opPointer reads a JSON pointer (RFC 6901) into its segments; the whole document has none.
func opPointer(op bson.D, member string) ([]string, *errs.Error) {
	s, err := opString(op, member)
	if err != nil || s == "" {
		return nil, err
	}
	if s[0] != '/' {
		return nil, badPatch(`%q: the pointer %q must begin with "/"`, member, shorten(s))
	}
	segs := strings.Split(s[1:], "/")
	for i, seg := range segs {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(seg), "~") {
			return nil, badPatch(`%q: in the pointer %q, write "~" as "~0" and "/" inside a name as "~1"`, member, shorten(s))
		}
		segs[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)
	}
	return segs, nil
}

// pointer is segs as it was written, for messages.
func pointer(segs []string) string {
	var b strings.Builder
	for _, seg := range segs {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(seg))
	}
	return shorten(b.String())
}

func (p *patcher) get(path []string) (any, *errs.Error) {
	cur := p.doc
	for i, seg := range path {
		next, ok := child(cur, seg)
		if !ok {
			return nil, badPatch("there is nothing at %q", pointer(path[:i+1]))
		}
		cur = next
	}
	return cur, nil
}

func (p *patcher) remove(path []string) *errs.Error {
	if len(path) == 0 {
		return badPatch("the whole record can't be removed by a patch; delete it")
	}
	return p.edit(path, func(parent any, seg string) any {
		switch c := parent.(type) {
		case bson.D:
			if i := indexOf(c, seg); i >= 0 {
				return slices.Delete(slices.Clone(c), i, i+1)
			}
		case bson.A:
			if i := ListIndex(seg); i >= 0 && i < len(c) {
				return slices.Delete(slices.Clone(c), i, i+1)
			}
		}
		return nil
	})
}

func (p *patcher) applyValue(name string, path []string, value any) *errs.Error {
	if name == "add" {
		return p.add(path, value)
	}
	old, err := p.get(path)
	if name == "test" {
		if err != nil || !equalJSON(old, value) {
			return errs.New(errs.Conflict, "patch_test_failed", "the value at %q is not the one tested for", pointer(path))
		}
		return nil
	}
	if err != nil {
		return err
	}
	if len(path) == 0 {
		p.doc = value
		return nil
	}
	return p.edit(path, func(parent any, seg string) any {
		if list, ok := parent.(bson.A); ok {
			i := ListIndex(seg)
			return withElement(list, i, value)
		}
		return WithMember(parent.(bson.D), seg, value) //nolint:errcheck // get has found the value in it
	})
}

func (p *patcher) add(path []string, value any) *errs.Error {
	if len(path) == 0 {
		p.doc = value
		return nil
	}
	return p.edit(path, func(parent any, seg string) any {
		switch c := parent.(type) {
		case bson.D:
			return WithMember(c, seg, value)
		case bson.A:
			if seg == "-" {
				return append(slices.Clip(c), value)
			}
			if i := ListIndex(seg); i >= 0 && i <= len(c) {
				return slices.Insert(slices.Clone(c), i, value)
			}
		}
		return nil
	})
}

func (p *patcher) transfer(move bool, from, path []string) *errs.Error {
	value, err := p.get(from)
	if err != nil {
		return err
	}
	if !move {
		if !p.spend(value, 1) {
			return badPatch("the copies are too large or too deep")
		}
		return p.add(path, value)
	}
	if slices.Equal(from, path) {
		return nil
	}
	if len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
		return badPatch("%q can't be moved into itself", pointer(from))
	}
	if err := p.remove(from); err != nil {
		return err
	}
	return p.add(path, value)
}

// edit replaces the container that path points into by what change makes of it; nil means that it has no such place.
func (p *patcher) edit(path []string, change func(parent any, seg string) any) *errs.Error {
	parents := make([]any, 0, 8)
	cur := p.doc
	for i, seg := range path[:len(path)-1] {
		parents = append(parents, cur)
		next, ok := child(cur, seg)
		if !ok {
			return badPatch("there is nothing at %q", pointer(path[:i+1]))
		}
		cur = next
	}
	cur = change(cur, path[len(path)-1])
	if cur == nil {
		return badPatch("there is no such place: %q", pointer(path))
	}
	for i, parent := range slices.Backward(parents) {
		switch c := parent.(type) {
		case bson.D:
			cur = WithMember(c, path[i], cur)
		case bson.A:
			at := ListIndex(path[i])
			cur = withElement(c, at, cur)
		}
	}
	p.doc = cur
	return nil
}

// spend takes about the encoded size of v from the budget and says whether it sufficed.
func (p *patcher) spend(v any, level int) bool {
	p.budget -= 16
	if p.budget < 0 || level > MaxDepth+1 {
		return false
	}
	switch v := v.(type) {
	case string:
		p.budget -= len(v)
	case bson.D:
		for i := range v {
			p.budget -= len(v[i].Key)
			if !p.spend(v[i].Value, level+1) {
				return false
			}
		}
	case bson.A:
		for i := range v {
			if !p.spend(v[i], level+1) {
				return false
			}
		}
	}
	return p.budget >= 0
}

// deeperThan says whether v has more than levels containers inside each other.
func deeperThan(v any, levels int) bool {
	switch v := v.(type) {
	case bson.D:
		return levels == 0 || slices.ContainsFunc(v, func(e bson.E) bool { return deeperThan(e.Value, levels-1) })
	case bson.A:
		return levels == 0 || slices.ContainsFunc(v, func(e any) bool { return deeperThan(e, levels-1) })
	}
	return false
}

// equalJSON compares a stored value with one that came as JSON.
func equalJSON(stored, given any) bool {
	switch g := given.(type) {
	case bson.D:
		s, ok := stored.(bson.D)
		return ok && equalObjects(s, g)
	case bson.A:
		s, ok := stored.(bson.A)
		return ok && slices.EqualFunc(s, g, equalJSON)
	case string:
		return equalText(stored, g)
	case nil, bool:
		return stored == given
	default:
		s, err := MarshalValue(stored)
		if err != nil {
			return false
		}
		n, err := MarshalValue(given)
		return err == nil && Compare(s, n) == 0
	}
}

func equalObjects(stored, given bson.D) bool {
	if len(stored) != len(given) {
		return false
	}
	values := make(map[string]any, len(stored))
	for i := range stored {
		values[stored[i].Key] = stored[i].Value
	}
	return !slices.ContainsFunc(given, func(e bson.E) bool {
		v, ok := values[e.Key]
		return !ok || !equalJSON(v, e.Value)
	})
}

func equalText(stored any, text string) bool {
	switch s := stored.(type) {
	case string:
		return s == text
	case bson.ObjectID:
		return s.Hex() == text
	case bson.DateTime:
		t, err := ParseTime(text)
		return err == nil && t.UnixMilli() == int64(s)
	case time.Time:
		t, err := ParseTime(text)
		return err == nil && t.UnixMilli() == s.UnixMilli()
	}
	return false
}
