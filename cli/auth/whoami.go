package auth

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// NewWhoami makes svcctl whoami.
func NewWhoami(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:               "whoami",
		Short:             "Show who you are to the service",
		Example:           `  svcctl whoami -o yaml`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runWhoami(cmd.Context(), st) },
	}
}

func runWhoami(ctx context.Context, st *command.State) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	p := st.Printer()
	if !p.ForPeople() {
		name := me.Kind
		if me.Username != "" {
			name = "user/" + me.Username
		}
		return p.Print(output.Result{Value: me, Names: []string{name}})
	}
	f := output.NewFields()
	f.Add("Kind", me.Kind)
	f.Add("Username", me.Username)
	f.Add("Name", me.Name)
	f.Add("Email", me.Email)
	admin := me.IsAdmin || me.Kind == "admin"
	f.Add("Administrator", strconv.FormatBool(admin))
	f.Add("Scopes", scopes(me.Scopes, admin))
	names := command.NamesOf(ctx, c, command.Refs{Orgs: me.OrgIDs, Teams: me.TeamIDs})
	f.Add("Organizations", names.Of(me.OrgIDs...))
	f.Add("Teams", names.Of(me.TeamIDs...))
	f.Add("Server", c.Server())
	f.Add("Context", st.ContextName())
	if !me.ExpiresAt.IsZero() {
		f.Add("Valid until", me.ExpiresAt.UTC().Format(api.TimeLayout))
	}
	return f.Write(p.W)
}

// scopes says which system rights somebody has.
func scopes(list []string, admin bool) string {
	switch {
	case admin:
		return "all"
	case len(list) == 0:
		return "none"
	}
	return strings.Join(list, ", ")
}
