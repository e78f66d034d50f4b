package records

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// guard keeps the fields that a caller may not write as they are, through any write to the rest of the record.
// A hidden field may not even be named: naming it is answered like naming a field that does not exist.
type guard struct{ hidden, readonly *document.PathSet }

func newGuard(g access.Grant) guard { return guard{hidden: g.Hidden, readonly: g.Readonly} }

func (g guard) empty() bool { return g.hidden == nil && g.readonly == nil }

// named reports the protected fields that a body names. On create, readonly ones count; on update they may come
// back unchanged, which keep finds out.
func (g guard) named(body bson.D, create bool) []errs.FieldError {
	var out []errs.FieldError
	if g.empty() {
		return nil
	}
	g.walk(body, "", "", create, &out)
	return out
}

// walk visits every name in v. path is without list positions, shown is with them.
func (g guard) walk(v any, path, shown string, create bool, out *[]errs.FieldError) {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			p, s := join(path, e.Key), join(shown, e.Key)
			switch {
			case g.hidden.Covers(p):
				*out = append(*out, unknownProblem(s))
			case create && g.readonly.Covers(p):
				*out = append(*out, readonlyProblem(s))
			default:
				g.walk(e.Value, p, s, create, out)
			}
		}
	case bson.A:
		for i, item := range v {
			g.walk(item, path, join(shown, strconv.Itoa(i)), create, out)
		}
	}
}

// unnamed is a body without the hidden fields that it names. Who names them is refused with all else that is wrong: what
// is said beside, or isn't, would tell a hidden field from one that is not declared.
func (g guard) unnamed(body bson.D) bson.D {
	k := keeper{guard: g}
	out, _ := k.visible(body, "", true).(bson.D)
	return out
}

// undeclaredNulls are the names in a merge, or in a translation, that are no fields and take something away. Nothing is left of
// them that the check of the record could find.
func undeclaredNulls(undeclared, hidden *document.PathSet, body bson.D, path string) (out []errs.FieldError) {
	if undeclared == nil {
		return nil
	}
	for _, e := range body {
		p := join(path, e.Key)
		unknown := undeclared.Covers(p) && !hidden.Covers(p)
		switch v := e.Value.(type) {
		case nil:
			if unknown {
				out = append(out, unknownProblem(p))
			}
		case bson.D:
			if !unknown {
				out = append(out, undeclaredNulls(undeclared, hidden, v, p)...)
			}
		}
	}
	return out
}

// together puts problems with names into their place among the others. What is hidden and what is not declared are found at
// different times, and their order would tell which is which.
func together(problems, named []errs.FieldError) []errs.FieldError {
	out := slices.Concat(problems, named)
	if slices.ContainsFunc(out, func(p errs.FieldError) bool { return p.Rule == "unknown" }) {
		slices.SortStableFunc(out, func(a, b errs.FieldError) int { return strings.Compare(a.Path, b.Path) })
		out = slices.Compact(out)
	}
	return out
}

func unknownProblem(path string) errs.FieldError {
	return errs.FieldError{Path: path, Rule: "unknown", Message: "unknown field"}
}

func readonlyProblem(path string) errs.FieldError {
	return errs.FieldError{Path: path, Rule: "readonly", Message: "is read-only for you"}
}

// keep returns next with every protected field as it stands in current, and reports readonly fields that next would
// have changed. Elements of lists are paired by what the caller can see of them, see pair; an element that next no
// longer has is gone with all it held.
func (g guard) keep(next, current bson.D) (bson.D, []errs.FieldError) {
	if g.empty() {
		return next, nil
	}
	k := keeper{guard: g}
	kept, _ := k.value(next, true, current, true, "", "").(bson.D)
	return kept, k.problems
}

// takenAway reports the readonly fields of current that next no longer has, though it has what they were in. It is for changes
// that speak of nothing but what they change; what the whole new record leaves out stays without a word.
func (g guard) takenAway(next, current bson.D, path string) (out []errs.FieldError) {
	for _, e := range current {
		p := join(path, e.Key)
		v, has := document.Member(next, e.Key)
		switch was, isObject := e.Value.(bson.D); {
		case g.hidden.Covers(p):
		case g.readonly.Covers(p):
			if !has {
				out = append(out, readonlyProblem(p))
			}
		case isObject && g.readonly.Touches(p):
			if becomes, ok := v.(bson.D); ok {
				out = append(out, g.takenAway(becomes, was, p)...)
			}
		}
	}
	return out
}

