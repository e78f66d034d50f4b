// Package pattern compiles regular expressions for queries: RE2 only, which matches in linear time. A MongoDB server's PCRE
// reads many constructs differently (what \s holds, where $ and (?m)^ match, which letters fold), so it is sent a pattern
// written anew from the parsed one.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	maxPattern = 256      // characters of a pattern
	maxPCRE    = 16 << 10 // bytes of a translated pattern; newer servers take 16,384
	maxProgram = 30_000   // estimated bytes of the program that PCRE makes of it; its limit is 65,535
)

// Pattern is a regular expression.
type Pattern struct {
	RE      *regexp.Regexp
	Options string // of "ims", sorted
	PCRE    string // of the same meaning without any options; its groups have no numbers
	States  int    // how much work a character may be, see Quick

	tree *syntax.Regexp
}

// Compile takes the options i, m and s. Errors are errs.Invalid with code "bad_pattern"; the message says what is wrong
// with "the regular expression".
func Compile(pattern, options string) (*Pattern, error) {
	flags, options, ok := Flags(options)
	if !ok {
		return nil, bad("regular expressions take the options i, m and s only")
	}
	if utf8.RuneCountInString(pattern) > maxPattern {
		return nil, bad("the regular expression is longer than %d characters", maxPattern)
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, bad("the regular expression is not valid (RE2 syntax): %s", err)
	}
	re, err := regexp.Compile(inline(pattern, options))
	if err != nil {
		return nil, bad("the regular expression is not valid (RE2 syntax): %s", err)
	}
	var w pcreWriter
	w.write(tree)
	if w.out.Len() > maxPCRE || programSize(tree) > maxProgram {
		return nil, bad("the regular expression is too large once its repeats and classes are written out")
	}
	return &Pattern{RE: re, Options: options, PCRE: w.out.String(), States: statesOf(tree), tree: tree}, nil
}

// Numbered is PCRE with the groups numbered as in RE.
func (p *Pattern) Numbered() string {
	w := pcreWriter{numbered: true}
	w.write(p.tree)
	return w.out.String()
}

func bad(format string, args ...any) error {
	return errs.New(errs.Invalid, "bad_pattern", format, args...)
}

func inline(pattern, options string) string {
	if options == "" {
		return pattern
	}
	return "(?" + options + ")" + pattern
}

// Flags reads and sorts options; a repeated one counts once.
func Flags(options string) (flags syntax.Flags, sorted string, ok bool) {
	flags = syntax.Perl
	letters := []byte(options)
	slices.Sort(letters)
	letters = slices.Compact(letters)
	for _, o := range letters {
		switch o {
		case 'i':
			flags |= syntax.FoldCase
		case 'm':
			flags &^= syntax.OneLine
		case 's':
			flags |= syntax.DotNL
		default:
			return 0, "", false
		}
	}
	return flags, string(letters), true
}

// pcreWriter writes a parsed RE2 pattern in constructs that PCRE reads the same way without any option. Groups lose
// their names, and without numbered their numbers, too.
type pcreWriter struct {
	out      strings.Builder
	numbered bool
}

func (w *pcreWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpNoMatch:
		w.out.WriteString(`[^\x{0}-\x{10FFFF}]`)
	case syntax.OpEmptyMatch:
		w.out.WriteString(`(?:)`)
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			w.literal(r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		w.out.WriteString(`[^\x{A}]`)
	case syntax.OpAnyChar:
		w.out.WriteString(`[\x{0}-\x{10FFFF}]`)
	case syntax.OpBeginLine:
		// PCRE's own (?m)^ does not match behind a newline that ends the text; RE2's does.
		w.out.WriteString(`(?:^|(?<=\x{A}))`)
	case syntax.OpEndLine:
		w.out.WriteString(`(?m:$)`)
	case syntax.OpBeginText:
		w.out.WriteString(`^`) // not \A: the server takes index bounds from ^
	case syntax.OpEndText:
		w.out.WriteString(`\z`) // PCRE's $ matches before a final newline, too
	case syntax.OpWordBoundary:
		w.out.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		w.out.WriteString(`\B`)
	case syntax.OpCapture:
		if w.numbered {
			w.out.WriteByte('(')
			w.write(re.Sub[0])
			w.out.WriteByte(')')
		} else {
			w.group(re.Sub[0])
		}
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		w.repeat(re)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			w.item(sub)
		}
	case syntax.OpAlternate:
		for i, sub := range re.Sub {
			if i > 0 {
				w.out.WriteByte('|')
			}
			w.write(sub)
		}
	default:
		panic("pattern: unknown regular expression")
	}
}

