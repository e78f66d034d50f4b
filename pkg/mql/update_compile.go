package mql

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// updateCompiler collects what CompileUpdate has understood.
type updateCompiler struct {
	names    *document.Names // of the documents
	elements *document.Names // of array filters

	root    *updateNode
	filters []*arrayFilter
	byName  map[string]*arrayFilter
	ops     []clause   // operators with their fields, for Raw
	fields  []clause   // of the operator at hand
	paths   []string   // without positions and indexes
	renames [][]string // both ends of each $rename
}

type arrayFilter struct {
	name   string
	filter *Filter
	used   bool
}

func (c *updateCompiler) finish() *Update {
	c.root.sort()
	u := &Update{root: c.root, renames: c.renames, raw: encodeClauses(c.ops), paths: document.NewPathSet(c.paths...)}
	for _, f := range c.filters {
		u.filters = append(u.filters, f.filter.Raw())
	}
	return u
}

// addFilter takes one element of arrayFilters: a filter all of whose paths begin with one name.
func (c *updateCompiler) addFilter(doc bson.D) error {
	f, err := Compile(doc)
	if err != nil {
		return badUpdate("update: array filter: %s", errs.From(err).Message)
	}
	name, ok := firstName(f.root, "")
	switch {
	case !ok || name == "":
		return badUpdate("update: all paths of an array filter have to begin with one name, the one that stands in $[name]")
	case name[0] < 'a' || name[0] > 'z' || strings.Trim(name, letters) != "":
		return coded(codeBadValue, badUpdate("update: array filter %q: such a name consists of letters and digits, the first a small letter", name))
	case c.byName[name] != nil:
		return badUpdate("update: there are two array filters %q: join them with $and", name)
	}
	if c.byName == nil {
		c.byName = map[string]*arrayFilter{}
	}
	c.byName[name] = &arrayFilter{name: name, filter: f.Stored(c.elements)}
	c.filters = append(c.filters, c.byName[name])
	return nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// firstName is the name that all paths of a filter begin with; ok is false if they differ.
func firstName(n Node, name string) (_ string, ok bool) {
	var nodes []Node
	switch n := n.(type) {
	case *Field:
		if !slices.ContainsFunc(n.Preds, hasPath) {
			return name, true
		}
		first := n.segments[0].name
		return first, name == "" || name == first
	case *AndNode:
		nodes = n.Nodes
	case *OrNode:
		nodes = n.Nodes
	case *NorNode:
		nodes = n.Nodes
	}
	for _, child := range nodes {
		if name, ok = firstName(child, name); !ok {
			return name, false
		}
	}
	return name, true
}

// hasPath is false for an $all of nothing, of which a MongoDB server forgets the path.
func hasPath(p Pred) bool {
	switch p := p.(type) {
	case *All:
		return len(p.Preds) > 0
	case *Not:
		return slices.ContainsFunc(p.Preds, hasPath)
	default:
		return true
	}
}

func (c *updateCompiler) addOperator(e bson.E) error {
	compile, ok := operatorNamed(e.Key)
	switch {
	case !ok && strings.HasPrefix(e.Key, "$"):
		return badUpdate("update: operator %q is not supported here", cut(e.Key))
	case !ok:
		return badUpdate("update: %q is no operator: an update has operators only, such as $set", cut(e.Key))
	}
	fields, ok := e.Value.(bson.D)
	if !ok {
		return badUpdate("update: %s needs an object with a field for each path", e.Key)
	}
	c.fields = nil
	for _, f := range fields {
		if err := c.addField(e.Key, f, compile); err != nil {
			return err
		}
	}
	c.ops = append(c.ops, clause{e.Key, object(c.fields)})
	return nil
}

// cut shortens what a message quotes.
func cut(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}

// compileChange reads the operand of an operator: the change, and what a server is sent.
type compileChange func(op *updateOp, v any) (change, bson.RawValue, error)

func operatorNamed(name string) (compileChange, bool) {
	switch name {
	case "$set":
		return compileSet, true
	case "$unset":
		return compileUnset, true
	case "$setOnInsert":
		return compileSetOnInsert, true
	case "$inc", "$mul":
		return compileArithmetic, true
	case "$min", "$max":
		return compileBound, true
	case "$bit":
		return compileBit, true
	case "$currentDate":
		return compileCurrentDate, true
	case "$rename":
		return compileRename, true
	case "$push":
		return compilePush, true
	case "$addToSet":
		return compileAddToSet, true
	case "$pull":
		return compilePull, true
	case "$pullAll":
		return compilePullAll, true
	case "$pop":
		return compilePop, true
	default:
		return nil, false
	}
}

func (c *updateCompiler) addField(operator string, f bson.E, compile compileChange) error {
	op := &updateOp{name: operator, path: f.Key, segs: strings.Split(f.Key, "."), below: c.names.At(f.Key)}
	if err := checkUpdatePath(op); err != nil {
		return err
	}
	stored := c.names.Path(op.path)
	var err error
	if op.change, op.operand, err = compile(op, f.Value); err != nil {
		return err
	}
	op.segs = strings.Split(stored, ".")
	if move, ok := op.change.(*rename); ok {
		return c.addRename(op, move)
	}
	c.fields = append(c.fields, clause{stored, op.operand})
	return c.add(op)
}

// add puts an operator into the tree.
func (c *updateCompiler) add(op *updateOp) error {
	n := c.root
	for i, seg := range op.segs {
		var next *updateNode
		switch name, each := eachName(seg); {
		case seg == "$":
			next = n.position()
		case each && name == "":
			next = n.elements("", nil)
		case each:
			f := c.byName[name]
			if f == nil {
				return coded(codeBadValue, badUpdate("update: %s %s: there is no array filter %q", op.name, op.path, cut(name)))
			}
			f.used = true
			next = n.elements(name, f.filter)
		default:
			var twice bool
			if next, twice = n.kid(seg); twice {
				return coded(codeConflicting, badUpdate("update: %s %s: another path names the same element with other zeros", op.name, op.path))
			}
		}
		if next == nil {
			return conflict(op, i)
		}
		n = next
	}
	if !n.isEmpty() {
		return conflict(op, len(op.segs))
	}
	n.op = op
	c.paths = append(c.paths, withoutIndexes(op.segs))
	return nil
}

func conflict(op *updateOp, at int) error {
	return coded(codeConflicting, badUpdate("update: %s %s: another path of the update changes the same at %q: take one of them out",
		op.name, op.path, strings.Join(strings.Split(op.path, ".")[:at], ".")))
}

func checkUpdatePath(op *updateOp) error {
	switch {
	case !utf8.ValidString(op.path) || strings.ContainsRune(op.path, 0):
		return badUpdate("update: %s: a field name is not valid text", op.name)
	case len(op.segs) > maxSegments:
		return badUpdate("update: %s: a path has more than %d names", op.name, maxSegments)
	}
	positions := 0
	for i, seg := range op.segs {
		_, each := eachName(seg)
		switch {
		case seg == "$":
			positions++
			each = true
		case seg == "" || seg[0] == '$' && !each:
			code := document.ServerCode(codeEmptyFieldName)
			if seg != "" {
				code = codeDollarPrefixed
			}
			return coded(code, badUpdate("update: %s: %q is not a field path", op.name, cut(op.path)))
		}
		if each && i == 0 {
			return coded(codeBadValue, badUpdate("update: %s: %q begins with a position, which has to follow the name of a list", op.name, cut(op.path)))
		}
	}
	if positions > 1 {
		return coded(codeBadValue, badUpdate("update: %s: %q has more than one $", op.name, cut(op.path)))
	}
	return nil
}

// eachName reads $[name]; the name is "" for $[].
func eachName(seg string) (name string, ok bool) {
	name, ok = strings.CutPrefix(seg, "$[")
	if !ok || !strings.HasSuffix(name, "]") {
		return "", false
	}
	return name[:len(name)-1], true
}

func isPosition(seg string) bool {
	_, each := eachName(seg)
	return each || seg == "$"
}

// withoutIndexes leaves the names of fields, so that Touches finds any element of a list.
func withoutIndexes(segs []string) string {
	names := slices.DeleteFunc(slices.Clone(segs), func(seg string) bool {
		return isPosition(seg) || strings.Trim(seg, "0123456789") == ""
	})
	if len(names) == 0 {
		return segs[0] // the name of a field that is a number
	}
	return strings.Join(names, ".")
}

// operand encodes a value to be stored and checks how deep that is.
func (op *updateOp) value(v any, extra int) (bson.RawValue, error) {
	value, err := document.MarshalValue(v)
	if err != nil {
		return value, badUpdate("update: %s %s: the value can't be stored: %s", op.name, op.path, errs.From(err).Message)
	}
	if len(op.segs)+extra+depthOf(value) > maxStored {
		return value, coded(codeOverflow, badUpdate("update: %s %s: the value would be nested more than %d levels deep", op.name, op.path, maxStored))
	}
	return op.below.Value(value), nil
}

// maxStored is how deep a stored document may be, as package document has it.
const maxStored = 100

// depthOf counts the levels of objects and lists in v.
func depthOf(v bson.RawValue) int {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return 0
	}
	deepest := 0
	for it := document.NewIter(v.Value); it.Next(); {
		deepest = max(deepest, depthOf(it.Value()))
	}
	return deepest + 1
}
