package tui

import (
	"strconv"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/tui/widget"
	"github.com/svcctl/svc/pkg/api"
)

// What rows of the screens stand for, as y shows it.

// projectValue is a project, with how it does.
type projectValue struct {
	Project api.Project        `json:"project"`
	Status  *api.ProjectStatus `json:"status,omitempty"`
	Problem string             `json:"problem,omitempty"` // why that is not known
}

func (p *projects) line(namespace string) *projectLine {
	for i := range p.lines {
		if p.lines[i].Project.Namespace == namespace {
			return &p.lines[i]
		}
	}
	return nil
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

func (p *project) valueOf(id string) any {
	if p.read == nil {
		return nil
	}
	for _, c := range p.read.status.Conditions {
		if id == "condition/"+c.Type {
			return c
		}
	}
	for i, x := range p.read.status.Problems {
		if id == "problem/"+strconv.Itoa(i) {
			return x
		}
	}
	for _, e := range p.events {
		if id == eventID(e) {
			return e
		}
	}
	return nil
}

func (s *snapshots) valueOf(id string) any {
	if s.read == nil {
		return nil
	}
	kind, id, _ := strings.Cut(id, "/")
	if run := s.read.run(id); kind == kindRun && run != nil {
		return run
	}
	if one := s.read.snapshot(id); kind == kindSnapshot && one != nil {
		return one
	}
	return nil
}

// searchValue is a search, with how its index stands.
type searchValue struct {
	Collection string                 `json:"collection"`
	Search     *api.SearchDescription `json:"search,omitempty"`
	Index      *api.SearchState       `json:"index,omitempty"`
}

func (s *search) valueOf(id string) any {
	if s.read == nil {
		return nil
	}
	if row := s.read.row(id); row != nil {
		v := searchValue{Collection: row.collection}
		if row.described {
			v.Search = &row.about
		}
		if row.indexed {
			v.Index = &row.state
		}
		return v
	}
	for _, g := range s.read.groups {
		if id == groupID(g) {
			return g
		}
		for _, m := range g.Members {
			if id == memberID(g, m) {
				return m
			}
		}
	}
	return nil
}
