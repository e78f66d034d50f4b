package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/app"
)

// errInterrupted is the end of a check by a signal.
var errInterrupted = errors.New("interrupted")

// notCheckedError is why a check could not be made. It says nothing about what was to be checked.
type notCheckedError struct{ err error }

func (e *notCheckedError) Error() string { return e.err.Error() }
func (e *notCheckedError) Unwrap() error { return e.err }

// storeCheck is a run of check --store.
type storeCheck struct {
	repair bool
	format string // of -o
	stdout io.Writer
	stderr io.Writer
}

// report is what it prints, as JSON.
type report struct {
	Databases   []string           `json:"databases"`   // that were checked
	Collections int                `json:"collections"` // in them
	Problems    []app.StoreProblem `json:"problems"`
	Repaired    int                `json:"repaired"`
	Left        int                `json:"left"`            // problems that are there still
	Error       string             `json:"error,omitempty"` // why it could not be checked, or not to the end
}

func (c storeCheck) run(ctx context.Context, cfg app.Config) error {
	r := report{Databases: []string{}, Problems: []app.StoreProblem{}}
	f, ok := c.stderr.(*os.File)
	progress := output.NewProgress(c.stderr, ok && term.IsTerminal(int(f.Fd())), time.Now, "checking", "keys", 0)
	if !cfg.Logger.Enabled(ctx, slog.LevelDebug) { // what is found is printed: the store's log says it once more
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	has, err := app.CheckStore(ctx, cfg, app.StoreCheck{
		Repair: c.repair,
		Report: func(p app.StoreProblem) {
			r.Problems = append(r.Problems, p)
			if p.Repaired {
				r.Repaired++
			} else {
				r.Left++
			}
		},
		Progress: progress.Set,
	})
	progress.Clear()
	r.Databases, r.Collections = append(r.Databases, has.Databases...), has.Collections
	if err != nil {
		err = notChecked(ctx, err)
		r.Error = err.Error()
	}
	if printErr := c.print(r); printErr != nil && err == nil {
		err = &notCheckedError{printErr}
	}
	if err != nil || r.Left == 0 {
		return err
	}
	hint := "restore a backup of what can't be repaired"
	if damaged, repairable := r.kinds(); !c.repair && repairable {
		hint = "stop svcd and run svcd check --store --repair"
		if damaged {
			hint += "; that does not mend what is damaged: restore a backup for that"
		}
	}
	return fmt.Errorf("the store has problems (%d): %s", r.Left, hint)
}

// notChecked is what a check ends with that could not be made, or was interrupted.
func notChecked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return &notCheckedError{err}
}

// kinds says whether there are problems that no repair helps, and such that one does.
func (r report) kinds() (damaged, repairable bool) {
	for _, p := range r.Problems {
		damaged, repairable = damaged || !p.Repairable, repairable || p.Repairable
	}
	return damaged, repairable
}

func (c storeCheck) print(r report) error {
	if c.format == output.FormatJSON {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		return write(c.stdout, string(data)+"\n")
	}
	var text strings.Builder
	if len(r.Problems) > 0 {
		table := output.NewTable("COLLECTION", "INDEX", "STATE", "PROBLEM")
		for _, p := range r.Problems {
			state := "damaged"
			switch {
			case p.Repaired:
				state = "repaired"
			case p.Repairable:
				state = "repairable"
			}
			table.Row(cmp.Or(p.Collection, "-"), cmp.Or(p.Index, "-"), state, p.Text)
		}
		if err := (output.Printer{W: &text, Format: output.FormatTable}).Print(output.Result{Table: table}); err != nil {
			return err
		}
	}
	if r.Left == 0 && r.Error == "" {
		if r.Repaired > 0 {
			text.WriteString("repaired, ")
		}
		text.WriteString("store ok: " + r.contents() + "\n")
	}
	return write(c.stdout, text.String())
}

// contents is what was checked, in words.
func (r report) contents() string {
	where := fmt.Sprintf("%d databases", len(r.Databases))
	if n := len(r.Databases); n > 0 && n <= 5 {
		where = strings.Join(r.Databases, ", ")
	}
	if r.Collections == 0 {
		return "it is empty, with no collection in " + where
	}
	return fmt.Sprintf("%d collections in %s", r.Collections, where)
}

// write writes to stdout. That nobody reads to the end (| head -1) is no failure of a check.
func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// checkFormat refuses an -o that there is not.
func (c storeCheck) checkFormat() error {
	if c.format != output.FormatTable && c.format != output.FormatJSON {
		return &usageError{errors.New("--output must be table or json")}
	}
	return nil
}
