package project

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl project.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("project", "Register projects, and see how they do",
		newInit(st), newApply(st, nil), newList(st), newStatus(st, nil), newGet(st), newDescribe(st), newTree(st), newWatch(st), newRegister(st, nil), newUpdate(st, nil), newUnregister(st, nil), newEnable(st, true),
		newEnable(st, false), newSuspend(st, true), newSuspend(st, false), newReload(st, nil), newDiff(st, nil), newDrift(st), newHistory(st), newRollback(st, nil), newEvents(st, nil), newWait(st, nil),
		newValidate(st, nil), newFmt(st, nil), newRender(st, nil), newTest(st, nil), newSchema(st), newExplain(st), newTypes(st))
}

// NewTop makes the verbs that users of kubectl look for at the top, which are those of svcctl project by another way.
func NewTop(st *command.State) []*cobra.Command {
	top := []*cobra.Command{newApply(st, nil), newDiff(st, nil), newDrift(st), newWait(st, nil), newExplain(st), newTree(st)}
	for _, cmd := range top {
		cmd.Example = strings.ReplaceAll(cmd.Example, "svcctl project ", "svcctl ")
		cmd.Long += "\n\nThe same as svcctl project " + cmd.Name() + "."
	}
	return top
}

// find reads the registration with a namespace, or with that id. It gives the client that it asked, too.
func find(ctx context.Context, st *command.State, namespace string) (*client.Client, *api.Project, error) {
	c, err := st.Client()
	if err != nil {
		return nil, nil, err
	}
	for p, err := range c.Projects().All(ctx, client.Query{}) {
		if err != nil {
			return nil, nil, err
		}
		if p.Namespace == namespace || p.ID == namespace {
			return c, &p, nil
		}
	}
	return nil, nil, &command.Error{
		Exit: command.ExitNotFound, Code: "project_not_found", Message: fmt.Sprintf("project not found: %s", namespace),
		Hint: "svcctl project list shows the registered ones, svcctl project register makes one known",
	}
}

// table lists registrations.
func table(st *command.State, projects ...api.Project) *output.Table {
	t := output.NewTable("NAMESPACE", "NAME", "ENABLED", "AGE", "CONFIG FILE", "+SUSPENDED", "+ID", "+ORG ID", "+DESCRIPTION")
	for _, p := range projects {
		t.Row(p.Namespace, p.Name, p.Enabled, output.Age(st.Now(), p.CreatedAt.Time), p.ConfigFile, p.Suspended, p.ID, p.OrgID, p.Description)
	}
	return t
}

// show prints one registration.
func show(st *command.State, p *api.Project) error {
	return st.Printer().Print(output.Result{Value: p, Table: table(st, *p), Names: []string{"project/" + p.Namespace}})
}
