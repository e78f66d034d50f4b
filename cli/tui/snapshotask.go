package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// profileChoice is where the profile is chosen that a snapshot is taken by; that of backups is one of everything.
type profileChoice struct {
	table

	of       *snapshots
	profiles []api.SnapshotProfile
	asked    bool
}

func newProfileChoice(h *frame.Host, of *snapshots) frame.Screen {
	return &profileChoice{table: table{host: h, bare: true}, of: of}
}

func (p *profileChoice) Title() string { return "Take a snapshot" }

func (p *profileChoice) Every() time.Duration { return 5 * time.Second }

func (p *profileChoice) Read(ctx context.Context) (tea.Msg, error) {
	return p.host.Client.SnapshotProfiles(ctx, p.of.namespace)
}

func (p *profileChoice) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *api.List[api.SnapshotProfile]:
		p.profiles = slices.DeleteFunc(msg.Items, func(x api.SnapshotProfile) bool { return x.Own && x.Name != api.ProfileBackup }) // which nobody takes one by
		p.list.Set(p.section())
	case snapshotStarted:
		return p.of.started(p.host, msg.run)
	case frame.Failed:
		p.asked = false
	case tea.KeyPressMsg:
		name := strings.TrimPrefix(p.list.Selected(), "profile/")
		if p.key(msg.String()) || msg.String() != "enter" || name == "" || p.asked {
			return nil
		}
		p.asked = true
		return startRun(p.host, func(ctx context.Context) (*api.Run, error) {
			if name == api.ProfileBackup {
				return p.host.Client.CreateBackup(ctx, p.of.namespace)
			}
			return p.host.Client.CreateSnapshot(ctx, p.of.namespace, name)
		})
	}
	return nil
}

// started goes back from a screen above to the run that was started there.
func (s *snapshots) started(above *frame.Host, run *api.Run) tea.Cmd {
	back := above.Open("snapshots", frame.Place{Namespace: s.namespace})
	return tea.Batch(back, s.begin(run, true))
}

func (p *profileChoice) section() widget.Section {
	now := p.host.Now()
	s := widget.Section{Title: "By which profile?", None: "the project has no snapshot profiles that you may use: the key snapshots of its config declares them", Columns: []widget.Column{
		{Name: "PROFILE"}, {Name: "SNAPSHOTS", Right: true, Rank: 3}, {Name: "LAST", Right: true, Rank: 4}, {Name: "COLLECTIONS", Rank: 2, Least: 12},
		{Name: "MEDIA", Rank: 5}, {Name: "KEEPS", Rank: 6}, {Name: "DESCRIPTION", Rank: 1, Least: 12},
	}}
	for i := range p.profiles {
		one := &p.profiles[i]
		last, media := "", "yes"
		if one.LastSnapshot != nil {
			last = output.Age(now, one.LastSnapshot.ConsistentAt.Time)
		}
		if !one.IncludeMedia {
			media = "no"
		}
		s.Rows = append(s.Rows, widget.Row{ID: "profile/" + one.Name, Cells: []widget.Cell{
			widget.Text(one.Name), widget.Text(strconv.Itoa(one.Snapshots)), widget.Text(last), widget.Text(snapshot.ContentOf(one)), widget.Text(media),
			widget.Text(snapshot.RetentionOf(one.Retention)), widget.Text(one.Description),
		}})
	}
	return s
}

func (p *profileChoice) Keys() []key.Binding {
	if p.list.Selected() == "" {
		return nil
	}
	return []key.Binding{frame.Binding("enter", "take it")}
}

func (p *profileChoice) View(width, height int) string { return p.view(width, height, nil) }

// restore is where a restore is confirmed, by typing the namespace.
type restore struct {
	host  *frame.Host
	of    *snapshots
	snap  api.Snapshot
	merge bool
	asked bool
	input textinput.Model
}

func newRestore(h *frame.Host, of *snapshots, snap api.Snapshot) frame.Screen {
	return &restore{host: h, of: of, snap: snap, input: frame.NewInput("> ")}
}

func (r *restore) Title() string { return "Restore " + r.snap.ID }

// Typing implements frame.Typer.
func (r *restore) Typing() bool { return true }

func (r *restore) Update(msg tea.Msg) (cmd tea.Cmd) {
	switch msg := msg.(type) {
	case snapshotStarted:
		return r.of.started(r.host, msg.run)
	case frame.Failed:
		r.asked = false
	case tea.KeyPressMsg:
		switch msg.String() {
		case "enter":
			return r.start()
		case "tab":
			r.merge = !r.merge
			return nil
		}
		r.input, cmd = r.input.Update(msg)
	case tea.PasteMsg:
		r.input, cmd = r.input.Update(msg)
	}
	return cmd
}

