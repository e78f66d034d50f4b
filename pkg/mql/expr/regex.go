package expr

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql/pattern"
)

// regexUse is what is made of matches.
type regexUse int

const (
	useMatch regexUse = iota
	useFind
	useFindAll
)

// regexNode is $regexMatch, $regexFind and $regexFindAll: input, regex, options.
type regexNode struct {
	name string
	use  regexUse
	operands
	known   bool // regex and options are constant
	pattern *compiledPattern
}

// compiledPattern is a pattern, and the same behind one more character: what is matched may depend on what stands before.
type compiledPattern struct {
	*pattern.Pattern
	behind *regexp.Regexp // anchored
	later  *regexp.Regexp // not anchored; its first group is the match
}

func regexOperator(use regexUse) operator {
	return operator{parse: func(c *compiler, name string, v bson.RawValue) (node, error) {
		args, err := c.named(name, v, named{
			names: []string{"input", "regex", "options"}, required: 2, noObject: 51103, unknown: 31024,
			lacking: []document.ServerCode{31022, 31023},
		})
		c.patterns = true
		return &regexNode{name: name, use: use, operands: args}, err
	}}
}

// fold compiles a constant pattern; the search is left to be done.
func (n *regexNode) fold(f *folder) (node, error) {
	if _, err := f.operands(n); err != nil {
		return n, err
	}
	re, options := n.operands[1], n.operands[2]
	if !isConstant(re) || options != nil && !isConstant(options) {
		return n, nil
	}
	n.known = true
	var err error
	n.pattern, err = n.compile(nil, constantOf(re), constantOf(options))
	return n, err
}

// compile reads pattern and options. A nil pattern is none: it matches nothing.
func (n *regexNode) compile(env *Env, re, options bson.RawValue) (*compiledPattern, error) {
	text, flags, err := n.parts(re, options)
	if err != nil || isNull(re.Type) {
		return nil, err
	}
	return env.pattern(n.name, text, flags)
}

func (n *regexNode) parts(re, options bson.RawValue) (text, flags string, err error) {
	switch {
	case re.Type == bson.TypeRegex:
		pattern, own, _ := bytes.Cut(re.Value, []byte{0})
		text, flags = string(pattern), string(bytes.TrimRight(own, "\x00"))
	case re.Type == bson.TypeString:
		text = string(bytesOf(re))
	case !isNull(re.Type):
		return "", "", fail(51105, "%s needs text or a regular expression as regex, not %s", n.name, typeName(re.Type))
	}
	switch {
	case !isNull(options.Type) && options.Type != bson.TypeString:
		return "", "", fail(51106, "%s needs text as options, not %s", n.name, typeName(options.Type))
	case !isNull(options.Type) && flags != "":
		return "", "", fail(51107, "%s: options are given twice", n.name)
	case options.Type == bson.TypeString:
		flags = string(bytesOf(options))
	}
	for i := range len(flags) {
		if flags[i] == 0 {
			return "", "", fail(51110, "%s: options can't contain NUL", n.name)
		}
		if _, _, ok := pattern.Flags(flags[i : i+1]); !ok {
			return "", "", fail(51108, "%s takes the options i, m and s only", n.name)
		}
	}
	if bytes.IndexByte([]byte(text), 0) >= 0 {
		return "", "", fail(51109, "%s: a regular expression can't contain NUL", n.name)
	}
	return text, flags, nil
}

// pattern compiles a pattern, or remembers it.
func (env *Env) pattern(name, text, options string) (*compiledPattern, error) {
	const remembered = 32
	key := [2]string{text, options}
	if env != nil {
		if p, ok := env.patterns[key]; ok {
			return p, nil
		}
	}
	p, err := pattern.Compile(text, options)
	if err != nil {
		return nil, fail(51111, "%s: %s", name, errs.From(err).Message)
	}
	behind, err := regexp.Compile(`\A(?s:.)(?:` + p.RE.String() + `)`)
	if err != nil {
		return nil, fail(51111, "%s: the regular expression is too large", name)
	}
	later, err := regexp.Compile(`\A(?s:.)(?s:.*?)(` + p.RE.String() + `)`)
	if err != nil {
		return nil, fail(51111, "%s: the regular expression is too large", name)
	}
	c := &compiledPattern{p, behind, later}
	if env != nil {
		if len(env.patterns) >= remembered || env.patterns == nil {
			env.patterns = map[[2]string]*compiledPattern{}
		}
		env.patterns[key] = c
	}
	return c, nil
}