type keeper struct {
	guard
	problems []errs.FieldError
}

// absent stands for a value that is not there.
type absent struct{}

func (k *keeper) value(next any, hasNext bool, current any, hasCurrent bool, path, shown string) any {
	switch {
	case path == "":
	case k.hidden.Covers(path):
		return orAbsent(current, hasCurrent)
	case k.readonly.Covers(path):
		if hasNext && (!hasCurrent || !equalValues(next, current)) {
			k.problems = append(k.problems, readonlyProblem(shown))
		}
		return orAbsent(current, hasCurrent)
	case !k.hidden.Touches(path) && !k.readonly.Touches(path):
		return orAbsent(next, hasNext)
	}
	return k.container(next, hasNext, current, path, shown)
}

// container keeps what is protected inside of an object or a list. Taking away an object leaves its protected fields,
// and the object itself where some could be hidden: that it goes would tell that there are none. Putting something else
// in its place would not keep them, so that is refused. A list goes with what its elements held.
func (k *keeper) container(next any, hasNext bool, current any, path, shown string) any {
	was, wasObject := current.(bson.D)
	switch n := next.(type) {
	case bson.D:
		return k.object(n, was, path, shown)
	case nil:
		if doc := k.object(nil, was, path, shown); len(doc) > 0 || wasObject && k.hidden.Touches(path) {
			return doc
		}
		return orAbsent(next, hasNext)
	}
	if wasObject {
		k.problems = append(k.problems, errs.FieldError{Path: shown, Rule: "type", Message: "must stay an object"})
		return current
	}
	if list, ok := next.(bson.A); ok {
		return k.list(list, current, path, shown)
	}
	return next
}

func (k *keeper) object(next, current bson.D, path, shown string) bson.D {
	out := make(bson.D, 0, len(next))
	for _, e := range next {
		cur, ok := document.Member(current, e.Key)
		v := k.value(e.Value, true, cur, ok, join(path, e.Key), join(shown, e.Key))
		if _, gone := v.(absent); !gone {
			out = append(out, bson.E{Key: e.Key, Value: v})
		}
	}
	for _, e := range current {
		if _, ok := document.Member(next, e.Key); ok {
			continue
		}
		v := k.value(nil, false, e.Value, true, join(path, e.Key), join(shown, e.Key))
		if _, gone := v.(absent); !gone {
			out = append(out, bson.E{Key: e.Key, Value: v})
		}
	}
	return out
}

func (k *keeper) list(next bson.A, current any, path, shown string) bson.A {
	cur, _ := current.(bson.A)
	pair, ok := k.pair(next, cur, path)
	if !ok {
		k.problems = append(k.problems, errs.FieldError{
			Path: shown, Rule: "elements",
			Message: "holds fields that you can't see or write: change and remove its elements in separate requests",
		})
		return next
	}
	out := make(bson.A, len(next))
	for i, item := range next {
		var old any
		if pair[i] >= 0 {
			old = cur[pair[i]]
		}
		switch item := item.(type) {
		case bson.D:
			oldDoc, _ := old.(bson.D)
			out[i] = k.object(item, oldDoc, path, join(shown, strconv.Itoa(i)))
		case bson.A:
			out[i] = k.list(item, old, path, join(shown, strconv.Itoa(i)))
		default:
			out[i] = item
		}
	}
	return out
}

