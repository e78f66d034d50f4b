package doc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

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
	Batch           int
	Skip            int
	ContinueOnError bool
}

// defaultBatch and maxBatchBytes bound one bulk request.
const (
	defaultBatch  = 500
	maxBatchBytes = 4 << 20
)

// shownFailures is how many failed records are told one by one; all are counted.
const shownFailures = 20

func newImport(st *command.State, runF func(context.Context, *importOptions) error) *cobra.Command {
	opts := &importOptions{st: st}
	cmd := &cobra.Command{
		Use:   "import [NAMESPACE] COLLECTION -f FILE",
		Short: "Create records from a file",
		Long: `Create records from NDJSON (one JSON object a line) or a JSON list, in bulk requests, reading the file as it goes.
What the service sets itself (id, createdAt, …) is left out, so that an export can be imported again. The records get new
ids: what points at others by their _id points nowhere then. Relations by a key of your own (foreign.key, such as a slug)
survive an export and import.

It stops behind the first batch in which a record was refused; --continue-on-error goes on. The exit code is 3 when some
records were created and some refused, 1 when all were refused. --skip N passes over the first N records, to go on where
an import was interrupted. Bulk requests need the bulk right on post; --batch 1 does without.`,
		Example: `  svcctl doc import blog articles -f articles.ndjson
  zcat orders.ndjson.gz | svcctl doc import shop orders -f - --continue-on-error`,
		Args:              command.PlaceArgs(1),
		ValidArgsFunction: st.CompletePlace(true),
		RunE: st.AtPlace(1, func(ctx context.Context, namespace string, rest []string) error {
			opts.place = place{namespace, rest[0]}
			switch {
			case opts.File == "":
				return command.Usagef("where are the records? give -f FILE, or -f - for stdin")
			case opts.Batch < 1 || opts.Skip < 0:
				return command.Usagef("--batch: want 1 or more; --skip: want 0 or more")
			}
			if runF != nil {
				return runF(ctx, opts)
			}
			return runImport(ctx, opts)
		}),
	}
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "file with the records, - for stdin")
	cmd.Flags().IntVar(&opts.Batch, "batch", defaultBatch, "records of one request")
	cmd.Flags().IntVar(&opts.Skip, "skip", 0, "records to pass over at the start")
	cmd.Flags().BoolVar(&opts.ContinueOnError, "continue-on-error", false, "go on when records are refused")
	return cmd
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
	Failed    int             `json:"failed"`
	Failures  []importFailure `json:"failures"` // the first ones
}

// importer creates records batch by batch.
type importer struct {
	opts     *importOptions
	client   *client.Client
	progress *output.Progress
	input    *countingReader
	result   importResult

	batch []api.Record
	size  int
	next  int // number of the first record of batch
	left  []string
}

// errRefused ends an import without --continue-on-error.
var errRefused = errors.New("records were refused")

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
	im := &importer{
		opts: opts, client: c, input: input, next: 1,
		progress: st.Progress("importing", "records", total),
		result:   importResult{Failures: []importFailure{}},
	}
	err = im.run(ctx)
	im.progress.Clear()
	if err != nil && !errors.Is(err, errRefused) {
		return im.interrupted(err)
	}
	noteLeft(st, im.left)
	if err != nil {
		st.Notef("stopped; --continue-on-error goes on past refused records, --skip %d goes on behind this batch", im.next-1)
	}
	t := output.NewTable("COLLECTION", "CREATED", "FAILED")
	t.Row(opts.place.String(), im.result.Succeeded, im.result.Failed)
	if err := st.Printer().Print(output.Result{Value: im.result, Table: t, Names: []string{opts.place.String()}}); err != nil {
		return err
	}
	return partial(im.result.Succeeded, im.result.Failed)
}

