package doc

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/svcctl/svc/cli/command"
)

// EditorCommand is the command line of the user's editor.
func EditorCommand(st *command.State) (string, error) {
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

// EditorProcess is the editor on a file, which is not started yet.
func EditorProcess(line, file string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		words := strings.Fields(line)
		return exec.Command(words[0], append(words[1:], file)...) //nolint:gosec,noctx // the user's own choice, see above
	}
	return exec.Command("sh", "-c", "exec "+line+` "$1"`, "editor", file) //nolint:gosec,noctx // the user's own choice, see above
}

// runEditor runs the editor on a file until it ends. What interrupts svcctl does not end it: it has the user's text.
func runEditor(st *command.State, line, file string) error {
	cmd := EditorProcess(line, file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = st.In, st.Err, st.Err
	if st.OutTTY {
		cmd.Stdout = st.Out // where an editor draws
	}
	return EditorFailed(cmd.Run(), line)
}

// EditorFailed tells of what an editor has failed with; nil where it has not.
func EditorFailed(err error, line string) error {
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
