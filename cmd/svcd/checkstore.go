package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/app"
)

// notCheckedError is why a store could not be checked. It says nothing about the store.
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
	Problems []app.StoreProblem `json:"problems"`
	Repaired int                `json:"repaired"`
	Left     int                `json:"left"` // problems that are there still
}

func (c storeCheck) run(ctx context.Context, cfg app.Config) error {
	r := report{Problems: []app.StoreProblem{}}
	f, ok := c.stderr.(*os.File)
	progress := output.NewProgress(c.stderr, ok && term.IsTerminal(int(f.Fd())), time.Now, "checking", "keys", 0)
	err := app.CheckStore(ctx, cfg, app.StoreCheck{
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
	if err != nil {
		return &notCheckedError{err}
	}
	if err := c.print(r); err != nil {
		return &notCheckedError{err}
	}
	if r.Left == 0 {
		return nil
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
		_, err = c.stdout.Write(append(data, '\n'))
		return err
	}
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintln(c.stdout, "store ok")
		return err
	}
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
	err := output.Printer{W: c.stdout, Format: output.FormatTable}.Print(output.Result{Table: table})
	if err == nil && r.Left == 0 {
		_, err = fmt.Fprintf(c.stdout, "repaired, store ok\n")
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
