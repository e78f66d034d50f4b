package user

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl user.
func NewCmd(st *command.State) *cobra.Command {
	m := model(st)
	return command.Group("user", "Manage who may log in",
		m.ListCmd(st, "List the users that you may see", "no users that you may see: svcctl user create makes one"),
		m.GetCmd(st, "Show a user"), newCreate(st, nil), newUpdate(st, nil), m.DeleteCmd(st, "Delete a user"), newPasswd(st, nil))
}

// model is what the verbs are made of.
func model(st *command.State) command.Model[api.User, api.UserWrite] {
	return command.Model[api.User, api.UserWrite]{
		Noun: "user", Ref: "USERNAME", Sample: "ann", Find: command.FindUser, Table: table, Resolve: resolve,
		With:  " with all their logins and personal access tokens",
		Items: (*client.Client).Users,
		ID:    func(u api.User) string { return u.ID },
		Name:  func(u api.User) string { return u.Username },

		Refs:     func(u api.User) command.Refs { return command.Refs{Orgs: u.OrgIDs, Teams: u.TeamIDs} },
		Complete: st.CompleteUsers,
	}
}

func table(st *command.State, names command.Names, users ...api.User) *output.Table {
	t := output.NewTable("USERNAME", "NAME", "EMAIL", "ADMIN", "ACTIVE", "LAST LOGIN", "SCOPES", "ORGS", "TEAMS", "+ID")
	for _, u := range users {
		last := output.Age(st.Now(), u.LastLoginAt.Time)
		if last != "" {
			last += " ago"
		}
		t.Row(u.Username, u.Name, u.Email, u.IsAdmin, u.Active, last, strings.Join(u.Scopes, ", "), names.Of(u.OrgIDs...), names.Of(u.TeamIDs...), u.ID)
	}
	return t
}

// profile are the flags that create and update share. One that was not given leaves its member nil.
type profile struct {
	Username              string // a flag of update alone
	Email, Name, Language string
	Admin, Active         bool
	Scopes, Orgs, Teams   []string
}

func (p *profile) register(st *command.State, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Email, "email", "", "e-mail address")
	cmd.Flags().StringVar(&p.Name, "name", "", "name for people")
	cmd.Flags().StringVar(&p.Language, "language", "", "language code, such as en")
	cmd.Flags().BoolVar(&p.Admin, "admin", false, "may do everything")
	cmd.Flags().BoolVar(&p.Active, "active", true, "may log in")
	cmd.Flags().StringSliceVar(&p.Scopes, "scope", nil, "right to give, such as project.read or project.reload (repeat, or separate by commas; svcctl token scopes lists them)")
	cmd.Flags().StringSliceVar(&p.Orgs, "org", nil, `organization to be in, by slug or id (repeat, or separate by commas; "": no limit to organizations)`)
	cmd.Flags().StringSliceVar(&p.Teams, "team", nil, `team to be in, by slug or id (repeat, or separate by commas; "": none)`)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"scope": command.CompleteFlag(st.CompleteScopes),
		"org":   command.CompleteFlag(st.CompleteOrgs), "team": command.CompleteFlag(st.CompleteTeams),
	})
}

func (p *profile) write(changed func(string) bool) api.UserWrite {
	var w api.UserWrite
	for flag, set := range map[string]func(){
		"username": func() { w.Username = &p.Username },
		"email":    func() { w.Email = &p.Email },
		"name":     func() { w.Name = &p.Name },
		"language": func() { w.Language = &p.Language },
		"admin":    func() { w.IsAdmin = &p.Admin },
		"active":   func() { w.Active = &p.Active },
		"scope":    func() { w.Scopes = &p.Scopes },
		"org":      func() { w.OrgIDs = &p.Orgs },
		"team":     func() { w.TeamIDs = &p.Teams },
	} {
		if changed(flag) {
			set()
		}
	}
	return w
}

// resolve puts the ids of organizations and teams in the place of their slugs.
func resolve(ctx context.Context, c *client.Client, w *api.UserWrite) error {
	if w.OrgIDs != nil {
		ids, err := command.IDs(ctx, c, *w.OrgIDs, command.OrgID)
		if err != nil {
			return err
		}
		w.OrgIDs = &ids
	}
	if w.TeamIDs != nil {
		ids, err := command.IDs(ctx, c, *w.TeamIDs, command.TeamID)
		if err != nil {
			return err
		}
		w.TeamIDs = &ids
	}
	return nil
}
