package mql

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

const (
	maxNesting  = 64                // levels of $and, $or, $nor, $not, $all and $elemMatch; MongoDB itself stops at 100
	maxSegments = document.MaxDepth // names in a path; no document is deeper
)

// Compile checks a filter and makes it runnable. Only the operators on the list are taken, at every depth:
//
//	$eq $ne $gt $gte $lt $lte $in $nin $and $or $nor $not $exists $type $all $elemMatch $size $mod $regex $options
//
// Everything else is errs.Invalid with code "bad_filter", and a message that names operator and path. Extended JSON
// has to be resolved before, by Extended. An empty filter matches everything. What an object as a constant means is
// decided by its first name: with a "$" they are operators, without it is a value.
func Compile(doc bson.D) (*Filter, error) {
	root, err := compileDoc(doc, "", 0)
	if err != nil {
		return nil, err
	}
	return newFilter(root), nil
}

// bad makes the error of this package.
func bad(format string, args ...any) error {
	return refusal("bad_filter", format, args)
}

// maxMessage is the length of a message in bytes: names from outside may be megabytes long.
const maxMessage = 1000

func refusal(code, format string, args []any) error {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return errs.New(errs.Invalid, code, "%s", message)
}

// coded gives err the number that a MongoDB server has for it, where that is not the one most errors of its kind have.
func coded(code document.ServerCode, err error) error { return errs.From(err).With(code) }

// The codes that are given.
const (
	codeFailedToParse   = 9
	codeBadValue        = 2
	codeTypeMismatch    = 14
	codeOverflow        = 15
	codePathNotViable   = 28
	codeCannotBackfill  = 34
	codeConflicting     = 40
	codeDollarPrefixed  = 52
	codeInvalidID       = 53
	codeEmptyFieldName  = 56
	codeEmptyInPath     = 15998
	codeBadSlice        = 28667
	codePathCollision   = 31249
	codeMixedProjection = 31254 // something is left out of what is taken
	codeTakenProjection = 31253 // something is taken of what is left
	codeBadRegex        = 51091
	codeBadRegexOption  = 51108
	codeNoPosition      = 51246
	codeImmutableField  = 66
)

// readable cuts a name from outside to what a person can read.
func readable(name string) string {
	if len(name) <= 64 {
		return name
	}
	return strings.ToValidUTF8(name[:64], "") + "…"
}

// unknownOperator names what was not on the list.
func unknownOperator(op, path string) error {
	op = readable(op)
	if path == "" {
		return bad("filter: operator %q is not supported here; there are $and, $or and $nor", op)
	}
	return bad("filter: %s: operator %q is not supported here; there are %s", path, op, fieldOperators)
}

// fieldOperators are those behind a path, as texts of errors list them.
const fieldOperators = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $not, $exists, $type, $all, $elemMatch, $size, $mod, $regex and $options"

func compileDoc(doc bson.D, prefix string, depth int) (Node, error) {
	if depth > maxNesting {
		return nil, bad("filter: nested deeper than %d levels", maxNesting)
	}
	nodes := make([]Node, 0, len(doc))
	for _, e := range doc {
		n, err := compileClause(e, prefix, depth)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return allOf(nodes), nil
}

func compileClause(e bson.E, prefix string, depth int) (Node, error) {
	if !strings.HasPrefix(e.Key, "$") {
		return compileField(e, prefix, depth)
	}
	if !isLogical(e.Key) {
		return nil, unknownOperator(e.Key, prefix)
	}
	docs, err := logicalOperand(e, prefix)
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, len(docs))
	for i, doc := range docs {
		if nodes[i], err = compileDoc(doc, prefix, depth+1); err != nil {
			return nil, err
		}
	}
	switch e.Key {
	case "$and":
		return allOf(nodes), nil
	case "$or":
		return &OrNode{Nodes: nodes}, nil
	default:
		return &NorNode{Nodes: nodes}, nil
	}
}