func (n *regexNode) eval(env *Env) (bson.RawValue, error) {
	input, err := n.operands[0].eval(env)
	if err != nil {
		return missing, err
	}
	p := n.pattern
	var re, options bson.RawValue
	if !n.known {
		if re, err = n.operands[1].eval(env); err != nil {
			return missing, err
		}
		if n.operands[2] != nil {
			if options, err = n.operands[2].eval(env); err != nil {
				return missing, err
			}
		}
	}
	if !isNull(input.Type) && input.Type != bson.TypeString {
		return missing, fail(51104, "%s takes text, not %s", n.name, typeName(input.Type))
	}
	if !n.known {
		if p, err = n.compile(env, re, options); err != nil {
			return missing, err
		}
	}
	if p == nil || isNull(input.Type) {
		return n.nothing(env)
	}
	return n.search(env, p, bytesOf(input))
}

// nothing is the result without a match.
func (n *regexNode) nothing(env *Env) (bson.RawValue, error) {
	switch n.use {
	case useMatch:
		return falseValue, nil
	case useFind:
		return null, nil
	default:
		return env.list(nil)
	}
}

func (n *regexNode) search(env *Env, p *compiledPattern, s []byte) (bson.RawValue, error) {
	switch n.use {
	case useMatch:
		if pattern.Quick(p.States, len(s)) {
			return boolean(p.RE.Match(s)), nil
		}
		r := &pattern.Reader{Text: s, Ended: env.Ended}
		found := p.RE.MatchReader(r)
		return boolean(found), r.Err
	case useFind:
		m, err := p.find(env, p.RE, s)
		switch {
		case err != nil:
			return missing, err
		case m == nil:
			return null, nil
		}
		start := len(env.arena)
		env.match(s, m, 0, 0)
		return env.value(bson.TypeEmbeddedDocument, start), env.room(0)
	default:
	}
	if len(s) > longestAll {
		return missing, fail(51156, "%s takes texts of %d KiB at most", n.name, longestAll>>10)
	}
	start, found, position, index := env.open(), 0, 0, 0
	err := p.all(env, s, func(m []int) error {
		env.item(found, bson.RawValue{Type: bson.TypeEmbeddedDocument})
		position, index = env.match(s, m, position, index)
		found++
		return env.room(m[1] - m[0])
	})
	if err != nil {
		return missing, err
	}
	return env.close(bson.TypeArray, start), nil
}

// longestAll is the most bytes of a text in which all matches are searched: each search may go through what is left of it.
const longestAll = 64 << 10

// find gives the first match, and where its groups are; nil if there is none.
func (p *compiledPattern) find(env *Env, re *regexp.Regexp, s []byte) ([]int, error) {
	if pattern.Quick(p.States, len(s)) {
		return re.FindSubmatchIndex(s), nil
	}
	r := &pattern.Reader{Text: s, Ended: env.Ended}
	m := re.FindReaderSubmatchIndex(r)
	return m, r.Err
}

// all gives take all matches as servers find them: behind one that is not empty, an empty one may follow at once; none begins
// at the end of the text, unless it is found from before.
func (p *compiledPattern) all(env *Env, s []byte, take func(m []int) error) error {
	if pattern.Quick(p.States, len(s)*(len(s)+1)/2) {
		for _, m := range p.allOfShort(s) {
			if err := take(m); err != nil {
				return err
			}
		}
		return nil
	}
	for from := 0; from < len(s); {
		if env.Ended != nil {
			if err := env.Ended(); err != nil {
				return err
			}
		}
		m, err := p.findFrom(env, s, from)
		if err != nil || m == nil {
			return err
		}
		if err := take(m); err != nil {
			return err
		}
		from = m[1]
		if m[0] == m[1] {
			_, size := utf8.DecodeRune(s[from:])
			from += max(size, 1)
		}
	}
	return nil
}

// findFrom is find for what begins at from or behind it.
func (p *compiledPattern) findFrom(env *Env, s []byte, from int) ([]int, error) {
	if from == 0 {
		return p.find(env, p.RE, s)
	}
	_, size := utf8.DecodeLastRune(s[:from])
	before := from - size
	m, err := p.find(env, p.later, s[before:])
	if err != nil || m == nil {
		return nil, err
	}
	m = m[2:]
	for i := range m {
		if m[i] >= 0 {
			m[i] += before
		}
	}
	return m, nil
}

