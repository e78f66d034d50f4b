package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// configValue is a type that reads its own form from a file, where the form isn't that of its Go kind.
type configValue interface {
	decodeConfig(d *decoder, n *node, path string, m *member)
	configSchema(g *generator, m *member) map[string]any
}

// decoder walks nodes along Go types. Every problem goes to the loader; decoding goes on behind it.
type decoder struct {
	*loader

	refs    map[*node]*node // strings that were references → the roots of their files
	stack   []string        // the files being decoded, for cycles
	objects map[reflect.Type]*object
	visited int
	broken  map[string]bool     // paths below which something could not be decoded
	found   map[string][]string // the files that patterns stand for
	over    bool                // nothing more is decoded: there are too many values or problems
}

func newDecoder(l *loader) *decoder {
	return &decoder{loader: l, refs: map[*node]*node{}, objects: map[reflect.Type]*object{}, broken: map[string]bool{}, found: map[string][]string{}}
}

// takes notes that n more values are looked at, and says whether they are.
func (d *decoder) takes(n int, pos Position, path string) bool {
	if d.over {
		return false
	}
	switch d.visited += n; {
	case d.visited > maxNodes:
		d.problem(pos, path, CodeRange, "the config is too large: more than %d values", maxNodes)
	case len(path) > maxText:
		d.problem(pos, "", CodeRange, "the config is nested too deep")
	case d.errors > MaxProblems || len(d.broken) > MaxProblems:
	default:
		return true
	}
	d.over = true
	return false
}

// root decodes the entry file.
func (d *decoder) root(n *node, file string, out any) {
	d.stack = []string{file}
	d.value(n, "", reflect.ValueOf(out).Elem(), &member{})
}

