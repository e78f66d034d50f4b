package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// escaped is text for a line of roff: nothing in it is a request or an escape.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// quoted is text as one argument of a request.
func quoted(text string) string { return `"` + strings.ReplaceAll(escaped(text), `"`, `\(dq`) + `"` }

// literal is text whose lines stay as they are.
func literal(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = escaped(lines[i])
	}
	return strings.Join(lines, "\n")
}

func section(b *bytes.Buffer, name string) { fmt.Fprintf(b, ".SH %s\n", name) }

func entry(b *bytes.Buffer, name, text string) {
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", quoted(name), escaped(text))
}

// paragraphs writes the long text of a command. Lines that are indented, such as those of a list, stay as they are.
func paragraphs(b *bytes.Buffer, text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, " ") {
			b.WriteString(".nf\n" + literal(p) + "\n.fi\n")
			continue
		}
		b.WriteString(literal(p) + "\n")
	}
}

// flags writes the flags of a command; those that every command has stand in the page of svcctl alone.
func flags(b *bytes.Buffer, cmd *cobra.Command) {
	own := cmd.LocalFlags()
	if !own.HasAvailableFlags() {
		return
	}
	section(b, "OPTIONS")
	own.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		switch f.DefValue {
		case "", "false", "[]", "0", "0s", "-1":
		default:
			text += " (default " + f.DefValue + ")"
		}
		entry(b, name, text)
	})
	if cmd.HasParent() {
		b.WriteString(".PP\nThe flags that every command has are in\n.BR svcctl (1).\n")
	}
}

// exits writes what exit codes mean.
func exits(b *bytes.Buffer) {
	section(b, `"EXIT STATUS"`)
	for _, e := range [][2]string{
		{"0", "done"}, {"1", "failed, or invalid; of a diff: something differs"}, {"2", "the command line makes no sense, or a diff or a check could not be made"},
		{"3", "partly done"}, {"4", "no permission"}, {"5", "not found"}, {"6", "conflict, or already running"}, {"7", "the service can't be reached"},
		{"8", "timeout"}, {"130", "interrupted"},
	} {
		entry(b, e[0], e[1])
	}
}

// related names the pages of the commands around this one.
func related(b *bytes.Buffer, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, strings.TrimSuffix(fileOf(cmd.Parent()), ".1"))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			names = append(names, strings.TrimSuffix(fileOf(sub), ".1"))
		}
	}
	if len(names) == 0 {
		return
	}
	section(b, `"SEE ALSO"`)
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", escaped(name), end)
	}
}
