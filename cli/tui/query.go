package tui

import (
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/client"
)

// query is where a search is tried: a box for words, and below it what was found, with why.
type query struct {
	host  *frame.Host
	of    *search
	row   searchRow
	input textinput.Model
	begin bool // the words that it was opened with are to be looked for

	asked  string // the words of what is shown
	asking bool
	page   int
	found  *queryFound // nil: nothing was looked for yet
	list   widget.Blocks
	open   bool // the page about the hit with the cursor is shown
	pager  widget.Pager
}

// hitsOfPage is how many hits are shown at once.
const hitsOfPage = 20

func newQuery(h *frame.Host, of *search, row searchRow, words string) *query {
	q := &query{host: h, of: of, row: row, input: frame.NewInput("> "), begin: words != ""}
	if words == "" {
		words = of.words[row.id()]
	}
	q.input.SetValue(words)
	return q
}

func (q *query) Title() string { return "Query " + q.row.place() }

// Typing implements frame.Typer.
func (q *query) Typing() bool { return q.input.Focused() }

type queryFound struct {
	words string
	page  int
	hits  []hit
	total int64
	more  bool
}

// ask looks for the words in the box.
func (q *query) ask(words string, page int) tea.Cmd {
	q.asking, q.asked = true, words
	q.of.words[q.row.id()] = words
	namespace, collection := q.of.namespace, q.row.collection
	by := client.Query{
		Q: words, QName: q.row.name, Highlight: true, Explain: true, Count: true, Limit: hitsOfPage, Offset: page * hitsOfPage,
	}
	return q.host.Ask(func(ctx context.Context) (tea.Msg, error) {
		list, err := q.host.Client.ListRecords(ctx, namespace, collection, by)
		if err != nil {
			return nil, err
		}
		out := queryFound{words: words, page: page, more: list.HasMore}
		if list.Total != nil {
			out.total = *list.Total
		}
		for _, record := range list.Items {
			one, err := readHit(record)
			if err != nil {
				return nil, err
			}
			out.hits = append(out.hits, one)
		}
		return out, nil
	})
}

func (q *query) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Shown:
		if q.begin {
			q.begin = false
			q.input.Blur()
			return q.ask(q.input.Value(), 0)
		}
	case queryFound:
		q.asking, q.found, q.page = false, &msg, msg.page
		q.list.Set(q.blocks())
		if len(msg.hits) == 0 {
			q.input.Focus()
		}
	case frame.Failed:
		q.asking = false
		q.input.Focus()
	case tea.KeyPressMsg:
		if q.Typing() {
			return q.typed(msg)
		}
		return q.press(msg.String())
	case tea.PasteMsg:
		return q.edit(msg)
	}
	return nil
}

func (q *query) typed(msg tea.KeyPressMsg) tea.Cmd {
	switch words := strings.TrimSpace(q.input.Value()); msg.String() {
	case "enter":
		if words == "" {
			return q.host.Say("type what to look for")
		}
		q.input.Blur()
		return q.ask(words, 0)
	case "down":
		if q.found != nil && len(q.found.hits) > 0 {
			q.input.Blur()
		}
		return nil
	}
	return q.edit(msg)
}

// edit changes the words.
func (q *query) edit(msg tea.Msg) (cmd tea.Cmd) {
	q.input, cmd = q.input.Update(msg)
	return cmd
}

func (q *query) press(pressed string) tea.Cmd {
	switch {
	case q.open:
		q.pager.Key(pressed)
	case pressed == "enter" && q.list.Selected() >= 0:
		q.open, q.pager = true, widget.Pager{}
	case pressed == "f":
		q.input.Focus()
	case pressed == "n" && q.found != nil && q.found.more && !q.asking:
		return q.ask(q.asked, q.page+1)
	case pressed == "p" && q.page > 0 && !q.asking:
		return q.ask(q.asked, q.page-1)
	default:
		q.list.Key(pressed)
	}
	return nil
}

// Back implements frame.Backer: from the page about a hit to the hits, and from the box to them.
func (q *query) Back() (cmd tea.Cmd, used bool) {
	if q.open {
		q.open = false
		return nil, true
	}
	if q.Typing() && q.found != nil && len(q.found.hits) > 0 {
		q.input.Blur()
		return nil, true
	}
	return nil, false
}

func (q *query) Keys() []key.Binding {
	switch {
	case q.Typing():
		return []key.Binding{frame.Binding("enter", "search"), frame.Binding("esc", "back")}
	case q.open:
		return []key.Binding{keyScroll()}
	}
	var keys []key.Binding
	if q.list.Selected() >= 0 {
		keys = append(keys, keyDetails())
	}
	keys = append(keys, frame.Binding("f", "other words"))
	if q.found != nil && q.found.more {
		keys = append(keys, frame.Binding("n", "next page"))
	}
	if q.page > 0 {
		keys = append(keys, frame.Binding("p", "previous page"))
	}
	return keys
}

func (q *query) View(width, height int) string {
	t := q.host.Theme()
	if q.open {
		return q.pager.View(q.found.hits[q.list.Selected()].doc(t), width, height, t)
	}
	q.input.SetWidth(max(width-4, 1))
	box := q.input.View()
	if !q.Typing() {
		box = "> " + output.Escape(q.input.Value())
	}
	return lines([]string{widget.Cut(box, width), t.Faint.Render(widget.Cut(q.summary(), width)), "", q.list.View(width, height-3, t)})
}

// summary says what is shown.
func (q *query) summary() string {
	switch {
	case q.asking:
		return "searching …"
	case q.found == nil:
		return "by the search " + output.Escape(q.row.place()) + " of mode " + output.Escape(q.row.mode)
	case len(q.found.hits) == 0:
		return "nothing is found for " + output.Escape(q.found.words)
	}
	first := q.page*hitsOfPage + 1
	return fmt.Sprintf("%d to %d of %d that are found for %s", first, first+len(q.found.hits)-1, q.found.total, output.Escape(q.found.words))
}

func (q *query) blocks() []widget.Block {
	blocks := make([]widget.Block, len(q.found.hits))
	for i, h := range q.found.hits {
		blocks[i] = h.block(q.page*hitsOfPage+i+1, q.host.Theme())
	}
	return blocks
}
