package cli

import (
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

func newCompletion(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long: `Print the script that makes the tab key complete commands, flags, namespaces, collections and contexts. SHELL is bash,
zsh, fish or powershell.`,
		Example: `  source <(svcctl completion bash)
  svcctl completion zsh > "${fpath[1]}/_svcctl"
  svcctl completion fish > ~/.config/fish/completions/svcctl.fish`,
		Args:      command.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), st.Stdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			default:
				return root.GenPowerShellCompletionWithDesc(w)
			}
		},
	}
}
