package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

// NewCmd makes svcctl man.
func NewCmd(st *command.State) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Print the manual page of a command, or write all of them",
		Long: `Print the manual page of a command (svcctl itself without one), for man -l -. With --dir, write the pages of all commands into a folder, as
svcctl.1, svcctl-project.1, svcctl-project-list.1 and so on, as packages install them in share/man/man1.`,
		Example: `  svcctl man project reload | man -l -
  svcctl man --dir /usr/local/share/man/man1`,
		Args: command.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" && len(args) > 0 {
				return command.Usagef("--dir writes the pages of all commands: give no COMMAND with it")
			}
			if dir != "" {
				return writeAll(st, cmd.Root(), dir)
			}
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return command.Unknown(of, append(rest, args...)[0])
			}
			_, err = st.Stdout().Write(page(of))
			return err
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		of, _, err := cmd.Root().Find(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, sub := range of.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name()+"\t"+sub.Short)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write the pages of all commands into")
	return cmd
}

// writeAll writes a file for each command that is listed.
func writeAll(st *command.State, root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // manual pages are for everybody
		return command.Usagef("%v", err)
	}
	n := 0
	var walk func(cmd *cobra.Command) error
	walk = func(cmd *cobra.Command) error {
		name := filepath.Join(dir, fileOf(cmd))
		if err := output.ReplaceFile(name, page(cmd)); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
		if err := os.Chmod(name, 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("write the page: %w", err)
		}
		n++
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() || sub.Name() == "help" {
				continue
			}
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(root); err != nil {
		return err
	}
	st.Notef("wrote %d pages to %s", n, dir)
	return nil
}

// fileOf is the name of a command's page, such as svcctl-project-list.1.
func fileOf(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
}

// page writes the page of a command.
func page(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	title := strings.ToUpper(strings.TrimSuffix(fileOf(cmd), ".1"))
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"svcctl\" \"svcctl\"\n.nh\n.ad l\n", quoted(title)) // without a date: the same text is the same page
	section(&b, "NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", escaped(strings.ReplaceAll(cmd.CommandPath(), " ", "-")), escaped(cmd.Short))
	section(&b, "SYNOPSIS")
	fmt.Fprintf(&b, ".B %s\n", quoted(cmd.UseLine()))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".br\n.B %s\n", quoted(cmd.CommandPath()+" COMMAND"))
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, ".PP\nAlso: %s\n", escaped(strings.Join(cmd.Aliases, ", ")))
	}
	section(&b, "DESCRIPTION")
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	paragraphs(&b, text)
	if cmd.HasAvailableSubCommands() {
		section(&b, "COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				entry(&b, sub.Name(), sub.Short)
			}
		}
	}
	flags(&b, cmd)
	if cmd.Example != "" {
		section(&b, "EXAMPLES")
		b.WriteString(".nf\n" + literal(cmd.Example) + "\n.fi\n")
	}
	exits(&b)
	related(&b, cmd)
	return b.Bytes()
}
