package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/svcctl/svc/cli/output"
)

// Args wraps a cobra check of arguments, so that its error is a usage error that shows the usage line, and names what is missing or too many.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		if named := miscounted(cmd, check, args); named != nil {
			err = named
		}
		hint := "usage: " + cmd.UseLine() + "; " + cmd.CommandPath() + " --help shows an example"
		if flag, value := looseSwitch(cmd, args); flag != "" {
			hint = fmt.Sprintf("a switch has its value behind =, as in --%s=%s", flag, value)
		}
		return &Error{Exit: ExitUsage, Code: "usage", Message: err.Error(), Hint: hint}
	}
}

// looseSwitch finds a switch whose value became an argument, as in --active false.
func looseSwitch(cmd *cobra.Command, args []string) (flag, value string) {
	i := slices.IndexFunc(args, func(arg string) bool { return arg == "true" || arg == "false" })
	if i < 0 {
		return "", ""
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			flag = f.Name
		}
	})
	return flag, args[i]
}

// PlaceArgs checks for want arguments after an optional namespace.
func PlaceArgs(want int) cobra.PositionalArgs {
	return Args(func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < want:
			return missing(cmd, len(args))
		case len(args) > want+1:
			return fmt.Errorf("%q is one argument too many", args[want+1])
		}
		return nil
	})
}

// mostMissing is more arguments than any command needs.
const mostMissing = 5

// miscounted is the error of a check that other arguments would pass if there were fewer or more of them, or nil: cobra's own only counts.
func miscounted(cmd *cobra.Command, check cobra.PositionalArgs, args []string) error {
	for n := len(args) - 1; n >= 0; n-- {
		if check(cmd, args[:n]) == nil {
			return fmt.Errorf("%q is one argument too many", args[n])
		}
	}
	more := slices.Clone(args)
	for range mostMissing {
		if more = append(more, "x"); check(cmd, more) == nil {
			return missing(cmd, len(args))
		}
	}
	return nil
}

// missing names the arguments that a command needs and was not given, in the words of its usage: [NAMESPACE] COLLECTION ID.
func missing(cmd *cobra.Command, given int) error {
	_, synopsis, _ := strings.Cut(cmd.Use, " ")
	var names []string
	for name := range strings.FieldsSeq(synopsis) {
		if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "(") { // flags and choices come last
			break
		}
		if !strings.HasPrefix(name, "[") {
			names = append(names, strings.TrimRight(name, ".,…"))
		}
	}
	verb := "is"
	switch left := len(names) - given; {
	case left <= 0: // it takes several of the last one
		return fmt.Errorf("an argument is missing: it takes %s", synopsis)
	case left > 1:
		verb = "are"
	}
	if strings.Join(names[given:], " ") == synopsis {
		return fmt.Errorf("%s %s missing", strings.Join(names[given:], " and "), verb)
	}
	return fmt.Errorf("%s %s missing: it takes %s", strings.Join(names[given:], " and "), verb, synopsis)
}

// Place splits arguments into the namespace and the want arguments behind it. Without one in the arguments, it is the
// namespace of -n, SVCCTL_NAMESPACE or the context.
func (st *State) Place(args []string, want int) (namespace string, rest []string, err error) {
	if len(args) == want+1 {
		if given := st.GivenNamespace(); given != "" && given != args[0] {
			return "", nil, Usagef("the namespace is given twice: %q as an argument and %q with -n", args[0], given)
		}
		return args[0], args[1:], nil
	}
	if namespace, err = st.Namespace(); err != nil {
		return "", nil, err
	}
	if namespace == "" {
		first := "as the first argument"
		if len(args) > 0 { // which is taken for what comes behind a namespace
			first += ", before " + args[0]
		}
		return "", nil, &Error{
			Exit: ExitUsage, Code: "usage", Message: "which namespace?",
			Hint: "give it " + first + ", with -n, as SVCCTL_NAMESPACE, or in a context (svcctl config set-context)",
		}
	}
	return namespace, args, nil
}

// PlaceMaybe splits arguments into the namespace and one more that may be left out: "" then. Where the namespace is known without the arguments, a
// single one is the other, unless it is that namespace.
func (st *State) PlaceMaybe(args []string) (namespace, rest string, err error) {
	want := 0
	if len(args) == 1 {
		known, err := st.Namespace()
		if err != nil {
			return "", "", err
		}
		if known != "" && args[0] != known {
			want = 1
		}
	}
	want = max(want, len(args)-1)
	namespace, behind, err := st.Place(args, want)
	if err != nil || len(behind) == 0 {
		return namespace, "", err
	}
	return namespace, behind[0], nil
}

// AtPlace makes the RunE of a verb on a place: run gets the namespace and the want arguments behind it (see Place).
func (st *State) AtPlace(want int, run func(ctx context.Context, namespace string, rest []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		namespace, rest, err := st.Place(args, want)
		if err != nil {
			return err
		}
		return run(cmd.Context(), namespace, rest)
	}
}

// Namespace is that of -n, SVCCTL_NAMESPACE or the context, or "".
func (st *State) Namespace() (string, error) {
	if st.Flags.Namespace != "" {
		return st.Flags.Namespace, nil
	}
	t, err := st.resolve()
	if err != nil || t.context == nil {
		return "", err
	}
	return t.context.Namespace, nil
}

// GivenNamespace is that of -n on the command line, or "": for commands to which one makes a difference.
func (st *State) GivenNamespace() string {
	if st.isSet == nil || !st.isSet("namespace") {
		return ""
	}
	return st.Flags.Namespace
}

// Group makes a noun: a command that only holds verbs. An unknown verb is a usage error in place of a help text.
func Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: firstExamples(verbs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return Unknown(cmd, args[0])
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// shownExamples is how many verbs of a group show how they are used, in its help.
const shownExamples = 4

// firstExamples gives the first example of each of the first verbs, or all of the only one.
func firstExamples(verbs []*cobra.Command) string {
	if len(verbs) == 1 {
		return verbs[0].Example
	}
	var out []string
	for _, verb := range verbs[:min(len(verbs), shownExamples)] {
		if first, _, _ := strings.Cut(verb.Example, "\n"); first != "" {
			out = append(out, first)
		}
	}
	return strings.Join(out, "\n")
}

// Confirm asks before something that can't be undone. Without a terminal, --yes must be given.
func (st *State) Confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !st.InTTY || !st.ErrTTY {
		return &Error{
			Exit: ExitUsage, Code: "usage", Message: "not done without a confirmation: " + question,
			Hint: "there is no terminal to ask at, so say --yes",
		}
	}
	answer, err := st.ask(question + " [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return errDeclined()
}

// ConfirmTyped is Confirm of what replaces everything that there is: a word has to be typed for it.
func (st *State) ConfirmTyped(yes bool, question, word string) error {
	if yes || !st.InTTY || !st.ErrTTY {
		return st.Confirm(yes, question)
	}
	answer, err := st.ask(question + "\nType " + word + " to go on: ")
	if err != nil {
		return err
	}
	if answer != word {
		return errDeclined()
	}
	return nil
}

func errDeclined() error {
	return &Error{Exit: ExitFailed, Code: "declined", Message: "not done"}
}

// ask reads a line behind a question.
func (st *State) ask(question string) (string, error) {
	fmt.Fprint(st.Err, output.EscapeLines(question))
	answer, err := bufio.NewReader(st.Stdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(st.Err)
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return strings.TrimSpace(answer), nil
}
