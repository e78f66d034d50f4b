package config

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl config.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("config", "Choose and change the contexts: which server, as whom",
		newView(st), newGetContexts(st), newCurrentContext(st), newUseContext(st), newSetContext(st), newDeleteContext(st))
	cmd.Example = `  svcctl config set-context prod --server https://cms.example.com --token-file ~/.svc/prod.token --namespace blog
  svcctl config use-context prod
  svcctl config get-contexts`
	return cmd
}

// noContext is the error for a context that is not there.
func noContext(name string, names []string) error {
	hint := "there are none yet: svcctl config set-context or svcctl login makes one"
	if len(names) > 0 {
		hint = "there are: " + strings.Join(names, ", ")
	}
	return &command.Error{
		Exit: command.ExitNotFound, Code: "context_not_found", Message: fmt.Sprintf("there is no context %q", name), Hint: hint,
	}
}
