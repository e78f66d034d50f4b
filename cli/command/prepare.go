package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/svcctl/svc/cli/output"
)

// FormatsAnnotation names the annotation of a command that lists its own -o formats, separated by spaces.
const FormatsAnnotation = "formats"

// OwnFormats are the -o formats that a command has beside those that all have.
func OwnFormats(cmd *cobra.Command) []string {
	return strings.Fields(cmd.Annotations[FormatsAnnotation])
}

// Prepare takes what the flags leave open from the environment, and checks it.
func (st *State) Prepare(cmd *cobra.Command) error {
	st.isSet, st.ctx = cmd.Flags().Changed, cmd.Context()
	if err := st.fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	if err := st.prepareOutput(OwnFormats(cmd)); err != nil {
		st.Flags.Output = output.FormatTable
		return err
	}
	switch st.Flags.Color {
	case "auto", "always", "never":
	default:
		return Usagef("--color %s: want auto, always or never", st.Flags.Color)
	}
	if st.Flags.RequestTimeout < 0 {
		return Usagef("--request-timeout %s: want 0 or more", st.Flags.RequestTimeout)
	}
	st.warnOfFlags()
	return nil
}

// warnOfFlags tells who has typed a command line what makes it unsafe: a secret in it, which others find, and that any service is taken for the one that is
// meant. Programs, whose command line nobody has typed, are told nothing.
func (st *State) warnOfFlags() {
	if !st.InTTY || !st.ErrTTY || st.Flags.Quiet {
		return
	}
	for _, name := range secretFlags {
		if st.isSet(name) {
			st.Warnf("what --%[1]s is given is in the history of the shell, and in the list of processes; --%[1]s-file FILE and the variable %[2]s are in neither", name, envName(name))
		}
	}
	if st.isSet("insecure-skip-tls-verify") && st.Flags.Insecure {
		st.Warnf("with --insecure-skip-tls-verify anybody between here and the service can read and change what is sent, credentials too; --ca-file FILE names the authority of its certificate")
	}
}

// ownVariables are flags whose variables are read elsewhere, or that have none.
var ownVariables = []string{
	"token", "token-file", "admin-token", "admin-token-file", "collection-token", "collection-token-file", // see given: a flag of any goes before them all
	"help", "version",
}

// fromEnvironment gives flags that are not on the command line the values of their variables. A flag that only the command has
// is then as one that was given: an empty variable is none.
func (st *State) fromEnvironment(fl *pflag.FlagSet) (err error) {
	fl.VisitAll(func(f *pflag.Flag) {
		value, ok := st.Env(envName(f.Name))
		if err != nil || !ok || value == "" || f.Changed || slices.Contains(ownVariables, f.Name) {
			return
		}
		set := func() error { return fl.Set(f.Name, value) }
		if st.root.PersistentFlags().Lookup(f.Name) == f {
			set = func() error { return f.Value.Set(value) } // what is told of flags that were given is about the command line
		}
		if bad := set(); bad != nil {
			if inner, ok := errors.AsType[*pflag.InvalidValueError](bad); ok {
				bad = inner.Unwrap()
			}
			err = Usagef("%s=%s: %s", envName(f.Name), value, cmp.Or(Wanted(f), bad.Error()))
		}
	})
	return err
}

// Wanted says what a flag takes, or "" where its type doesn't say it.
func Wanted(f *pflag.Flag) string {
	if own, ok := f.Value.(interface{ Wanted() string }); ok {
		return own.Wanted()
	}
	switch f.Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "duration":
		return "want a time, such as 30s or 5m"
	case "bool":
		return "want true or false"
	}
	return ""
}

func envName(flag string) string {
	return "SVCCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// prepareOutput checks -o, --jq, --template and --sort-by.
func (st *State) prepareOutput(ownFormats []string) (err error) {
	f := &st.Flags
	shape, err := output.ParseShape(f.Output, f.NoHeaders)
	if err != nil {
		return Usagef("-o %s: %v", f.Output, err)
	}
	given := f.Output
	asJSON := shape == nil && given == output.FormatJSON
	for _, way := range []struct {
		flag, expr string
		parse      func(string) (output.Shape, error)
	}{
		{"--jq", f.JQ, func(expr string) (output.Shape, error) { return output.NewJQ(expr, st.OutTTY) }},
		{"--template", f.Template, output.NewTemplate},
	} {
		if way.expr == "" {
			continue
		}
		if shape != nil || given != output.FormatTable && given != output.FormatJSON {
			return Usagef("%s, --jq, --template and -o %s: one of them at a time", way.flag, given)
		}
		if shape, err = way.parse(way.expr); err != nil {
			return Usagef("%s %s: %v", way.flag, way.expr, err)
		}
	}
	if shape != nil {
		f.Output = output.FormatJSON
	} else if err := output.CheckFormat(given, ownFormats...); err != nil {
		return Usagef("-o %s: %v", given, err)
	}
	if f.SortBy != "" {
		if st.order, err = output.ParseOrder(f.SortBy, &st.sorted); err != nil {
			return Usagef("--sort-by %s: %v", f.SortBy, err)
		}
	}
	st.asJSON = asJSON
	if shape != nil {
		st.shaped = output.NewShapeWriter(st.dataOut(), shape, func() context.Context { return st.ctx })
	}
	return nil
}

// dataOut is where data goes in the end. What an expression makes of data may have anything in it: on a terminal that is shown, and does nothing.
func (st *State) dataOut() io.Writer {
	if st.OutTTY {
		return output.EscapeWriter(dataWriter{st.Out})
	}
	return dataWriter{st.Out}
}

// Finish ends the output of a command that has given err, which it gives back unless it has found one.
func (st *State) Finish(err error) error {
	if st.shaped != nil {
		if last := st.shaped.Close(); err == nil {
			err = last
		}
	}
	switch {
	case st.order == output.Order{} || err != nil:
	case !st.sorted.List:
		st.Warnf("--sort-by sorts lists, and this was none")
	case !st.sorted.Found:
		st.Warnf("--sort-by %s: no item has that; -o json shows what items have", st.Flags.SortBy)
	}
	return err
}
