package mql

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// badProjection makes the error of CompileProjection.
func badProjection(format string, args ...any) error {
	return refusal("bad_projection", format, args)
}

// projectionCompiler collects what a projection names, in its order.
type projectionCompiler struct {
	named    []namedPart
	position string // the path with the $
}

func (c *projectionCompiler) object(doc bson.D, prefix string, depth int) error {
	if depth > maxSegments {
		return badProjection("projection: nested deeper than %d levels", maxSegments)
	}
	for _, e := range doc {
		if err := c.field(e, prefix, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *projectionCompiler) field(e bson.E, prefix string, depth int) error {
	path := join(prefix, e.Key)
	name, position := strings.CutSuffix(path, ".$")
	if err := checkPath(name); err != nil {
		err := badProjection("projection: %q is not a field path; only the end of one may be .$", path)
		if strings.Contains("."+path+".", "..") {
			err = coded(codeEmptyInPath, err)
		}
		return err
	}
	if ops, ok := operatorsOf(e.Value); ok && !position {
		return c.operator(ops, path)
	}
	if d, ok := e.Value.(bson.D); ok && !position {
		if len(d) == 0 {
			return badProjection("projection: %s: an empty object names nothing", path)
		}
		return c.object(d, path, depth+1)
	}
	take, ok := truth(e.Value)
	switch {
	case !ok:
		return badProjection("projection: %s needs 1, 0, true or false: values and expressions are not supported here", path)
	case position:
		return c.positional(name, take)
	default:
		return c.add(namedPart{path: path, take: take})
	}
}

func (c *projectionCompiler) positional(path string, take bool) error {
	switch {
	case !take:
		return badProjection("projection: %s.$ can't be left out", path)
	case c.position != "":
		return badProjection("projection: %s.$: there may be one $ only", path)
	}
	c.position = path
	return c.add(namedPart{path: path, take: true, position: true})
}

func (c *projectionCompiler) operator(ops bson.D, path string) error {
	e := ops[0]
	if e.Key != "$slice" && e.Key != "$elemMatch" {
		return badProjection("projection: %s: operator %q is not supported here", path, readable(e.Key))
	}
	if len(ops) > 1 {
		return badProjection("projection: %s: nothing may stand beside %s", path, e.Key)
	}
	if e.Key == "$slice" {
		s, ok := sliceOf(e.Value)
		if !ok {
			return coded(codeBadSlice, badProjection("projection: %s: $slice needs a whole number or a list of two, the second above 0", path))
		}
		return c.add(namedPart{path: path, take: true, slice: s})
	}
	if strings.Contains(path, ".") {
		return badProjection("projection: %s: $elemMatch is for fields of the document only", path)
	}
	pred, err := compileElemMatch(e.Value, path, 0)
	if err != nil {
		return badProjection("projection: %s", strings.TrimPrefix(errs.From(err).Message, "filter: "))
	}
	return c.add(namedPart{path: path, take: true, elem: pred.(*ElemMatch)}) //nolint:errcheck // it makes nothing else
}

func sliceOf(v any) (*slice, bool) {
	const far = math.MaxInt32 // as a server has it; no list is that long
	clamp := func(n int64) int64 { return min(max(n, -far), far) }
	if n, ok := integer(v); ok {
		if n < 0 {
			return &slice{skip: clamp(n), limit: far}, true
		}
		return &slice{limit: clamp(n)}, true
	}
	items, ok := asList(v)
	if !ok || len(items) != 2 {
		return nil, false
	}
	skip, ok1 := integer(items[0])
	limit, ok2 := integer(items[1])
	return &slice{skip: clamp(skip), limit: clamp(limit)}, ok1 && ok2 && limit > 0
}

// truth reads what a path is set to. Of NaN a server thinks that it is true.
func truth(v any) (take, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int:
		return v != 0, true
	case int32:
		return v != 0, true
	case int64:
		return v != 0, true
	case float64:
		return v != 0, true
	case bson.Decimal128:
		coef, _, err := v.BigInt()
		return err != nil || coef.Sign() != 0, true
	default:
		return false, false
	}
}

// add refuses what a server does: a path twice, or beside one that it is part of.
func (c *projectionCompiler) add(named namedPart) error {
	if len(c.named) == maxParts {
		return badProjection("projection: it names more than %d paths", maxParts)
	}
	for _, other := range c.named {
		if collide(other.path, named.path) || collide(named.path, other.path) {
			return coded(codePathCollision, badProjection("projection: %s and %s are one path, or one is part of the other", other.path, named.path))
		}
	}
	c.named = append(c.named, named)
	return c.checkMixture()
}

func collide(path, below string) bool {
	rest, ok := strings.CutPrefix(below, path)
	return ok && (rest == "" || rest[0] == '.')
}

// checkMixture tells of the first path that does not go with those before it.
func (c *projectionCompiler) checkMixture() error {
	last := c.named[len(c.named)-1]
	for _, other := range c.named {
		switch {
		case other.decides() && last.decides() && other.take != last.take:
			code := document.ServerCode(codeMixedProjection)
			if last.take {
				code = codeTakenProjection
			}
			return coded(code, badProjection("projection: %s is taken and %s left out: only _id may be left out of what is taken",
				pathOf(other, last, true), pathOf(other, last, false)))
		case other.elem != nil && last.position || last.elem != nil && other.position:
			return badProjection("projection: $ and $elemMatch do not go together")
		}
	}
	return nil
}

func pathOf(a, b namedPart, take bool) string {
	if a.take == take {
		return a.path
	}
	return b.path
}

// decides says whether a part makes the projection one that takes or one that leaves out. _id goes with both, and so
// do operators.
func (n namedPart) decides() bool {
	return n.path != idField && n.slice == nil && n.elem == nil || n.position
}

// includes says what becomes of that which is not named.
func (c *projectionCompiler) includes() bool {
	slices, elems, idTaken := false, false, false
	for _, named := range c.named {
		if named.decides() {
			return named.take
		}
		slices = slices || named.slice != nil
		elems = elems || named.elem != nil
		idTaken = idTaken || named.path == idField && named.slice == nil && named.elem == nil && named.take
	}
	return idTaken || elems && !slices
}

func (c *projectionCompiler) namesID() bool {
	for _, named := range c.named {
		if name, _, _ := strings.Cut(named.path, "."); name == idField {
			return true
		}
	}
	return false
}

func (c *projectionCompiler) encode() bson.Raw {
	clauses := make([]clause, len(c.named))
	for i, named := range c.named {
		clauses[i] = named.encode()
	}
	return encodeClauses(clauses)
}

func (n namedPart) encode() clause {
	switch {
	case n.slice != nil && n.slice.skip == 0:
		return clause{n.path, object([]clause{{"$slice", int64Value(n.slice.limit)}})}
	case n.slice != nil:
		both := list([]bson.RawValue{int64Value(n.slice.skip), int64Value(n.slice.limit)})
		return clause{n.path, object([]clause{{"$slice", both}})}
	case n.elem != nil:
		return clause{n.path, object([]clause{{"$elemMatch", encodeElemMatch(n.elem)}})}
	case n.position:
		return clause{n.path + ".$", boolean(true)}
	default:
		return clause{n.path, boolean(n.take)}
	}
}
