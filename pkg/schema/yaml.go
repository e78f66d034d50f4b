package schema

import (
	"bytes"
	"errors"
	"math"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
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
	if line := deepDashes(data); line > 0 {
		p.tooDeep(line)
		return nil
	}
	file, err := p.yaml(data)
	if deep, ok := errors.AsType[*deepError](err); ok {
		p.tooDeep(deep.line)
		return nil
	}
	if costly, ok := errors.AsType[*costlyError](err); ok {
		p.fail(p.at(costly.line, 1), CodeSyntax,
			"too many keys in one object, or values that are left out, to be read as YAML: split the file, or write it as JSON")
		return nil
	}
	if err != nil {
		pos, message := p.at(1, 1), "the file is not YAML"
		if syntax, ok := errors.AsType[yaml.Error](err); ok {
			message = syntaxMessage(syntax.GetMessage())
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				pos = p.at(t.Position.Line, t.Position.Column)
				if bare, column := bareMessage(lineOf(data, t.Position.Line)); bare != "" {
					pos, message = p.at(t.Position.Line, column), bare
				}
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

// deepError and costlyError are why tokens are not parsed, and the line where that shows.
type (
	deepError   struct{ line int }
	costlyError struct{ line int }
)

func (*deepError) Error() string   { return "nested too deep" }
func (*costlyError) Error() string { return "too much work" }

// yaml parses a file whose tokens say that this comes to an end.
func (p *parser) yaml(data []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errYAMLPanic
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := p.l.work.yaml(tokens); err != nil {
		return nil, err
	}
	return yamlparser.Parse(tokens, 0, yamlparser.AllowDuplicateMapKey())
}

// deepDashes gives the first line with so many dashes or question marks in front that no parser should recurse into it, or 0.
func deepDashes(data []byte) int {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		depth := 0
		for _, c := range text {
			if c != '-' && c != '?' && c != ' ' && c != '\t' {
				break
			}
			if c == '-' || c == '?' {
				depth++
			}
		}
		if depth > 16*maxDepth {
			return line
		}
	}
	return 0
}

// work is what the YAML library has had to do for a config. It copies all entries of an object in block style for each of them,
// and all tokens of a file for each value that is left out: 1 MiB of either takes it minutes.
type work int

// maxWork is about a second of it.
const maxWork = 100_000_000

// yaml counts what the tokens of a file will take, and how deep they nest.
func (w *work) yaml(tokens token.Tokens) error {
	v := yamlWork{tokens: tokens}
	for i, t := range tokens {
		if *w += v.token(i, t); *w > maxWork {
			return &costlyError{t.Position.Line}
		}
		if len(v.flow) > maxDepth+1 {
			return &deepError{t.Position.Line}
		}
	}
	return nil
}

// yamlWork goes through the tokens of a file.
type yamlWork struct {
	tokens       token.Tokens
	line, column int          // where the first value of this line begins, behind dashes
	flow         []token.Type // the brackets that are open
	pair         bool         // the entry in these brackets has a key
	blocks       []block
}

// block is an object in block style that goes on.
type block struct{ column, entries int }

// token gives what one token takes.
func (v *yamlWork) token(i int, t *token.Token) work {
	if t.Position.Line != v.line {
		v.line, v.column = t.Position.Line, t.Position.Column
	}
	pair := v.pair
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		v.flow, v.pair = append(v.flow, t.Type), false
	case token.SequenceEndType, token.MappingEndType:
		v.flow, v.pair = v.flow[:max(len(v.flow)-1, 0)], true
	case token.CollectEntryType:
		if v.pair = false; len(v.flow) > 0 && v.flow[len(v.flow)-1] == token.MappingStartType && !pair {
			return v.absent()
		}
	case token.DocumentHeaderType, token.DocumentEndType:
		v.blocks = nil
	case token.MappingKeyType: // whose colon, if it has one, is on a line of its own
		return v.entry() + v.absent()
	case token.SequenceEntryType:
		v.leave(t.Position.Column)
		v.column = t.Position.Column + 1
		if v.empty(i, t.Position.Column) {
			return v.absent()
		}
	case token.MappingValueType:
		v.pair = true
		var own work
		if len(v.flow) == 0 {
			own = v.entry()
		}
		if v.empty(i, v.column) {
			own += v.absent()
		}
		return own
	default:
	}
	return 0
}

// leave ends the objects that begin further right.
func (v *yamlWork) leave(column int) {
	for len(v.blocks) > 0 && v.blocks[len(v.blocks)-1].column > column {
		v.blocks = v.blocks[:len(v.blocks)-1]
	}
}

// entry is one more in the object at the column of the line.
func (v *yamlWork) entry() work {
	v.leave(v.column)
	if len(v.blocks) == 0 || v.blocks[len(v.blocks)-1].column < v.column {
		v.blocks = append(v.blocks, block{column: v.column})
	}
	last := &v.blocks[len(v.blocks)-1]
	last.entries++
	return work(last.entries)
}

// empty says that behind a token there is no value that belongs to it: begun at a column, the next one is of somebody else.
func (v *yamlWork) empty(i, column int) bool {
	t := v.tokens[i]
	for _, next := range v.tokens[i+1:] {
		switch next.Type {
		case token.CommentType:
			continue
		case token.CollectEntryType, token.MappingEndType, token.SequenceEndType, token.MappingKeyType, token.MappingValueType:
			return true
		default:
			return next.Position.Line > t.Position.Line && next.Position.Column <= column
		}
	}
	return true
}

// absent is what a value takes that is left out.
func (v *yamlWork) absent() work { return work(len(v.tokens)/100 + 1) }

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
		return f.bad(pos, "the alias names an anchor that is not defined above; put quotes around a text that begins with *")
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
			merged = append(merged, f.merge(v, keyPos, depth)...)
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
	if len(merged) == 0 {
		return n
	}
	there := make(map[string]bool, len(n.entries))
	for _, e := range n.entries {
		there[e.key] = true
	}
	for _, e := range merged { // explicit keys win over merged ones
		if !there[e.key] {
			there[e.key] = true
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
func (f *yamlFile) merge(v *ast.MappingValueNode, pos Position, depth int) []entry {
	n := f.node(v.Value, depth+1)
	var objects []*node
	switch {
	case n.failed:
		return nil
	case n.kind == kindMap:
		objects = []*node{n}
	case n.kind == kindList:
		objects = n.items
	default:
		f.fail(n.pos, CodeSyntax, "<< merges objects only")
		return nil
	}
	var all []entry
	for _, object := range objects {
		if object.kind != kindMap {
			f.fail(object.pos, CodeSyntax, "<< merges objects only")
			continue
		}
		if f.l.merged += len(object.entries); f.l.merged > maxNodes { // a few lines can name one object thousands of times
			f.fail(pos, CodeRange, "the config is too large: more than %d values", maxNodes)
			return nil
		}
		all = append(all, object.entries...)
	}
	return all
}
