package schema

import (
	"errors"
	"math"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlFile is a YAML file on its way to nodes.
type yamlFile struct {
	*parser

	anchors map[string]*node
}

func (p *parser) parseYAML(data []byte) *node {
	if line := emptyLines(data); line > 0 {
		p.fail(p.at(line, 1), CodeSyntax, "more than %d empty lines in a row: take some out", maxEmptyLines)
		return nil
	}
	file, err := parseYAMLBytes(data)
	if err != nil {
		pos, message := p.at(1, 1), "the file is not YAML"
		if syntax, ok := errors.AsType[yaml.Error](err); ok {
			message = maskQuoted(syntax.GetMessage())
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				pos = p.at(t.Position.Line, t.Position.Column)
			}
		}
		p.fail(pos, CodeSyntax, "%s", message)
		return nil
	}
	f := &yamlFile{parser: p, anchors: map[string]*node{}}
	var root *node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case doc.Body.Type() == ast.DirectiveType || doc.Body.Type() == ast.CommentType:
		case root != nil:
			p.fail(f.begin(doc.Body), CodeSyntax, "a config file is one document; put the second into a file of its own")
			return root
		default:
			root = f.node(doc.Body, 0)
		}
	}
	if root == nil {
		p.fail(p.at(1, 1), CodeSyntax, "the file is empty")
	}
	return root
}

// maxEmptyLines bounds the empty lines in a row of a YAML file: at the end of a block of text the YAML library copies the whole
// block for each of them, which takes minutes for a file of less than 1 MiB.
const maxEmptyLines = 100

// emptyLines gives the first line that is one empty line too many, or 0. Lines end as YAML has it: with CR, LF or both.
func emptyLines(data []byte) int {
	line, empty := 1, 0
	blank := true
	for i, c := range data {
		switch {
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
		case c == '\n' || c == '\r':
			if empty++; !blank {
				empty = 0
			}
			if empty > maxEmptyLines {
				return line
			}
			line, blank = line+1, true
		case c != ' ' && c != '\t':
			blank = false
		}
	}
	return 0
}

// errYAMLPanic stands for a bug of the YAML library: a config must not take the service down.
var errYAMLPanic = errors.New("the YAML can't be read")

func parseYAMLBytes(data []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errYAMLPanic
		}
	}()
	return yamlparser.ParseBytes(data, 0, yamlparser.AllowDuplicateMapKey())
}

var quoted = regexp.MustCompile(`"[^"]{2,}"|'[^']{2,}'`)

// maskQuoted keeps a parser's message from showing what is in the file.
func maskQuoted(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	return quoted.ReplaceAllString(message, "…")
}

func (f *yamlFile) position(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return f.at(1, 1)
	}
	return f.at(t.Position.Line, t.Position.Column)
}

// begin is where a value begins: a block mapping at its first key, not at the colon that is its token.
func (f *yamlFile) begin(v ast.Node) Position {
	pos := f.position(v.GetToken())
	var first *ast.MappingValueNode
	switch v := v.(type) {
	case *ast.MappingValueNode:
		first = v
	case *ast.MappingNode:
		if v.IsFlowStyle || len(v.Values) == 0 {
			return pos
		}
		first = v.Values[0]
	default:
		return pos
	}
	return f.position(first.Key.GetToken())
}

func (f *yamlFile) bad(pos Position, format string, args ...any) *node {
	f.fail(pos, CodeSyntax, format, args...)
	return &node{pos: pos, failed: true}
}

