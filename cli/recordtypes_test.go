package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command/commandtest"
)

// TestRecordTypesRoundTrip: what the service gives of the sample's records goes into the types that svcctl types writes for Go, with no member left over, and comes
// out of them as it was.
func TestRecordTypesRoundTrip(t *testing.T) {
	t.Parallel()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command")
	}
	dir := t.TempDir()
	for _, sample := range []string{"blog", "shop"} {
		if err := os.CopyFS(filepath.Join(dir, "projects", sample), os.DirFS(filepath.Join("..", "projects", sample))); err != nil {
			t.Fatal(err)
		}
	}
	address, err := serveProjects(dir, "", t.Cleanup, t.Log)
	if err != nil {
		t.Fatal(err)
	}
	svcctl := func(args ...string) string {
		t.Helper()
		st := commandtest.State(t)
		if exit := cli.Run(t.Context(), st, append(args, "--server", address, "--admin-token", adminToken)); exit != 0 {
			t.Fatalf("svcctl %v: exit %d: %s", args, exit, st.Err)
		}
		return st.Out.(*bytes.Buffer).String()
	}
	for sample, types := range map[string][][2]string{ // in an order in which they may point at each other
		"blog": {{"medialib", "Medialib"}, {"authors", "Authors"}, {"articles", "Articles"}, {"pages", "Pages"}},
		"shop": {{"medialib", "Medialib"}, {"categories", "Categories"}, {"products", "Products"}},
	} {
		svcctl("project", "register", sample)
		work, input := filepath.Join(dir, sample), &strings.Builder{}
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		main := "package main\n\nvar types = map[string]func() any{\n"
		for _, of := range types {
			collection, name := of[0], of[1]
			files, err := filepath.Glob(filepath.Join(dir, "projects", sample, "content", "*-"+collection+".ndjson"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				svcctl("doc", "import", sample, collection, "-f", file)
			}
			main += fmt.Sprintf("\t%q: func() any { return new(%s) },\n", collection, name)
			for line := range strings.Lines(svcctl("doc", "export", sample, collection)) {
				fmt.Fprintf(input, "%s %s", collection, line)
			}
		}
		for file, text := range map[string]string{
			"go.mod": "module roundtrip\n\ngo 1.26\n", "types.go": svcctl("types", sample, "--lang", "go", "--package", "main"), "table.go": main + "}\n", "main.go": roundTrip,
		} {
			if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Count(input.String(), "\n") < 5 {
			t.Fatalf("too few records: %s", input)
		}
		run := exec.CommandContext(t.Context(), goTool, "run", ".")
		run.Dir, run.Stdin = work, strings.NewReader(input.String())
		run.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", sample, err, out)
		}
	}
}

// roundTrip is a program that reads lines of a collection and a record of it.
const roundTrip = `package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	n := 0
	for lines.Scan() {
		collection, text, _ := strings.Cut(lines.Text(), " ")
		record := types[collection]()
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(record); err != nil {
			fmt.Println(collection, err, text)
			os.Exit(1)
		}
		again, err := json.Marshal(record)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if was, is := without(text), without(string(again)); !reflect.DeepEqual(was, is) {
			fmt.Printf("%s\nwas %v\nis  %v\n", collection, was, is)
			os.Exit(1)
		}
		n++
	}
	if n == 0 {
		os.Exit(2)
	}
}

// without is a record without what is null, empty or a time, which need not come out as it went in.
func without(text string) any {
	var v any
	_ = json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&v)
	return clean(v)
}

func clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, of := range v {
			of = clean(of)
			if s, ok := of.(string); of == nil || ok && len(s) > 18 && s[4] == '-' && s[10] == 'T' {
				delete(v, k)
			} else if l, ok := of.([]any); ok && len(l) == 0 {
				delete(v, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	}
	return v
}
`
