package plugin

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
)

// prefix is what the names of plugins begin with.
const prefix = "svcctl-"

// NewCmd makes svcctl plugin.
func NewCmd(st *command.State) *cobra.Command {
	return command.Group("plugin", "See the plugins: programs on PATH that are named svcctl-…", newList(st))
}

// Find looks on PATH for a plugin that the words of a command line name, when root has no such command: the longest name counts, in which
// words are joined by dashes. args is what is left for it. Flags before the name are none of a plugin, so there is none then.
func Find(root *cobra.Command, words []string) (path string, args []string) {
	names := leading(words)
	if len(names) == 0 || strings.HasPrefix(names[0], "__") || has(root, names[0]) {
		return "", nil
	}
	for n := len(names); n > 0; n-- {
		path, err := exec.LookPath(prefix + strings.Join(names[:n], "-"))
		if err == nil {
			return path, words[n:]
		}
	}
	return "", nil
}

// maxWords is how many words the name of a plugin may have.
const maxWords = 4

// leading are the words before the first flag that can be part of a program's name.
func leading(words []string) []string {
	for i, word := range words {
		if i == maxWords || word == "" || strings.HasPrefix(word, "-") || strings.ContainsAny(word, `/\`) {
			return words[:i]
		}
	}
	return words
}

func has(root *cobra.Command, name string) bool {
	for _, cmd := range root.Commands() {
		if cmd.Name() == name || cmd.HasAlias(name) {
			return true
		}
	}
	return name == "help" || name == "completion"
}

// Run runs a plugin until it ends, and gives its exit code. When ctx ends, the plugin is interrupted as svcctl is: by the terminal, or killed.
func Run(ctx context.Context, st *command.State, path string, args []string) int {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = st.In, st.Out, st.Err
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode()
	}
	if err != nil {
		return st.Fail(ctx, &command.Error{Exit: command.ExitFailed, Code: "plugin_failed", Message: fmt.Sprintf("the plugin %s", path), Cause: err})
	}
	return command.ExitOK
}
