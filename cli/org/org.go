package org

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// NewCmd makes svcctl org.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("org", "Manage organizations, whose users see no other's projects",
		newList(st), newGet(st), newCreate(st, nil), newUpdate(st, nil), newDelete(st))
}

func table(st *command.State, orgs ...api.Org) *output.Table {
	t := output.NewTable("SLUG", "NAME", "ACTIVE", "AGE", "+ID", "+DESCRIPTION")
	for _, o := range orgs {
		t.Row(o.Slug, o.Name, o.Active, output.Age(st.Now(), o.CreatedAt.Time), o.ID, o.Description)
	}
	return t
}

func show(st *command.State, o *api.Org) error {
	return st.Printer().Print(output.Result{Value: o, Table: table(st, *o), Names: []string{"org/" + o.Slug}})
}

// profile are the flags that create and update share. One that was not given leaves its member nil.
type profile struct {
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
