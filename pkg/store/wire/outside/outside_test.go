package outside_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	folder = flag.String("suites", "", "the folder that has the suites: specifications, FerretDB")
	update = flag.Bool("update", false, "write the table of docs/store.md and remainder.txt")
	only   = flag.String("only", "", "run the suites whose names contain this, and write nothing")
	tests  = flag.String("tests", "", "run those tests of FerretDB whose names this matches, or the unified ones such as crud/tests/unified/find; with -only")
	kept   = flag.String("results", "", "a folder for the results: suites whose results are there are judged anew and not run")
)

// outcome is what became of one test.
type outcome string

const (
	passed  outcome = "pass"
	failed  outcome = "fail"
	skipped outcome = "skip"
)

// result is one test of a suite.
type result struct {
	Suite, Name string
	Outcome     outcome
	Text        string // what it has printed, unless it has passed
}

// suite runs a set of tests. It gives nothing where it is not in the folder.
type suite struct {
	name string
	dir  string // in the folder
	run  func(t *testing.T, dir string) []result
}

// TestOutside runs the suites that are there.
func TestOutside(t *testing.T) {
	if *folder == "" && *kept == "" {
		t.Skip("no -suites: make outside SUITES=… says where they are")
	}
	judge(t, results(t))
}

// results runs the suites, or reads what those gave that were run before.
func results(t *testing.T) (all []result) {
	t.Helper()
	root, err := filepath.Abs(*folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []suite{
		{"bson-corpus", "specifications/source/bson-corpus/tests", runCorpus},
		{"unified", "specifications/source", runUnified},
		{"FerretDB", "FerretDB/integration", runFerret},
	} {
		if found := s.before(t); found != nil {
			all = append(all, found...)
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(s.dir))
		if _, err := os.Stat(dir); err != nil || !strings.Contains(s.name, *only) {
			t.Logf("%s: not run (%s)", s.name, s.dir)
			continue
		}
		found := s.run(t, dir)
		if len(found) == 0 {
			t.Errorf("%s: no tests in %s", s.name, dir)
		}
		s.keep(t, found)
		all = append(all, found...)
	}
	if len(all) == 0 {
		t.Fatalf("there are no suites in %s", root)
	}
	return all
}

// before gives the results of a run before this one; nil if there are none.
func (s suite) before(t *testing.T) (found []result) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*kept, s.name+".json"))
	if *kept == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// keep keeps results for later, where there is a folder for them.
func (s suite) keep(t *testing.T, found []result) {
	t.Helper()
	if *kept == "" {
		return
	}
	data, err := json.Marshal(found)
	if err == nil {
		err = os.MkdirAll(*kept, 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(*kept, s.name+".json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// judge compares what has failed with what is known to, and shows the table.
func judge(t *testing.T, results []result) {
	t.Helper()
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.Suite+"\x00"+a.Name, b.Suite+"\x00"+b.Name) })
	table, remainder := report(results)
	t.Logf("\n%s", table)
	known, err := os.ReadFile(remainderFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	listed := strings.Split(string(known), "\n")
	for _, r := range results {
		reason := reasonOf(r)
		isNew := !*update && reason != otherWords && !slices.Contains(listed, r.Suite+": "+r.Name)
		if r.Outcome == failed && (reason == "" || isNew) {
			t.Errorf("%s: %s\n%s", r.Suite, r.Name, tail(r.Text, 3000))
		}
	}
	if *update && *only == "" {
		write(t, table, remainder)
	}
}

// tail is the last n bytes of a text.
func tail(s string, n int) string {
	if len(s) > n {
		return "…" + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}
