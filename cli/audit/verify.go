package audit

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type verifyOptions struct {
	st     *command.State
	Expect string
}

func newVerify(st *command.State) *cobra.Command {
	opts := &verifyOptions{st: st}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that nobody changed the audit log, or took something from it",
		Long: `Check the audit log: each entry has the hash of the one before, so that one that was changed, taken away or put in by
other hands is found and named, with exit code 1. Only administrators may. With -n, it is the log of a project's
records, else that of the service itself.

It also prints the newest entry's number and hash. Note them elsewhere, such as in a log of another system: who can write to
the store can replace the whole log, or cut off its end, and only what you noted shows that. With --expect, the log has to
have that entry still; that it has not, or that the entry has expired since, is exit code 1, too.`,
		Example: `  svcctl audit verify
  svcctl audit verify -n blog -o name > head.txt
  svcctl audit verify -n blog --expect "$(cat head.txt)"`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runVerify(cmd.Context(), opts) },
	}
	cmd.Flags().StringVar(&opts.Expect, "expect", "", "an entry's number and hash as noted earlier, NUMBER:HASH")
	return cmd
}

func runVerify(ctx context.Context, opts *verifyOptions) error {
	st := opts.st
	var expect *api.AuditPlace
	if opts.Expect != "" {
		noted, err := api.ParseAuditPlace(opts.Expect)
		if err != nil {
			return command.Usagef("--expect %s: %s", opts.Expect, err)
		}
		expect = &noted
	}
	c, err := st.Client()
	if err != nil {
		return err
	}
	report, err := c.VerifyAudit(ctx, st.GivenNamespace(), expect)
	if err != nil {
		return err
	}
	p := st.Printer()
	result := output.Result{Value: report}
	if report.Unsealed > 0 {
		st.Notef("entries that are too new to be in the chain: %d", report.Unsealed)
	}
	if report.OK {
		result.Names = []string{report.Head.String()}
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
	return &command.Error{Exit: command.ExitFailed, Code: "audit_broken", Message: "the audit log is not what the service wrote" + orNoted(expect)}
}

func orNoted(expect *api.AuditPlace) string {
	if expect == nil {
		return ""
	}
	return ", or not what was noted of it"
}
