package doc

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/svcctl/svc/cli/command"
)

// editorCommand is the command line of the user's editor.
func editorCommand(st *command.State) (string, error) {
	for _, name := range []string{"SVCCTL_EDITOR", "VISUAL", "EDITOR"} {
		if line, _ := st.Env(name); strings.TrimSpace(line) != "" {
			return line, nil
		}
	}
	if !st.InTTY || !st.OutTTY {
		return "", &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: "there is no terminal for an editor",
			Hint: "svcctl doc update changes a record without one; $EDITOR may be a program that needs no terminal",
		}
	}
	if runtime.GOOS == "windows" {
		return "notepad", nil
	}
	return "vi", nil
}

// runEditor runs the editor on a file until it ends. What interrupts svcctl does not end it: it has the user's text.
func runEditor(st *command.State, line, file string) error {
	var cmd *exec.Cmd
	if runtime.GOOS == "windows" {
		words := strings.Fields(line)
		cmd = exec.Command(words[0], append(words[1:], file)...) //nolint:gosec,noctx // the user's own choice, see above
	} else {
		cmd = exec.Command("sh", "-c", "exec "+line+` "$1"`, "editor", file) //nolint:gosec,noctx // the user's own choice, see above
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = st.In, st.Err, st.Err
	if st.OutTTY {
		cmd.Stdout = st.Out // where an editor draws
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 127 || errors.Is(err, exec.ErrNotFound) {
		return &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("there is no editor %q", line),
			Hint: "set SVCCTL_EDITOR or EDITOR to one that is installed",
		}
	}
	if err != nil {
		return fmt.Errorf("the editor (%s): %w", line, err)
	}
	return nil
}
