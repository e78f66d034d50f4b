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
	"syscall"
	"testing"

	trialreport "github.com/svcctl/svc/pkg/trial/report"
)

// runProjectTest has a process of ours, with nothing in its environment for us, test a project.
func runProjectTest(t *testing.T, args ...string) (events []trialreport.Event, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{projectTestCommand}, args...)...)
	cmd.Env = []string{endAtOnce}
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

// TestHostileProjects tests directories that are made to harm who does: what is no file, huge, leads out of it or names
// secrets of the machine is refused, and text that ends a compiler is a problem of the config.
func TestHostileProjects(t *testing.T) {
	t.Parallel()
	suite := "cases:\n  - name: one\n    when: {get: /notes}\n    expect: {status: 200}\n"
	deep := "module.exports = () => {" + strings.Repeat("{;", 40_000) + strings.Repeat("}", 40_000) + "}"
	const hook = "hooks: {post: {create: {type: javascript, file: a.js}}}"
	for _, tt := range []struct {
		name  string
		more  string // of the collection
		files map[string]string
		make  func(dir string) error
		want  string
	}{
		{name: "well", more: hook, files: map[string]string{"a.js": "module.exports = () => {}"}},
		{name: "deep script", more: hook, files: map[string]string{"a.js": deep}, want: "nests too deep, or is too large"},
		{name: "pipe for a script", more: hook, make: func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a.js"), 0o600) }, want: "can't be read"},
		{name: "pipe for a suite", make: func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "tests", "b.yaml"), 0o600) }, want: "tests/b.yaml"},
		{name: "device for a suite", make: func(dir string) error { return os.Symlink("/dev/zero", filepath.Join(dir, "tests", "b.yaml")) }, want: "tests/b.yaml"},
		{name: "suite out of it", make: func(dir string) error { return os.Symlink("/etc/hostname", filepath.Join(dir, "tests", "b.yaml")) }, want: "tests/b.yaml"},
		{name: "huge suite", files: map[string]string{"tests/b.yaml": "# " + strings.Repeat("x", 2<<20)}, want: "tests/b.yaml"},
		{name: "tests out of it", make: func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "tests")), os.Symlink("/etc", filepath.Join(dir, "tests")))
		}, want: "tests"},
		{name: "secret of the machine", more: "label: ${file:/run/secrets/token}", want: "can't be read"},
		{name: "variable of the machine", more: "label: ${env:HOME}", want: "HOME is not set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSvcd(t)
			s.write("projects/blog/project.yaml", "namespace: blog\ncollections:\n  - name: notes\n    permissions: {public: {methods: {get: true}}, user: {methods: {}}}\n    "+tt.more+"\n")
			s.write("projects/blog/tests/a.yaml", suite)
			for name, text := range tt.files {
				s.write("projects/blog/"+name, text)
			}
			dir := filepath.Join(s.dir, "projects", "blog")
			if tt.make != nil {
				if err := tt.make(dir); err != nil {
					t.Fatal(err)
				}
			}
			events, stderr, err := runProjectTest(t, dir)
			if err != nil || len(events) == 0 || events[len(events)-1].End == nil {
				t.Fatalf("%v, %s, %+v", err, stderr, events)
			}
			text, err := json.Marshal(events)
			if err != nil {
				t.Fatal(err)
			}
			said := string(text)
			if end := events[len(events)-1].End; !strings.Contains(said, tt.want) || (end.Passed == 1) != (tt.want == "") {
				t.Errorf("%s", said)
			}
		})
	}
}

// TestCheckOfHostileScript has a script that ends who compiles it be checked, when the service is not there to say so.
func TestCheckOfHostileScript(t *testing.T) {
	t.Parallel()
	s := newSvcd(t)
	srv := s.start()
	srv.register(t)
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Fatalf("code %d, %v, %s", code, err, log)
	}
	s.write("projects/blog/project.yaml", strings.Replace(config, "    fields:", "    hooks: {post: {create: {type: javascript, file: a.js}}}\n    fields:", 1))
	s.write("projects/blog/a.js", "module.exports = () => {"+strings.Repeat("{;", 40_000)+strings.Repeat("}", 40_000)+"}")
	if stdout, stderr, code := s.run("check"); code != 1 || !strings.Contains(stdout, "nests too deep, or is too large") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}
