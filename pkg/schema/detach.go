package schema

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/tailscale/hujson"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Detach gives the files of a config for another project: the namespace of its entry is another one, and tokens are left out (admin.tokens,
// and the sets token:… of permissions), for who has one of them has it for the project that the config is of. A file that has neither stays
// as it is, to the byte; others keep their comments. tokens counts the places that were left out. What was made has to be held against what
// it is made of: see Detached.
func Detach(files map[string][]byte, entry, namespace string) (out map[string][]byte, tokens int, err error) {
	out = maps.Clone(files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isConfigFile(name) {
			continue
		}
		d := &detacher{entry: name == entry, namespace: namespace}
		if path.Ext(name) == ".json" {
			out[name], err = d.json(files[name])
		} else {
			out[name], err = d.yaml(files[name])
		}
		if errors.Is(err, errNoConfig) && name != entry { // a file that scripts read, say
			out[name], err = files[name], nil
		}
		if err != nil {
			return nil, 0, errors.New(name + ": " + err.Error())
		}
		tokens += d.tokens
	}
	return out, tokens, nil
}

// Detached says that a config is what another one is, but for its namespace, and for tokens: that it has none.
func Detached(from, to *Loaded) bool {
	if len(to.Project.Admin.tokens()) > 0 {
		return false
	}
	want, ok := withoutTokens(from.Render(true)).(bson.D)
	if !ok {
		return false
	}
	got, ok := to.Render(true).(bson.D)
	if !ok {
		return false
	}
	same := func(d bson.D) bson.D {
		d = slices.Clone(d)
		for i := range d {
			switch d[i].Key {
			case "namespace":
				d[i].Value = to.Project.Namespace
			case "admin":
				if admin, ok := d[i].Value.(bson.D); ok {
					d[i].Value = slices.DeleteFunc(slices.Clone(admin), func(e bson.E) bool { return e.Key == "tokens" })
				}
			}
		}
		return d
	}
	return reflect.DeepEqual(same(want), same(got))
}

func (a *Admin) tokens() []AdminToken {
	if a == nil {
		return nil
	}
	return a.Tokens
}

// isTokenKey says that a member is the set of a collection token.
func isTokenKey(key string) bool {
	prefix, _, ok := strings.Cut(key, ":")
	return ok && strings.EqualFold(prefix, "token")
}

func withoutTokens(v any) any {
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			if !isTokenKey(e.Key) {
				out = append(out, bson.E{Key: e.Key, Value: withoutTokens(e.Value)})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, x := range v {
			out = append(out, withoutTokens(x))
		}
		return out
	}
	return v
}

// detacher changes one file.
type detacher struct {
	entry     bool // the one that has the namespace, and admin
	namespace string
	tokens    int
}

var (
	errNoConfig    = errors.New("it can't be read")
	errNoNamespace = errors.New("it does not have the namespace in a way that can be changed")
)

func (d *detacher) json(data []byte) ([]byte, error) {
	if deepJSON(data) > 0 {
		return nil, errNoConfig
	}
	root, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		return nil, errNoConfig
	}
	d.members(&root)
	if d.entry {
		object, ok := root.Value.(*hujson.Object)
		if !ok {
			return nil, errNoNamespace
		}
		for i := range object.Members {
			m := &object.Members[i]
			switch jsonKey(m) {
			case "namespace":
				m.Value.Value = hujson.String(d.namespace)
			case "admin":
				if admin, ok := m.Value.Value.(*hujson.Object); ok {
					d.drop(admin, func(key string) bool { return key == "tokens" })
				}
			}
		}
	}
	return root.Pack(), nil
}

func jsonKey(m *hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// members takes the sets of tokens out of an object, and out of all that is in it.
func (d *detacher) members(v *hujson.Value) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		d.drop(v, isTokenKey)
		for i := range v.Members {
			d.members(&v.Members[i].Value)
		}
	case *hujson.Array:
		for i := range v.Elements {
			d.members(&v.Elements[i])
		}
	}
}

func (d *detacher) drop(object *hujson.Object, is func(key string) bool) {
	before := len(object.Members)
	object.Members = slices.DeleteFunc(object.Members, func(m hujson.ObjectMember) bool { return is(jsonKey(&m)) })
	d.tokens += before - len(object.Members)
}

