package doc

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/client"
)

type exportOptions struct {
	st *command.State
	place
	Query  client.Query // its Limit is the size of a page
	File   string
	Format string
	Limit  int
}

func newExport(st *command.State, runF func(context.Context, *exportOptions) error) *cobra.Command {
	opts := &exportOptions{st: st}
	cmd := &cobra.Command{
		Use:   "export [NAMESPACE] COLLECTION",
		Short: "Write records to a file or stdout",
		Long: `Write the records that you may read as NDJSON (one JSON object a line), or with --format json as one JSON list. The
records are read page by page, so that any number fits. A file appears only when it is whole.`,
		Example: `  svcctl doc export blog articles -f articles.ndjson
  svcctl doc export shop orders --filter '{"status": "paid"}' --format json | jq length`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			opts.place = place{namespace, rest[0]}
			if err := opts.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runExport(ctx, opts)
		}),
	}
	queryFlags(cmd, &opts.Query)
	cmd.Flags().StringVarP(&opts.File, "file", "f", "-", "file to write, - for stdout")
	cmd.Flags().StringVar(&opts.Format, "format", "ndjson", "ndjson or json")
	cmd.Flags().IntVar(&opts.Limit, "limit", 0, "most records to write, 0 for all")
	cmd.Flags().IntVar(&opts.Query.Limit, "page-size", 0, "records of one request (default: the collection's)")
	return cmd
}

func (opts *exportOptions) check() error {
	if opts.Format != "ndjson" && opts.Format != "json" {
		return command.Usagef("--format %s: want ndjson or json", opts.Format)
	}
	if opts.Limit < 0 || opts.Query.Limit < 0 {
		return command.Usagef("--limit and --page-size: want 0 or more")
	}
	return nil
}

// recordWriter writes a stream of records.
type recordWriter interface {
	Write(item any) error
	Close() error
}

func runExport(ctx context.Context, opts *exportOptions) error {
	st := opts.st
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.File == "-" {
		n, err := export(ctx, c, opts, st.Stdout())
		if err != nil {
			return err
		}
		st.Notef("exported %d records of %s", n, opts.place)
		return nil
	}
	file, err := output.CreateFile(opts.File)
	if err != nil {
		return command.Usagef("%v", err)
	}
	defer file.Discard()
	n, err := export(ctx, c, opts, file)
	if err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return fmt.Errorf("write %s: %w", opts.File, err)
	}
	st.Notef("exported %d records of %s to %s", n, opts.place, opts.File)
	return nil
}

func export(ctx context.Context, c *client.Client, opts *exportOptions, w io.Writer) (n int, err error) {
	var out recordWriter = lineWriter{bufio.NewWriterSize(w, 64<<10)}
	if opts.Format == "json" {
		out = newArrayWriter(w, "[", "]")
	}
	progress := opts.st.Progress("exporting", "records", 0)
	if opts.File == "-" && opts.st.OutTTY { // the records themselves are on the screen
		progress = output.NewProgress(io.Discard, false, opts.st.Now, "", "", 0)
	}
	defer progress.Clear()
	for r, err := range c.Records(ctx, opts.Namespace, opts.Collection, opts.Query) {
		if err != nil {
			return n, err
		}
		if err := out.Write(r); err != nil {
			return n, err
		}
		progress.Add(1, 0)
		if n++; n == opts.Limit {
			break
		}
	}
	return n, out.Close()
}
