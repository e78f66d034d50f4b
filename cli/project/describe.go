package project

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

func newDescribe(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "describe [NAMESPACE]",
		Short: "Show everything of a project: registration, conditions, problems, events",
		Long: `Show everything that there is to say of a project: its registration, its conditions, what is wrong in its config, and its
latest events. svcctl project status is the short form, and svcctl project tree shows what it is made of.`,
		Example: `  svcctl project describe blog
  svcctl project describe blog -o yaml`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return runDescribe(ctx, st, namespace)
		}),
	}
}

// described is what svcctl project describe prints.
type described struct {
	Project *api.Project       `json:"project"`
	Status  *api.ProjectStatus `json:"status"`
	Events  []api.ProjectEvent `json:"events"` // the latest last
}

// maxEvents is how many events are shown to people.
const maxEvents = 10

func runDescribe(ctx context.Context, st *command.State, namespace string) error {
	c, p, err := find(ctx, st, namespace)
	if err != nil {
		return err
	}
	status, err := c.ProjectStatus(ctx, p.ID)
	if err != nil {
		return err
	}
	d := described{Project: p, Status: status, Events: []api.ProjectEvent{}}
	switch page, err := c.ProjectEvents(ctx, p.Namespace); {
	case err == nil:
		d.Events = append(d.Events, page.Items...)
		slices.Reverse(d.Events) // as they happened
	case !client.IsStatus(err, http.StatusForbidden) && !client.IsStatus(err, http.StatusNotFound):
		return err
	}
	printer := st.Printer()
	if !printer.ForPeople() {
		return printer.Print(output.Result{Value: d, Names: []string{"project/" + p.Namespace}})
	}
	f := output.NewFields()
	f.Add("Id", p.ID)
	f.Add("Description", p.Description)
	f.Add("Organization", p.OrgID)
	f.Add("Enabled", strconv.FormatBool(p.Enabled))
	f.Add("Suspended", strconv.FormatBool(p.Suspended))
	f.Add("Registered", p.CreatedAt.UTC().Format(api.TimeLayout))
	if err := showStatus(st, p, status); err != nil {
		return err
	}
	if err := printer.Heading("Registration"); err != nil {
		return err
	}
	if err := f.Write(printer.W); err != nil {
		return err
	}
	latest := d.Events[max(len(d.Events)-maxEvents, 0):]
	events := output.NewTable("LAST", "TYPE", "REASON", "COUNT", "MESSAGE")
	for _, e := range latest {
		events.Row(output.Age(st.Now(), e.LastSeen.Time), eventType(printer, e), e.Reason, e.Count, e.Message)
	}
	return printer.Section("Events", st.FitTable(events))
}
