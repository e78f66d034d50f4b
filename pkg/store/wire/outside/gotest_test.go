package outside_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// buildTests compiles the tests of a package of another module.
func buildTests(t *testing.T, dir, pkg string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "suite.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off") // the go command needs all of it
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the tests in %s: %v\n%s", dir, err, out)
	}
	return binary
}

// runTests runs compiled tests in their folder and gives those that have no tests below them.
func runTests(t *testing.T, dir, binary string, limit time.Duration, env []string, args ...string) []result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	argv := append([]string{"tool", "test2json", "-t", binary, "-test.v=test2json"}, args...)
	cmd := exec.CommandContext(ctx, "go", argv...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...) // it needs all of it
	out, _ := cmd.Output()                 // what failed is in the events
	return readEvents(out)
}

// readEvents reads what go test -json prints.
func readEvents(out []byte) (results []result) {
	type test struct {
		outcome outcome
		text    strings.Builder
	}
	tests, order := map[string]*test{}, []string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		one := tests[e.Test]
		if one == nil {
			one = &test{}
			tests[e.Test], order = one, append(order, e.Test)
		}
		switch e.Action {
		case "output":
			one.text.WriteString(e.Output)
		case "pass", "fail", "skip":
			one.outcome = outcome(e.Action)
		}
	}
	parents, blamed := map[string]bool{}, map[string]bool{}
	for _, name := range order {
		for parent := name; strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			parents[parent] = true
			if tests[name].outcome == failed {
				blamed[parent] = true
			}
		}
	}
	for _, name := range order {
		one := tests[name]
		if one.outcome == "" { // it was under way when the process ended
			one.outcome = failed
			one.text.WriteString("the test has not ended\n")
		}
		if !parents[name] || one.outcome == failed && !blamed[name] {
			r := result{Name: name, Outcome: one.outcome}
			if r.Outcome != passed {
				r.Text = one.text.String()
			}
			results = append(results, r)
		}
	}
	return results
}

// listTests gives the names of the tests of a binary.
func listTests(t *testing.T, dir, binary string) (names []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.list", ".")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the tests of %s: %v", dir, err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Test") {
			names = append(names, name)
		}
	}
	return names
}
