package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// bashWords does what cobra's script takes from the package bash-completion, where that is not there: on small images the tab key
// would answer with an error.
const bashWords = `
if ! declare -F _get_comp_words_by_ref >/dev/null && ! declare -F _init_completion >/dev/null; then
    _get_comp_words_by_ref() {
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
if ! declare -F __ltrim_colon_completions >/dev/null; then
    __ltrim_colon_completions() { :; }
fi
`

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
				if err := root.GenBashCompletionV2(w, true); err != nil {
					return err
				}
				_, err := io.WriteString(w, bashWords)
				return err
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