// asList takes the lists of the value model and those that code writes for short.
func asList(v any) ([]any, bool) {
	switch v := v.(type) {
	case bson.A:
		return v, true
	case []any:
		return v, true
	case []string:
		return anyList(v), true
	case []bson.D:
		return anyList(v), true
	default:
		return nil, false
	}
}

func anyList[T any](list []T) []any {
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = item
	}
	return out
}

func isLogical(op string) bool { return op == "$and" || op == "$or" || op == "$nor" }

// logicalOperand is the filters that $and, $or or $nor joins.
func logicalOperand(e bson.E, prefix string) ([]bson.D, error) {
	items, ok := asList(e.Value)
	docs := make([]bson.D, len(items))
	for i, item := range items {
		if docs[i], ok = item.(bson.D); !ok {
			break
		}
	}
	if !ok || len(items) == 0 {
		return nil, bad("filter: %s%s needs a list of one or more filter objects", where(prefix), e.Key)
	}
	return docs, nil
}

func where(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func compileField(e bson.E, prefix string, depth int) (Node, error) {
	if err := checkPath(e.Key); err != nil {
		return nil, err
	}
	full := join(prefix, e.Key)
	preds, err := compileOperand(e.Value, full, depth)
	if err != nil {
		return nil, err
	}
	return newField(e.Key, preds...), nil
}

func join(prefix, path string) string {
	if prefix == "" {
		return path
	}
	return prefix + "." + path
}

func checkPath(path string) error {
	if !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return bad("filter: a field name is not valid text")
	}
	names := strings.Split(path, ".")
	if len(names) > maxSegments {
		return bad("filter: a path has more than %d names", maxSegments)
	}
	for _, name := range names {
		if name == "" || name[0] == '$' {
			return bad("filter: %q is not a field path", path)
		}
	}
	return nil
}

// compileOperand compiles what stands behind a path.
func compileOperand(v any, path string, depth int) ([]Pred, error) {
	switch v := v.(type) {
	case bson.Regex:
		re, err := compileRegex(v.Pattern, v.Options, path)
		return []Pred{re}, err
	case bson.D:
		if ops, ok := operatorsOf(v); ok {
			return compilePreds(ops, path, depth)
		}
	}
	c, err := constant(v, path)
	return []Pred{&Cmp{Op: Eq, Value: c}}, err
}

// operatorsOf tells operators from a value. As in MongoDB, the first name decides.
func operatorsOf(v any) (bson.D, bool) {
	d, ok := v.(bson.D)
	return d, ok && len(d) > 0 && strings.HasPrefix(d[0].Key, "$")
}

func compilePreds(ops bson.D, path string, depth int) ([]Pred, error) {
	if depth > maxNesting {
		return nil, bad("filter: nested deeper than %d levels", maxNesting)
	}
	preds := make([]Pred, 0, len(ops))
	for i, e := range ops {
		if slices.ContainsFunc(ops[:i], func(o bson.E) bool { return o.Key == e.Key }) {
			return nil, bad("filter: %s: %q is given twice", path, e.Key)
		}
		if e.Key == "$options" {
			if _, ok := document.Member(ops, "$regex"); !ok {
				return nil, bad("filter: %s: $options needs a $regex", path)
			}
			continue
		}
		p, err := compilePred(e, ops, path, depth)
		if err != nil {
			return nil, err
		}
		preds = append(preds, p)
	}
	return preds, nil
}

func compilePred(e bson.E, ops bson.D, path string, depth int) (Pred, error) {
	switch e.Key {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
		return compileCmp(e, path)
	case "$in", "$nin":
		return compileIn(e, path)
	case "$not":
		return compileNot(e.Value, path, depth+1)
	case "$exists":
		return compileExists(e.Value, path)
	case "$type":
		return compileType(e.Value, path)
	case "$all":
		return compileAll(e.Value, path, depth+1)
	case "$elemMatch":
		return compileElemMatch(e.Value, path, depth+1)
	case "$size":
		return compileSize(e.Value, path)
	case "$mod":
		return compileMod(e.Value, path)
	case "$regex":
		return compileRegexOperator(ops, path)
	default:
		return nil, unknownOperator(e.Key, path)
	}
}