func (im *importer) run(ctx context.Context) error {
	n := 0
	for record, err := range readRecords(im.input) {
		if err != nil {
			if flushErr := im.flush(ctx); flushErr != nil {
				return flushErr
			}
			return &command.Error{Exit: command.ExitUsage, Code: "bad_input", Message: im.opts.File, Cause: err}
		}
		if n++; n <= im.opts.Skip {
			im.next = n + 1
			continue
		}
		record, left, _, err := writable(record)
		if err != nil {
			return &command.Error{
				Exit: command.ExitUsage, Code: "bad_input", Cause: err, Message: fmt.Sprintf("%s: record %d", im.opts.File, n),
			}
		}
		if im.left == nil {
			im.left = left
		}
		if len(im.batch) > 0 && im.size+len(record) > maxBatchBytes {
			if err := im.flush(ctx); err != nil {
				return err
			}
		}
		im.batch = append(im.batch, record)
		im.size += len(record)
		if len(im.batch) >= im.opts.Batch {
			if err := im.flush(ctx); err != nil {
				return err
			}
		}
	}
	return im.flush(ctx)
}

// flush sends the batch. A refusal of records is counted, and is errRefused unless the import goes on; any other error
// ends it.
func (im *importer) flush(ctx context.Context) error {
	if len(im.batch) == 0 {
		return nil
	}
	failedBefore := im.result.Failed
	var err error
	if im.opts.Batch == 1 {
		_, err = im.client.CreateRecord(ctx, im.opts.Namespace, im.opts.Collection, im.batch[0])
		if err == nil {
			im.result.Succeeded++
		}
	} else {
		var answer *api.BulkCreateResult
		if answer, err = im.client.BulkCreate(ctx, im.opts.Namespace, im.opts.Collection, im.batch); err == nil {
			im.count(answer)
		}
	}
	if err != nil && !im.refusedWhole(err) {
		return err
	}
	im.next += len(im.batch)
	im.progress.Add(len(im.batch), im.input.n)
	im.batch, im.size = im.batch[:0], 0
	if im.result.Failed > failedBefore && !im.opts.ContinueOnError {
		return errRefused
	}
	return nil
}

// count takes the outcome of each record of a batch.
func (im *importer) count(answer *api.BulkCreateResult) {
	im.result.Succeeded += answer.Succeeded
	for i, item := range answer.Items {
		if item.Error != nil {
			im.fail(importFailure{
				Record: im.next + i, Code: item.Error.Code, Message: item.Error.Detail, Errors: item.Error.Errors,
			}, 1)
		}
	}
}

// refusedWhole counts a batch that the service refused for what is in it; it is false for refusals that every further
// batch would meet too, such as a missing right.
func (im *importer) refusedWhole(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
	default:
		return false
	}
	f := importFailure{Record: im.next, Code: e.Code(), Message: e.Problem.Detail, Errors: e.Problem.Errors}
	if len(im.batch) > 1 {
		f.Through = im.next + len(im.batch) - 1
	}
	im.fail(f, len(im.batch))
	return true
}

func (im *importer) fail(f importFailure, records int) {
	im.result.Failed += records
	st := im.opts.st
	switch n := len(im.result.Failures); {
	case n < shownFailures:
		im.result.Failures = append(im.result.Failures, f)
		im.progress.Clear()
		where := fmt.Sprintf("record %d", f.Record)
		if f.Through > 0 {
			where = fmt.Sprintf("records %d to %d", f.Record, f.Through)
		}
		st.Warnf("%s: %s", where, f.Message)
	case im.result.Failed == shownFailures+records:
		st.Warnf("more records were refused; they are counted, but not shown")
	}
}

// interrupted says how far the import came and how to go on.
func (im *importer) interrupted(err error) error {
	st := im.opts.st
	if im.result.Succeeded > 0 {
		st.Notef("%d records were created before; --skip %d goes on there", im.result.Succeeded, im.next-1)
	}
	var unreachable *client.UnreachableError
	if errors.As(err, &unreachable) && len(im.batch) > 0 {
		st.Notef("records %d to %d were on their way: whether they were created is not known", im.next, im.next+len(im.batch)-1)
	}
	if client.IsStatus(err, http.StatusForbidden) && im.opts.Batch > 1 {
		st.Notef("bulk requests need the bulk right on post; --batch 1 does without")
	}
	return err
}

// openInput opens a file or stdin; total is its size in bytes, 0 when unknown.
func openInput(st *command.State, name string) (r *countingReader, total int64, closeFunc func(), err error) {
	if name == "-" {
		return &countingReader{r: st.In}, 0, func() {}, nil
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
