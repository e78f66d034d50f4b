package tui

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/frame"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// planned shows what the service makes of a project's files as they are on its disk now: whether they are valid, or what a reload would
// change. It asks for a plan, which changes nothing.
type planned struct {
	host      *frame.Host
	namespace string
	diff      bool // what would change is shown, not whether the files are valid
	read      *plannedRead
	pager     widget.Pager
}

// plannedRead is what the service says: a plan, or why there is none; and what else differs.
type plannedRead struct {
	plan     *api.Plan // nil: the files are not valid
	problems []api.ConfigProblem
	drift    *api.Drift // nil: it is not known
}

// showPlanned opens it from a screen.
func showPlanned(h *frame.Host, namespace string, diff bool) tea.Cmd {
	if !h.May(rightToReload) {
		return h.Lack(rightToReload)
	}
	return h.Push(func(h *frame.Host) frame.Screen { return &planned{host: h, namespace: namespace, diff: diff} })
}

// plannedKeys are those that open it.
func plannedKeys(h *frame.Host) []key.Binding {
	return []key.Binding{h.Allowed(rightToReload, "v", "validate"), h.Allowed(rightToReload, "D", "diff")}
}

func (p *planned) Title() string {
	if p.diff {
		return "Diff " + p.namespace
	}
	return "Validate " + p.namespace
}

// Namespace implements frame.Chooser.
func (p *planned) Namespace() string { return p.namespace }

// Every implements frame.Reader: a plan may look at all records, and is not made again by itself.
func (p *planned) Every() time.Duration { return 0 }

func (p *planned) Read(ctx context.Context) (tea.Msg, error) {
	plan, err := p.host.Patient.Plan(ctx, p.namespace, nil)
	if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.Problem.Problems) > 0 {
		return &plannedRead{problems: refused.Problem.Problems}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &plannedRead{plan: plan, problems: plan.Warnings}
	out.drift, err = p.host.Patient.Drift(ctx, p.namespace)
	if client.IsStatus(err, http.StatusForbidden) {
		out.drift, err = nil, nil
	}
	return out, err
}

func (p *planned) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *plannedRead:
		p.read = msg
	case tea.KeyPressMsg:
		switch pressed := msg.String(); pressed {
		case "v", "D":
			if diff := pressed == "D"; diff != p.diff {
				p.diff, p.pager = diff, widget.Pager{}
			}
		case "r":
			return confirmReload(p.host, p.namespace)
		default:
			p.pager.Key(pressed)
		}
	}
	return nil
}

func (p *planned) Keys() []key.Binding {
	other := frame.Binding("D", "diff")
	if p.diff {
		other = frame.Binding("v", "validate")
	}
	return []key.Binding{keyScroll(), other, p.host.Allowed(rightToReload, "r", "reload"), frame.Binding("ctrl+r", "look again")}
}

func (p *planned) View(width, height int) string {
	var d widget.Doc
	if p.diff && p.read.plan != nil {
		p.changes(&d)
	} else {
		p.validity(&d)
	}
	return p.pager.View(d, width, height, p.host.Theme())
}

// validity tells whether the files are valid, with all problems by their places.
func (p *planned) validity(d *widget.Doc) {
	if plan := p.read.plan; plan == nil {
		d.Heading("The files of " + p.namespace + " are not valid")
		d.Text("A reload is refused; what is served stays as it is.")
	} else {
		d.Heading("The files of " + p.namespace + " are valid")
		if plan.Empty {
			d.Text("They are what is served: a reload would change nothing.")
		} else {
			d.Text("D shows what a reload would change: " + output.Count(len(plan.Items), "change") + ".")
		}
	}
	if len(p.read.problems) > 0 {
		d.Text("")
	}
	for _, x := range p.read.problems {
		name, tone := "error", output.ToneBad
		if x.Warning {
			name, tone, x.Warning = "warning", output.ToneWarn, false // the word is in front already
		}
		d.State(name, command.ProblemLine(x), tone)
	}
}

// changes tells what a reload would change, and what differs from what is served for other reasons.
func (p *planned) changes(d *widget.Doc) {
	plan := p.read.plan
	d.Heading("What a reload of " + p.namespace + " would change")
	if plan.Empty {
		d.Text("Nothing: the files are what is served.")
	} else {
		d.Item("", output.Count(len(plan.Items), "change")+", the greatest risk is "+string(plan.Risk)+".", output.ToneNone)
	}
	for _, it := range plan.Items {
		sign, tone := signOf(it.Action)
		d.Text("")
		d.Item(sign, it.Kind+" "+it.Object+"  "+string(it.Risk), tone)
		d.Item("  ", it.Detail, output.ToneNone)
		if len(it.Samples) > 0 {
			d.Item("  ", "such as "+strings.Join(it.Samples, ", "), output.ToneNone)
		}
	}
	if p.read.drift == nil {
		return
	}
	drifted := func(title string, items []api.DriftItem, tone output.Tone) {
		for _, it := range items {
			if it.Kind == api.DriftConfig { // which the plan tells
				continue
			}
			if title != "" {
				d.Heading(title)
				title = ""
			}
			d.Item("! ", it.Kind+" "+it.Object+" "+it.Action, tone)
			d.Item("  ", it.Detail, output.ToneNone)
		}
	}
	drifted("What is not as it is declared", p.read.drift.Items, output.ToneWarn)
	drifted("What the service is at now", p.read.drift.Pending, output.ToneNone)
}

// signOf gives what stands before a change.
func signOf(action string) (string, output.Tone) {
	switch action {
	case api.PlanCreate:
		return "+ ", output.ToneGood
	case api.PlanDelete:
		return "- ", output.ToneBad
	}
	return "~ ", output.ToneWarn
}
