package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/access"
	"github.com/svcctl/svc/cli/action"
	"github.com/svcctl/svc/cli/asset"
	"github.com/svcctl/svc/cli/audit"
	"github.com/svcctl/svc/cli/auth"
	"github.com/svcctl/svc/cli/backup"
	"github.com/svcctl/svc/cli/collection"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/config"
	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/cli/embedding"
	"github.com/svcctl/svc/cli/file"
	"github.com/svcctl/svc/cli/index"
	"github.com/svcctl/svc/cli/job"
	"github.com/svcctl/svc/cli/manual"
	"github.com/svcctl/svc/cli/mcp"
	"github.com/svcctl/svc/cli/metrics"
	"github.com/svcctl/svc/cli/openapi"
	"github.com/svcctl/svc/cli/org"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/plugin"
	"github.com/svcctl/svc/cli/project"
	"github.com/svcctl/svc/cli/recordtypes"
	"github.com/svcctl/svc/cli/search"
	"github.com/svcctl/svc/cli/server"
	"github.com/svcctl/svc/cli/service"
	"github.com/svcctl/svc/cli/snapshot"
	"github.com/svcctl/svc/cli/team"
	"github.com/svcctl/svc/cli/token"
	"github.com/svcctl/svc/cli/tui"
	"github.com/svcctl/svc/cli/user"
)

// Run runs svcctl with args (without the program's name) and gives its exit code. When ctx ends, it stops with
// command.ExitInterrupted.
func Run(ctx context.Context, st *command.State, args []string) int {
	root := NewRootCmd(st)
	if path, rest := plugin.Find(root, args); path != "" {
		return plugin.Run(ctx, st, path, rest)
	}
	root.SetArgs(args)
	told := &keptWriter{w: st.Stdout()}
	root.SetOut(told)
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
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate(), st.OutWidth))
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = cmp.Or(unknown, told.err)
	}
	return st.Fail(ctx, asUsage(st.Finish(err)))
}

// keptWriter keeps the first error of what is written, for cobra drops those of help and of the version.
type keptWriter struct {
	w   io.Writer
	err error
}

func (k *keptWriter) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	if k.err == nil {
		k.err = err
	}
	return n, err
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
		Example: `  # A service on this machine, a user for yourself, and a first project
  svcctl config set-context local --server http://127.0.0.1:8080
  svcctl user create ann --admin --generate --admin-token-file data/admin.token
  svcctl login ann
  svcctl project init projects/blog
  svcctl apply projects/blog
  svcctl doc list blog notes`,
		Version:           st.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(st, cmd, args)
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return st.Prepare(cmd)
		},
	}
	st.Register(root)
	root.SetIn(st.In)
	root.SetOut(st.Stdout())
	root.SetErr(st.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); len(words) > 0 && cmd.HasSubCommands() { // the flag is one of what they think that there is
			return unknown(st, cmd, words)
		}
		return &command.Error{Exit: command.ExitUsage, Code: "usage", Message: flagMessage(err), Hint: flagHint(cmd, err)}
	})
	root.SetVersionTemplate("svcctl {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	kinds := getKinds(st)
	root.AddCommand(
		auth.NewLogin(st), auth.NewLogout(st), auth.NewWhoami(st),
		config.NewCmd(st), project.NewCmd(st), collection.NewCmd(st), doc.NewCmd(st), file.NewCmd(st), asset.NewCmd(st), index.NewCmd(st), search.NewCmd(st), job.NewCmd(st), action.NewCmd(st),
		snapshot.NewCmd(st), backup.NewCmd(st),
		user.NewCmd(st), org.NewCmd(st), team.NewCmd(st), token.NewCmd(st), access.NewCmd(st), audit.NewCmd(st), embedding.NewCmd(st), server.NewCmd(st), openapi.NewCmd(st), mcp.NewCmd(st), metrics.NewCmd(st), recordtypes.NewCmd(st),
		service.NewStatus(st), service.NewCheck(st), plugin.NewCmd(st), manual.NewCmd(st),
		tui.NewCmd(st), newGet(kinds), newResources(st), newAPI(st), newVersion(st), newCompletion(st), newOptions(st),
	)
	root.AddCommand(project.NewTop(st)...)
	namePlurals(root, kinds)
	refuseHelp(root)
	groupCommands(root)
	completeFlags(root, st)
	return root
}

// usageTemplate is cobra's, with one line in place of the flags that every command has, and with flags that fit into width.
func usageTemplate(t string, width int) string {
	const (
		own    = "{{if .HasAvailableLocalFlags}}"
		global = "{{if .HasAvailableInheritedFlags}}"
		end    = "{{end}}"
	)
	t = strings.Replace(t, own, "{{if and .HasParent .HasAvailableLocalFlags}}", 1) // those of the root are the global ones
	if before, block, ok := strings.Cut(t, global); ok {
		if _, after, ok := strings.Cut(block, end); ok {
			t = before + "\n\n" + output.Reflow(optionsLine, width) + after
		}
	}
	if width > 0 {
		t = strings.ReplaceAll(t, "FlagUsages ", fmt.Sprintf("FlagUsagesWrapped %d ", width))
	}
	return t
}

const optionsLine = `Every command has flags such as -n (namespace), -o (output format) and -s (server): "svcctl options" lists them.`

func newOptions(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that every command has",
		Long: `List the flags that every command has. Where one is not given, the environment is asked, such as SVCCTL_NAMESPACE for
--namespace, then the current context (svcctl config).`,
		Example:           `  svcctl options`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(st.Stdout(), "%s\n\n%s", output.Reflow(cmd.Long, st.OutWidth), cmd.Root().PersistentFlags().FlagUsagesWrapped(st.OutWidth))
			return err
		},
	}
}

// completeFlags adds what the tab key offers for the values of global flags.
func completeFlags(root *cobra.Command, st *command.State) {
	command.CompleteFlags(root, map[string]command.CompleteFunc{
		"output":    completeOutput,
		"color":     cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp),
		"namespace": st.CompleteNamespaces,
		"context":   st.CompleteContexts,
	})
}

// completeOutput completes -o, with the formats that only the command has.
func completeOutput(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	all := append(output.Formats(), command.OwnFormats(cmd)...)
	for _, name := range output.ShapeFormats() {
		if all = append(all, name+"="); prefix != "" && strings.HasPrefix(name, prefix) {
			directive |= cobra.ShellCompDirectiveNoSpace // its expression comes next
		}
	}
	return all, directive
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