func (d *detacher) yaml(data []byte) (out []byte, err error) {
	defer func() {
		if recover() != nil { // a bug of the library
			out, err = nil, errNoConfig
		}
	}()
	if emptyLines(data) > 0 || deepDashes(data) > 0 {
		return nil, errNoConfig
	}
	if d.entry {
		if data, err = d.namespaceOf(data); err != nil {
			return nil, err
		}
	}
	file, err := yamlFileOf(data, yamlparser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(d, doc.Body)
		}
	}
	if d.entry {
		if at := topMember(file, "admin"); at != nil {
			if admin, ok := at.Value.(*ast.MappingNode); ok {
				d.leave(admin, func(key string) bool { return key == "tokens" })
			}
		}
	}
	if d.tokens == 0 {
		return data, nil
	}
	return emptied.ReplaceAll([]byte(strings.TrimRight(file.String(), "\n")+"\n"), []byte(": {}")), nil
}

// emptied finds an object of which nothing is left: the library writes its braces on a line of their own.
var emptied = regexp.MustCompile(`(?m):\n[ ]+\{\}$`)

func yamlFileOf(data []byte, mode yamlparser.Mode) (*ast.File, error) {
	p := &parser{l: &loader{}}
	if _, err := p.yaml(data); err != nil { // which says whether it comes to an end
		return nil, errNoConfig
	}
	file, err := yamlparser.ParseBytes(data, mode, yamlparser.AllowDuplicateMapKey())
	if err != nil {
		return nil, errNoConfig
	}
	return file, nil
}

// Visit takes the sets of tokens out of an object.
func (d *detacher) Visit(n ast.Node) ast.Visitor {
	if m, ok := n.(*ast.MappingNode); ok {
		d.leave(m, isTokenKey)
	}
	return d
}

func (d *detacher) leave(m *ast.MappingNode, is func(key string) bool) {
	before := len(m.Values)
	m.Values = slices.DeleteFunc(m.Values, func(v *ast.MappingValueNode) bool { return is(v.Key.GetToken().Value) })
	if d.tokens += before - len(m.Values); len(m.Values) == 0 {
		m.IsFlowStyle = true
	}
}

// topMember finds a member of the object that a file is.
func topMember(file *ast.File, key string) *ast.MappingValueNode {
	for _, doc := range file.Docs {
		var values []*ast.MappingValueNode
		switch body := doc.Body.(type) {
		case *ast.MappingNode:
			values = body.Values
		case *ast.MappingValueNode:
			values = []*ast.MappingValueNode{body}
		}
		for _, v := range values {
			if v.Key.GetToken().Value == key {
				return v
			}
		}
	}
	return nil
}

// plainScalar is how far a value goes that has no quotes.
var plainScalar = regexp.MustCompile(`^(\$\{[^}]*\}|[^\s,{}"'#])+`)

// namespaceOf gives the text of the entry with another namespace.
func (d *detacher) namespaceOf(data []byte) ([]byte, error) {
	file, err := yamlFileOf(data, 0)
	if err != nil {
		return nil, err
	}
	at := topMember(file, "namespace")
	if at == nil || at.Value == nil || at.Value.GetToken() == nil {
		return nil, errNoNamespace
	}
	t := at.Value.GetToken()
	lines := bytes.SplitAfter(data, []byte("\n"))
	if t.Position.Line < 1 || t.Position.Line > len(lines) {
		return nil, errNoNamespace
	}
	line := []rune(string(lines[t.Position.Line-1]))
	if t.Position.Column < 1 || t.Position.Column > len(line) {
		return nil, errNoNamespace
	}
	before, rest := string(line[:t.Position.Column-1]), string(line[t.Position.Column-1:])
	length := len(plainScalar.FindString(rest))
	if t.Type == token.DoubleQuoteType || t.Type == token.SingleQuoteType {
		if length = strings.IndexByte(rest[1:], rest[0]) + 2; length < 2 {
			return nil, errNoNamespace
		}
	}
	if length == 0 {
		return nil, errNoNamespace
	}
	lines[t.Position.Line-1] = []byte(before + strconv.Quote(d.namespace) + rest[length:])
	return bytes.Join(lines, nil), nil
}
