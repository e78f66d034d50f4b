package tui

import (
	"context"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
)

// search shows the searches of a project and the embedding groups: what is indexed, what waits, what fails. It makes indexes
// anew, and leads to where searches are tried.
type search struct {
	table

	namespace string
	reader    searchReader
	read      *searchRead // nil: not yet
	runs      map[string]*regeneration
	pane      *regeneration     // that is shown below the list; nil: none
	words     map[string]string // that were last looked for, by the row's ID
}

func newSearch(h *frame.Host, of frame.Place) frame.Screen {
	s := &search{
		table: table{host: h}, namespace: of.Namespace, reader: searchReader{client: h.Client, namespace: of.Namespace, now: h.Now},
		runs: map[string]*regeneration{}, words: map[string]string{},
	}
	s.value = s.valueOf
	return s
}

func (s *search) Title() string { return "Search" }

// Every implements frame.Reader: it looks more often while something is going on.
func (s *search) Every() time.Duration {
	if s.read != nil && s.read.busy() || s.pane != nil && !s.pane.ended() {
		return time.Second
	}
	return 3 * time.Second
}

func (s *search) Read(ctx context.Context) (tea.Msg, error) { return s.reader.read(ctx) }

func (s *search) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frame.Shown:
		if s.pane != nil { // nobody has watched while another screen was shown
			s.pane.stop = nil
		}
		return s.attach()
	case *searchRead:
		s.read = msg
		s.list.Set(s.sections()...)
		return s.attach() // which may have been lost
	case runStarted:
		return s.started(msg)
	case runTold:
		return s.told(msg)
	case runLeft:
		return s.left(msg)
	case tea.KeyPressMsg:
		return s.press(msg.String())
	}
	return nil
}

func (s *search) press(pressed string) tea.Cmd {
	if s.key(pressed) || s.of != "" {
		return nil
	}
	row := s.selected()
	switch pressed {
	case "enter":
		s.open()
	case "r":
		if row != nil {
			return s.askRegenerate(row)
		}
	case "w":
		if run := s.known(); run != nil {
			return s.watch(run)
		}
	case "f":
		return s.query("")
	}
	return nil
}

// selected is the search with the cursor, nil where the cursor is on something else.
func (s *search) selected() *searchRow {
	if s.read == nil {
		return nil
	}
	return s.read.row(s.list.Selected())
}

// query opens the box in which a search is tried; with words it looks for them.
func (s *search) query(words string) tea.Cmd {
	row := s.selected()
	if row == nil {
		return s.host.Say("move to a search first")
	}
	one := *row
	return s.host.Push(func(h *frame.Host) frame.Screen { return newQuery(h, s, one, words) })
}

// Commands implements frame.Commander.
func (s *search) Commands() []frame.Command {
	return []frame.Command{{Name: "query", Help: "query WORDS, by the search with the cursor", Run: s.query}}
}

// Back implements frame.Backer.
func (s *search) Back() (cmd tea.Cmd, used bool) {
	if cmd, used := s.table.Back(); used || s.pane == nil {
		return cmd, used
	}
	return s.detach(), true
}

func (s *search) Keys() []key.Binding {
	if s.of != "" {
		return s.pageKeys()
	}
	if s.list.Selected() == "" {
		return nil
	}
	keys := []key.Binding{keyDetails()}
	if row := s.selected(); row != nil {
		keys = append(keys, frame.Binding("f", "query"))
		if row.indexed {
			keys = append(keys, s.host.Allowed(rightToRegenerate, "r", "regenerate"))
		}
	}
	if run := s.known(); run != nil && s.pane != run {
		keys = append(keys, frame.Binding("w", "watch the run"))
	}
	return append(keys, keyYAML())
}

func (s *search) View(width, height int) string {
	if s.pane == nil || s.of != "" {
		return s.view(width, height, s.doc)
	}
	pane := s.pane.draw(width, s.host.Theme())
	if height <= len(pane)+3 {
		return lines(pane[:min(len(pane), height)])
	}
	list := lines(fill(s.view(width, height-len(pane), s.doc), height-len(pane)))
	return list + "\n" + lines(pane)
}

// doc is the page about a row.
func (s *search) doc(id string) (widget.Doc, bool) {
	if row := s.read.row(id); row != nil {
		return row.doc(), true
	}
	return s.read.embeddingDoc(id, s.host.Now())
}
