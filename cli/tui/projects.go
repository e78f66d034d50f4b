package tui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// projects lists what is registered, and how it does.
type projects struct {
	table

	lines []projectLine
}

// projectLine is a project as the list shows it.
type projectLine struct {
	api.Project

	status  *api.ProjectStatus // nil: it is not known
	problem string             // why
}

func newProjects(h *frame.Host, _ frame.Place) frame.Screen {
	p := &projects{table: table{host: h}}
	p.value = p.valueOf
	return p
}

func (p *projects) Title() string { return "Projects" }

func (p *projects) Every() time.Duration { return 5 * time.Second }

// statusesAtOnce is how many statuses are asked for at the same time.
const statusesAtOnce = 4

type projectsRead struct{ lines []projectLine }

func (p *projects) Read(ctx context.Context) (tea.Msg, error) {
	var lines []projectLine
	for one, err := range p.host.Client.Projects().All(ctx, client.Query{}) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, projectLine{Project: one})
	}
	slices.SortFunc(lines, func(a, b projectLine) int { return strings.Compare(a.Namespace, b.Namespace) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statusesAtOnce)
	for i := range lines {
		group.Go(func() error {
			status, err := p.host.Client.ProjectStatus(ctx, lines[i].ID)
			switch {
			case client.IsStatus(err, http.StatusNotFound), client.IsStatus(err, http.StatusForbidden): // of this one alone
				lines[i].problem = err.Error()
				return nil
			case err != nil:
				return err
			}
			lines[i].status = status
			return nil
		})
	}
	return projectsRead{lines}, group.Wait()
}

func (p *projects) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case projectsRead:
		p.lines = msg.lines
		p.list.Set(p.section())
	case tea.KeyPressMsg:
		namespace := p.Namespace()
		switch {
		case p.key(msg.String()) || namespace == "" || p.of != "":
		case msg.String() == "enter":
			return p.host.Open("project", frame.Place{Namespace: namespace})
		case msg.String() == "r":
			return confirmReload(p.host, namespace)
		case msg.String() == "v", msg.String() == "D":
			return showPlanned(p.host, namespace, msg.String() == "D")
		}
	}
	return nil
}

// Namespace implements frame.Chooser.
func (p *projects) Namespace() string { return p.list.Selected() }

func (p *projects) Keys() []key.Binding {
	if p.of != "" {
		return p.pageKeys()
	}
	if p.Namespace() == "" {
		return nil
	}
	keys := append([]key.Binding{frame.Binding("enter", "open"), p.host.Allowed(rightToReload, "r", "reload")}, plannedKeys(p.host)...)
	return append(keys, frame.Binding("d", "describe"), keyYAML(), frame.Binding("3", "collections"), frame.Binding("8", "tokens and users"))
}

func (p *projects) View(width, height int) string {
	return p.view(width, height, p.doc)
}

func (p *projects) section() widget.Section {
	s := widget.Section{
		None: p.host.Reach("no projects yet: svcctl project init DIR writes one to start from, svcctl apply DIR serves one"),
		Columns: []widget.Column{
			{Name: "NAMESPACE", Least: 10},
			{Name: "READY"},
			{Name: "PHASE", Rank: 3},
			{Name: "GENERATION", Right: true, Rank: 4},
			{Name: "ERRORS", Right: true, Rank: 1},
			{Name: "NAME", Rank: 5, Least: 12},
			{Name: "AGE", Right: true, Rank: 6},
			{Name: "MESSAGE", Rank: 2, Least: 16},
		},
	}
	for _, line := range p.lines {
		ready, phase, generation, wrong, message := widget.Text("?"), widget.Cell{}, "", "", line.problem
		if line.status != nil {
			condition := line.status.Condition("Ready")
			ready = widget.State(condition.Status)
			phase = widget.State(string(line.status.Phase))
			generation = generations(line.status)
			count, first := problems(line.status)
			wrong = strconv.Itoa(count)
			if condition.Status != "True" {
				message = cmp.Or(first, condition.Message)
			}
		}
		s.Rows = append(s.Rows, widget.Row{ID: line.Project.Namespace, Cells: []widget.Cell{
			widget.Text(line.Project.Namespace), ready, phase, widget.Text(generation), widget.Text(wrong), widget.Text(line.Name),
			widget.Text(output.Age(p.host.Now(), line.CreatedAt.Time)), widget.Text(message),
		}})
	}
	return s
}

// generations are the generation that is served, and the one that its conditions have judged: 4/4.
func generations(s *api.ProjectStatus) string {
	return fmt.Sprintf("%d/%d", s.ObservedGeneration, s.Condition("Ready").ObservedGeneration)
}

// problems counts the errors of a config, and gives the first.
func problems(s *api.ProjectStatus) (n int, first string) {
	for _, p := range s.Problems {
		if p.Warning {
			continue
		}
		if n++; n == 1 {
			first = command.ProblemLine(p)
		}
	}
	return n, first
}

// rightToReload is what a reload takes.
const rightToReload = "project.reload"

// confirmReload asks whether a project is to be reloaded, and does it.
func confirmReload(h *frame.Host, namespace string) tea.Cmd {
	if !h.May(rightToReload) {
		return h.Lack(rightToReload)
	}
	h.Confirm("Reload "+namespace+"? Its files are read again, and served if they are valid.", func() tea.Cmd {
		return h.Act("reloading "+namespace, func(ctx context.Context) (string, error) {
			result, err := h.Patient.Reload(ctx, namespace)
			if err != nil {
				return "", err
			}
			if !result.Changed {
				return namespace + ": the files are those that are served already", nil
			}
			return fmt.Sprintf("%s: generation %d is served", namespace, result.Generation), nil
		})
	})
	return nil
}

// projectValue is a project, with how it does.
type projectValue struct {
	Project api.Project        `json:"project"`
	Status  *api.ProjectStatus `json:"status,omitempty"`
	Problem string             `json:"problem,omitempty"` // why that is not known
}

func (p *projects) line(namespace string) *projectLine {
	return first(p.lines, func(line *projectLine) bool { return line.Namespace == namespace })
}

func (p *projects) valueOf(namespace string) any {
	if one := p.line(namespace); one != nil {
		return projectValue{one.Project, one.status, one.problem}
	}
	return nil
}

// doc is the page about a project.
func (p *projects) doc(namespace string) (d widget.Doc, ok bool) {
	one := p.line(namespace)
	if one == nil {
		return d, false
	}
	d.Heading("Project " + one.Project.Namespace)
	d.Field("Name", one.Name)
	d.Field("Description", one.Description)
	d.Field("Files", one.ConfigFile)
	d.Field("Enabled", strconv.FormatBool(one.Enabled))
	if one.Suspended {
		d.State("Suspended", "what is served stays as it is, whatever the files say", output.ToneWarn)
	}
	d.Field("Organization", one.OrgID)
	d.Field("Registered", when(one.CreatedAt))
	d.State("Problem", one.problem, output.ToneBad)
	if one.status == nil {
		return d, true
	}
	d.State("Phase", string(one.status.Phase), output.ToneOf(string(one.status.Phase)))
	d.Field("Generation", generations(one.status))
	d.Heading("Conditions")
	for _, c := range one.status.Conditions {
		d.State(c.Type, strings.TrimSuffix(c.Status+"  "+c.Message, "  "), output.ToneOfCondition(c.Type, c.Status))
	}
	return d, true
}
