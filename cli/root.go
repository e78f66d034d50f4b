package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/access"
	"github.com/svcctl/svc/cli/action"
	"github.com/svcctl/svc/cli/asset"
	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/auth"
	"github.com/svcctl/svc/cli/collection"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/config"
	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/file"
	"github.com/svcctl/svc/cli/index"
	"github.com/svcctl/svc/cli/job"
	"github.com/svcctl/svc/cli/org"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/project"
	"github.com/svcctl/svc/cli/server"
	"github.com/svcctl/svc/cli/team"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/user"
)

// Run runs svcctl with args (without the program's name) and gives its exit code. When ctx ends, it stops with
// command.ExitInterrupted.
func Run(ctx context.Context, st *command.State, args []string) int {
	root := NewRootCmd(st)
	root.SetArgs(args)
	var unknown error // cobra has no error for svcctl nonsense --help
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); len(words) > 0 && cmd.HasSubCommands() {
			unknown = command.Unknown(cmd, words[0])
			return
		}
		cmd.Long = output.Reflow(cmd.Long, st.OutWidth)
		help(cmd, args)
	})
	if st.OutWidth > 0 {
		root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages ", fmt.Sprintf("FlagUsagesWrapped %d ", st.OutWidth)))
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = unknown
	}
	return st.Fail(ctx, asUsage(err))
}

// NewRootCmd makes the tree of commands. It gives errors back and prints none; Run does.
func NewRootCmd(st *command.State) *cobra.Command {
	root := &cobra.Command{
		Use:   "svcctl",
		Short: "Work with a svc content service",
		Long: `svcctl registers projects with a svc content service, shows how they do, and reads and writes their records.

Which service, and as whom: by flags (--server, --token, --admin-token-file, …), else by SVCCTL_* variables (SVCCTL_SERVER,
SVCCTL_TOKEN, …), else by the current context (svcctl config, svcctl login), else http://127.0.0.1:8080 without a
credential.

Data goes to stdout, everything else to stderr. Exit codes: 0 done; 1 failed, or invalid; 2 usage; 3 partly done;
4 no permission; 5 not found; 6 conflict; 7 service unreachable; 8 timeout; 130 interrupted.`,
		Example: `  svcctl project register blog --admin-token-file data/admin.token
  svcctl doc list blog articles --sort -publishedAt`,
		Version:           st.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Unknown(cmd, args[0])
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return st.Prepare(cmd, extraFormats(cmd)...)
		},
	}
	st.Register(root)
	root.SetIn(st.In)
	root.SetOut(st.Stdout())
	root.SetErr(st.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: err.Error(), Hint: cmd.CommandPath() + " --help lists the flags",
		}
	})
	root.SetVersionTemplate("svcctl {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		auth.NewLogin(st), auth.NewLogout(st), auth.NewWhoami(st),
		config.NewCmd(st), project.NewCmd(st), collection.NewCmd(st), doc.NewCmd(st), file.NewCmd(st), asset.NewCmd(st), index.NewCmd(st), job.NewCmd(st), action.NewCmd(st),
		user.NewCmd(st), org.NewCmd(st), team.NewCmd(st), token.NewCmd(st), access.NewCmd(st), audit.NewCmd(st), server.NewCmd(st),
		newAPI(st), newVersion(st), newCompletion(st),
	)
	root.AddCommand(project.NewTop(st)...)
	completeFlags(root, st)
	return root
}

// extraFormats are the -o formats that a command has beside the common ones.
func extraFormats(cmd *cobra.Command) []string {
	return strings.Fields(cmd.Annotations[command.FormatsAnnotation])
}

// completeFlags adds what the tab key offers for the values of global flags.
func completeFlags(root *cobra.Command, st *command.State) {
	command.CompleteFlags(root, map[string]command.CompleteFunc{
		"output":    cobra.FixedCompletions([]string{"table", "wide", "json", "yaml", "name"}, cobra.ShellCompDirectiveNoFileComp),
		"color":     cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp),
		"namespace": st.CompleteNamespaces,
		"context":   st.CompleteContexts,
	})
}

// asUsage gives cobra's own complaints about the command line (exclusive or required flags) the exit code of usage.
// Everything else that a command returns is an error of ours or of the client.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	var own *command.Error
	text := err.Error()
	if !errors.As(err, &own) && (strings.HasPrefix(text, "if any flags in the group") || strings.HasPrefix(text, "required flag")) {
		return command.Usagef("%s", text)
	}
	return err
}
