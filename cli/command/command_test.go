package command_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// prepared runs body inside a command that was given args, as every command is.
func prepared(t *testing.T, env map[string]string, args []string, body func(st *command.State, args []string) error) error {
	t.Helper()
	st := &command.State{
		In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Home: t.TempDir(), Now: time.Now,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
	cmd := &cobra.Command{
		Use: "x", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := st.Prepare(cmd); err != nil {
				return err
			}
			return body(st, args)
		},
	}
	st.Register(cmd)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args string
		env  map[string]string
		want string // namespace and rest, or an error
	}{
		{args: "blog articles", want: "blog articles"},
		{args: "-n blog articles", want: "blog articles"},
		{args: "-n blog blog articles", want: "blog articles"},
		{args: "-n shop blog articles", want: "error: the namespace is given twice"},
		{args: "articles", want: "error: which namespace?"},
		{args: "articles", env: map[string]string{"SVCCTL_NAMESPACE": "blog"}, want: "blog articles"},
		{args: "shop orders", env: map[string]string{"SVCCTL_NAMESPACE": "blog"}, want: "shop orders"},
		{args: "-n shop orders", env: map[string]string{"SVCCTL_NAMESPACE": "blog"}, want: "shop orders"},
	} {
		got := ""
		err := prepared(t, tc.env, strings.Fields(tc.args), func(st *command.State, args []string) error {
			namespace, rest, err := st.Place(args, 1)
			got = strings.TrimSpace(namespace + " " + strings.Join(rest, " "))
			return err
		})
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s %v: got %q, want %q", tc.args, tc.env, got, tc.want)
		}
	}
}

// TestPlaceMaybe has one argument behind the namespace that may be left out.
func TestPlaceMaybe(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args string
		env  map[string]string
		want string // namespace and rest, or an error
	}{
		{args: "blog", want: "blog|"},
		{args: "blog daily", want: "blog|daily"},
		{args: "-n blog", want: "blog|"},
		{args: "-n blog blog", want: "blog|"},
		{args: "-n blog daily", want: "blog|daily"},
		{args: "-n blog blog daily", want: "blog|daily"},
		{args: "-n shop blog daily", want: "error: the namespace is given twice"},
		{args: "", want: "error: which namespace?"},
		{args: "daily", env: map[string]string{"SVCCTL_NAMESPACE": "blog"}, want: "blog|daily"},
		{args: "shop daily", env: map[string]string{"SVCCTL_NAMESPACE": "blog"}, want: "shop|daily"},
	} {
		got := ""
		err := prepared(t, tc.env, strings.Fields(tc.args), func(st *command.State, args []string) error {
			namespace, rest, err := st.PlaceMaybe(args)
			got = namespace + "|" + rest
			return err
		})
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s %v: got %q, want %q", tc.args, tc.env, got, tc.want)
		}
	}
}

