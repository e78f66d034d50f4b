package tui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// hit is a record that was found.
type hit struct {
	api.Found

	title  string // what it is called, as far as that can be told; "": only its id
	record []byte // JSON with indentation, without what the search says
}

// readHit takes a record of a search apart.
func readHit(record api.Record) (hit, error) {
	var h hit
	if err := json.Unmarshal(record, &h.Found); err != nil {
		return hit{}, fmt.Errorf("read what was found: %w", err)
	}
	members, err := membersOf(record)
	if err != nil {
		return hit{}, fmt.Errorf("read what was found: %w", err)
	}
	members = slices.DeleteFunc(members, func(m member) bool {
		return m.name == "_score" || m.name == "_highlights" || m.name == "_explain"
	})
	h.title = titleOf(members)
	h.record, err = indented(members)
	return h, err
}

// member is one of a JSON object, in its order.
type member struct {
	name  string
	value json.RawMessage
}

func membersOf(object []byte) (members []member, err error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		members = append(members, member{fmt.Sprint(name), value})
	}
	return members, nil
}

func indented(members []member) ([]byte, error) {
	var one, all bytes.Buffer
	one.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			one.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		one.Write(name)
		one.WriteByte(':')
		one.Write(m.value)
	}
	one.WriteByte('}')
	err := json.Indent(&all, one.Bytes(), "", "  ")
	return all.Bytes(), err
}

// titleOf gives the text of the member by which people know a record: one of the usual names, else the first text there is.
func titleOf(members []member) string {
	text := func(m member) (s string) {
		if json.Unmarshal(m.value, &s) != nil { // it is no text
			return ""
		}
		return s
	}
	for _, name := range []string{"title", "name", "label", "username", "slug"} {
		for _, m := range members {
			if m.name == name && text(m) != "" {
				return text(m)
			}
		}
	}
	for _, m := range members {
		if m.name != "id" && text(m) != "" {
			return text(m)
		}
	}
	return ""
}

// maxTexts is how many highlighted texts of a hit the list shows; its page shows all.
const maxTexts = 2

// block is what the list shows of it.
func (h hit) block(rank int, t widget.Theme) widget.Block {
	out := []string{fmt.Sprintf("%3d  %-7s  %s", rank, score(h.Score), output.Escape(cmp.Or(h.title, h.ID)))}
	var texts []string
	for _, field := range slices.Sorted(maps.Keys(h.Highlights)) {
		for _, text := range h.Highlights[field] {
			texts = append(texts, "     "+t.Faint.Render(output.Escape(field)+":")+" "+widget.Marked(text, t))
		}
	}
	out = append(out, texts[:min(len(texts), maxTexts)]...)
	if why := h.why(); why != "" {
		out = append(out, "     "+t.Faint.Render(output.Escape(why)))
	}
	return widget.Block{Lines: out}
}

// score is a score with four digits that count: those of rrf are small.
func score(f float64) string { return fmt.Sprintf("%.4g", f) }

// why is the explanation in a line.
func (h hit) why() string {
	e := h.Explain
	if e == nil {
		return ""
	}
	var parts []string
	for _, s := range e.Sources {
		parts = append(parts, fmt.Sprintf("%s: rank %d, share %s", s.Search, s.Rank, percent(s.Share, h.Score)))
	}
	for _, p := range e.Parts {
		parts = append(parts, fmt.Sprintf("%s: %s, share %s", p.Field, strings.Join(p.Words, " "), percent(p.Score, sum(e.Parts))))
	}
	if e.Mode == "vector" {
		parts = append(parts, fmt.Sprintf("cosine %s by %s", score(e.Cosine), e.Group))
	}
	if e.Recency != nil {
		parts = append(parts, "times "+score(*e.Recency)+" for its age")
	}
	return strings.Join(parts, "; ")
}

func sum(parts []api.ScorePart) (all float64) {
	for _, p := range parts {
		all += p.Score
	}
	return all
}

func percent(part, all float64) string {
	if all == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*part/all)
}

// doc is the page about it.
func (h hit) doc(t widget.Theme) (d widget.Doc) {
	d.Heading(cmp.Or(h.title, h.ID))
	d.Field("ID", h.ID)
	d.Field("Score", score(h.Score))
	if e := h.Explain; e != nil {
		d.Heading("How the score came to be: mode " + e.Mode)
		for _, s := range e.Sources {
			d.Field(s.Search, fmt.Sprintf("rank %d, its score %s, share %s (%s)", s.Rank, score(s.Score), score(s.Share), percent(s.Share, h.Score)))
		}
		for _, p := range e.Parts {
			d.Field(p.Field, fmt.Sprintf("%s: %d×, in %d of %s, %s (%s)", strings.Join(p.Words, " "), p.Count, p.Records, output.Count(p.Of, "record"), score(p.Score), percent(p.Score, sum(e.Parts))))
		}
		if e.Mode == "vector" {
			d.Field("Cosine", score(e.Cosine))
			d.Field("Group", e.Group)
		}
		if e.Recency != nil {
			d.Field("Recency", "times "+score(*e.Recency))
		}
	}
	for i, field := range slices.Sorted(maps.Keys(h.Highlights)) {
		if i == 0 {
			d.Heading("What was found")
		}
		for _, text := range h.Highlights[field] {
			d.Painted(t.Faint.Render(output.Escape(field)+":") + " " + widget.Marked(text, t))
		}
	}
	d.Heading("Record")
	d.Text(string(h.record))
	return d
}
