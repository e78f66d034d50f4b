package command

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// InCI says that GitHub Actions runs this, which takes annotations.
func (st *State) InCI() bool {
	if st.Env == nil {
		return false
	}
	value, _ := st.Env("GITHUB_ACTIONS")
	return value == "true"
}

// uncommanded has GitHub Actions take no line of what a service says for a command of the workflow, such as one that masks or hides what follows: it does so where a line
// begins with ::, or has ##[ in it.
func (st *State) uncommanded(text string) string {
	if !st.InCI() {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			lines[i] = strings.Replace(line, "::", ": :", 1)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "##[", "# #[")
}

// Annotation is a problem as GitHub Actions takes it in the output of a step.
func Annotation(file string, line, column int, text string, warning bool) string {
	level := "error"
	if warning {
		level = "warning"
	}
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	return fmt.Sprintf("::%s file=%s,line=%d,col=%d::%s", level, output.Escape(property.Replace(file)), line, column, output.Escape(data.Replace(text)))
}

// annotate has GitHub Actions show problems of files beside these, where their folder is known.
func (st *State) annotate(problems []api.ConfigProblem) {
	if !st.InCI() || st.ProblemFolder == "" {
		return
	}
	for _, p := range problems {
		text := p.Message
		if p.Path != "" {
			text = p.Path + ": " + text
		}
		fmt.Fprintln(st.Err, Annotation(path.Join(filepath.ToSlash(st.ProblemFolder), p.File), p.Line, p.Column, text, p.Warning))
	}
}
