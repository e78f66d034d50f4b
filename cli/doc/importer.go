package doc

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// shownFailures is how many failed records are told one by one; all are counted.
const shownFailures = 20

// importer writes records batch by batch.
type importer struct {
	opts     *importOptions
	sender   sender
	retry    *retrier
	progress *output.Progress
	input    *countingReader
	fields   []api.FieldDescription // with CSV and --files
	files    *os.Root               // --files
	refused  *os.File               // --errors
	state    *importState

	batch []item
	size  int
	next  int // number of the first record of batch
	left  []string
	stale bool // the file has changed since the import was interrupted
}

// item is a record as it is in the file, and without what the service sets.
type item struct {
	given, record api.Record
	files         []client.Attachment // with --files
	problem       *api.Problem        // why it can't be sent, such as a file that is not there
}

// outcome is what became of an item.
type outcome struct {
	problem *api.Problem // nil: it is written
	updated bool
}

// sender writes a batch and gives the outcome of each item, in their order. first is the number of the first one.
type sender interface {
	send(ctx context.Context, first int, batch []item) ([]outcome, error)
}

// errRefused ends an import without --continue-on-error.
var errRefused = errors.New("records were refused")

// prepare finds out what has to be known before the first record.
func (im *importer) prepare(ctx context.Context, c *client.Client) (err error) {
	opts := im.opts
	im.retry = &retrier{limit: opts.RetryFor, now: opts.st.Now, wait: wait, note: func(text string) {
		im.progress.Clear()
		opts.st.Notef("%s", text)
	}}
	server, err := opts.st.Server()
	if err != nil {
		return err
	}
	var resumed bool
	if im.state, resumed, err = openImportState(opts, server.Server); err != nil {
		return err
	}
	creator := &creator{client: c, place: opts.place, retry: im.retry, single: opts.Batch == 1, dryRun: opts.DryRun}
	im.sender = creator
	switch {
	case opts.Upsert == "" && !opts.DryRun: // what writes nothing may be done twice
		creator.key = im.state.key
	case opts.Upsert != "":
		im.sender = &upserter{creator: creator, key: opts.Upsert}
	}
	if opts.Upsert != "" && opts.Upsert != "id" || opts.isCSV() || im.files != nil {
		col, err := c.DescribeCollection(ctx, opts.Namespace, opts.Collection)
		if err != nil {
			return fmt.Errorf("ask about the fields of %s: %w", opts.place, err)
		}
		im.fields = col.Fields
		if err := checkUpsert(opts, col); err != nil {
			return err
		}
	}
	if im.files != nil {
		if creator.upload, err = uploads(opts.st); err != nil {
			return err
		}
		im.sender = fileSender{im.sender}
	}
	if resumed {
		opts.st.Notef("going on behind record %d, by %s; --restart begins anew", im.state.Records, opts.State)
	}
	return im.openErrors(resumed)
}

// openErrors opens the file of --errors. One that goes on loses what came behind the last batch that is through.
func (im *importer) openErrors(resumed bool) error {
	if im.opts.Errors == "" {
		return nil
	}
	f, err := os.OpenFile(im.opts.Errors, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return command.Usagef("--errors: %v", err)
	}
	im.refused = f
	if !resumed || im.state.Errors != im.opts.Errors {
		im.state.Errors, im.state.ErrorsSize = im.opts.Errors, 0
	}
	_, err = f.Seek(im.state.ErrorsSize, io.SeekStart)
	return errors.Join(f.Truncate(im.state.ErrorsSize), err)
}

// closeErrors ends the file of refused records; one that stayed empty goes away.
func (im *importer) closeErrors() error {
	if im.refused == nil {
		return nil
	}
	if im.state.Result.Failed == 0 {
		return errors.Join(im.refused.Close(), os.Remove(im.refused.Name()))
	}
	im.opts.st.Notef("what was refused is in %s", im.refused.Name())
	return im.refused.Close()
}

func (im *importer) run(ctx context.Context) error {
	n, before := 0, max(im.opts.Skip, im.state.Records)
	for given, err := range im.records() {
		if err != nil {
			if flushErr := im.flush(ctx); flushErr != nil {
				return flushErr
			}
			return badInput(err, "%s", im.opts.File)
		}
		n++
		if n <= before {
			im.next = n + 1
			im.state.take(given)
			if n == im.state.Records && !im.state.isThrough() {
				return im.changed()
			}
			continue
		}
		if err := im.add(ctx, n, given); err != nil {
			return err
		}
	}
	if n < im.state.Records {
		return im.changed()
	}
	return im.flush(ctx)
}

// changed is the error of a file that is not the one that an interrupted import was of.
func (im *importer) changed() error {
	im.stale = true
	return stateError(im.opts, fmt.Sprintf("the first %d records of %s are not what they were", im.state.Records, im.opts.File))
}