func compileCmp(e bson.E, path string) (Pred, error) {
	v, err := constant(e.Value, path)
	if err != nil {
		return nil, err
	}
	if v.Type == bson.TypeRegex && e.Key != "$eq" {
		return nil, bad("filter: %s: %s takes no regular expression", path, e.Key)
	}
	switch e.Key {
	case "$ne":
		return &Not{Preds: []Pred{&Cmp{Op: Eq, Value: v}}}, nil
	case "$gt":
		return &Cmp{Op: Gt, Value: v}, nil
	case "$gte":
		return &Cmp{Op: Gte, Value: v}, nil
	case "$lt":
		return &Cmp{Op: Lt, Value: v}, nil
	case "$lte":
		return &Cmp{Op: Lte, Value: v}, nil
	default:
		return &Cmp{Op: Eq, Value: v}, nil
	}
}

func compileIn(e bson.E, path string) (Pred, error) {
	items, ok := asList(e.Value)
	if !ok {
		return nil, bad("filter: %s: %s needs a list", path, e.Key)
	}
	in := &In{}
	for _, item := range items {
		if re, ok := item.(bson.Regex); ok {
			p, err := compileRegex(re.Pattern, re.Options, path)
			if err != nil {
				return nil, err
			}
			in.Regexes = append(in.Regexes, p)
			continue
		}
		v, err := constant(item, path)
		if err != nil {
			return nil, err
		}
		if holdsOperators(v) {
			return nil, bad("filter: %s: %s takes values, not operators", path, e.Key)
		}
		in.Values = append(in.Values, v)
	}
	slices.SortStableFunc(in.Values, document.Compare)
	in.Values = slices.CompactFunc(in.Values, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 })
	if e.Key == "$nin" {
		return &Not{Preds: []Pred{in}}, nil
	}
	return in, nil
}

func compileNot(v any, path string, depth int) (Pred, error) {
	if err := checkNot(v, path); err != nil {
		return nil, err
	}
	preds, err := compileOperand(v, path, depth)
	return &Not{Preds: preds}, err
}

func checkNot(v any, path string) error {
	_, isRegex := v.(bson.Regex)
	if _, ok := operatorsOf(v); !ok && !isRegex {
		return bad("filter: %s: $not needs an object of operators", path)
	}
	return nil
}

func compileAll(v any, path string, depth int) (Pred, error) {
	items, ok := asList(v)
	if !ok {
		return nil, bad("filter: %s: $all needs a list", path)
	}
	all := &All{}
	elemMatches := 0
	for _, item := range items {
		ops, isOps := operatorsOf(item)
		if isElemMatch(ops) {
			elemMatches++
		} else if isOps {
			return nil, bad("filter: %s: $all takes values or $elemMatch, no other operators", path)
		}
		preds, err := compileOperand(item, path, depth)
		if err != nil {
			return nil, err
		}
		all.Preds = append(all.Preds, preds...)
	}
	if elemMatches > 0 && elemMatches < len(items) {
		return nil, bad("filter: %s: $all takes either values or $elemMatch, not both", path)
	}
	return all, nil
}

func isElemMatch(ops bson.D) bool { return len(ops) == 1 && ops[0].Key == "$elemMatch" }

// isOfElements tells the $elemMatch that has operators on the elements from the one that has fields of objects.
func isOfElements(d bson.D) bool {
	_, ok := operatorsOf(d)
	return ok && !isLogical(d[0].Key)
}

func compileElemMatch(v any, path string, depth int) (Pred, error) {
	d, ok := v.(bson.D)
	if !ok {
		return nil, bad("filter: %s: $elemMatch needs an object", path)
	}
	if isOfElements(d) {
		preds, err := compilePreds(d, path, depth)
		return &ElemMatch{Preds: preds}, err
	}
	n, err := compileDoc(d, path, depth)
	return &ElemMatch{Node: n}, err
}
