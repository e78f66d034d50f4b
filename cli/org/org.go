package org

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl org.
func NewCmd(st *command.State) *cobra.Command {
	m := model(st)
	return command.Group("org", "Manage organizations, whose users see no other's projects",
		m.ListCmd(st, "List the organizations that you may see", "no organizations that you may see: svcctl org create makes one"),
		m.GetCmd(st, "Show an organization, by slug or id"), newCreate(st), newUpdate(st), m.DeleteCmd(st, "Delete an organization that nothing belongs to"))
}

// model is what the verbs are made of.
func model(st *command.State) command.Model[api.Org, api.OrgWrite] {
	return command.Model[api.Org, api.OrgWrite]{
		Noun: "org", Ref: "SLUG", Sample: "acme", Find: command.FindOrg, Table: table,
		Items:    (*client.Client).Orgs,
		ID:       func(o api.Org) string { return o.ID },
		Name:     func(o api.Org) string { return o.Slug },
		Complete: st.CompleteOrgs,
	}
}

func table(st *command.State, _ command.Names, orgs ...api.Org) *output.Table {
	t := output.NewTable("SLUG", "NAME", "ACTIVE", "AGE", "+ID", "+DESCRIPTION")
	for _, o := range orgs {
		t.Row(o.Slug, o.Name, o.Active, output.Age(st.Now(), o.CreatedAt.Time), o.ID, o.Description)
	}
	return t
}

// profile are the flags that create and update share. One that was not given leaves its member nil.
type profile struct {
	Name              string // a flag of update alone
	Slug, Description string
	Active            bool
}

func (p *profile) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Slug, "slug", "", "short name, such as acme (default: made of the name)")
	cmd.Flags().StringVar(&p.Description, "description", "", "what it is for")
	cmd.Flags().BoolVar(&p.Active, "active", true, "false: gives its users nothing until it is true again")
}

func (p *profile) write(changed func(string) bool) api.OrgWrite {
	var w api.OrgWrite
	if changed("name") {
		w.Name = &p.Name
	}
	if changed("slug") {
		w.Slug = &p.Slug
	}
	if changed("description") {
		w.Description = &p.Description
	}
	if changed("active") {
		w.Active = &p.Active
	}
	return w
}
