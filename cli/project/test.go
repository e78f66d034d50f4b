package project

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/dirwatch"
	"github.com/svcctl/svc/pkg/trial/report"
)

type testOptions struct {
	st          *command.State
	Path        string
	Run         string
	JUnit       string
	Svcd        string
	CoverageMin int
	Watch       bool
}

func newTest(st *command.State, runF func(context.Context, *testOptions) error) *cobra.Command {
	opts := &testOptions{st: st}
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run a project's own tests",
		Long: `Run the tests of the project in DIR (default: here): the cases in DIR/tests/*.yaml, each against a service of its own
with a store in memory, a clock that stands still, and recorded answers to outbound requests. No service has to run. What
the permissions and scripts of the project did is shown as coverage. docs/testing.md says how tests are written.

Golden queries (DIR/search/*.golden.yaml) are tests, too: each file says which records answer which queries, and passes when
the search reaches the nDCG@10 and recall@100 of its gates. Of one that fails, the worst queries are shown.

svcd does the work: the one beside svcctl, else the one in PATH. With -o github, and by default where GITHUB_ACTIONS is
true, failures are printed as annotations. The exit code is 0 when all cases passed, 1 when one failed (or less was
covered than --coverage-min), 2 when they could not be run.`,
		Example: `  svcctl project test projects/blog
  svcctl project test projects/blog --run 'Articles/.*address' --watch
  svcctl project test projects/blog --run 'golden queries'
  svcctl project test projects/blog --coverage-min 80 --junit report.xml`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: command.CompleteDir,
		Annotations:       map[string]string{command.FormatsAnnotation: formatGitHub},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Path = "."
			if len(args) > 0 {
				opts.Path = args[0]
			}
			if st.InCI() && !st.FormatGiven() {
				st.Flags.Output = formatGitHub
			}
			if opts.CoverageMin < 0 || opts.CoverageMin > 100 {
				return command.Usagef("--coverage-min %d: want 0 to 100", opts.CoverageMin)
			}
			if opts.CoverageMin > 0 && opts.Run != "" {
				return command.Usagef("--coverage-min is of all cases: leave --run out")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			if opts.Watch {
				return watchTests(cmd.Context(), opts)
			}
			return runTests(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.Run, "run", "", "only the cases whose suite/name match this regular expression")
	fl.StringVar(&opts.JUnit, "junit", "", "write the results to this file, too, as JUnit XML")
	fl.StringVar(&opts.Svcd, "svcd", "", "the svcd to use")
	fl.IntVar(&opts.CoverageMin, "coverage-min", 0, "fail when less than this percentage is covered")
	fl.BoolVar(&opts.Watch, "watch", false, "run again at each change, until Ctrl-C")
	return cmd
}

// runTests has svcd run the tests, and shows what it tells.
func runTests(ctx context.Context, opts *testOptions) error {
	if _, _, err := locate(opts.Path); err != nil {
		return err
	}
	svcd, err := findSvcd(opts.Svcd)
	if err != nil {
		return err
	}
	args := []string{"project-test", opts.Path}
	if opts.Run != "" {
		args = append(args, "--run", opts.Run)
	}
	cmd := exec.CommandContext(ctx, svcd, args...) //nolint:gosec // the user names it
	cmd.Env = []string{}                           // nothing of this machine is in the tests
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return notRun("svcd can't be started: "+err.Error(), "")
	}
	results := newTestResults(opts)
	readErr := results.read(events)
	_, _ = io.Copy(io.Discard, events) // so that svcd can end
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case readErr != nil:
		return readErr
	case err != nil:
		return notRun("svcd could not run the tests: "+strings.TrimSpace(strings.ReplaceAll(complaint.String(), "svcd: ", "")), "")
	case results.End == nil:
		return notRun("svcd ended in the middle of the tests", "")
	}
	return results.finish()
}

// notRun is the error of tests that could not be run.
func notRun(message, hint string) error {
	return &command.Error{Exit: command.ExitUsage, Code: "not_run", Message: message, Hint: hint}
}

// findSvcd finds the program that runs the tests.
func findSvcd(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), "svcd")
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	if found, err := exec.LookPath("svcd"); err == nil {
		return found, nil
	}
	return "", notRun("svcd, which runs the tests, is not found", "put it beside svcctl or into PATH, or name it with --svcd")
}

