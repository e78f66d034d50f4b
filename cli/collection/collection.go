package collection

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/index"
	"github.com/svcctl/svc/pkg/api"
)

// NewCmd makes svcctl collection.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("collection", "See the collections of a project", newList(st), newDescribe(st), index.NewList(st, "collection", "indexes"), newStats(st))
	cmd.Aliases = []string{"col"}
	return cmd
}

// Rights says in words what a caller may do: "get, post (bulk), delete".
func Rights(perms map[string]api.MethodRights) string {
	var out []string
	for _, method := range []string{"get", "post", "put", "delete"} {
		r := perms[method]
		if !r.Allow {
			continue
		}
		if r.Bulk {
			method += " (bulk)"
		}
		out = append(out, method)
	}
	return strings.Join(out, ", ")
}
