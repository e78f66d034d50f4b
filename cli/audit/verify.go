package audit

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

func newVerify(st *command.State) *cobra.Command {
	project := ""
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that nobody changed the audit log, or took something from it",
		Long: `Check the audit log: each entry has the hash of the one before, so that one that was changed, taken away or put in by
other hands is found and named, with exit code 1. Only administrators may.

It also prints the newest entry's number and hash. Note them elsewhere, such as in a log of another system: only with them can
you tell later that nobody rewrote the whole log.`,
		Example: `  svcctl audit verify
  svcctl audit verify --project blog -o json`,
		Args:              command.Args(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runVerify(cmd.Context(), st, project) },
	}
	projectFlag(cmd, st, &project)
	return cmd
}

func runVerify(ctx context.Context, st *command.State, project string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	report, err := c.VerifyAudit(ctx, project)
	if err != nil {
		return err
	}
	p := st.Printer()
	result := output.Result{Value: report}
	if report.OK {
		result.Table = output.NewTable("ENTRIES", "NEWEST", "HASH")
		result.Table.Row(report.Entries, report.Head.Seq, report.Head.Hash)
		return p.Print(result)
	}
	result.Table = output.NewTable("PROBLEM", "ENTRY", "ID", "WHAT")
	for _, x := range report.Problems {
		entry := strconv.FormatInt(x.Seq, 10)
		if x.Through > x.Seq {
			entry = fmt.Sprintf("%d-%d", x.Seq, x.Through)
		}
		result.Table.Row(x.Problem, entry, x.ID, x.Message)
	}
	if err := p.Print(result); err != nil {
		return err
	}
	return &command.Error{Exit: command.ExitFailed, Code: "audit_broken", Message: "the audit log is not what the service wrote"}
}
