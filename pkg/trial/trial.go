package trial

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/trial/report"
)

// Directory is where the files of tests are, in a project's directory.
const Directory = "tests"

// Options of Run.
type Options struct {
	Dir     string         // of the project
	Entry   string         // its config file, relative to Dir
	Run     *regexp.Regexp // the cases to run, by "suite/case"; nil: all
	Version string         // of this program
	// Worker is the command line of a process that compiles large scripts; nil: this one does.
	Worker []string
	Emit   func(report.Event) error
}

// Run runs the tests of a project, and emits what becomes of them: Begin, each Case in the order of the files, End. The
// error says that something could not be emitted, or that ctx has ended.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.Emit(report.Event{Begin: &report.Begin{Protocol: report.Protocol, Version: o.Version}}); err != nil {
		return err
	}
	began := time.Now()
	engine := script.NewEngine(script.Options{WorkerCommand: o.Worker})
	defer func() { err = errors.Join(err, engine.Close()) }()
	r := &runner{o: o, projects: map[string]loaded{}, loader: project.Loader{Sealed: true, Scripts: project.NewScripts(engine.Compile)}}
	end := &report.End{Problems: r.prepare()}
	if len(end.Problems) == 0 {
		if err := r.all(ctx, end); err != nil {
			return err
		}
		if o.Run == nil && r.tally != nil {
			end.Coverage = r.tally.coverage()
		}
	}
	end.Milliseconds = milliseconds(time.Since(began))
	return o.Emit(report.Event{End: end})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// runner runs the cases of a project.
type runner struct {
	o      Options
	loader project.Loader
	cases  []job

	mu       sync.Mutex
	projects map[string]loaded // by the environment that they were loaded with
	tally    *tally
}

// loaded is the project as one environment makes it.
type loaded struct {
	project  *project.Project
	problems schema.Problems
}

// job is a case to be run.
type job struct {
	file   string
	of     *schema.LoadedSuite
	golden *schema.LoadedGolden // what is judged in the place of steps; nil: nothing
	*schema.TestCase
}

// suite is what the case's suite is called.
func (j job) suite() string {
	if j.of.Name != "" {
		return j.of.Name
	}
	return j.file
}

