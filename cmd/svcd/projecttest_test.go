package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	trialreport "github.com/svcctl/svc/pkg/trial/report"
)

// runProjectTest has a process of ours, without an environment, test a project.
func runProjectTest(t *testing.T, args ...string) (events []trialreport.Event, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{projectTestCommand}, args...)...)
	cmd.Env = []string{}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var e trialreport.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		events = append(events, e)
	}
	return events, complaint.String(), err
}

// The sample projects pass their own tests, which use all of their rules and scripts.
func TestSamplesPassTheirTests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"blog", "shop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, stderr, err := runProjectTest(t, filepath.Join("..", "..", "projects", name))
			if err != nil || len(events) < 3 || events[0].Begin == nil || events[0].Begin.Protocol != trialreport.Protocol {
				t.Fatalf("%v: %s: %+v", err, stderr, events)
			}
			for _, e := range events {
				if e.Case != nil && e.Case.Status != trialreport.Passed {
					t.Errorf("%s:%d: %s: %+v", e.Case.File, e.Case.Line, e.Case.Name, *e.Case)
				}
			}
			end := events[len(events)-1].End
			if end == nil || end.Failed > 0 || end.Passed < 10 || end.Coverage == nil {
				t.Fatalf("%+v", end)
			}
			if used, of := end.Coverage.Covered(); used < of || of < 10 {
				t.Errorf("%d of %d are covered: %+v", used, of, *end.Coverage)
			}
		})
	}
}

// What can't be tested is a mistake of the command line, with the exit code of one.
func TestProjectTestRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{filepath.Join(t.TempDir(), "nothing")}, "does not exist"},
		{[]string{"../../projects/blog", "--run", "("}, "missing closing"},
	} {
		_, stderr, err := runProjectTest(t, tt.args...)
		exit := &exec.ExitError{}
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: %v: %s", tt.args, err, stderr)
		}
	}
}
