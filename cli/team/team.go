package team

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl team.
func NewCmd(st *command.State) *cobra.Command {
	m := model(st)
	return command.Group("team", "Manage teams, whose users share rights",
		m.ListCmd(st, "List the teams that you may see", "no teams that you may see: svcctl team create makes one"),
		m.GetCmd(st, "Show a team, by slug or id"), newCreate(st), newUpdate(st), m.DeleteCmd(st, "Delete a team; its users stay"))
}

// model is what the verbs are made of.
func model(st *command.State) command.Model[api.Team, api.TeamWrite] {
	return command.Model[api.Team, api.TeamWrite]{
		Noun: "team", Ref: "SLUG", Sample: "editors", Find: command.FindTeam, Table: table,
		Items:    (*client.Client).Teams,
		ID:       func(t api.Team) string { return t.ID },
		Name:     func(t api.Team) string { return t.Slug },
		Refs:     refs,
		Complete: st.CompleteTeams,
		Resolve:  resolve,
	}
}

func table(st *command.State, names command.Names, teams ...api.Team) *output.Table {
	t := output.NewTable("SLUG", "NAME", "SCOPES", "ORG", "AGE", "+ID", "+DESCRIPTION")
	for _, x := range teams {
		t.Row(x.Slug, x.Name, strings.Join(x.Scopes, ", "), names.Of(refs(x).Orgs...), output.Age(st.Now(), x.CreatedAt.Time), x.ID, x.Description)
	}
	return t
}

func refs(t api.Team) command.Refs {
	if t.OrgID == "" {
		return command.Refs{}
	}
	return command.Refs{Orgs: []string{t.OrgID}}
}

// profile are the flags that create and update share. One that was not given leaves its member nil.
type profile struct {
	Name              string // a flag of update alone
	Slug, Description string
	Org               string // slug or id; "" is none
	Scopes            []string
}

func (p *profile) register(st *command.State, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Slug, "slug", "", "short name, as in the permission set team:<slug> (default: made of the name)")
	cmd.Flags().StringVar(&p.Description, "description", "", "what it is for")
	cmd.Flags().StringVar(&p.Org, "org", "", `organization that it belongs to, by slug or id ("": none)`)
	cmd.Flags().StringSliceVar(&p.Scopes, "scope", nil, "right of all its users, such as project.read (repeat, or separate by commas; svcctl token scopes lists them)")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"org": command.CompleteFlag(st.CompleteOrgs), "scope": command.CompleteFlag(st.CompleteScopes)})
}

func (p *profile) write(changed func(string) bool) api.TeamWrite {
	var w api.TeamWrite
	if changed("name") {
		w.Name = &p.Name
	}
	if changed("slug") {
		w.Slug = &p.Slug
	}
	if changed("description") {
		w.Description = &p.Description
	}
	if changed("org") {
		w.OrgID = &p.Org
	}
	if changed("scope") {
		w.Scopes = &p.Scopes
	}
	return w
}

// resolve puts the id of the organization in the place of its slug.
func resolve(ctx context.Context, c *client.Client, w *api.TeamWrite) error {
	if w.OrgID == nil {
		return nil
	}
	id, err := command.OrgID(ctx, c, *w.OrgID)
	w.OrgID = &id
	return err
}