// allOfShort is all, all at once.
func (p *compiledPattern) allOfShort(s []byte) (out [][]int) {
	next := 0
	take := func(m []int) bool {
		if next >= len(s) && len(s) > 0 {
			return false
		}
		out = append(out, m)
		next = m[1]
		if m[0] == m[1] {
			_, size := utf8.DecodeRune(s[next:])
			next += max(size, 1)
		}
		return true
	}
	for _, m := range p.RE.FindAllSubmatchIndex(s, -1) {
		if !take(m) {
			break
		}
		if m[0] == m[1] || m[1] == len(s) {
			continue
		}
		_, size := utf8.DecodeLastRune(s[:m[1]])
		from := m[1] - size
		if e := p.behind.FindSubmatchIndex(s[from:]); len(e) > 1 && e[1] == size {
			for i := range e {
				if e[i] >= 0 {
					e[i] += from
				}
			}
			e[0] = m[1]
			take(e)
		}
	}
	return out
}

// match writes the object of a match. index is the number of characters before position, where the last match began;
// the result is that of this one.
func (env *Env) match(s []byte, m []int, position, index int) (newPosition, newIndex int) {
	index += utf8.RuneCount(s[position:m[0]])
	start := env.open()
	env.arena = append(env.arena, byte(bson.TypeString))
	env.arena = append(env.arena, "match\x00"...)
	text(env, s[m[0]:m[1]])
	env.arena = append(env.arena, byte(bson.TypeInt32))
	env.arena = append(env.arena, "idx\x00"...)
	env.int32(int32(index)) //nolint:gosec // below 2 GB
	env.arena = append(env.arena, byte(bson.TypeArray))
	env.arena = append(env.arena, "captures\x00"...)
	captures := env.open()
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] < 0 {
			env.item(i/2-1, null)
			continue
		}
		env.item(i/2-1, bson.RawValue{Type: bson.TypeString})
		text(env, s[m[i]:m[i+1]])
	}
	env.close(bson.TypeArray, captures)
	env.close(bson.TypeEmbeddedDocument, start)
	return m[0], index
}

// forServer gives what was compiled with its constant patterns written anew, so that a server's PCRE reads them as is done here.
func (c *compiler) forServer(v bson.RawValue) bson.RawValue {
	if !c.patterns {
		return v
	}
	var env Env
	env.rewrite(v, false)
	return env.value(v.Type, 0)
}

// rewrite appends a value to the arena; inRegex is set for the operand of an operator with a pattern.
func (env *Env) rewrite(v bson.RawValue, inRegex bool) {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		env.arena = append(env.arena, v.Value...)
		return
	}
	re, changed := missing, false
	if inRegex {
		re, changed = rewritten(v)
	}
	start := env.open()
	for it := items(v); it.Next(); {
		name, value := string(it.Key()), it.Value()
		if changed && name == "options" {
			continue
		}
		if changed && name == "regex" {
			value = re
		}
		env.arena = append(append(append(env.arena, byte(value.Type)), name...), 0)
		switch name {
		case "$literal", "$const":
			env.arena = append(env.arena, value.Value...)
		default:
			env.rewrite(value, name == "$regexMatch" || name == "$regexFind" || name == "$regexFindAll")
		}
	}
	env.close(v.Type, start)
}

// rewritten gives the regex for the operand of an operator, if regex and options are constants.
func rewritten(v bson.RawValue) (bson.RawValue, bool) {
	re, _ := document.Field(v.Value, "regex")
	options, _ := document.Field(v.Value, "options")
	c := &compiler{operators: operators}
	n := &regexNode{}
	if re.Type == 0 {
		return missing, false
	}
	parsed, err := c.expression(re)
	if err != nil || !isConstant(parsed) || isNull(constantOf(parsed).Type) {
		return missing, false
	}
	var given node
	if options.Type != 0 {
		if given, err = c.expression(options); err != nil || !isConstant(given) {
			return missing, false
		}
	}
	p, err := n.compile(nil, constantOf(parsed), constantOf(given))
	if err != nil || p == nil {
		return missing, false
	}
	pattern := append([]byte(p.Numbered()), 0, 0)
	return bson.RawValue{Type: bson.TypeRegex, Value: pattern}, true
}
