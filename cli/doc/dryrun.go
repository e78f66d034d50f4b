package doc

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// bounds are how far a write may go: nowhere, with --dry-run, or to so many records.
type bounds struct {
	DryRun      bool
	MaxAffected int // -1: no bound
}

func dryRunFlag(cmd *cobra.Command, dryRun *bool) {
	command.DryRunFlag(cmd, dryRun, "say what would be done, and do nothing")
}

// register adds the flags of a verb that can write many records.
func (b *bounds) register(cmd *cobra.Command) {
	dryRunFlag(cmd, &b.DryRun)
	cmd.Flags().IntVar(&b.MaxAffected, "max-affected", -1, "refuse to write to more records than that")
}

// check refuses a bound that makes no sense for what is written.
func (b *bounds) check(cmd *cobra.Command, filter string) error {
	switch {
	case !cmd.Flags().Changed("max-affected"):
		return nil
	case filter == "":
		return command.Usagef("--max-affected is about the records that --filter selects")
	case b.MaxAffected < 0:
		return command.Usagef("--max-affected: want 0 or more")
	}
	return nil
}

// options are those of a bulk write.
func (b *bounds) options() client.WriteOptions {
	o := client.WriteOptions{Minimal: true}
	if b.MaxAffected >= 0 {
		o.MaxAffected = &b.MaxAffected
	}
	return o
}

// tried prints what a write would do. The exit code is what the write would have.
func tried(st *command.State, at place, r *api.DryRunResult, err error) error {
	if err != nil {
		return err
	}
	for _, item := range r.Items {
		where := fmt.Sprintf("record %d", item.Index+1)
		if item.ID != "" {
			where = item.ID
		}
		st.Warnf("%s: %s", where, item.Error.Detail)
	}
	t := output.NewTable("COLLECTION", "WOULD SUCCEED", "WOULD FAIL", "IDS")
	ids := strings.Join(r.IDs, ", ")
	if r.Succeeded > len(r.IDs) && len(r.IDs) > 0 {
		ids += ", …"
	}
	t.Row(at.String(), r.Succeeded, r.Failed, ids)
	var names []string
	for _, id := range r.IDs {
		names = append(names, at.Collection+"/"+id)
	}
	if err := st.Printer().Print(output.Result{Value: r, Table: t, Names: names}); err != nil {
		return err
	}
	st.Notef("a dry run: nothing was written")
	return partial(r.Succeeded, r.Failed)
}
