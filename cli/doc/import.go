package doc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type importOptions struct {
	st *command.State
	place
	File            string
	Format          string // "" is by the file's name and beginning
	Batch           int
	Skip            int
	Upsert          string
	Errors          string
	ContinueOnError bool
	RetryFor        time.Duration
	State           string // file that keeps how far it is; "" is none
	Restart         bool
	DryRun          bool
	Files           string // folder with the files of the records; "" is none
}

// defaultBatch and maxBatchBytes bound one bulk request.
const (
	defaultBatch  = 500
	maxBatchBytes = 4 << 20
)

// besideFile is the --state of those who say nothing.
const besideFile = "FILE.import"

// formatNDJSON is the -o format of import and export that tells of progress line by line, for programs.
const formatNDJSON = "ndjson"

func newImport(st *command.State, runF func(context.Context, *importOptions) error) *cobra.Command {
	opts := &importOptions{st: st}

	cmd := &cobra.Command{
		Use:   "import [NAMESPACE] COLLECTION -f FILE",
		Short: "Create or update records from a file",
		Long: `Create records from NDJSON (one JSON object a line), a JSON list or CSV, in bulk requests, reading the file as it goes.
What the service sets itself (id, createdAt, …) is left out, so that an export can be imported again. The records get new
ids: what points at others by their _id points nowhere then. Relations by a key of your own (foreign.key, such as a slug)
survive an export and import.

With --upsert FIELD, a record whose value of that field is there already is updated: fields given are set, null removes
them, absent ones stay. The field needs a unique index of its own; --upsert id updates only.

In CSV, the first row names the fields (title, seo.title); cells are read by the type of the field, an empty one is no
value. Lists and objects are JSON, such as ["a", "b"].

It stops behind the first batch in which a record was refused. --continue-on-error goes on; --errors FILE does too, and
writes what was refused to a file, one JSON object a line with the record in "item". The exit code is 3 when some records
were written and some refused, 1 when all were refused. --skip N passes over the first N records. A service that has too
much to do, or does not answer for a moment, is asked again for --retry-for. Bulk requests need the bulk right on post;
--batch 1 does without. -o ndjson tells of progress on stdout, an object a line.

An import that was interrupted or killed goes on where it was by the same command, and no record is created twice: how far
it is stands in FILE.import (--state) until it is done. --restart begins anew.

With --files DIR, a file whose src is a path in that folder, as svcctl doc export --files writes it, is sent from there with
its record, one request for each record that has files. Nothing outside of the folder is read. A record one of whose files is
not there is refused; --dry-run checks and tries the files, too.

With --dry-run nothing is written: it reads the whole file, says how many records would be created, updated and refused,
and tells every refusal. It begins with the first record (or behind --skip), and leaves FILE.import alone. The service
tries a batch as a whole and undoes it: of two records of one batch that can't both be there, the second one is refused. Of
what lies further apart it can't know: it is tried as if the batches before it were not there.`,
		Example: `  svcctl doc import blog articles -f articles.ndjson
  svcctl doc import shop products -f products.csv --upsert sku --errors refused.ndjson
  svcctl doc import shop products -f products.csv --upsert sku --dry-run
  svcctl doc import blog medialib -f medialib.ndjson --files medialib
  zcat orders.ndjson.gz | svcctl doc import shop orders -f - --continue-on-error`,
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
			return runImport(ctx, opts)
		}),
	}
	fl := cmd.Flags()
	fl.StringVarP(&opts.File, "file", "f", "", "file with the records, - for stdin")
	fl.StringVar(&opts.Format, "format", "", "ndjson, json or csv (default: by the name of the file)")
	fl.IntVar(&opts.Batch, "batch", defaultBatch, "records of one request")
	fl.IntVar(&opts.Skip, "skip", 0, "records to pass over at the start")
	fl.StringVar(&opts.Upsert, "upsert", "", "field whose value tells which record to update")
	fl.StringVar(&opts.Errors, "errors", "", "file to write refused records to; goes on past them")
	fl.BoolVar(&opts.ContinueOnError, "continue-on-error", false, "go on when records are refused")
	fl.DurationVar(&opts.RetryFor, "retry-for", 2*time.Minute, "how long one request is tried again, 0 for once")
	fl.StringVar(&opts.State, "state", besideFile, `file that keeps how far it is, "" for none; stdin has none by itself`)
	fl.StringVar(&opts.Files, "files", "", "folder with the files of the records")
	fl.BoolVar(&opts.Restart, "restart", false, "begin anew, whatever was interrupted")
	dryRunFlag(cmd, &opts.DryRun)
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{
		"format": cobra.FixedCompletions([]string{"ndjson", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp),
		"upsert": st.CompleteFields(1),
	})
	return cmd
}