func (f *yamlFile) node(v ast.Node, depth int) *node {
	if v == nil {
		return &node{pos: f.at(1, 1)}
	}
	pos := f.begin(v)
	if depth > maxDepth {
		return f.bad(pos, "nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case *ast.MappingNode:
		return f.mapping(v.Values, pos, depth)
	case *ast.MappingValueNode:
		return f.mapping([]*ast.MappingValueNode{v}, pos, depth)
	case *ast.SequenceNode:
		n := &node{pos: pos, kind: kindList}
		for _, item := range v.Values {
			n.items = append(n.items, f.node(item, depth+1))
		}
		return n
	case *ast.AnchorNode:
		n := f.node(v.Value, depth+1)
		f.anchors[v.Name.GetToken().Value] = n
		return n
	case *ast.AliasNode:
		if n, ok := f.anchors[v.Value.GetToken().Value]; ok {
			return n
		}
		return f.bad(pos, "the alias names an anchor that is not defined above")
	case *ast.TagNode:
		return f.tagged(v, pos, depth)
	}
	return f.scalar(v, pos)
}

func (f *yamlFile) scalar(v ast.Node, pos Position) *node {
	switch v := v.(type) {
	case *ast.StringNode:
		return f.str(v.Value, pos)
	case *ast.LiteralNode:
		return f.str(v.Value.Value, pos)
	case *ast.BoolNode:
		return &node{pos: pos, kind: kindBool, boolean: v.Value}
	case *ast.NullNode:
		return &node{pos: pos, kind: kindNull}
	case *ast.IntegerNode:
		switch i := v.Value.(type) {
		case int64:
			return &node{pos: pos, kind: kindInt, integer: i}
		case uint64:
			if i <= math.MaxInt64 {
				return &node{pos: pos, kind: kindInt, integer: int64(i)}
			}
			return &node{pos: pos, kind: kindFloat, float: float64(i)}
		}
		return f.bad(pos, "the number is too large")
	case *ast.FloatNode:
		if math.IsInf(v.Value, 0) || math.IsNaN(v.Value) {
			return f.bad(pos, "the number is too large")
		}
		return &node{pos: pos, kind: kindFloat, float: v.Value}
	case *ast.InfinityNode, *ast.NanNode:
		return f.bad(pos, "must be a finite number")
	}
	return f.bad(pos, "is not a value that configs know")
}

// tagged takes !!str, which makes a string of any scalar; other tags have no use in configs.
func (f *yamlFile) tagged(v *ast.TagNode, pos Position, depth int) *node {
	if v.Start == nil || v.Start.Value != "!!str" {
		return f.bad(pos, "YAML tags other than !!str are not supported")
	}
	if s, ok := v.Value.(ast.ScalarNode); ok && v.Value.Type() != ast.TagType {
		if t := s.GetToken(); t != nil && s.Type() != ast.LiteralType && s.Type() != ast.StringType {
			return f.str(t.Value, f.position(t))
		}
	}
	return f.node(v.Value, depth+1)
}

func (f *yamlFile) mapping(values []*ast.MappingValueNode, pos Position, depth int) *node {
	n := &node{pos: pos, kind: kindMap}
	var merged []entry
	for _, v := range values {
		keyPos := f.position(v.Key.GetToken())
		if v.Key.Type() == ast.MergeKeyType {
			merged = append(merged, f.merge(v.Value, depth)...)
			continue
		}
		key, ok := f.key(v.Key, keyPos)
		if !ok {
			continue
		}
		value := f.node(v.Value, depth+1)
		if value.kind == kindNull && value.pos.Line == 1 && keyPos.Line > 1 {
			value.pos = keyPos
		}
		n.entries = append(n.entries, f.entry(key, keyPos, value))
	}
	n = f.object(n)
	for _, e := range merged { // explicit keys win over merged ones
		if _, there := n.get(e.key); !there {
			n.entries = append(n.entries, e)
		}
	}
	return n
}

// key gives a mapping key as text: config keys are strings, and a plain 2024 or true means its text.
func (f *yamlFile) key(k ast.MapKeyNode, pos Position) (string, bool) {
	switch v := k.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return v.GetToken().Value, true
	}
	f.fail(pos, CodeSyntax, "a key must be a string")
	return "", false
}

// merge gives the entries of the objects that a << key names, the first object's first.
func (f *yamlFile) merge(v ast.Node, depth int) []entry {
	n := f.node(v, depth+1)
	switch {
	case n.failed:
		return nil
	case n.kind == kindMap:
		return n.entries
	case n.kind == kindList:
		var all []entry
		for _, item := range n.items {
			if item.kind != kindMap {
				f.fail(item.pos, CodeSyntax, "<< merges objects only")
				continue
			}
			all = append(all, item.entries...)
		}
		return all
	}
	f.fail(n.pos, CodeSyntax, "<< merges objects only")
	return nil
}
