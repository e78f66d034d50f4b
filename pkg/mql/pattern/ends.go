package pattern

import (
	"io"
	"regexp/syntax"
	"unicode/utf8"
)

// quick is for how many characters times states nothing is asked: a search takes some 10 ns for each.
const quick = 4 << 20

// Quick says whether a search by a pattern of so many States through n bytes is over so soon that nothing need end it.
func Quick(states, n int) bool { return n <= quick/max(states, 1) }

// Reader gives a text to a search by a regexp.Regexp, until Ended says that the work has to end: the search then sees the end
// of the text, and what it found counts for nothing. It is for one search.
type Reader struct {
	Text  []byte
	Ended func() error // nil: never
	Err   error        // of Ended

	read int
}

// ReadRune implements io.RuneReader.
func (r *Reader) ReadRune() (c rune, size int, err error) {
	const between = 1 << 8 // characters, which may take 50 microseconds each
	if r.read++; r.read%between == 0 && r.Err == nil && r.Ended != nil {
		r.Err = r.Ended()
	}
	if r.Err != nil || len(r.Text) == 0 {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.Text)
	r.Text = r.Text[size:]
	return c, size, nil
}

// statesOf estimates in how many states a search may be at once.
func statesOf(re *syntax.Regexp) int {
	const most = 1 << 24
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+statesOf(sub), most)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min+1, re.Max), most)
	}
	return n
}