func (opts *importOptions) check() error {
	switch {
	case opts.File == "":
		return command.Usagef("where are the records? give -f FILE, or -f - for stdin")
	case opts.Batch < 1 || opts.Skip < 0:
		return command.Usagef("--batch: want 1 or more; --skip: want 0 or more")
	case opts.RetryFor < 0:
		return command.Usagef("--retry-for: want 0 or more")
	case opts.DryRun && opts.Restart:
		return command.Usagef("--restart with --dry-run: a dry run always begins anew, and leaves alone what an interrupted import has kept; give one of the two")
	}
	switch {
	case opts.DryRun:
		opts.State = ""
	case opts.State == besideFile:
		opts.State = opts.File + ".import"
		if opts.File == "-" {
			opts.State = ""
		}
	}
	switch opts.Format {
	case "", "ndjson", "json", "csv":
	default:
		return command.Usagef("--format %s: want ndjson, json or csv", opts.Format)
	}
	if opts.Files != "" && opts.isCSV() {
		return errFilesCSV
	}
	return nil
}

// goesOn says that the import goes on past refused records.
func (opts *importOptions) goesOn() bool {
	return opts.ContinueOnError || opts.Errors != "" || opts.DryRun
}

// isCSV says whether the input is CSV; other formats tell themselves.
func (opts *importOptions) isCSV() bool {
	return opts.Format == "csv" || opts.Format == "" && strings.EqualFold(filepath.Ext(opts.File), ".csv")
}

// importFailure is one refused record, or one refused batch, in the result for programs. Records count from 1.
type importFailure struct {
	Record  int              `json:"record"`
	Through int              `json:"through,omitempty"` // the last of a batch that was refused whole
	Code    string           `json:"code"`
	Message string           `json:"message"`
	Errors  []api.FieldError `json:"errors,omitempty"`
}

// importResult is what the command prints.
type importResult struct {
	Succeeded int             `json:"succeeded"`
	Created   int             `json:"created"`
	Updated   int             `json:"updated"`
	Failed    int             `json:"failed"`
	Failures  []importFailure `json:"failures"` // the first ones; of a dry run all
	DryRun    bool            `json:"dryRun,omitempty"`
}

func runImport(ctx context.Context, opts *importOptions) error {
	st := opts.st
	input, total, closeInput, err := openInput(st, opts.File)
	if err != nil {
		return err
	}
	defer closeInput()
	c, err := st.Client()
	if err != nil {
		return err
	}
	what := "importing"
	if opts.DryRun {
		what = "trying"
	}
	im := &importer{opts: opts, input: input, next: 1, progress: startProgress(st, what, total)}
	if opts.Files != "" {
		if im.files, err = os.OpenRoot(opts.Files); err != nil {
			return command.Usagef("--files: %v", err)
		}
		defer im.files.Close() //nolint:errcheck // it is only read
	}
	if err := im.prepare(ctx, c); err != nil {
		return err
	}
	err = im.run(ctx)
	im.progress.Clear()
	err = errors.Join(err, im.closeErrors())
	switch {
	case im.stale:
		return err
	case err != nil && !errors.Is(err, errRefused):
		return im.interrupted(err)
	}
	if err := im.state.remove(); err != nil {
		return err
	}
	noteLeft(st, im.left)
	if err != nil {
		st.Notef("stopped; --continue-on-error goes on past refused records, --skip %d goes on behind this batch", im.next-1)
	}
	if err := im.show(); err != nil {
		return err
	}
	switch {
	case opts.DryRun && im.state.Result.Failed > 0 && !opts.ContinueOnError && opts.Errors == "":
		st.Notef("a dry run: nothing was written; the import stops behind the first batch with a refused record, --continue-on-error goes on")
	case opts.DryRun:
		st.Notef("a dry run: nothing was written")
	}
	return partial(im.state.Result.Succeeded, im.state.Result.Failed)
}

