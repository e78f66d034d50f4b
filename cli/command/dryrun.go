package command

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

// DryRunFlag adds --dry-run, also as users of kubectl write it: --dry-run=server. Without a service there is no dry run.
func DryRunFlag(cmd *cobra.Command, dryRun *bool, usage string) {
	flag := cmd.Flags().VarPF((*dryRunValue)(dryRun), "dry-run", "", usage)
	flag.NoOptDefVal = "true"
}

type dryRunValue bool

func (d *dryRunValue) Set(text string) error {
	switch text {
	case "server":
		*d = true
		return nil
	case "none":
		*d = false
		return nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New(d.Wanted())
	}
	*d = dryRunValue(on)
	return nil
}

func (d *dryRunValue) String() string { return strconv.FormatBool(bool(*d)) }

// Type makes help and completion take it for a switch, which it nearly always is.
func (*dryRunValue) Type() string { return "bool" }

// IsBoolFlag lets it go without a value.
func (*dryRunValue) IsBoolFlag() bool { return true }

// Wanted says what it takes.
func (*dryRunValue) Wanted() string {
	return "want server, or nothing behind it: the service says what would be done. svcctl project validate checks files without one"
}

// YesFlag adds --yes, which goes without the question that a command asks.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "don't ask")
}
