package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
)

// projectCompiler makes the tree of a projection.
type projectCompiler struct {
	*compiler
	name    string
	mode    mode
	decided bool // by the first field but _id
	// What was said of _id itself.
	id, idTaken bool
	root        *branch
	raw         bson.D
}

func compileProject(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	switch {
	case !ok:
		return nil, nil, bad(15969, "%s needs an object", name)
	case len(d) == 0:
		return nil, nil, bad(51272, "%s needs a field at least", name)
	}
	p := &projectCompiler{compiler: c, name: name, root: &branch{}}
	for _, e := range d {
		if err := p.field("", e); err != nil {
			return nil, nil, err
		}
	}
	if !p.decided && p.id && !p.idTaken {
		p.mode = excluding
	}
	p.settleID()
	return &project{p.mode, p.root}, p.raw, nil
}

const idField = "_id"

// settleID does with _id what was said of it, or is meant without a word.
func (p *projectCompiler) settleID() {
	i := p.root.find([]byte(idField))
	switch {
	case i < 0 && p.mode == including:
		_, _ = p.root.add(idField, nil)
	case p.id && p.idTaken != (p.mode == including):
		p.root.remove(i)
	}
}

// field takes a field of a projection; prefix is the path of the object that it is in.
func (p *projectCompiler) field(prefix string, e bson.E) error {
	if strings.HasSuffix(e.Key, ".$") {
		return bad(31324, "%s: the position $ is for queries", p.name)
	}
	if err := checkPath(e.Key); err != nil {
		return err
	}
	path := join(prefix, e.Key)
	switch v := e.Value.(type) {
	case bson.D:
		if len(v) == 0 {
			return bad(51270, "%s: %s is an empty object", p.name, document.Readable(path))
		}
		if len(v) == 1 && strings.HasPrefix(v[0].Key, "$") {
			return p.expression(path, v)
		}
		if err := p.collision(path, p.root.enter); err != nil { // before what is wrong in it
			return err
		}
		for _, inner := range v {
			if err := p.field(path, inner); err != nil {
				return err
			}
		}
		return nil
	case bool:
		return p.choose(path, v)
	}
	if f, isNumber := numberOf(e.Value); isNumber {
		return p.choose(path, f != 0)
	}
	return p.expression(path, e.Value)
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// choose takes a field, or leaves it out.
func (p *projectCompiler) choose(path string, take bool) error {
	p.raw = append(p.raw, bson.E{Key: path, Value: take})
	if path == idField {
		p.id, p.idTaken = true, take
		return p.add(path, nil)
	}
	switch {
	case p.decided && p.mode == including && !take:
		return bad(31254, "%s: %s can't be left out where other fields are chosen", p.name, document.Readable(path))
	case p.decided && p.mode == excluding && take:
		return bad(31253, "%s: %s can't be chosen where other fields are left out", p.name, document.Readable(path))
	}
	p.decided = true
	if !take {
		p.mode = excluding
	}
	return p.add(path, nil)
}

func (p *projectCompiler) expression(path string, v any) error {
	if d, ok := v.(bson.D); ok && !expr.Known(d[0].Key) {
		return bad(31325, "%s: the operator %s is not supported in expressions", p.name, document.Readable(d[0].Key))
	}
	if p.decided && p.mode == excluding {
		code := document.ServerCode(31310)
		if _, ok := v.(bson.D); ok {
			code = 31252
		}
		return bad(code, "%s: %s can't be computed where other fields are left out", p.name, document.Readable(path))
	}
	p.decided = true
	x, err := p.compiler.expression(v)
	if err != nil {
		return err
	}
	p.raw = append(p.raw, bson.E{Key: path, Value: x.Raw()})
	return p.add(path, x)
}

// add puts a field into the tree.
func (p *projectCompiler) add(path string, value *expr.Expr) error {
	return p.collision(path, func(path string) (bool, string) { return p.root.add(path, value) })
}

// collision puts something into the tree, and says what is in its way.
func (p *projectCompiler) collision(path string, put func(path string) (ok bool, left string)) error {
	whole, left := put(path)
	switch {
	case left != "":
		return bad(31249, "%s: %s is inside of another field that is named", p.name, document.Readable(path))
	case !whole:
		return bad(31250, "%s: %s comes twice, or fields in it are named, too", p.name, document.Readable(path))
	}
	return nil
}

// add puts a field into the tree and says whether it could. left is the rest of the path if a part of it is named.
func (b *branch) add(path string, value *expr.Expr) (ok bool, left string) {
	name, rest, more := strings.Cut(path, ".")
	b.computed = b.computed || value != nil
	i := b.find([]byte(name))
	if i < 0 {
		f := &named{name: name}
		if more {
			f.below = &branch{}
		} else {
			f.value = value
		}
		if i = b.append(f); !more {
			return true, ""
		}
	} else if !more {
		return false, ""
	}
	if b.fields[i].below == nil {
		return false, rest
	}
	return b.fields[i].below.add(rest, value)
}

// enter makes the branch for an object, unless there is one, and says as add does whether it could.
func (b *branch) enter(path string) (ok bool, left string) {
	name, rest, more := strings.Cut(path, ".")
	i := b.find([]byte(name))
	if i < 0 {
		i = b.append(&named{name: name, below: &branch{}})
	}
	switch below := b.fields[i].below; {
	case below == nil:
		return false, rest
	case more:
		return below.enter(rest)
	}
	return true, ""
}

func (b *branch) append(f *named) (at int) {
	at = len(b.fields)
	b.fields = append(b.fields, f)
	if b.at == nil {
		b.at = map[string]int{}
	}
	b.at[f.name] = at
	return at
}

// give lets a field in the tree have a value.
func (b *branch) give(path string, value *expr.Expr) {
	name, rest, more := strings.Cut(path, ".")
	b.computed = true
	f := b.fields[b.find([]byte(name))]
	if more {
		f.below.give(rest, value)
		return
	}
	f.value = value
}

// remove takes a field out again.
func (b *branch) remove(i int) {
	b.fields = slices.Delete(b.fields, i, i+1)
	b.at = map[string]int{}
	for i, f := range b.fields {
		b.at[f.name] = i
	}
}

func compileUnset(_ *compiler, name string, spec any) (stage, any, error) {
	list, isList := asList(spec)
	if path, ok := spec.(string); ok {
		list, isList = bson.A{path}, true
	}
	switch {
	case !isList:
		return nil, nil, bad(31002, "%s needs a path or a list of paths", name)
	case len(list) == 0:
		return nil, nil, bad(31119, "%s needs a path at least", name)
	}
	p := &projectCompiler{name: name, root: &branch{}, mode: excluding}
	for _, v := range list {
		path, ok := v.(string)
		if !ok {
			return nil, nil, bad(31120, "%s needs a list of paths", name)
		}
		if strings.HasSuffix(path, ".$") {
			return nil, nil, bad(31324, "%s: the position $ is for queries", name)
		}
		if err := checkPath(path); err != nil {
			return nil, nil, err
		}
		if err := p.add(path, nil); err != nil {
			return nil, nil, err
		}
	}
	return &project{excluding, p.root}, list, nil
}

func compileAddFields(c *compiler, name string, spec any) (stage, any, error) {
	d, ok := asObject(spec)
	if !ok {
		return nil, nil, bad(40272, "%s needs an object", name)
	}
	p := &projectCompiler{compiler: c, name: name, root: &branch{}, mode: adding, raw: bson.D{}}
	for _, e := range d {
		if err := checkPath(e.Key); err != nil {
			return nil, nil, err
		}
		if err := p.addField(e.Key, e.Value); err != nil {
			return nil, nil, err
		}
	}
	for i, e := range p.raw { // collisions come before what is wrong in expressions
		x, err := p.compiler.expression(e.Value)
		if err != nil {
			return nil, nil, err
		}
		p.raw[i].Value = x.Raw()
		p.root.give(e.Key, x)
	}
	return &project{adding, p.root}, p.raw, nil
}

func (p *projectCompiler) addField(path string, v any) error {
	d, isObject := asObject(v)
	if !isObject || len(d) == 1 && strings.HasPrefix(d[0].Key, "$") {
		p.raw = append(p.raw, bson.E{Key: path, Value: v})
		if ok, _ := p.root.add(path, nil); !ok {
			return bad(40176, "%s: %s collides with another field that is named", p.name, document.Readable(path))
		}
		return nil
	}
	if len(d) == 0 {
		return bad(40180, "%s: %s is an empty object", p.name, document.Readable(path))
	}
	for _, e := range d {
		if strings.HasPrefix(e.Key, "$") {
			return bad(40181, "%s: an object with the operator %s must have no other field", p.name, document.Readable(e.Key))
		}
		if strings.Contains(e.Key, ".") {
			return bad(40183, "%s: the name %q in an object contains a dot", p.name, document.Readable(e.Key))
		}
		if err := checkPath(e.Key); err != nil {
			return err
		}
		if err := p.addField(join(path, e.Key), e.Value); err != nil {
			return err
		}
	}
	return nil
}
