package service

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewStatus makes svcctl status.
func NewStatus(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how the service and its projects are",
		Long: `Show how the service is: its version, its health, its store, and of each project that you may see whether it is Ready, what is wrong in its
config, and how many records wait to be indexed for searches. svcctl project status shows all conditions of one project.

The exit code is 0 when the service takes requests, whatever its projects are, and 7 when it doesn't. svcctl check is stricter.`,
		Example: `  svcctl status
  svcctl status -o json
  svcctl status --jq '.projects[] | select(.ready != "True") | .namespace'`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), st) },
	}
}

// status is what svcctl status prints.
type status struct {
	Server   string            `json:"server"`
	Version  string            `json:"version"`
	Status   string            `json:"status"` // of the service: ok or not ready
	Errors   []string          `json:"errors,omitempty"`
	Checks   []api.HealthCheck `json:"checks"`
	Projects []projectState    `json:"projects"`
}

// projectState is how a project is. What the caller may not see of it, or does not exist, is left out.
type projectState struct {
	Namespace  string    `json:"namespace"`
	Phase      api.Phase `json:"phase,omitempty"`
	Ready      string    `json:"ready,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	Generation int64     `json:"generation,omitempty"`
	Problems   int       `json:"problems"`           // of its config that keep it from being served
	Indexing   *int64    `json:"indexing,omitempty"` // records that wait to be indexed
	Problem    string    `json:"problem,omitempty"`  // why it is not known
}

func runStatus(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	s := status{Server: c.Server(), Checks: []api.HealthCheck{}, Projects: []projectState{}}
	health, refused := readHealth(ctx, c)
	if refused != nil && health == nil {
		return refused
	}
	s.Status, s.Errors = health.Status, health.Errors
	s.Checks = append(s.Checks, health.Checks...)
	version, err := c.Version(ctx)
	if err != nil {
		return err
	}
	s.Version = version.Version
	if refused == nil {
		if s.Projects, err = readProjects(ctx, c); err != nil {
			return err
		}
	}
	if err := s.print(st); err != nil {
		return err
	}
	return refused
}

// readHealth asks whether the service takes requests. One that doesn't says so with its error.
func readHealth(ctx context.Context, c *client.Client) (*api.Health, error) {
	h, err := c.Checks(ctx)
	if err == nil {
		return h, nil
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusServiceUnavailable {
		return &api.Health{Status: "not ready", Errors: []string{refused.Error()}}, err
	}
	return nil, err
}

// atOnce is how many projects are asked about at the same time.
const atOnce = 4

func readProjects(ctx context.Context, c *client.Client) ([]projectState, error) {
	var all []api.Project
	for p, err := range c.Projects().All(ctx, client.Query{}) {
		if client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusUnauthorized) {
			return []projectState{}, nil // whoever may see none sees the service
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b api.Project) int { return strings.Compare(a.Namespace, b.Namespace) })
	out := make([]projectState, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, p := range all {
		group.Go(func() error {
			var err error
			out[i], err = readProject(ctx, c, p)
			return err
		})
	}
	return out, group.Wait()
}

func readProject(ctx context.Context, c *client.Client, p api.Project) (projectState, error) {
	out := projectState{Namespace: p.Namespace}
	s, err := c.ProjectStatus(ctx, p.ID)
	if client.IsStatus(err, http.StatusForbidden) || client.IsStatus(err, http.StatusNotFound) { // of this one alone
		out.Problem = err.Error()
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Phase, out.Generation = s.Phase, s.ObservedGeneration
	for _, condition := range s.Conditions {
		if condition.Type == "Ready" {
			out.Ready, out.Reason, out.Message = condition.Status, condition.Reason, condition.Message
		}
	}
	for _, problem := range s.Problems {
		if !problem.Warning {
			out.Problems++
		}
	}
	if worker, err := c.SearchWorker(ctx, p.Namespace); err == nil { // which takes a right of its own
		var sum int64
		for _, q := range worker.Collections {
			sum += int64(q.Pending)
		}
		out.Indexing = &sum
	}
	return out, nil
}

func (s status) print(st *command.State) error {
	p := st.Printer()
	if !p.ForPeople() {
		var names []string
		for _, project := range s.Projects {
			names = append(names, "project/"+project.Namespace)
		}
		return p.Print(output.Result{Value: s, Names: names})
	}
	f := output.NewFields()
	f.Add("Server", s.Server)
	f.Add("Version", s.Version)
	f.Add("Status", p.Style.Toned(s.Status, toneOf(s.Status)))
	for _, text := range s.Errors {
		f.Add("Error", text)
	}
	for _, check := range s.Checks {
		text := check.Status
		if check.Message != "" {
			text += ": " + check.Message
		}
		f.Add("  "+check.Name, p.Style.Toned(text, toneOf(check.Status)))
	}
	if err := f.Write(p.W); err != nil || len(s.Projects) == 0 {
		return err
	}
	t := output.NewTable("NAMESPACE", "READY", "PHASE", "GENERATION", "PROBLEMS", "INDEXING", "MESSAGE")
	for _, project := range s.Projects {
		ready := p.Style.Toned(cmp.Or(project.Ready, "-"), output.ToneOfCondition("Ready", cmp.Or(project.Ready, "Unknown")))
		message := cmp.Or(project.Problem, project.Message)
		if project.Ready == "True" { // of which there is nothing to say
			message = ""
		}
		t.Row(project.Namespace, ready, cmp.Or(string(project.Phase), "-"), project.Generation, project.Problems, count(project.Indexing), message)
	}
	wide := p.Format == output.FormatWide
	if !wide && st.OutWidth > 0 && t.Fit(st.OutWidth) {
		defer st.Notef("-o wide shows the messages whole")
	}
	if err := p.Heading("Projects"); err != nil {
		return err
	}
	return p.Print(output.Result{Value: map[string]any{"items": s.Projects}, Table: t})
}

// count shows a number that may not be known.
func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func toneOf(status string) output.Tone {
	switch status {
	case api.CheckOK:
		return output.ToneGood
	case api.CheckDegraded, warn:
		return output.ToneWarn
	}
	return output.ToneBad
}
