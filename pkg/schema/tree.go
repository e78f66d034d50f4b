package schema

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// The bounds of what files may say. A config can be sent by whoever may reload a project, and a project is one of many: none
// may take the service's memory or its time.
const (
	maxDepth = 64        // nesting of one file
	maxNodes = 1_000_000 // values of a whole config, aliases, merges and repeated references counted each time
	maxKey   = 1000      // bytes of a key
)

// parser turns one file into nodes.
type parser struct {
	l    *loader
	file string
}

func (p *parser) at(line, column int) Position { return Position{p.file, max(line, 1), max(column, 1)} }

// tooDeep reports nesting that no parser should recurse into.
func (p *parser) tooDeep(line int) {
	p.fail(p.at(line, 1), CodeSyntax, "nested deeper than %d levels", maxDepth)
}

func (p *parser) fail(pos Position, code, format string, args ...any) {
	p.l.add(Problem{Position: pos, Code: code, Message: fmt.Sprintf(format, args...)})
}

// isConfigFile says by its ending whether a name is that of a config file.
func isConfigFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// parse gives the root of a file, or nil after reporting why there is none.
func (p *parser) parse(data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		p.fail(p.at(1, 1), CodeSyntax, "the file is not UTF-8 text")
		return nil
	}
	if strings.HasSuffix(p.file, ".json") {
		return p.parseJSON(data)
	}
	return p.parseYAML(data)
}

// object finishes a map node: it substitutes in keys and reports keys that are there twice.
func (p *parser) object(n *node) *node {
	seen := make(map[string]bool, len(n.entries))
	kept := n.entries[:0]
	for _, e := range n.entries {
		if e.failed {
			continue
		}
		if seen[e.key] {
			p.fail(e.pos, CodeDuplicate, "the key %q is here twice", e.label())
			continue
		}
		seen[e.key] = true
		kept = append(kept, e)
	}
	n.entries = kept
	return n
}

// entry makes a member, with substitutions in its key.
func (p *parser) entry(key string, pos Position, value *node) entry {
	if len(key) > maxKey {
		p.fail(pos, CodeSyntax, "a key has more than %d bytes", maxKey)
		return entry{failed: true}
	}
	text, secret, ok := p.l.substitute(key, p.file, pos)
	e := entry{key: text, pos: pos, value: value, secret: secret, failed: !ok}
	if secret {
		e.raw = key
	}
	return e
}

// str makes a string node, with substitutions.
func (p *parser) str(text string, pos Position) *node {
	value, secret, ok := p.l.substitute(text, p.file, pos)
	n := &node{pos: pos, kind: kindString, text: value, secret: secret, failed: !ok}
	if secret {
		n.raw = text
	}
	return n
}