// prepare reads all files of tests, and the project. Its problems keep all from being run.
func (r *runner) prepare() []report.Problem {
	root, err := os.OpenRoot(r.o.Dir)
	if err != nil {
		return []report.Problem{{Message: "the project's directory can't be read: " + err.Error()}}
	}
	defer root.Close() //nolint:errcheck // opened for reading
	files, err := suiteFiles(root.FS())
	if err != nil {
		return []report.Problem{{File: Directory, Message: "can't be read: " + err.Error()}}
	}
	golden, bad := project.GoldenFiles(project.Files(root))
	if len(files)+len(golden)+len(bad) == 0 {
		return []report.Problem{{File: Directory, Message: "the project has no tests: write cases into " + Directory + "/<name>.yaml"}}
	}
	problems := problemsOut(bad)
	for _, file := range files {
		suite, bad := schema.LoadSuite(project.Files(root), file)
		problems = append(problems, problemsOut(bad)...)
		if suite == nil {
			continue
		}
		for _, c := range suite.Cases {
			r.take(job{file: file, of: suite, TestCase: c})
		}
	}
	for _, file := range golden {
		loaded, bad := schema.LoadGolden(project.Files(root), file)
		problems = append(problems, problemsOut(bad)...)
		if !bad.Err() {
			r.take(goldenJob(loaded))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if problems = r.tryProject(); len(problems) > 0 {
		return problems
	}
	return r.tryGolden()
}

// take has a case be run, unless it was not asked for.
func (r *runner) take(j job) {
	if r.o.Run == nil || r.o.Run.MatchString(j.suite()+"/"+j.Name) {
		r.cases = append(r.cases, j)
	}
}

// tryGolden finds out whether golden queries are of the project.
func (r *runner) tryGolden() (problems []report.Problem) {
	for _, j := range r.cases {
		if j.golden == nil {
			continue
		}
		if one := r.load(givenOf(j).Env); one.project != nil {
			_, bad := project.CompileGolden(one.project, j.golden)
			problems = append(problems, problemsOut(bad)...)
		}
	}
	return problems
}

// tryProject finds out whether the project loads at all. Variables that are not set are the business of each case.
func (r *runner) tryProject() []report.Problem {
	if len(r.cases) == 0 {
		return nil
	}
	one := r.load(givenOf(r.cases[0]).Env)
	other := slices.ContainsFunc(one.problems, func(p schema.Problem) bool { return !p.Warning && p.Code != schema.CodeSubstitution })
	if one.project == nil && other {
		return problemsOut(slices.DeleteFunc(one.problems, func(p schema.Problem) bool { return p.Warning }))
	}
	return nil
}

func problemsOut(list schema.Problems) []report.Problem {
	out := make([]report.Problem, len(list))
	for i, p := range list {
		out[i] = report.Problem{File: p.File, Line: p.Line, Column: p.Column, Path: p.Path, Message: p.Message}
	}
	return out
}

// suiteFiles lists the files of tests, by name.
func suiteFiles(dir fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(dir, Directory, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == Directory:
			return nil
		case err != nil:
			return err
		case entry.IsDir() && name != Directory && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == fixtures):
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// fixtures is the directory of files that suites refer to.
const fixtures = "fixtures"

// load gives the project as an environment makes it.
func (r *runner) load(env map[string]string) loaded {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := envKey(env)
	one, ok := r.projects[key]
	if !ok {
		r.loader.Env = lookup(env)
		one.project, one.problems = r.loader.Load(r.o.Dir, r.o.Entry)
		r.projects[key] = one
		if one.project != nil {
			one.project.ID, one.project.Generation = sandboxID, 1
			if r.tally == nil {
				r.tally = newTally(one.project)
			}
		}
	}
	return one
}

// sandboxID is the id of every project that is tested.
const sandboxID = "000000000000000000000001"

func lookup(env map[string]string) schema.Env {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// all runs the cases, as many at once as there are processors, and emits them in order.
func (r *runner) all(ctx context.Context, end *report.End) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	results := make([]chan report.Case, len(r.cases))
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	for i := range results {
		results[i] = make(chan report.Case, 1)
	}
	work.Go(func() {
		for i, j := range r.cases {
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			work.Go(func() {
				defer func() { <-places }()
				results[i] <- r.one(ctx, j)
			})
		}
	})
	for _, result := range results {
		select {
		case c := <-result:
			count(end, c)
			if err := r.o.Emit(report.Event{Case: &c}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func count(end *report.End, c report.Case) {
	switch c.Status {
	case report.Passed:
		end.Passed++
	case report.Skipped:
		end.Skipped++
	default:
		end.Failed++
	}
}

// one runs a case.
func (r *runner) one(ctx context.Context, j job) report.Case {
	out := report.Case{File: j.file, Line: j.At.Line, Column: j.At.Column, Suite: j.suite(), Name: j.Name, Status: report.Passed}
	if j.Skip != "" {
		out.Status, out.Reason = report.Skipped, j.Skip
		return out
	}
	began := time.Now()
	b := &bench{runner: r, job: j, out: &out}
	b.run(ctx)
	out.Milliseconds = milliseconds(time.Since(began))
	if len(out.Failures) > 0 {
		out.Status = report.Failed
		if b.seen != nil {
			out.Logs, out.ScriptFailures = b.seen.told()
		}
	}
	if b.seen != nil {
		r.mu.Lock()
		r.tally.add(b.seen)
		r.mu.Unlock()
	}
	return out
}

// Locate finds the project file of a directory, or takes the file given.
func Locate(name string) (dir, entry string, err error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", "", err
	}
	return project.Locate(filepath.Dir(abs), abs)
}