// item writes a member of a sequence.
func (w *pcreWriter) item(re *syntax.Regexp) {
	if re.Op == syntax.OpAlternate {
		w.group(re)
		return
	}
	w.write(re)
}

func (w *pcreWriter) group(re *syntax.Regexp) {
	w.out.WriteString(`(?:`)
	w.write(re)
	w.out.WriteByte(')')
}

func (w *pcreWriter) repeat(re *syntax.Regexp) {
	w.group(re.Sub[0])
	switch re.Op {
	case syntax.OpStar:
		w.out.WriteByte('*')
	case syntax.OpPlus:
		w.out.WriteByte('+')
	case syntax.OpQuest:
		w.out.WriteByte('?')
	default:
		w.out.WriteString(repeatCount(re))
	}
	if re.Flags&syntax.NonGreedy != 0 {
		w.out.WriteByte('?')
	}
}

func (w *pcreWriter) literal(r rune, fold bool) {
	if fold {
		if orbit := foldOrbit(r); len(orbit) > 2 {
			w.class(orbit)
			return
		}
	}
	if isSurrogate(r) {
		w.class(nil)
		return
	}
	w.rune(r)
}

// foldOrbit is r with everything that equals it but for case, as pairs for a class.
func foldOrbit(r rune) []rune {
	orbit := []rune{r, r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		orbit = append(orbit, f, f)
	}
	return orbit
}

// class writes pairs of first and last rune. Surrogates, which PCRE refuses and no text holds, are left out.
func (w *pcreWriter) class(pairs []rune) {
	start := w.out.Len()
	w.out.WriteByte('[')
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], pairs[i+1]
		if isSurrogate(lo) {
			lo = 0xE000
		}
		if isSurrogate(hi) {
			hi = 0xD7FF
		}
		if lo > hi {
			continue
		}
		w.rune(lo)
		if hi > lo {
			w.out.WriteByte('-')
			w.rune(hi)
		}
	}
	if w.out.Len() == start+1 {
		w.out.WriteString(`^\x{0}-\x{10FFFF}`) // an empty class matches nothing
	}
	w.out.WriteByte(']')
}

func isSurrogate(r rune) bool { return r >= 0xD800 && r <= 0xDFFF }

// rune writes one character so that it stands for itself, in a class and outside.
func (w *pcreWriter) rune(r rune) {
	switch {
	case r < 0x20 || r >= 0x7f && !unicode.IsPrint(r):
		w.out.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
	case r < 0x80 && !isWord(r) && r != ' ':
		w.out.WriteByte('\\')
		w.out.WriteRune(r)
	default:
		w.out.WriteRune(r)
	}
}

func isWord(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// programSize estimates what PCRE compiles re to, repeats written out as it does.
func programSize(re *syntax.Regexp) int {
	const most = maxProgram + 1
	var n int
	switch re.Op {
	case syntax.OpLiteral:
		n = 24 * len(re.Rune)
	case syntax.OpCharClass:
		n = 40 + 5*len(re.Rune)
	default:
		n = 6
	}
	for _, sub := range re.Sub {
		n = min(n+programSize(sub), most)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min+1, re.Max), most)
	}
	return n
}

func repeatCount(re *syntax.Regexp) string {
	count := "{" + strconv.Itoa(re.Min)
	switch {
	case re.Max == re.Min:
	case re.Max < 0:
		count += ","
	default:
		count += "," + strconv.Itoa(re.Max)
	}
	return count + "}"
}
