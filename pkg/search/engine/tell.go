package engine

import (
	"context"
	"html"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/index"
)

// Highlight is what was found in a field: parts of its text, in HTML, with <mark> around the words that were looked for.
type Highlight struct {
	Path  string
	Texts []string
}

// How much of a text is shown.
const (
	maxWhole     = 200 // bytes of a text that is shown whole
	around       = 60  // bytes before and behind what is marked
	maxFragments = 3   // of a field
	markBegin    = "<mark>"
	markEnd      = "</mark>"
)

// Highlight marks what was looked for in a record as the caller sees it: in their language, without what they may not see.
func (r *Results) Highlight(seen bson.Raw) []Highlight {
	var out []Highlight
	done := map[string]bool{}
	for _, m := range r.found {
		for _, col := range m.asked.columns {
			terms := m.asked.terms[col.field]
			if done[col.path] || len(terms) == 0 || col.of != nil { // what a script says is not in the record
				continue
			}
			h := Highlight{Path: col.path}
			eachText(seen, col.path, func(text string) {
				h.Texts = append(h.Texts, fragments(text, col.marks(text, terms), maxFragments-len(h.Texts))...)
			})
			if len(h.Texts) > 0 {
				done[col.path] = true
				out = append(out, h)
			}
		}
	}
	return out
}

// maxMarks is how many words of a text are marked at most.
const maxMarks = 100

// marks gives where in a text terms are, ascending and apart.
func (c column) marks(text string, terms map[string]bool) (marks [][2]int) {
	for t := range c.cut.all(text[:min(len(text), maxMarked)]) {
		switch last := len(marks) - 1; {
		case !terms[t.Term]:
		case last >= 0 && t.Start <= marks[last][1]: // parts of one word
			marks[last][1] = max(marks[last][1], t.End)
		default:
			if len(marks) == maxMarks {
				return marks
			}
			marks = append(marks, [2]int{t.Start, t.End})
		}
	}
	return marks
}

// fragments gives up to limit parts of a text in which there are marks.
func fragments(text string, marks [][2]int, limit int) (out []string) {
	for len(marks) > 0 && len(out) < limit {
		from, to := 0, len(text)
		if len(text) > maxWhole {
			from, to = boundary(text, marks[0][0]-around, true), boundary(text, marks[0][1]+around, false)
		}
		n := 0
		for n < len(marks) && marks[n][1] <= to {
			n++
		}
		if n == 0 { // one mark is longer than what is shown
			n, to = 1, marks[0][1]
		}
		out = append(out, marked(text, from, to, marks[:n]))
		marks = marks[n:]
	}
	return out
}

// boundary moves a place in a text to where a word ends.
func boundary(text string, at int, back bool) int {
	at = max(0, min(at, len(text)))
	if at == 0 || at == len(text) {
		return at
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	if i := strings.IndexByte(text[at:min(len(text), at+around/2)], ' '); back && i >= 0 {
		return at + i + 1
	}
	if i := strings.LastIndexByte(text[max(0, at-around/2):at], ' '); !back && i >= 0 {
		return max(0, at-around/2) + i
	}
	return at
}

func marked(text string, from, to int, marks [][2]int) string {
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
	}
	for _, m := range marks {
		if m[0] < from {
			continue
		}
		b.WriteString(html.EscapeString(text[from:m[0]]))
		b.WriteString(markBegin + html.EscapeString(text[m[0]:m[1]]) + markEnd)
		from = m[1]
	}
	b.WriteString(html.EscapeString(text[from:max(from, to)]))
	if to < len(text) {
		b.WriteString(" …")
	}
	return b.String()
}

// Explain says for each hit how its score came to be, as an object for who asked: of a search of mode rrf the rank and share of each
// source, of others the part of each field and its words.
func (r *Results) Explain(ctx context.Context, hits []Hit) ([]bson.D, error) {
	out := make([]bson.D, len(hits))
	if r.fused != nil {
		for i, h := range hits {
			sources := bson.A{}
			for _, s := range h.Sources {
				sources = append(sources, bson.D{
					{Key: "search", Value: s.Search}, {Key: "rank", Value: int64(s.Rank)}, {Key: "score", Value: s.Score}, {Key: "share", Value: s.Share},
				})
			}
			out[i] = bson.D{{Key: "mode", Value: string(search.RRF)}, {Key: "sources", Value: sources}}
		}
		return out, nil
	}
	m := r.found[0]
	numbers := make([]uint32, len(hits))
	for i, h := range hits {
		numbers[i] = h.number
	}
	if m.how.Mode == search.Vector {
		return m.explain(hits), nil
	}
	why, err := m.view.Explain(byPace(ctx), m.asked.query, numbers)
	if err != nil {
		return nil, err
	}
	for i, w := range why {
		out[i] = bson.D{{Key: "mode", Value: string(m.how.Mode)}, {Key: "parts", Value: parts(w)}}
		if m.asked.query.Recency != nil {
			out[i] = append(out[i], bson.E{Key: "recency", Value: float64(w.Recency)})
		}
	}
	return out, nil
}

// explain says how near the hits of a search of mode vector are.
func (m *matches) explain(hits []Hit) []bson.D {
	out := make([]bson.D, len(hits))
	for i, h := range hits {
		factor := m.asked.query.Recency.Of(m.view, h.number)
		out[i] = bson.D{{Key: "mode", Value: string(search.Vector)}, {Key: "group", Value: m.how.Group}, {Key: "cosine", Value: h.Score / factor}}
		if m.asked.query.Recency != nil {
			out[i] = append(out[i], bson.E{Key: "recency", Value: factor})
		}
	}
	return out
}

func parts(w index.Why) bson.A {
	out := bson.A{}
	for _, p := range w.Parts {
		out = append(out, bson.D{
			{Key: "field", Value: p.Tag},
			{Key: "words", Value: p.Terms},
			{Key: "count", Value: int64(p.Count)},
			{Key: "records", Value: int64(p.Records)},
			{Key: "of", Value: int64(p.Of)},
			{Key: "score", Value: float64(p.Score)},
		})
	}
	return out
}
