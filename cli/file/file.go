package file

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// NewCmd makes svcctl file.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("file", "Send, get and list the files of records", newUpload(st, nil), newDownload(st, nil), newList(st))
	cmd.Aliases = []string{"files"}
	return cmd
}
