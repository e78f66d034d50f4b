package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
)

// process is svcctl run in the test, with what it was given and what it wrote.
type process struct {
	st       *command.State
	out, err bytes.Buffer
}

// start makes a process whose environment has the service at address.
func start(t *testing.T, address string, env ...string) *process {
	t.Helper()
	vars := map[string]string{"SVCCTL_SERVER": address}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	p := &process{}
	p.st = &command.State{
		In: strings.NewReader(""), Out: &p.out, Err: &p.err, Home: t.TempDir(), Version: "test",
		Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
		Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}
	return p
}

func (p *process) run(t *testing.T, args ...string) int {
	t.Helper()
	return cli.Run(t.Context(), p.st, args)
}

// serve answers every request with a body.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// Every command says what it does and shows an example that is a command line of its own.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	root := cli.NewRootCmd(start(t, "").st)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.Name() == "help" {
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short text is %q", cmd.CommandPath(), cmd.Short)
		}
		if !strings.Contains(cmd.Example, "svcctl ") {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			_, words, ok := strings.Cut(line, "svcctl ")
			if !ok {
				continue
			}
			found, _, err := cli.NewRootCmd(start(t, "").st).Find(strings.Fields(words))
			if err != nil || !found.Runnable() || found.HasSubCommands() {
				t.Errorf("%s: the example %q is no command", cmd.CommandPath(), strings.TrimSpace(line))
			}
			if !cmd.HasSubCommands() && found.CommandPath() != cmd.CommandPath() {
				t.Errorf("%s: the example shows %s", cmd.CommandPath(), found.CommandPath())
			}
			if err := parses(t, shellWords(words)); err != nil {
				t.Errorf("%s: the example %q does not parse: %v", cmd.CommandPath(), strings.TrimSpace(line), err)
			}
		}
	}
	walk(root)
}

// Every command is run by a script, as a user would.
func TestEveryCommandHasAScript(t *testing.T) {
	t.Parallel()
	root := cli.NewRootCmd(start(t, "").st)
	run := map[string]bool{}
	for _, file := range scriptFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, words, ok := strings.Cut(line, "svcctl ")
			if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "std") {
				continue
			}
			found, _, err := root.Find(withoutFlags(root, shellWords(words)))
			if err == nil {
				run[found.CommandPath()] = true
			}
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if !cmd.HasSubCommands() && cmd.Name() != "help" && !run[cmd.CommandPath()] {
			t.Errorf("no script runs %s", cmd.CommandPath())
		}
	}
	walk(root)
}

// withoutFlags takes the flags before the first word away, with their values.
func withoutFlags(root *cobra.Command, words []string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		f := root.PersistentFlags().Lookup(strings.TrimLeft(words[0], "-"))
		if f == nil && len(words[0]) == 2 {
			f = root.PersistentFlags().ShorthandLookup(words[0][1:])
		}
		words = words[1:]
		if f != nil && f.NoOptDefVal == "" && len(words) > 0 {
			words = words[1:]
		}
	}
	return words
}

