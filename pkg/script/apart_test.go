package script_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/svcctl/svc/pkg/script"
)

// TestCompileApart compiles what ends the process that compiles it.
func TestCompileApart(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	lines := strings.Repeat("  // a line of a large script;\n", 4000)
	for _, c := range []struct {
		name  string
		files files
		want  string // the problem begins with it
	}{
		{"small", files{"a.js": "module.exports = () => 1"}, ""},
		{"large", files{"a.js": "module.exports = () => {\n" + lines + "return 1 }"}, ""},
		{"large import", files{"a.js": "module.exports = require('./lib/b')", "lib/b.ts": "export default () => {\n" + lines + "return 1 }"}, ""},
		{"blocks", files{"a.js": "module.exports = () => {" + strings.Repeat("{;", 40_000) + strings.Repeat("}", 40_000) + "}"}, "a.js: nests too deep, or is too large"},
		{"blocks of an import", files{"a.js": "import './b.js'", "b.js": strings.Repeat("{;", 40_000) + strings.Repeat("}", 40_000)}, "a.js: nests too deep, or is too large"},
		{"after it", files{"a.js": "module.exports = () => {\n" + lines + "return 1 }"}, ""},
		{"syntax", files{"a.js": lines + "let x = ;"}, `a.js:4001:9: Unexpected ";"`},
		{"missing import", files{"a.js": lines + "import './none'"}, `a.js:4001:8: "./none": there is no such file`},
		{"too large", files{"a.js": strings.Repeat(lines, 10)}, "a.js: the file is larger than 1 MiB"},
	} {
		p, problems, _ := e.Compile("p", "a.js", c.files.read)
		got := ""
		if len(problems) > 0 {
			got = problems[0].String()
		}
		if c.want == "" && (got != "" || p == nil) || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		if p == nil {
			continue
		}
		if result, err := e.Run(t.Context(), script.Call{Program: p}); err != nil || len(c.files) == 1 && result.Value != int32(1) {
			t.Errorf("%s: %v %v", c.name, result.Value, err)
		}
	}
}

// TestCompilesTakeTurns has a project whose compilation does not go on, and others that don't wait for it.
func TestCompilesTakeTurns(t *testing.T) {
	t.Parallel()
	e := workerEngine(t)
	large := files{"a.js": "import './b.js'\nmodule.exports = () => {\n" + strings.Repeat("  // a line of a large script;\n", 4000) + "return 1 }", "b.js": ""}
	begun, open := make(chan struct{}), make(chan struct{})
	var hung sync.WaitGroup
	hung.Go(func() {
		var once sync.Once
		p, problems, _ := e.Compile("slow", "a.js", func(name string) ([]byte, error) {
			if name == "b.js" { // it is the worker process that asks
				once.Do(func() { close(begun); <-open })
			}
			return large.read(name)
		})
		if p == nil && !strings.Contains(problems[0].String(), "takes longer than") { // this machine is slow itself
			t.Error(problems)
		}
	})
	<-begun
	for _, name := range []string{"one", "two"} {
		if _, problems, took := e.Compile(name, "a.js", large.read); len(problems) > 0 || took <= 0 {
			t.Errorf("%v, %s", problems, took)
		}
	}
	close(open)
	hung.Wait()
}
