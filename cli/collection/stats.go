package collection

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

func newStats(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "stats [NAMESPACE] COLLECTION",
		Short: "Show how large a collection and its indexes are",
		Long: `Show how many records a collection has, how large they are, and what they and the indexes take on disk, which is an
estimate: what was written last may not be in it yet. It needs project.read, and that you may read every record.`,
		Example:           `  svcctl collection stats shop products`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			return runStats(ctx, st, namespace, rest[0])
		}),
	}
}

func runStats(ctx context.Context, st *command.State, namespace, name string) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	stats, err := c.CollectionStats(ctx, namespace, name)
	if err != nil {
		return err
	}
	p := st.Printer()
	if !p.ForPeople() {
		return p.Print(output.Result{Value: stats, Names: []string{"collection/" + stats.Name}})
	}
	f := output.NewFields()
	f.Add("Collection", stats.Name)
	f.Add("Records", stats.Records)
	f.Add("Size", output.Size(stats.Bytes)+perRecord(stats))
	f.Add("On disk", onDisk(stats.DiskBytes))
	if err := f.Write(p.W); err != nil {
		return err
	}
	t := output.NewTable("INDEX", "KEY", "ON DISK")
	for _, ix := range stats.Indexes {
		t.Row(ix.Name, strings.Join(ix.Key, ", "), onDisk(ix.DiskBytes))
	}
	if err := p.Section("Indexes", st.FitTable(t)); err != nil {
		return err
	}
	if stats.Records > 0 && stats.DiskBytes == 0 {
		st.Notef("-: all of it was written so recently that its size on disk is not known yet")
	}
	return nil
}

// onDisk is an estimated size; there is none of what was written last.
func onDisk(n int64) string {
	if n == 0 {
		return "-"
	}
	return output.Size(n)
}

func perRecord(s *api.CollectionStats) string {
	if s.Records == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s a record)", output.Size(s.Bytes/s.Records))
}