// pair finds for each element of next the element of current that it stands for, or -1. Those that look the same are
// the same. Those that are left are taken to be changed, in their order, when there are as many on both sides. Otherwise
// some are changed and some are new or gone, and which ones can't be told, so that one could get what another one
// holds: ok is false then, unless one side holds no objects. All this depends on nothing that the caller can't see.
func (k *keeper) pair(next, current bson.A, path string) (pair []int, ok bool) {
	pair = make([]int, len(next))
	for i := range pair {
		pair[i] = -1
	}
	added, gone := upTo(len(next)), upTo(len(current))
	used := make([]bool, len(current))
	for _, readonly := range []bool{true, false} { // a caller may leave out what they can't write
		byKey := make(map[string][]int, len(gone))
		for _, j := range gone {
			key := k.key(current[j], path, readonly)
			byKey[key] = append(byKey[key], j)
		}
		added = slices.DeleteFunc(added, func(i int) bool {
			key := k.key(next[i], path, readonly)
			same := byKey[key]
			if len(same) == 0 {
				return false
			}
			pair[i], byKey[key] = same[0], same[1:]
			used[same[0]] = true
			return true
		})
		gone = slices.DeleteFunc(gone, func(j int) bool { return used[j] })
	}
	if len(added) == len(gone) {
		for n, i := range added {
			pair[i] = gone[n]
		}
		return pair, true
	}
	return pair, !anyHolds(next, added) || !anyHolds(current, gone)
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// anyHolds says whether one of the elements at some positions can hold fields.
func anyHolds(list bson.A, at []int) bool {
	return slices.ContainsFunc(at, func(i int) bool {
		switch list[i].(type) {
		case bson.D, bson.A:
			return true
		}
		return false
	})
}

// key identifies a list element by its visible part, with or without what is readonly. The order of members makes no
// difference.
func (k *keeper) key(item any, path string, readonly bool) string {
	v, err := document.MarshalValue(k.visible(item, path, readonly))
	if err != nil {
		return ""
	}
	return string(document.AppendKey(nil, v, false))
}

// visible is v without its hidden fields, and without its readonly ones unless they are asked for.
func (k *keeper) visible(v any, path string, readonly bool) any {
	switch v := v.(type) {
	case bson.D:
		out := make(bson.D, 0, len(v))
		for _, e := range v {
			p := join(path, e.Key)
			if !k.hidden.Covers(p) && (readonly || !k.readonly.Covers(p)) {
				out = append(out, bson.E{Key: e.Key, Value: k.visible(e.Value, p, readonly)})
			}
		}
		slices.SortFunc(out, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
		return out
	case bson.A:
		out := make(bson.A, len(v))
		for i := range v {
			out[i] = k.visible(v[i], path, readonly)
		}
		return out
	}
	return v
}

func orAbsent(v any, has bool) any {
	if !has {
		return absent{}
	}
	return v
}

func equalValues(a, b any) bool {
	x, errX := document.MarshalValue(a)
	y, errY := document.MarshalValue(b)
	return errX == nil && errY == nil && document.Compare(x, y) == 0
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// spoken lists the protected paths at which a body says something else than the one before: what a hook has set.
func (g guard) spoken(before, after bson.D, prefix string, out []string) []string {
	for _, e := range after {
		v, had := document.Member(before, e.Key)
		path := join(prefix, e.Key)
		switch {
		case had && equalValues(v, e.Value):
		case g.hidden.Covers(path) || g.readonly.Covers(path):
			out = append(out, path)
		case g.hidden.Touches(path) || g.readonly.Touches(path):
			was, _ := v.(bson.D)
			out = g.spokenInside(was, e.Value, path, out)
		}
	}
	return out
}

func (g guard) spokenInside(was bson.D, v any, path string, out []string) []string {
	switch v := v.(type) {
	case bson.D:
		return g.spoken(was, v, path, out)
	case bson.A:
		for _, item := range v {
			out = g.spokenInside(nil, item, path, out)
		}
	}
	return out
}

// without is a grant that no longer protects some paths.
func without(g access.Grant, paths []string) access.Grant {
	if len(paths) == 0 {
		return g
	}
	g.Hidden, g.Readonly = leaveOut(g.Hidden, paths), leaveOut(g.Readonly, paths)
	return g
}

func leaveOut(set *document.PathSet, paths []string) *document.PathSet {
	var kept []string
	for _, p := range set.Paths() {
		apart := true
		for _, q := range paths {
			apart = apart && p != q && !strings.HasPrefix(p, q+".") && !strings.HasPrefix(q, p+".")
		}
		if apart {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return document.NewPathSet(kept...)
}
