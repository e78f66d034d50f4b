package doc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// importState is how far an import is, in a file that outlives the process, so that another one can go on. It is written
// when a batch is through. What was on its way when the process ended is sent again as it was, and with its idempotency key,
// so that it is carried out once; with --upsert its records are found by their key.
type importState struct {
	Server     string       `json:"server"`
	Namespace  string       `json:"namespace"`
	Collection string       `json:"collection"`
	Upsert     string       `json:"upsert,omitempty"`
	Run        string       `json:"run"`     // begins the idempotency keys
	Batch      int          `json:"batch"`   // records of a request
	Records    int          `json:"records"` // that are through, passed over ones included
	Hash       string       `json:"hash"`    // of these, to know the file again
	Result     importResult `json:"result"`
	Errors     string       `json:"errors,omitempty"` // --errors
	ErrorsSize int64        `json:"errorsSize,omitempty"`

	path  string // "": nowhere
	saved bool   // there is something to go on with
	hash  [sha256.Size]byte
}

// newImportState begins an import.
func newImportState(opts *importOptions, server string) *importState {
	return &importState{
		Server: server, Namespace: opts.Namespace, Collection: opts.Collection, Upsert: opts.Upsert,
		Run: rand.Text(), Batch: opts.Batch, Errors: opts.Errors, path: opts.State,
		Result: importResult{Failures: []importFailure{}, DryRun: opts.DryRun},
	}
}

// openImportState goes on with the import that the state file is of, or begins one. resumed says which.
func openImportState(opts *importOptions, server string) (s *importState, resumed bool, err error) {
	fresh := newImportState(opts, server)
	if opts.State == "" || opts.Restart {
		return fresh, false, nil
	}
	raw, err := os.ReadFile(opts.State)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, false, nil
	}
	if err != nil {
		return nil, false, command.Usagef("%v", err)
	}
	s = &importState{path: opts.State}
	if err := json.Unmarshal(raw, s); err != nil || s.Run == "" || s.Batch < 1 || s.Records < 0 {
		return nil, false, stateError(opts, "it is not what an import leaves behind")
	}
	switch {
	case s.Server != server:
		return nil, false, stateError(opts, "it is of an import to "+s.Server)
	case s.Namespace != opts.Namespace || s.Collection != opts.Collection || s.Upsert != opts.Upsert:
		what := s.Namespace + "/" + s.Collection
		if s.Upsert != "" {
			what += " by " + s.Upsert
		}
		return nil, false, stateError(opts, "it is of an import into "+what)
	}
	s.saved = true
	return s, true, nil
}

func stateError(opts *importOptions, why string) error {
	return &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("can't go on by %s: %s", opts.State, why),
		Hint: "--restart begins anew, --state names another file",
	}
}

// take adds a record to what the hash is of.
func (s *importState) take(record api.Record) {
	h := sha256.New()
	h.Write(s.hash[:])
	h.Write(record)
	h.Sum(s.hash[:0])
}

// isThrough says whether the records taken so far are those that were through.
func (s *importState) isThrough() bool { return hex.EncodeToString(s.hash[:]) == s.Hash }

// key is the idempotency key of a request for count records from the first.
func (s *importState) key(first, count int) string {
	return s.Run + "-" + strconv.Itoa(first) + "-" + strconv.Itoa(count)
}

// save writes the file, in one step.
func (s *importState) save() error {
	if s.path == "" {
		return nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := output.ReplaceFile(s.path, append(raw, '\n')); err != nil {
		return &command.Error{
			Exit: command.ExitFailed, Code: "failed", Message: "keep how far the import is", Cause: err,
			Hint: `--state names another file, --state "" goes without`,
		}
	}
	s.saved = true
	return nil
}

// remove takes the file away when there is nothing to go on with.
func (s *importState) remove() error {
	if s.path == "" {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