// show prints the outcome.
func (im *importer) show() error {
	opts, r := im.opts, im.state.Result
	p := opts.st.Printer()
	if p.Format == formatNDJSON {
		return output.JSONLine(p.W, struct {
			Event string `json:"event"`
			importResult
		}{"done", r})
	}
	created, updated, failed := "CREATED", "UPDATED", "FAILED"
	if opts.DryRun {
		created, updated, failed = "WOULD CREATE", "WOULD UPDATE", "WOULD FAIL"
	}
	heads, row := []string{"COLLECTION", created, failed}, []any{opts.place.String(), r.Created, r.Failed}
	if opts.Upsert != "" {
		heads, row = []string{"COLLECTION", created, updated, failed}, []any{opts.place.String(), r.Created, r.Updated, r.Failed}
	}
	t := output.NewTable(heads...)
	t.Row(row...)
	return p.Print(output.Result{Value: r, Table: t, Names: []string{opts.place.String()}})
}

// startProgress shows how far a transfer is: on stderr for people, on stdout with -o ndjson.
func startProgress(st *command.State, what string, total int64) *output.Progress {
	if st.Flags.Output == formatNDJSON {
		return output.NewProgressLines(st.Stdout(), st.Now, total)
	}
	return st.Progress(what, "records", total)
}

// records reads the input in its format.
func (im *importer) records() iter.Seq2[api.Record, error] {
	if im.opts.isCSV() {
		return readCSV(im.input, im.fields)
	}
	return readRecords(im.input)
}

// interrupted says how far the import came and how to go on.
func (im *importer) interrupted(err error) error {
	st, written, dry := im.opts.st, im.state.Result.Succeeded, im.opts.DryRun
	switch {
	case dry:
		st.Notef("a dry run: nothing was written; it has not gone behind record %d", im.next-1)
	case im.state.saved:
		st.Notef("written: %s; the same command goes on there, by %s", output.Count(int(written), "record"), im.opts.State)
	case written > 0:
		st.Notef("written before: %s; --skip %d goes on there", output.Count(int(written), "record"), im.next-1)
	}
	if lost(err) && !dry && len(im.batch) > 0 && im.opts.Upsert == "" && !im.state.saved {
		st.Notef("records %d to %d were on their way: whether they were created is not known", im.next, im.next+len(im.batch)-1)
	}
	if client.IsStatus(err, http.StatusForbidden) && im.opts.Batch > 1 {
		st.Notef("bulk requests need the bulk right on post; --batch 1 does without")
	}
	return err
}

// lost says that an answer did not come, so that what was asked may have been done.
func lost(err error) bool {
	_, unreachable := errors.AsType[*client.UnreachableError](err)
	return unreachable || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// openInput opens a file or stdin; total is its size in bytes, 0 when unknown.
func openInput(st *command.State, name string) (r *countingReader, total int64, closeFunc func(), err error) {
	if name == "-" {
		return &countingReader{r: st.Stdin()}, 0, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, nil, command.Usagef("%v", err)
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		total = info.Size()
	}
	return &countingReader{r: f}, total, func() { _ = f.Close() }, nil
}

// countingReader knows how many bytes went through.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// badInput is the error of a file that makes no sense.
func badInput(cause error, format string, args ...any) error {
	if errors.Is(cause, context.Canceled) { // nobody wanted to know
		return cause
	}
	return &command.Error{Exit: command.ExitUsage, Code: "bad_input", Cause: cause, Message: fmt.Sprintf(format, args...)}
}