// problem reports an error at a node and remembers that its path could not be decoded.
func (d *decoder) problem(pos Position, path, code, format string, args ...any) {
	d.broken[path] = true
	d.add(Problem{Position: pos, Path: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) warn(pos Position, path, format string, args ...any) {
	d.add(Problem{Position: pos, Path: path, Code: CodeIgnored, Message: fmt.Sprintf(format, args...), Warning: true})
}

// isBroken says that something at or below a path could not be decoded, so checks of it would mislead.
func (d *decoder) isBroken(path string) bool {
	for p := range d.broken {
		rest, ok := strings.CutPrefix(p, path)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// wrongType reports a value of another type; want ends the sentence "must be …".
func (d *decoder) wrongType(n *node, path, want string) {
	hint := ""
	switch {
	case want == aList && n.kind != kindNull:
		hint = "; put [ ] around it"
	case want == aBoolean && n.kind == kindString && !n.secret && slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(n.text)):
		hint = "; write true or false, without quotes" // yes and on are words of YAML 1.1
	}
	d.problem(n.pos, path, CodeType, "must be %s, not %s%s", want, n.kind, hint)
}

const (
	aList    = "a list"
	aBoolean = "a boolean"
)

// value decodes one node into v.
func (d *decoder) value(n *node, path string, v reflect.Value, m *member) {
	if !d.takes(1, n.pos, path) {
		return
	}
	if n.failed {
		d.broken[path] = true
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if own, ok := reflect.TypeAssert[configValue](v.Addr()); ok {
		own.decodeConfig(d, n, path, m)
		return
	}
	if n.kind == kindNull && m.nullable {
		return
	}
	if n.kind == kindString && (holdsObject(v.Type()) && v.Type() != timeType || m.listref && v.Kind() == reflect.Slice) {
		d.reference(n, path, v, m)
		return
	}
	d.plain(n, path, v, m)
}

var timeType = reflect.TypeFor[time.Time]()

// plain decodes by Go kind.
func (d *decoder) plain(n *node, path string, v reflect.Value, m *member) {
	switch v.Type() {
	case freeObject, freeList, freeValue:
		d.free(n, path, v, m)
		return
	case timeType:
		d.time(n, path, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v, m)
	case reflect.Slice:
		d.list(n, path, v, m)
	case reflect.String:
		d.str(n, path, v, m)
	case reflect.Bool:
		d.boolean(n, path, v, m)
	case reflect.Int, reflect.Int64:
		d.integer(n, path, v, m)
	case reflect.Float64:
		d.float(n, path, v, m)
	default:
		panic("schema: no config form for " + v.Type().String()) // a programmer's mistake; every type is in a test
	}
}

// reference decodes the file that a string names.
func (d *decoder) reference(n *node, path string, v reflect.Value, m *member) {
	if !isConfigFile(n.text) {
		what := "an object"
		if v.Kind() == reflect.Slice {
			what = "a list"
		}
		d.problem(n.pos, path, CodeType, "must be %s, or the path of a .yaml, .yml or .json file that holds it", what)
		return
	}
	shown := n.shown()
	file := d.stack[len(d.stack)-1]
	name, ok := resolve(n.text, file)
	if !ok {
		d.problem(n.pos, path, CodeReference, "%q can't be read: %s", shown, ErrOutside)
		return
	}
	if slices.Contains(d.stack, name) {
		d.problem(n.pos, path, CodeReference, "%q is part of a circle of references", shown)
		return
	}
	if len(d.stack) > maxReferences {
		d.problem(n.pos, path, CodeReference, "%q is referenced more than %d files deep", shown, maxReferences)
		return
	}
	root, err := d.open(name)
	if err != nil {
		d.problem(n.pos, path, CodeReference, "%q can't be read: %s%s", shown, readProblem(err), d.nearestFile(n, name, err))
		return
	}
	if root == nil { // the parser has said why
		d.broken[path] = true
		return
	}
	if root.kind == kindString {
		d.problem(root.pos, path, CodeReference, "a referenced file holds the value itself, not another path")
		return
	}
	d.refs[n] = root
	d.stack = append(d.stack, name)
	d.value(root, path, v, m)
	d.stack = d.stack[:len(d.stack)-1]
}

// expand puts the files that match in the place of each pattern in a list, such as collections/*.yaml, in the order of their
// names. The file with the pattern is none of them.
func (d *decoder) expand(items []*node, at string) []*node {
	if !slices.ContainsFunc(items, isPattern) {
		return items
	}
	var out []*node
	for i, item := range items {
		if !isPattern(item) {
			out = append(out, item)
			continue
		}
		names, problem := d.glob(item)
		if problem != "" {
			d.problem(item.pos, at+"["+strconv.Itoa(i)+"]", CodeReference, "%q %s", item.shown(), problem)
		}
		if !d.takes(len(names), item.pos, at) {
			return out
		}
		for _, name := range names {
			out = append(out, &node{pos: item.pos, kind: kindString, text: name, secret: item.secret})
		}
	}
	return out
}

func isPattern(n *node) bool {
	return n.kind == kindString && !n.failed && isConfigFile(n.text) && strings.ContainsAny(n.text, "*?[")
}

// shown is a text as problems may print it.
func (n *node) shown() string {
	if n.secret {
		return "***"
	}
	return n.text
}

// nearestFile names the config file that a reference to one that is not there may mean, as the end of a message.
func (d *decoder) nearestFile(n *node, name string, err error) string {
	g, can := d.reader.(Globber)
	dir := path.Dir(name)
	if !can || n.secret || !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(dir, `*?[\`) {
		return ""
	}
	names, err := g.Glob(path.Join(dir, "*"))
	if err != nil {
		return ""
	}
	var known []string
	for _, other := range names {
		if isConfigFile(other) && !slices.Contains(d.stack, other) {
			known = append(known, path.Base(other))
		}
	}
	near := nearest(path.Base(name), known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", n.text[:len(n.text)-len(path.Base(name))]+near)
}

// glob gives the files that a pattern stands for, as references of the file that it stands in, or what is wrong with it.
func (d *decoder) glob(n *node) (references []string, problem string) {
	file := d.stack[len(d.stack)-1]
	pattern, ok := resolve(n.text, file)
	switch g, can := d.reader.(Globber); {
	case !ok:
		return nil, "can't be read: " + ErrOutside.Error()
	case strings.Contains(pattern, "**"):
		return nil, "has **, which is not known here: name the folders, or use * for one level"
	case !can:
		return nil, "is a pattern, and files can't be looked for here"
	case d.found[pattern] == nil && len(d.found) >= maxPatterns:
		return nil, fmt.Sprintf("is one pattern too many: a config has at most %d", maxPatterns)
	default:
		names, err := d.lookFor(g, pattern)
		if errors.Is(err, path.ErrBadPattern) {
			return nil, "is no pattern: a [ has no ]"
		}
		if err != nil {
			return nil, "can't be read: " + readProblem(err)
		}
		for _, name := range names {
			relative, err := filepath.Rel(path.Dir(file), name)
			if name != file && err == nil && isConfigFile(name) && !IsGolden(name) {
				references = append(references, filepath.ToSlash(relative))
			}
		}
	}
	if len(references) == 0 {
		return nil, "matches no file"
	}
	slices.Sort(references)
	return references, ""
}

// maxPatterns is how many patterns a config may have: for each, folders are read.
const maxPatterns = 1000

// lookFor gives the files that match a pattern, which are looked for once.
func (d *decoder) lookFor(g Globber, pattern string) ([]string, error) {
	if names := d.found[pattern]; names != nil {
		return names, nil
	}
	names, err := g.Glob(pattern)
	if err == nil {
		d.found[pattern] = append([]string{}, names...)
	}
	return names, err
}

// describe gives the members of a struct type.
func (d *decoder) describe(t reflect.Type) *object {
	o, ok := d.objects[t]
	if !ok {
		o = describeStruct(t)
		d.objects[t] = o
	}
	return o
}

func (d *decoder) object(n *node, path string, v reflect.Value) {
	if n.kind != kindMap {
		d.wrongType(n, path, "an object")
		return
	}
	o := d.describe(v.Type())
	given := map[string]bool{}
	var rest node
	for _, e := range n.entries {
		m := o.find(e.key)
		switch {
		case m != nil:
			given[e.key] = true
			d.value(e.value, join(path, e.label()), v.Field(m.index), m)
		case e.key == "$schema" && d.isFileRoot(n): // what editors read
		case !d.takes(1, e.pos, path):
			return
		case o.rest >= 0:
			rest.entries = append(rest.entries, e)
		default:
			d.unknownKey(e, path, o.names())
		}
	}
	d.absent(n, path, v, o, given)
	if f, ok := reflect.TypeAssert[filler](v.Addr()); ok {
		f.fill(given)
	}
	if o.rest >= 0 && len(rest.entries) > 0 {
		rest.kind, rest.pos = kindMap, n.pos
		d.free(&rest, path, v.Field(o.rest), &member{})
	}
	if o.raw >= 0 {
		d.free(n, path, v.Field(o.raw), &member{})
	}
}

// isFileRoot says that a node is the whole of a file.
func (d *decoder) isFileRoot(n *node) bool { return d.files[n.pos.File] == n }

// absent applies defaults and reports missing members.
func (d *decoder) absent(n *node, path string, v reflect.Value, o *object, given map[string]bool) {
	for i := range o.members {
		m := &o.members[i]
		switch {
		case given[m.name]:
		case m.required:
			d.problem(n.pos, join(path, m.name), CodeRequired, "is required")
		case m.def != "":
			d.value(m.node(v.Field(m.index).Type(), n.pos), join(path, m.name), v.Field(m.index), m)
		}
	}
}

// filler is a type whose defaults depend on what is given.
type filler interface{ fill(given map[string]bool) }

func (d *decoder) unknownKey(e entry, path string, known []string) {
	hint := "known keys: " + strings.Join(known, ", ")
	if near := nearest(e.key, known); near != "" && !e.secret && !e.hidden {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.problem(e.pos, join(path, e.label()), CodeUnknownKey, "unknown key %q; %s", e.label(), hint)
}

func (d *decoder) mapping(n *node, path string, v reflect.Value, m *member) {
	if n.kind != kindMap {
		d.wrongType(n, path, "an object")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.entries)))
	for _, e := range n.entries {
		if d.over {
			return
		}
		if e.key == "$schema" && d.isFileRoot(n) {
			continue
		}
		at := join(path, e.label())
		if m.keys != "" && !patterns[m.keys].expr.MatchString(e.key) {
			d.takes(1, e.pos, path)
			d.problem(e.pos, at, CodePattern, "the name must be %s", patterns[m.keys].words)
			continue
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, at, value, &member{})
		v.SetMapIndex(reflect.ValueOf(e.key), notNil(value))
	}
}

func (d *decoder) list(n *node, path string, v reflect.Value, m *member) {
	if n.kind != kindList {
		d.wrongType(n, path, aList)
		return
	}
	if m.min != nil && len(n.items) < int(*m.min) {
		d.problem(n.pos, path, CodeRange, "must have at least %d elements", int(*m.min))
	}
	if holdsObject(v.Type().Elem()) {
		n.items = d.expand(n.items, path)
	}
	element := &member{enum: m.enum, pattern: m.pattern, secret: m.secret}
	out := reflect.MakeSlice(v.Type(), 0, len(n.items))
	for i, item := range n.items {
		if d.over {
			break
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.value(item, path+"["+strconv.Itoa(i)+"]", value, element)
		out = reflect.Append(out, notNil(value))
	}
	v.Set(out)
}

// notNil puts an empty object where an element could not be decoded, so that indexes keep their meaning and checks
// need not look out for nil.
func notNil(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return reflect.New(v.Type().Elem())
	}
	return v
}

// DefaultQueryLimits are the limits of a collection that sets none.
func DefaultQueryLimits() *QueryLimits { return withDefaults[QueryLimits]() }

// DefaultSearchText are the settings of a search of mode text that sets none.
func DefaultSearchText() *SearchText { return withDefaults[SearchText]() }

// DefaultSearchNgram are the settings of a search of mode ngram that sets none.
func DefaultSearchNgram() *SearchNgram { return withDefaults[SearchNgram]() }

// DefaultSearchRegex are the settings of a search of mode regex that sets none.
func DefaultSearchRegex() *SearchRegex { return withDefaults[SearchRegex]() }

// DefaultBulk are the bulk limits of a collection that sets none.
func DefaultBulk() *Bulk { return withDefaults[Bulk]() }

// DefaultHook are the settings of scripts of a project that sets none.
func DefaultHook() *Hook { return withDefaults[Hook]() }

// withDefaults gives what an empty object in a file gives.
func withDefaults[T any]() *T {
	out := new(T)
	d := newDecoder(&loader{})
	d.object(&node{kind: kindMap}, "", reflect.ValueOf(out).Elem())
	return out
}