// add takes a record into the batch, which is sent when it is full.
func (im *importer) add(ctx context.Context, n int, given api.Record) error {
	record, left, _, err := writable(given)
	if err != nil {
		return badInput(err, "%s: record %d", im.opts.File, n)
	}
	if im.left == nil {
		im.left = left
	}
	if len(im.batch) > 0 && im.size+len(record) > maxBatchBytes {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	it := item{given: given, record: record}
	if im.files != nil {
		if it.record, it.files, it.problem, err = attach(im.files, im.fields, record); err != nil {
			return badInput(err, "%s: record %d", im.opts.File, n)
		}
	}
	im.batch = append(im.batch, it)
	im.size += len(record)
	if len(im.batch) < im.state.Batch {
		return nil
	}
	return im.flush(ctx)
}

// flush sends the batch. A refusal of records is counted, and is errRefused unless the import goes on; any other error
// ends it.
func (im *importer) flush(ctx context.Context) error {
	if len(im.batch) == 0 {
		return nil
	}
	if !im.state.saved { // the keys of the first request, too, have to outlive the process
		if err := im.through(); err != nil {
			return err
		}
	}
	failedBefore := im.state.Result.Failed
	if err := im.deliver(ctx, im.batch); err != nil {
		return err
	}
	for _, it := range im.batch {
		im.state.take(it.given)
	}
	im.batch, im.size = im.batch[:0], 0
	if err := im.through(); err != nil {
		return err
	}
	if im.state.Result.Failed > failedBefore && !im.opts.goesOn() {
		return errRefused
	}
	return nil
}

// through keeps that all records up to now are dealt with.
func (im *importer) through() error {
	s := im.state
	s.Records, s.Hash = im.next-1, hex.EncodeToString(s.hash[:])
	if im.refused != nil {
		size, err := im.refused.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		s.ErrorsSize = size
	}
	return s.save()
}

// deliver sends items, in two halves where they are too many for the service at once.
func (im *importer) deliver(ctx context.Context, items []item) error {
	outcomes, err := im.sender.send(ctx, im.next, items)
	if err == nil {
		if err := im.count(items, outcomes); err != nil {
			return err
		}
	} else {
		refused, ok := errors.AsType[*client.Error](err)
		if !ok {
			return err
		}
		if len(items) > 1 && tooMany(refused) {
			half := len(items) / 2
			im.state.Batch = min(im.state.Batch, half)
			if err := im.deliver(ctx, items[:half]); err != nil {
				return err
			}
			return im.deliver(ctx, items[half:])
		}
		if !aboutRecords(refused) {
			return err
		}
		if err := im.failAll(items, refused); err != nil {
			return err
		}
	}
	im.next += len(items)
	im.progress.Add(len(items), im.input.n)
	return nil
}

// tooMany says that a batch is more than the collection or the service takes in one request.
func tooMany(e *client.Error) bool {
	return e.Code() == "bulk_limit" || e.Status == http.StatusRequestEntityTooLarge
}

// aboutRecords is false for refusals that every further batch would meet too, such as a missing right.
func aboutRecords(e *client.Error) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// count takes the outcome of each item.
func (im *importer) count(items []item, outcomes []outcome) error {
	for i, o := range outcomes {
		switch {
		case o.problem != nil:
			f := importFailure{Record: im.next + i, Code: o.problem.Code, Message: o.problem.Detail, Errors: o.problem.Errors}
			if err := im.fail(f, items[i:i+1]); err != nil {
				return err
			}
			continue
		case o.updated:
			im.state.Result.Updated++
		default:
			im.state.Result.Created++
		}
		im.state.Result.Succeeded++
	}
	return nil
}

// failAll counts a batch that the service refused for what is in it.
func (im *importer) failAll(items []item, e *client.Error) error {
	f := importFailure{Record: im.next, Code: e.Code(), Message: e.Problem.Detail, Errors: e.Problem.Errors}
	if len(items) > 1 {
		f.Through = im.next + len(items) - 1
	}
	return im.fail(f, items)
}

// fail tells of refused items: the first ones to the user, all to the file of --errors.
func (im *importer) fail(f importFailure, items []item) error {
	im.state.Result.Failed += len(items)
	st := im.opts.st
	switch n := len(im.state.Result.Failures); {
	case n < shownFailures || im.opts.DryRun: // what a dry run is for
		im.state.Result.Failures = append(im.state.Result.Failures, f)
		im.progress.Clear()
		where := fmt.Sprintf("record %d", f.Record)
		if f.Through > 0 {
			where = fmt.Sprintf("records %d to %d", f.Record, f.Through)
		}
		st.Warnf("%s: %s", where, f.Message)
	case im.state.Result.Failed == shownFailures+len(items):
		st.Warnf("more records were refused; they are counted, but not shown")
	}
	if im.refused == nil {
		return nil
	}
	f.Through = 0
	for i, it := range items {
		f := f
		f.Record += i
		if err := output.JSONLine(im.refused, struct {
			importFailure
			Item api.Record `json:"item"`
		}{f, it.given}); err != nil {
			return fmt.Errorf("write %s: %w", im.opts.Errors, err)
		}
	}
	return nil
}
