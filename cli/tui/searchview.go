package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// barCells is how wide the bar of an index that is being made is.
const barCells = 8

func (s *search) sections() []widget.Section {
	searches := widget.Section{
		Title: "Searches", None: "the project has no searches: the key search of a collection's config declares them",
		Columns: []widget.Column{
			{Name: "SEARCH", Least: 12},
			{Name: "MODE", Rank: 6},
			{Name: "STATE"},
			{Name: "MADE", Rank: 4},
			{Name: "RECORDS", Right: true, Rank: 3},
			{Name: "PENDING", Right: true, Rank: 5},
			{Name: "IN FLIGHT", Right: true, Rank: 8},
			{Name: "WAITING", Right: true, Rank: 7},
			{Name: "FAILED", Right: true, Rank: 2},
			{Name: "OLDEST", Right: true, Rank: 9},
			{Name: "SIZE", Right: true, Rank: 10},
			{Name: "MEMORY", Right: true, Rank: 11},
			{Name: "GROUP", Rank: 12},
			{Name: "LAST ERROR", Rank: 1, Least: 16},
		},
	}
	for i := range s.read.rows {
		searches.Rows = append(searches.Rows, widget.Row{ID: s.read.rows[i].id(), Cells: s.read.rows[i].cells()})
	}
	return []widget.Section{searches, s.read.embeddingSection(s.host.Now())}
}

func (r *searchRow) cells() []widget.Cell {
	if !r.indexed {
		return []widget.Cell{widget.Text(r.place()), widget.Text(r.mode), widget.Text("no index"), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}
	}
	s := r.state
	state, made := widget.State(s.State), ""
	if r.building() && s.Total > 0 {
		state.Text += " " + widget.Percent(s.Done, s.Total)
		made = widget.Bar(barCells, s.Done, s.Total)
	}
	waiting := ""
	if s.Mode == "vector" {
		waiting = strconv.Itoa(s.Waiting)
	}
	failed := widget.Text(strconv.Itoa(s.Failed + s.Refused))
	if s.Failed+s.Refused > 0 {
		failed.Tone = output.ToneBad
	}
	return []widget.Cell{
		widget.Text(r.place()), widget.Text(r.mode), state, widget.Text(made), widget.Text(strconv.Itoa(s.Records)), widget.Text(strconv.Itoa(r.pending)),
		widget.Text(strconv.Itoa(r.queue.InFlight)), widget.Text(waiting), failed, widget.Text(r.oldest()),
		widget.Text(output.Size(s.Bytes)), widget.Text(output.Size(s.Memory)), widget.Text(s.Group),
		{Text: r.lastError(), Tone: output.ToneBad},
	}
}

// lastError is that of the search, or of its collection if that is not another search's.
func (r *searchRow) lastError() string {
	if r.state.LastError != "" || slices.ContainsFunc(r.queue.Searches, func(s api.SearchState) bool { return s.LastError == r.queue.LastError }) {
		return r.state.LastError
	}
	return r.queue.LastError
}

// oldest is how long the oldest record waits; "": none does, as far as this search goes.
func (r *searchRow) oldest() string {
	if r.queue.OldestAgeSeconds <= 0 || r.pending+r.queue.InFlight+r.state.Waiting == 0 {
		return ""
	}
	now := time.Unix(0, 0)
	return output.Age(now, now.Add(-time.Duration(r.queue.OldestAgeSeconds*float64(time.Second))))
}

// doc is the page about a search.
func (r *searchRow) doc() (d widget.Doc) {
	d.Heading(r.place())
	d.Field("Mode", r.mode)
	if r.about.Eval {
		d.Field("Text", "by a script, which is given the fields")
	}
	d.Field("Fields", strings.Join(r.about.Fields, ", "))
	d.Field("Fuses", strings.Join(r.about.Sources, ", "))
	if !r.indexed {
		d.Field("Index", "none of its own")
		return d
	}
	s, q := r.state, r.queue
	d.State("State", s.State, output.ToneOf(s.State))
	d.Field("Meaning", meanings()[s.State])
	if r.building() && s.Total > 0 {
		d.Field("Made", fmt.Sprintf("%s %s, %d of about %s", widget.Bar(20, s.Done, s.Total), widget.Percent(s.Done, s.Total), s.Done, output.Count(max(s.Done, s.Total), "record")))
	}
	d.Field("Records", strconv.Itoa(s.Records)+" can be found")
	d.Field("Size", output.Size(s.Bytes)+" on disk, about")
	d.Field("Memory", output.Size(s.Memory)+", about")
	if s.Mode == "vector" {
		d.Field("Group", s.Group)
		d.Field("Waiting", strconv.Itoa(s.Waiting)+" for their vectors")
		d.State("Refused", strconv.Itoa(s.Refused)+" whose text the group refuses", badIf(s.Refused > 0))
	}
	d.State("Failed", strconv.Itoa(s.Failed)+" for which the script of the search fails", badIf(s.Failed > 0))
	d.State("Last error", s.LastError, output.ToneBad)
	d.Heading("Collection " + r.collection)
	d.Field("Pending", strconv.Itoa(q.Pending)+" of all its searches")
	d.Field("In flight", strconv.Itoa(q.InFlight))
	d.Field("Oldest", r.oldest())
	d.State("Failed", strconv.Itoa(q.Failed), badIf(q.Failed > 0))
	d.State("Last error", q.LastError, output.ToneBad)
	return d
}