func TestProblemLine(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]api.ConfigProblem{
		"a.yaml:3:5: fields[0].type: unknown":    {File: "a.yaml", Line: 3, Column: 5, Path: "fields[0].type", Message: "unknown"},
		"a.yaml:3: warning: no effect":           {File: "a.yaml", Line: 3, Message: "no effect", Warning: true},
		"a.yaml: is missing":                     {File: "a.yaml", Message: "is missing"},
		"index slug_1: 2 records share one slug": {Path: "index slug_1", Message: "2 records share one slug"},
	} {
		if got := command.ProblemLine(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	yamlFile := write("a.yaml", "z: 9223372036854775807\na:\n  - x: \"5\"\n    y: 1.5\n  - null\ntext: |\n  two\n  lines\ndate: 2026-01-01\n")
	jsonFile := write("a.json", `{"b": 1}`)
	bad := write("bad.json", "{\n  \"a\": 1,\n  b\n}")
	badYAML := write("bad.yml", "a: [1\nb: 2\n")
	for _, tc := range []struct {
		in   command.Input
		want string
	}{
		{command.Input{File: yamlFile}, `{"z":9223372036854775807,"a":[{"x":"5","y":1.5},null],"text":"two\nlines\n","date":"2026-01-01"}`},
		{command.Input{File: jsonFile}, `{"b": 1}`},
		{command.Input{Data: "@" + jsonFile}, `{"b": 1}`},
		{command.Input{Data: `{"c": 1}`}, `{"c": 1}`},
		{command.Input{File: "-"}, `{"stdin": 1}`},
		{command.Input{File: bad}, "error: " + bad + ": line 3, column 3"},
		{command.Input{File: badYAML}, "error: " + badYAML + ": "},
		{command.Input{Data: "nonsense"}, "error: --data: line 1, column 2"},
		{command.Input{File: filepath.Join(dir, "none")}, "error: open "},
	} {
		st := &command.State{In: strings.NewReader(`{"stdin": 1}`)}
		data, err := tc.in.Read(st)
		got := string(data)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tc.want && (err == nil || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%+v: %s", tc.in, cmp.Diff(tc.want, got))
		}
	}
}

func TestGeneratedPasswordsDiffer(t *testing.T) {
	t.Parallel()
	p := command.Password{Generate: true}
	seen := map[string]bool{}
	for range 100 {
		s, err := p.Read(&command.State{}, "", true)
		if err != nil || len(s) != 20 || seen[s] {
			t.Fatalf("got %q, %v", s, err)
		}
		seen[s] = true
	}
}

func TestCredentialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"token": " secret \n", "empty": "\n", "two": "one\ntwo"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		want string // part of the error, "" for a credential
	}{
		{[]string{"--token-file", filepath.Join(dir, "token")}, ""},
		{[]string{"--token-file", filepath.Join(dir, "empty")}, "is empty"},
		{[]string{"--admin-token-file", filepath.Join(dir, "none")}, "read the token"},
		{[]string{"--token", "a", "--token-file", filepath.Join(dir, "token")}, "more than one credential"},
		{[]string{"--token-file", filepath.Join(dir, "two")}, "two holds more than a token alone"},
		{[]string{"--admin-token", "a b"}, "characters that no token has"},
		{[]string{"--server", "nonsense"}, "want an address"},
		{[]string{"--server", "https://x", "--ca-file", filepath.Join(dir, "token")}, "no PEM certificate"},
		{[]string{"--server", "https://x", "--ca-file", filepath.Join(dir, "none")}, "read the authorities"},
	} {
		err := prepared(t, nil, tc.args, func(st *command.State, _ []string) error {
			c, err := st.Client()
			if err == nil && !c.HasCredential() {
				t.Errorf("%v: no credential", tc.args)
			}
			return err
		})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v", tc.args, err)
		}
	}
}

// TestExplain has errors told in a line, by what goes on after them.
func TestExplain(t *testing.T) {
	t.Parallel()
	problems := []api.ConfigProblem{{File: "a.yaml", Line: 1, Message: "one"}, {File: "b.yaml", Message: "two"}, {Message: "three"}, {Message: "four"}, {Message: "five"}}
	for _, tc := range []struct {
		err           error
		message, hint string
	}{
		{&command.Error{Message: "no", Hint: "do something"}, "no", "do something"},
		{&client.Error{Status: 422, Problem: api.Problem{Detail: "it is not valid", Problems: problems}}, "it is not valid: a.yaml:1: one; b.yaml: two; three; and 2 more", ""},
		{&client.Error{Status: 422, Problem: api.Problem{Detail: "it is not valid: one", Problems: problems[:1]}}, "it is not valid: one", ""},
		{&client.Error{Status: 404, Problem: api.Problem{Code: "project_not_found", Detail: "project not found"}}, "project not found", "svcctl project list shows the registered ones, svcctl project register makes one known"},
		{context.DeadlineExceeded, "context deadline exceeded", "allow more with --timeout or --request-timeout"},
		{errors.New("something else"), "something else", ""},
	} {
		err := prepared(t, nil, nil, func(st *command.State, _ []string) error {
			message, hint := st.Explain(t.Context(), tc.err)
			if message != tc.message || hint != tc.hint {
				t.Errorf("%v: got %q and %q, want %q and %q", tc.err, message, hint, tc.message, tc.hint)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOfCollection(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]bool{"--token": false, "--admin-token": false, "--collection-token": true} {
		err := prepared(t, nil, []string{flag, "a-token"}, func(st *command.State, _ []string) error {
			_, err := st.Client()
			if got := st.OfCollection(); got != want {
				t.Errorf("%s: %v", flag, got)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestServerWithPassword has a password in an address shown nowhere, and an address with one used for nothing.
func TestServerWithPassword(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"https://ann:secret@host", "https://ann:sec%zzret@host", "https://ann:secret@", "https://host?token=secret", "https://host#secret"} {
		err := prepared(t, nil, []string{"--server", server}, func(st *command.State, _ []string) error {
			_, err := st.Server()
			return err
		})
		if err == nil || strings.Contains(err.Error(), "ret") {
			t.Errorf("%s: got %v", server, err)
		}
	}
}

// TestAskSecretEscapes has a name that the service has given, in the question for a password, not drive the terminal.
func TestAskSecretEscapes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	st := &command.State{InTTY: true, ErrTTY: true, Err: &out, ReadSecret: func(ask func()) (string, error) { ask(); return "x", nil }}
	if _, err := st.AskSecret("New password for ann\x1b]0;owned\a\u202e", false); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `New password for ann\x1b]0;owned\x07\u202e: `+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
