package doc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

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
	Bare   bool
	Files  string // folder to write the files of the records into; "" is none
}

func newExport(st *command.State, runF func(context.Context, *exportOptions) error) *cobra.Command {
	opts := &exportOptions{st: st}
	cmd := &cobra.Command{
		Use:   "export [NAMESPACE] COLLECTION",
		Short: "Write records to a file or stdout",
		Long: `Write the records that you may read as NDJSON (one JSON object a line), as one JSON list, or as CSV, for which the
file's ending says enough: .ndjson, .json or .csv. A file with another one needs --format. The records are read page by page, so that any number fits. A file appears only when it is whole.

--bare leaves out what the service sets itself (id, createdAt, …): an export of that kind, imported and exported again, is
the same to the byte.

--files DIR writes the files of the records, too, each to DIR/<id>/<field>/<name>; the src of a file is then that path, below
DIR, from where svcctl doc import --files DIR sends it. A file that is there already is replaced; nothing outside of DIR is
written.

CSV has a column for every field: first the declared ones, or those that --select names, then what else records hold. Objects with declared fields are taken apart (seo.title); lists and other objects are
JSON. No value is an empty cell; text that would be taken for something else, such as "" or "null", is a JSON string.
svcctl doc import reads all that. -o ndjson tells of progress on stdout, an object a line.`,
		Example: `  svcctl doc export blog articles -f articles.ndjson
  svcctl doc export shop products -f products.csv --bare --sort sku
  svcctl doc export blog medialib -f medialib.ndjson --files medialib
  svcctl doc export shop orders --filter '{"status": "paid"}' --format json | jq length`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		Annotations:       map[string]string{command.FormatsAnnotation: formatNDJSON},
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
	queryFlags(st, cmd, &opts.Query)
	cmd.Flags().StringVarP(&opts.File, "file", "f", "-", "file to write, - for stdout")
	cmd.Flags().StringVar(&opts.Format, "format", "", "ndjson, json or csv (default: by the ending of the file, ndjson without one)")
	cmd.Flags().IntVar(&opts.Limit, "limit", 0, "most records to write, 0 for all")
	cmd.Flags().IntVar(&opts.Query.Limit, "page-size", 0, "records of one request (default: the collection's)")
	cmd.Flags().StringVar(&opts.Files, "files", "", "folder to write the files of the records into")
	cmd.Flags().BoolVar(&opts.Bare, "bare", false, "leave out what the service sets itself")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"format": cobra.FixedCompletions([]string{"ndjson", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp),
	})
	return cmd
}

func (opts *exportOptions) check() error {
	if opts.Format == "" {
		var known bool
		if opts.Format, known = formatOf(opts.File); !known {
			return command.Usagef("%s: no format has the ending %s: want .ndjson, .json or .csv, or say by --format ndjson, json or csv which one it is", opts.File, filepath.Ext(opts.File))
		}
	}
	switch opts.Format {
	case "ndjson", "json", "csv":
	default:
		return command.Usagef("--format %s: want ndjson, json or csv", opts.Format)
	}
	if opts.Files != "" && opts.Format == "csv" {
		return errFilesCSV
	}
	if opts.Limit < 0 || opts.Query.Limit < 0 {
		return command.Usagef("--limit and --page-size: want 0 or more")
	}
	if opts.File == "-" && opts.st.Flags.Output == formatNDJSON {
		return command.Usagef("-o ndjson tells of progress on stdout, so the records need a file: give -f FILE (--format ndjson is the form of the records)")
	}
	return nil
}

// formatOf gives the format that the ending of a file stands for; without an ending it is NDJSON.
func formatOf(file string) (_ string, known bool) {
	switch strings.ToLower(filepath.Ext(file)) {
	case "", ".ndjson", ".jsonl":
		return formatNDJSON, true
	case ".json":
		return "json", true
	case ".csv":
		return "csv", true
	}
	return "", false
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
		st.Notef("exported %s of %s", output.Count(n, "record"), opts.place)
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
	st.Notef("exported %s of %s to %s", output.Count(n, "record"), opts.place, opts.File)
	if st.Flags.Output != formatNDJSON {
		return nil
	}
	return output.JSONLine(st.Stdout(), struct {
		Event string `json:"event"`
		Done  int    `json:"done"`
	}{"done", n})
}

func export(ctx context.Context, c *client.Client, opts *exportOptions, w io.Writer) (n int, err error) {
	out, err := newRecordWriter(ctx, c, opts, w)
	if err != nil {
		return 0, err
	}
	if waits, ok := out.(*csvWriter); ok {
		defer waits.Discard()
	}
	var files *fileExport
	if opts.Files != "" {
		if files, err = newFileExport(ctx, c, opts); err != nil {
			return 0, err
		}
		defer files.root.Close() //nolint:errcheck // what was written to it is synced
	}
	progress := startProgress(opts.st, "exporting", 0)
	if opts.File == "-" && opts.st.OutTTY { // the records themselves are on the screen
		progress = output.NewProgress(io.Discard, false, opts.st.Now, "", "", 0)
	}
	defer progress.Clear()
	total := expected(ctx, c, opts)
	for r, err := range c.Records(ctx, opts.Namespace, opts.Collection, opts.Query) {
		if err != nil {
			return n, err
		}
		if files != nil {
			if r, err = files.take(ctx, r); err != nil {
				return n, err
			}
		}
		if opts.Bare {
			if r, _, _, err = writable(r); err != nil {
				return n, fmt.Errorf("a record of the answer: %w", err)
			}
		}
		if err := out.Write(r); err != nil {
			return n, err
		}
		n++
		progress.Set(int64(n), total)
		if n == opts.Limit {
			break
		}
	}
	return n, out.Close()
}

// expected is about how many records there will be, for a bar; 0 when it isn't known, as without the right to count.
func expected(ctx context.Context, c *client.Client, opts *exportOptions) int64 {
	if !opts.st.ErrTTY || opts.st.Flags.Quiet {
		return 0
	}
	n, err := c.CountRecords(ctx, opts.Namespace, opts.Collection, opts.Query.Filter)
	if err != nil {
		return 0
	}
	if opts.Limit > 0 {
		n = min(n, int64(opts.Limit))
	}
	return n
}

// newRecordWriter makes the writer of a format.
func newRecordWriter(ctx context.Context, c *client.Client, opts *exportOptions, w io.Writer) (recordWriter, error) {
	switch opts.Format {
	case "json":
		return newArrayWriter(w, "[", "]"), nil
	case "csv":
		col, err := c.DescribeCollection(ctx, opts.Namespace, opts.Collection)
		if err != nil {
			return nil, fmt.Errorf("ask about the fields of %s: %w", opts.place, err)
		}
		return newCSVWriter(w, col.Fields, opts.Query.Select != "" || opts.Query.Projection != "", selectedPaths(opts.Query.Select))
	}
	return lineWriter{bufio.NewWriterSize(w, 64<<10)}, nil
}