func badIf(bad bool) output.Tone {
	if bad {
		return output.ToneBad
	}
	return output.ToneNone
}

// meanings says what the states of an index mean.
func meanings() map[string]string {
	return map[string]string{
		"ready":      "the index is of the config",
		"building":   "there is none yet: searches wait a moment, and are told to come again",
		"rebuilding": "a new one is being made, while the one before answers",
		"stale":      "the config has changed and autoRegenerate is off, so the index before answers: r makes it anew",
	}
}

// The IDs of rows of groups, and of members of them, whose names have no slash.
func groupID(g api.EmbeddingGroup) string { return "group/" + g.Name }

func memberID(g api.EmbeddingGroup, m api.EmbeddingMember) string { return groupID(g) + "/" + m.Name }

func (s *searchRead) embeddingSection(now time.Time) widget.Section {
	section := widget.Section{
		Title: "Embedding groups, and their members", None: "the service has none: its setting embedding.groups makes them",
		Columns: []widget.Column{
			{Name: "GROUP", Least: 10},
			{Name: "STATE"},
			{Name: "BREAKER", Rank: 2},
			{Name: "FAILURES", Right: true, Rank: 3},
			{Name: "SINCE", Right: true, Rank: 4},
			{Name: "TYPE", Rank: 5},
			{Name: "MODEL", Rank: 6, Least: 12},
			{Name: "ERROR", Rank: 1, Least: 16},
		},
	}
	if s.redacted && !s.refused {
		section.Title += " (without what providers said)"
	}
	if s.refused {
		section.None = "you may not see them: that takes the right project.regenerate-search"
	}
	for _, g := range s.groups {
		section.Rows = append(section.Rows, widget.Row{ID: groupID(g), Cells: []widget.Cell{
			widget.Text(g.Name), widget.State(g.State), {}, {}, {}, {}, {}, {Text: g.Error, Tone: output.ToneBad},
		}})
		for _, m := range g.Members {
			section.Rows = append(section.Rows, widget.Row{ID: memberID(g, m), Cells: []widget.Cell{
				widget.Text("  " + m.Name), widget.State(m.State), widget.State(m.Breaker), widget.Text(strconv.Itoa(m.Failures)),
				widget.Text(output.Age(now, m.Since.Time)), widget.Text(m.Type), widget.Text(m.Model), {Text: m.Error, Tone: output.ToneBad},
			}})
		}
	}
	return section
}

// embeddingDoc is the page about a group or a member.
func (s *searchRead) embeddingDoc(id string, now time.Time) (d widget.Doc, ok bool) {
	for _, g := range s.groups {
		if id == groupID(g) {
			d.Heading("Group " + g.Name)
			d.Field("About", g.Description)
			d.State("State", g.State, output.ToneOf(g.State))
			d.State("Error", g.Error, output.ToneBad)
			if g.Sparse {
				d.Field("Vectors", "sparse")
			} else if g.Dimensions > 0 {
				d.Field("Vectors", fmt.Sprintf("of %d dimensions", g.Dimensions))
			}
			d.Field("Reference", g.Reference)
			if g.Golden > 0 {
				d.Field("Golden", fmt.Sprintf("%d texts", g.Golden))
			}
			s.redactedNote(&d)
			return d, true
		}
		for _, m := range g.Members {
			if id == memberID(g, m) {
				d.Heading("Member " + m.Name + " of " + g.Name)
				d.Field("Type", m.Type)
				d.Field("Model", m.Model)
				d.State("State", m.State, output.ToneOf(m.State))
				d.Field("Since", when(m.Since))
				d.State("Breaker", m.Breaker, output.ToneOf(m.Breaker))
				d.Field("Failures", strconv.Itoa(m.Failures)+" in a row")
				if m.RestsUntil != nil && m.RestsUntil.After(now) {
					d.Field("Rests until", when(*m.RestsUntil))
				}
				if m.CheckedAt != nil {
					d.Field("Checked", when(*m.CheckedAt))
				}
				d.State("Error", m.Error, output.ToneBad)
				s.redactedNote(&d)
				return d, true
			}
		}
	}
	return d, false
}

func (s *searchRead) redactedNote(d *widget.Doc) {
	if s.redacted {
		d.Text("")
		d.Text("What providers said is left out: the right server.shutdown shows it.")
	}
}

// lines puts lines one below the other.
func lines(all []string) string { return strings.Join(all, "\n") }

// fill gives so many lines: what is missing is empty.
func fill(text string, height int) []string {
	all := strings.Split(text, "\n")
	for len(all) < height {
		all = append(all, "")
	}
	return all[:height]
}