func (r *restore) start() tea.Cmd {
	if r.asked {
		return nil
	}
	if strings.TrimSpace(r.input.Value()) != r.of.namespace {
		return r.host.Say("type " + r.of.namespace + " to restore, esc goes back")
	}
	r.asked = true
	how := api.SnapshotRestore{Mode: r.mode()}
	return startRun(r.host, func(ctx context.Context) (*api.Run, error) {
		return r.host.Client.RestoreSnapshot(ctx, r.of.namespace, r.snap.ID, how)
	})
}

func (r *restore) mode() string {
	if r.merge {
		return api.RestoreMerge
	}
	return api.RestoreReplace
}

func (r *restore) Keys() []key.Binding {
	return []key.Binding{frame.Binding("enter", "restore"), frame.Binding("tab", "replace or merge"), frame.Binding("esc", "back")}
}

func (r *restore) View(width, height int) string {
	t := r.host.Theme()
	names := make([]string, len(r.snap.Collections))
	for i, c := range r.snap.Collections {
		names[i] = c.Name
	}
	what := "records that the snapshot does not have go"
	if r.merge {
		what = "records that the snapshot does not have stay"
	}
	var out []string
	add := func(text string) { out = append(out, widget.Wrap(output.Escape(text), width)...) }
	add(fmt.Sprintf("Restore %s into %s: %s of %s, and their files, as they were %s ago.", r.snap.ID, r.of.namespace, output.Count(r.snap.Counts.Documents, "record"),
		strings.Join(names, ", "), output.Age(r.host.Now(), r.snap.ConsistentAt.Time)))
	if damage := snapshot.DamageOf(&r.snap); damage != nil {
		for _, line := range widget.Wrap("It is damaged: "+output.Count(damage.Problems, "problem")+". A restore that needs what is damaged is refused, and changes nothing.", width) {
			out = append(out, t.Paint(output.ToneBad, line))
		}
	}
	out = append(out, "", widget.Cut(t.Title.Render("Mode "+r.mode())+": "+what, width))
	add("What is there before is kept as a snapshot. Until the last step nothing changes; whoever writes meanwhile is told to come again.")
	r.input.SetWidth(max(width-4, 1))
	out = append(out, "", widget.Cut("Type "+t.Title.Render(output.Escape(r.of.namespace))+" to restore.", width), widget.Cut(r.input.View(), width))
	return lines(out[max(len(out)-max(height, 0), 0):])
}

// snapshotDiff shows how the records of now differ from those of a snapshot.
type snapshotDiff struct {
	host          *frame.Host
	namespace, id string
	diff          *api.SnapshotDiff
	pager         widget.Pager
}

func toneOfChange(change string) output.Tone {
	return map[string]output.Tone{api.DiffAdded: output.ToneGood, api.DiffRemoved: output.ToneBad, api.DiffChanged: output.ToneWarn}[change]
}

func newSnapshotDiff(h *frame.Host, namespace, id string) frame.Screen {
	return &snapshotDiff{host: h, namespace: namespace, id: id}
}

func (s *snapshotDiff) Title() string { return "Since " + s.id }

// Every implements frame.Reader: reading all records is not done again by itself.
func (s *snapshotDiff) Every() time.Duration { return 0 }

func (s *snapshotDiff) Read(ctx context.Context) (tea.Msg, error) {
	return s.host.Patient.DiffSnapshot(ctx, s.namespace, s.id, client.SnapshotDiffQuery{})
}

func (s *snapshotDiff) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *api.SnapshotDiff:
		s.diff = msg
	case tea.KeyPressMsg:
		s.pager.Key(msg.String())
	}
	return nil
}

func (s *snapshotDiff) Keys() []key.Binding { return []key.Binding{keyScroll()} }

func (s *snapshotDiff) View(width, height int) string {
	var d widget.Doc
	d.Heading("What has changed since " + s.id)
	if s.diff.Same {
		d.Text("Nothing differs.")
	}
	for _, c := range s.diff.Collections {
		files := ""
		if c.Files > 0 {
			files = fmt.Sprintf(", files %d", c.Files)
		}
		d.Field(c.Collection, fmt.Sprintf("added %d, removed %d, changed %d, same %d%s", c.Added, c.Removed, c.Changed, c.Same, files))
	}
	for _, c := range s.diff.Collections {
		if len(c.Records)+len(c.FileDiffs) == 0 {
			continue
		}
		d.Heading(c.Collection)
		for _, r := range c.Records {
			fields := strings.Join(r.Paths, ", ")
			if r.More {
				fields += ", …"
			}
			d.State(r.ID, strings.TrimSpace(r.Change+"  "+fields), toneOfChange(r.Change))
		}
		for _, f := range c.FileDiffs {
			d.State(f.Record, "file "+f.Change+"  "+f.Field+"/"+f.Name, toneOfChange(f.Change))
		}
		if c.More {
			d.Text(s.host.Reach("… and more: svcctl snapshot diff --limit names them"))
		}
	}
	return s.pager.View(d, width, height, s.host.Theme())
}