// parses says whether a command line has a command, and flags and arguments as that takes them.
func parses(t *testing.T, words []string) error {
	t.Helper()
	found, rest, err := cli.NewRootCmd(start(t, "").st).Find(words)
	if err != nil {
		return err
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	if err := found.ValidateArgs(found.Flags().Args()); err != nil {
		return err
	}
	return found.ValidateFlagGroups()
}

// shellWords are those of the command that a line of a shell begins with, up to a pipe, a redirection or the end of $( ).
func shellWords(line string) (words []string) {
	var word strings.Builder
	in, quote := false, rune(0)
	end := func() {
		if in {
			words = append(words, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range strings.TrimSpace(line) {
		switch {
		case quote == r:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			in, quote = true, r
		case strings.ContainsRune("|>;&)", r):
			end()
			return words
		case r == ' ':
			end()
		default:
			in = true
			word.WriteRune(r)
		}
	}
	end()
	return words
}

// Every verb that asks before it does something takes --yes, and every one that can be tried takes --dry-run as kubectl has it: the same words
// stand for the same things.
func TestFlagsHaveOneMeaning(t *testing.T) {
	t.Parallel()
	short := map[string]string{"w": "watch", "y": "yes", "d": "data", "o": "output", "n": "namespace", "s": "server", "q": "quiet", "h": "help"}
	usage := map[string]string{"yes": "don't ask", "timeout": "longest wait, 0 for no limit"}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name, ok := short[f.Shorthand]; ok && name != f.Name && !(f.Name == "write" && cmd.Name() == "fmt") { // as gofmt has it
				t.Errorf("%s: -%s is --%s", cmd.CommandPath(), f.Shorthand, f.Name)
			}
			if text, ok := usage[f.Name]; ok && !strings.HasPrefix(f.Usage, text) {
				t.Errorf("%s: --%s says %q", cmd.CommandPath(), f.Name, f.Usage)
			}
			if f.Name == "dry-run" && f.Value.Set("server") != nil {
				t.Errorf("%s does not take --dry-run=server", cmd.CommandPath())
			}
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s: --%s says %q", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	}
	walk(cli.NewRootCmd(start(t, "").st))
}

func TestExitCodesOfRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{
		400: command.ExitFailed, 401: command.ExitDenied, 403: command.ExitDenied, 404: command.ExitNotFound,
		405: command.ExitFailed, 409: command.ExitConflict, 412: command.ExitConflict, 413: command.ExitFailed,
		422: command.ExitFailed, 429: command.ExitFailed, 500: command.ExitFailed, 502: command.ExitUnreachable,
		503: command.ExitUnreachable, 504: command.ExitTimeout,
	} {
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"status":%d,"code":"some_code","detail":"no \u001b[31m","requestId":"r-1"}`, status)
		})
		p := start(t, address)
		if got := p.run(t, "doc", "list", "blog", "articles"); got != want {
			t.Errorf("%d: exit code %d, want %d", status, got, want)
		}
		if p.out.Len() > 0 || !strings.HasPrefix(p.err.String(), `error: no \x1b[31m`+"\n") {
			t.Errorf("%d: stdout %q, stderr %q", status, p.out.String(), p.err.String())
		}
		p = start(t, address)
		p.run(t, "doc", "list", "blog", "articles", "-o", "json")
		var got map[string]map[string]any
		if err := json.Unmarshal(p.err.Bytes(), &got); err != nil {
			t.Fatalf("%d: %v in %s", status, err, p.err.String())
		}
		delete(got["error"], "hint")
		want := map[string]map[string]any{"error": {
			"code": "some_code", "message": "no \x1b[31m", "status": float64(status), "requestId": "r-1",
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: %s", status, diff)
		}
	}
}

// Data that a server holds can't reach the terminal as control characters, in any format.
func TestDataCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = `"\u001b]0;owned\u0007\u009b31m\u202e\u200b\u200f\u2066\ufeff\nbelow ad\u200dmin می\u200cخواهم \u200c"`
	stays := strings.NewReplacer("می\u200cخواهم", "")
	for _, tc := range []struct{ args, body string }{
		{"doc list blog articles", `{"items":[{"id":"1","title":` + evil + `,` + evil + `:1}],"hasMore":true,"next":` + evil + `}`},
		{"doc get blog articles 1", `{"id":` + evil + `,"title":` + evil + `}`},
		{"project list", `{"items":[{"namespace":` + evil + `,"name":` + evil + `,"configFile":` + evil + `}]}`},
		{"collection describe blog articles", `{"name":` + evil + `,"fields":[{"name":` + evil + `,"type":` + evil + `,"validator":{` + evil + `:` + evil + `}}],"indexes":[{"name":` + evil + `,"key":[` + evil + `],"state":` + evil + `}],"search":[{"name":` + evil + `,"mode":` + evil + `,"fields":[` + evil + `]}]}`},
		{"user list", `{"items":[{"username":` + evil + `,"scopes":[` + evil + `]}]}`},
		{"whoami", `{"kind":` + evil + `,"username":` + evil + `}`},
		{"version", `{"version":` + evil + `}`},
		{"doc export blog articles", `{"items":[{"title":` + evil + `}]}`},
		{"snapshot profiles blog", `{"items":[{"name":` + evil + `,"description":` + evil + `,"schedule":` + evil + `,"collections":[` + evil + `],"mode":` + evil + `}]}`},
		{"snapshot list blog", `{"items":[{"id":` + evil + `,"profile":` + evil + `,"store":` + evil + `},{"id":` + evil + `,"problem":` + evil + `}]}`},
		{"snapshot show blog x --files", `{"id":` + evil + `,"profile":` + evil + `,"project":` + evil + `,"revision":` + evil + `,"collections":[{"name":` + evil + `}],"warnings":[` + evil + `],"files":[{"path":` + evil + `,"how":` + evil + `}],"verified":{"problems":1,"found":[{"path":` + evil + `,"text":` + evil + `}]}}`},
		{"snapshot diff blog x", `{"same":true,"collections":[{"collection":` + evil + `,"records":[{"id":` + evil + `,"change":` + evil + `,"paths":[` + evil + `]}]}]}`},
		{"snapshot prune blog --dry-run", `{"items":[{"id":` + evil + `,"profile":` + evil + `,"reasons":[` + evil + `]}]}`},
		{"snapshot runs blog", `{"items":[{"id":` + evil + `,"kind":` + evil + `,"name":` + evil + `,"status":` + evil + `,"error":{"message":` + evil + `},"by":{"name":` + evil + `}}]}`},
		{"get col -A", `{"items":[{"namespace":"blog","enabled":true,"name":` + evil + `}]}`},
		{"status", `{"version":` + evil + `,"status":` + evil + `,"checks":[{"name":` + evil + `,"status":` + evil + `,"message":` + evil + `}],"phase":` + evil + `,"conditions":[{"type":"Ready","status":` + evil + `,"message":` + evil + `}],"items":[{"id":"1","namespace":` + evil + `}]}`},
		{"project tree blog", `{"namespace":"blog","phase":` + evil + `,"conditions":[{"type":"Ready","message":` + evil + `}],"items":[{"id":"1","namespace":"blog","name":` + evil + `,"cron":` + evil + `,"path":` + evil + `,"indexes":[{"name":` + evil + `,"state":` + evil + `,"message":` + evil + `}],"search":[{"name":` + evil + `,"mode":` + evil + `,"fields":[` + evil + `]}]}]}`},
		{"backup analyze blog", `{"id":` + evil + `,"collections":[{"name":` + evil + `}]}`},
	} {
		for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
			p := start(t, serve(t, answer(http.StatusOK, tc.body)))
			if code := p.run(t, append(strings.Fields(tc.args), "-o", format)...); code != 0 {
				t.Errorf("%s -o %s: exit code %d: %s", tc.args, format, code, p.err.String())
			}
			all := p.out.String() + p.err.String()
			if strings.ContainsAny(stays.Replace(all), "\x1b\x07\u009b\u202e\u200b\u200c\u200d\u200f\u2066\ufeff\r") {
				t.Errorf("%s -o %s: %q", tc.args, format, all)
			}
			if strings.Contains(all, "\nbelow") {
				t.Errorf("%s -o %s: data began a line: %q", tc.args, format, all)
			}
		}
	}
}

// Nor can what expressions make of it, on a terminal. Elsewhere texts are what they are: a program reads them.
func TestExpressionsCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	const body = `{"items":[{"namespace":"a\u001b[2J\u009b31m\u202e\rb"}]}`
	for _, flag := range []string{"--jq=.items[].namespace", "--jq=.items[]", "--template={{(index .items 0).namespace}}", "-o=jsonpath={.items[*].namespace}", "-o=custom-columns=A:.namespace", "-o=go-template={{.items}}"} {
		p := start(t, serve(t, answer(http.StatusOK, body)))
		p.st.OutTTY = true
		if code := p.run(t, "project", "list", flag); code != 0 || !strings.Contains(p.out.String(), "a\\") {
			t.Errorf("%s: exit code %d, %q, %s", flag, code, p.out.String(), p.err.String())
		}
		if strings.ContainsAny(p.out.String(), "\x1b\u009b\u202e\r") {
			t.Errorf("%s: %q", flag, p.out.String())
		}
	}
	p := start(t, serve(t, answer(http.StatusOK, body)))
	if p.run(t, "project", "list", "--jq", ".items[].namespace"); p.out.String() != "a\x1b[2J\u009b31m\u202e\rb\n" {
		t.Errorf("a program gets %q", p.out.String())
	}
}

// The messages of conditions are cut to fit into a terminal, and whole where something else reads them.
func TestConditionsFitTheTerminal(t *testing.T) {
	t.Parallel()
	const message = "a message that is longer than what a narrow terminal has room for, up to its end"
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := `{"items":[{"id":"1","namespace":"blog"}]}`
		if strings.HasSuffix(r.URL.Path, "/status") {
			body = `{"namespace":"blog","conditions":[{"type":"Ready","status":"True","reason":"Serving","message":"` + message + `"}]}`
		}
		answer(http.StatusOK, body)(w, r)
	})
	for width, whole := range map[int]bool{0: true, 80: false, 200: true} {
		p := start(t, address)
		p.st.OutWidth = width
		if code := p.run(t, "project", "status", "blog"); code != 0 {
			t.Fatalf("%d columns: exit code %d, %s", width, code, p.err.String())
		}
		if strings.Contains(p.out.String(), message) != whole || strings.Contains(p.err.String(), "-o wide") == whole {
			t.Errorf("%d columns: stdout %s, stderr %s", width, p.out.String(), p.err.String())
		}
	}
}

func TestColorNeedsATerminal(t *testing.T) {
	t.Parallel()
	const status = `{"items":[{"namespace":"blog","id":"1"}],"phase":"Ready","conditions":[{"type":"Ready","status":"True"}]}`
	for _, tc := range []struct {
		tty   bool
		env   string
		args  []string
		color bool
	}{
		{false, "", nil, false},
		{true, "", nil, true},
		{true, "NO_COLOR=1", nil, false},
		{true, "TERM=dumb", nil, false},
		{true, "", []string{"--no-color"}, false},
		{true, "SVCCTL_COLOR=never", nil, false},
		{false, "CLICOLOR_FORCE=1", nil, true},
		{false, "NO_COLOR=1", []string{"--color", "always"}, true},
	} {
		p := start(t, serve(t, answer(http.StatusOK, status)), tc.env)
		p.st.OutTTY = tc.tty
		if code := p.run(t, append([]string{"project", "status", "blog"}, tc.args...)...); code != 0 {
			t.Fatal(p.err.String())
		}
		if got := strings.Contains(p.out.String(), "\x1b["); got != tc.color {
			t.Errorf("%+v: color is %v", tc, got)
		}
	}
}

// A context's credential goes to the context's server and to no other.
func TestCredentialStaysWithItsServer(t *testing.T) {
	t.Parallel()
	seen := ""
	h := func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("X-Auth-Token") + r.Header.Get("X-Admin-Token") + r.Header.Get("Token")
		answer(http.StatusOK, `{"items":[]}`)(w, r)
	}
	own, other := serve(t, h), serve(t, h)
	for _, tc := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"context", nil, nil, "context-secret"},
		{"same server by flag", nil, []string{"--server", own + "/"}, "context-secret"},
		{"other server by flag", nil, []string{"--server", other}, ""},
		{"other server by environment", []string{"SVCCTL_SERVER=" + other}, nil, ""},
		{"environment", []string{"SVCCTL_TOKEN=env-secret"}, nil, "env-secret"},
		{"flag", []string{"SVCCTL_TOKEN=env-secret"}, []string{"--collection-token", "flag-secret"}, "flag-secret"},
	} {
		p := start(t, "", tc.env...)
		if code := p.run(t, "config", "set-context", "own", "--server", own, "--token", "context-secret"); code != 0 {
			t.Fatal(p.err.String())
		}
		again := start(t, "", tc.env...)
		again.st.Home = p.st.Home
		seen = "none"
		if code := again.run(t, append([]string{"project", "list"}, tc.args...)...); code != 0 || seen != tc.want {
			t.Errorf("%s: exit code %d, sent %q, want %q; %s", tc.name, code, seen, tc.want, again.err.String())
		}
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		typed  string
		tty    bool
		yes    bool
		code   int
		delete bool
	}{
		{"y\n", true, false, 0, true},
		{"YES\n", true, false, 0, true},
		{"n\n", true, false, command.ExitFailed, false},
		{"\n", true, false, command.ExitFailed, false},
		{"", true, false, command.ExitFailed, false},
		{"y\n", false, false, command.ExitUsage, false},
		{"", false, true, 0, true},
	} {
		deleted := false
		p := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			deleted = deleted || r.Method == http.MethodDelete
			answer(http.StatusOK, `{"count":3,"matched":3,"succeeded":3,"items":[]}`)(w, r)
		}))
		p.st.In, p.st.InTTY, p.st.ErrTTY = strings.NewReader(tc.typed), tc.tty, tc.tty
		args := []string{"doc", "delete", "blog", "articles", "--filter", "{}"}
		if tc.yes {
			args = append(args, "--yes")
		}
		if code := p.run(t, args...); code != tc.code || deleted != tc.delete {
			t.Errorf("%+v: exit code %d, deleted %v; %s", tc, code, deleted, p.err.String())
		}
		if !tc.yes && !strings.Contains(p.err.String(), "Delete 3 records of blog/articles?") {
			t.Errorf("%+v: the question is missing: %s", tc, p.err.String())
		}
	}
}

// closedPipe is a stdout whose reader has gone away.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: syscall.EPIPE}
}

func TestClosedOutputIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"doc list blog articles", "doc list blog articles -o json", "doc list blog articles --all -o json", "doc export blog articles",
		"api GET /x", "whoami", "completion bash", "doc count blog articles", "--help", "doc list blog articles --jq .items", "doc list blog articles -o custom-columns=A:.id",
		"man", "api-resources", "options", "doc export blog articles --jq .id", "status",
	} {
		p := start(t, serve(t, answer(http.StatusOK, `{"items":[{"id":"1","title":"x"}]}`)))
		p.st.Out = closedPipe{}
		if code := p.run(t, strings.Fields(args)...); code != 0 || strings.Contains(p.err.String(), "error") {
			t.Errorf("%s: exit code %d, %s", args, code, p.err.String())
		}
	}
}

func TestInterruptAndTimeout(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices that the client is gone
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if code := cli.Run(ctx, start(t, address).st, []string{"project", "reload", "blog"}); code != command.ExitInterrupted {
		t.Errorf("interrupted: exit code %d", code)
	}
	if code := start(t, address).run(t, "project", "reload", "blog", "--timeout", "10ms"); code != command.ExitTimeout {
		t.Errorf("--timeout: exit code %d", code)
	}
	if code := start(t, address).run(t, "project", "list", "--request-timeout", "10ms"); code != command.ExitTimeout {
		t.Errorf("--request-timeout: exit code %d", code)
	}
}

// An import that loses its service says what is done, what is not known, and how to go on.
func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	p := start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) >= 2 {
			panic(http.ErrAbortHandler)
		}
		answer(http.StatusCreated, `{"items":[{"id":"1","status":201},{"id":"2","status":201}],"succeeded":2,"failed":0}`)(w, nil)
	}))
	p.st.In = strings.NewReader("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n")
	if code := p.run(t, "doc", "import", "blog", "articles", "-f", "-", "--batch", "2", "--retry-for", "0"); code != command.ExitUnreachable {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"written before: 2 records; --skip 2 goes on there", "records 3 to 4 were on their way"} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("%q is missing in %s", want, p.err.String())
		}
	}
	if p.out.Len() > 0 || calls.Load() < 2 {
		t.Errorf("stdout %q, %d calls", p.out.String(), calls.Load())
	}
}

// A bulk write whose items partly failed is exit code 3.
func TestPartial(t *testing.T) {
	t.Parallel()
	p := start(t, serve(t, answer(http.StatusOK,
		`{"matched":2,"succeeded":1,"failed":1,"items":[{"id":"1","status":200},{"id":"2","status":409,"error":{"detail":"slug is already taken"}}]}`)))
	if code := p.run(t, "doc", "update", "blog", "articles", "--filter", "{}", "-d", "{}", "--yes"); code != command.ExitPartial {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(p.err.String(), "warning: 2: slug is already taken") {
		t.Errorf("got %s", p.err.String())
	}
}

// A broken export leaves the file of before.
func TestExportIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out.ndjson")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	p := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			answer(http.StatusOK, `{"items":[{"id":"1"}],"hasMore":true,"next":"c"}`)(w, r)
			return
		}
		answer(http.StatusInternalServerError, `{"detail":"internal error","requestId":"r-9"}`)(w, r)
	}))
	if code := p.run(t, "doc", "export", "blog", "articles", "-f", file); code != command.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(p.err.String(), "request id r-9") {
		t.Errorf("got %s", p.err.String())
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != "before" {
		t.Errorf("got %q, %v", got, err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A password is asked for at the terminal, without showing it, twice when it is new.
func TestPasswordPrompt(t *testing.T) {
	t.Parallel()
	sent := ""
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		answer(http.StatusCreated, `{"username":"ann"}`)(w, r)
	})
	for _, tc := range []struct {
		typed []string
		code  int
	}{
		{[]string{"secret-1", "secret-1"}, 0},
		{[]string{"secret-1", "secret-2"}, command.ExitUsage},
		{[]string{""}, command.ExitUsage},
	} {
		p := start(t, address)
		p.st.InTTY, p.st.ErrTTY = true, true
		p.st.ReadSecret = func(ask func()) (string, error) {
			ask()
			s := tc.typed[0]
			tc.typed = tc.typed[1:]
			return s, nil
		}
		sent = ""
		if code := p.run(t, "user", "create", "ann"); code != tc.code || (code == 0) != strings.Contains(sent, `"password":"secret-1"`) {
			t.Errorf("exit code %d, sent %s", code, sent)
		}
		if strings.Contains(p.err.String()+p.out.String(), "secret-1") {
			t.Errorf("the password was shown: %s%s", p.err.String(), p.out.String())
		}
	}
}

func TestRawRequestOnATerminal(t *testing.T) {
	t.Parallel()
	p := start(t, serve(t, answer(http.StatusOK, `{"a":"\u009b"}`)))
	p.st.OutTTY = true
	if code := p.run(t, "api", "GET", "/x"); code != 0 || p.out.String() != "{\n  \"a\": \"\\u009b\"\n}\n" {
		t.Errorf("exit code %d, %q", code, p.out.String())
	}
	p = start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "text \x1b[31m\n") }))
	p.st.OutTTY = true
	if code := p.run(t, "api", "GET", "/x"); code != 0 || p.out.String() != `text \x1b[31m`+"\n" {
		t.Errorf("exit code %d, %q", code, p.out.String())
	}
	p = start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "raw \x1b[31m") }))
	if code := p.run(t, "api", "GET", "/x"); code != 0 || p.out.String() != "raw \x1b[31m" {
		t.Errorf("exit code %d, %q", code, p.out.String())
	}
}

// A collection is described with what can be searched in it, if there is anything.
func TestDescribeTellsSearches(t *testing.T) {
	t.Parallel()
	const plain = `{"name":"articles","fields":[{"name":"title","type":"string"}],"indexes":[]`
	for body, want := range map[string]string{
		plain + `}`: "",
		plain + `,"search":[{"name":"words","mode":"text","fields":["title","body"]},{"name":"all","mode":"rrf","sources":["words"]}]}`: "SEARCH   MODE   OF\nwords    text   title, body\nall      rrf    words\n",
	} {
		p := start(t, serve(t, answer(http.StatusOK, body)))
		if code := p.run(t, "collection", "describe", "blog", "articles"); code != 0 {
			t.Fatalf("exit code %d: %s", code, p.err.String())
		}
		_, got, _ := strings.Cut(p.out.String(), "Searches\n")
		if got != want {
			t.Errorf("got %q, want %q in\n%s", got, want, p.out.String())
		}
	}
}

// In GitHub Actions a line that begins with :: or has ##[ in it is a command of the workflow. What a service says of an error is none.
func TestErrorsAreNoWorkflowCommands(t *testing.T) {
	t.Parallel()
	problem := `{"detail":"no\n::stop-commands::x\n \t::add-mask::y ##[error]z","code":"x","errors":[{"message":"::error::a"},{"message":"##[group]b"}],` +
		`"problems":[{"file":"::a\u001b[2J","line":1,"message":"x\n::error::c"}]}`
	for _, ci := range []string{"true", ""} {
		p := start(t, serve(t, answer(http.StatusUnprocessableEntity, problem)), "GITHUB_ACTIONS="+ci)
		if code := p.run(t, "project", "list"); code != command.ExitFailed {
			t.Errorf("exit code %d", code)
		}
		commands := 0
		for line := range strings.Lines(p.err.String()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "::") || strings.Contains(line, "##[") {
				commands++
			}
		}
		want := 0
		if ci == "" {
			want = 5
		}
		if commands != want || strings.Contains(p.err.String(), "\x1b") {
			t.Errorf("GITHUB_ACTIONS=%s: %d commands, want %d: %q", ci, commands, want, p.err.String())
		}
	}
}

// What the tab key offers, a shell prints as it is, and puts into the line.
func TestCompletionsAreSafe(t *testing.T) {
	t.Parallel()
	list := `{"items":[{"slug":"good","name":"a\u001b]52;c;AA\u0007b"},{"slug":"a\u001b[2J","name":"x"},{"slug":"a;id","name":"x"},{"slug":"$(id)","name":"x"},{"slug":"","name":"x"}]}`
	p := start(t, serve(t, answer(http.StatusOK, list)))
	if code := p.run(t, "__complete", "org", "get", ""); code != 0 || !strings.HasPrefix(p.out.String(), "good\ta\\x1b]52;c;AA\\x07b\n:4\n") {
		t.Errorf("exit code %d, %q", code, p.out.String())
	}
}

// TestInsecureIsToldOf: who has typed --insecure-skip-tls-verify is warned once; programs, and those who want no notes, are not.
func TestInsecureIsToldOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"version --insecure-skip-tls-verify": 1, "version -q --insecure-skip-tls-verify": 0, "version --insecure-skip-tls-verify=false": 0, "version": 0} {
		for _, terminal := range []bool{true, false} {
			p := start(t, serve(t, answer(http.StatusOK, `{"version":"v"}`)))
			p.st.InTTY, p.st.ErrTTY = terminal, terminal
			if code := p.run(t, strings.Fields(line)...); code != 0 {
				t.Errorf("%s: exit code %d: %s", line, code, p.err.String())
			}
			told := strings.Count(p.err.String(), "with --insecure-skip-tls-verify anybody between here and the service can read and change what is sent")
			if terminal && told != want || !terminal && told != 0 {
				t.Errorf("%s, terminal %v: %s", line, terminal, p.err.String())
			}
		}
	}
}