// testResults are what svcd has told so far.
type testResults struct {
	opts *testOptions
	base string // of the files' names

	Cases []report.Case `json:"cases"`
	*report.End
}

func newTestResults(opts *testOptions) *testResults {
	r := &testResults{opts: opts, base: opts.Path, Cases: []report.Case{}}
	if info, err := os.Stat(opts.Path); err == nil && !info.IsDir() {
		r.base = filepath.Dir(opts.Path)
	}
	return r
}

// file is a name as the user can open it.
func (r *testResults) file(name string) string {
	if name == "" {
		return r.base
	}
	return filepath.ToSlash(filepath.Join(r.base, filepath.FromSlash(name)))
}

// read takes in all events, and shows each case when it has ended.
func (r *testResults) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return notRun("svcd can't be read: "+err.Error(), "")
		}
		var e report.Event
		if err := json.Unmarshal(line, &e); err != nil || first && (e.Begin == nil || e.Begin.Protocol != report.Protocol) {
			return notRun("this svcd speaks another language than svcctl", "use those of the same version")
		}
		switch {
		case e.Case != nil:
			r.locate(e.Case)
			r.Cases = append(r.Cases, *e.Case)
			err = r.showCase(*e.Case)
		case e.End != nil:
			r.End = e.End
		}
		if err != nil {
			return err
		}
	}
}

// locate makes the names of files those that the user can open.
func (r *testResults) locate(c *report.Case) {
	c.File = r.file(c.File)
	for i := range c.Failures {
		c.Failures[i].File = r.file(c.Failures[i].File)
	}
}

// finish shows the whole, and gives the exit code.
func (r *testResults) finish() error {
	for i := range r.Problems {
		r.Problems[i].File = r.file(r.Problems[i].File)
	}
	if r.opts.JUnit != "" {
		if err := writeJUnit(r.opts.JUnit, r.Cases); err != nil {
			return notRun(fmt.Sprintf("%s can't be written: %v", r.opts.JUnit, err), "")
		}
	}
	if err := r.showEnd(); err != nil {
		return err
	}
	switch {
	case len(r.Problems) > 0:
		return command.Told(command.ExitUsage)
	case len(r.Cases) == 0:
		return notRun(fmt.Sprintf("no case matches --run %q", r.opts.Run), "it is compared with suite/name")
	case r.Failed > 0:
		return command.Told(command.ExitFailed)
	}
	if percent := r.percent(); percent < r.opts.CoverageMin {
		return &command.Error{Exit: command.ExitFailed, Code: "coverage", Message: fmt.Sprintf("%d %% is covered, and --coverage-min asks for %d %%", percent, r.opts.CoverageMin)}
	}
	return nil
}

// percent is how much is covered.
func (r *testResults) percent() int {
	if r.Coverage == nil {
		return 0
	}
	used, of := r.Coverage.Covered()
	if of == 0 {
		return 100
	}
	return 100 * used / of
}

// watchTests runs the tests again and again, at each change of the project.
func watchTests(ctx context.Context, opts *testOptions) error {
	dir, _, err := locate(opts.Path)
	if err != nil {
		return err
	}
	changes := make(chan struct{}, 1)
	w := dirwatch.New(dirwatch.Options{Logger: discard(), Poll: 2 * time.Second})
	if err := w.Watch("tests", dir); err != nil {
		return notRun(fmt.Sprintf("%s can't be watched: %v", opts.Path, err), "")
	}
	failed := make(chan error, 1)
	go func() { // ends with ctx, which ends with the process
		failed <- w.Start(ctx, func(string) {
			select {
			case changes <- struct{}{}:
			default:
			}
		})
	}()
	for {
		err := runTests(ctx, opts)
		if ctx.Err() != nil {
			return command.Told(command.ExitInterrupted)
		}
		opts.st.Fail(ctx, err)
		opts.st.Notef("waiting for a change of %s", opts.Path)
		select {
		case <-changes:
			opts.st.Notef("")
		case err := <-failed:
			if ctx.Err() != nil {
				return command.Told(command.ExitInterrupted)
			}
			return notRun(fmt.Sprintf("%s can't be watched: %v", opts.Path, err), "")
		}
	}
}
