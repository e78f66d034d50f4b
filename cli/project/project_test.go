package project

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/schema"
)

func TestParse(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		line string
		want any // options without their state, or nil for a usage error
	}{
		{"register blog", registerOptions{ConfigFile: "blog", Name: "blog"}},
		{"register -f blog/project.yaml --disabled", registerOptions{ConfigFile: "blog/project.yaml", Name: "blog", Disabled: true}},
		{"register ./blog/project.yaml --name Blog", registerOptions{ConfigFile: filepath.Join(here, "blog", "project.yaml"), Name: "Blog"}},
		{"register .", registerOptions{ConfigFile: here, Name: filepath.Base(here)}},
		{"register /srv/projects/shop --description D", registerOptions{ConfigFile: "/srv/projects/shop", Name: "shop", Description: "D"}},
		{"register", nil},
		{"register blog -f blog", nil},
		{"unregister blog -y", unregisterOptions{Namespace: "blog", Yes: true}},
		{"unregister -n blog", nil}, // the name must be said
		{"reload blog", reloadOptions{Namespace: "blog", Timeout: 2 * time.Minute}},
		{"reload -n blog --wait --timeout 5s", reloadOptions{Namespace: "blog", Wait: true, Timeout: 5 * time.Second}},
		{"status blog", statusOptions{Namespace: "blog", Timeout: 2 * time.Minute}},
		{"status blog --wait --timeout 0", statusOptions{Namespace: "blog", Wait: true}},
		{"status", nil},
		{"reload", nil},
		{"validate", validateOptions{Paths: []string{"."}}},
		{"validate a b --strict", validateOptions{Paths: []string{"a", "b"}, Strict: true}},
	} {
		var got any
		verb, line, _ := strings.Cut(tc.line, " ")
		st := &command.State{
			In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Home: t.TempDir(), Now: time.Now,
			Env: func(string) (string, bool) { return "", false },
		}
		cmd := map[string]func() *cobra.Command{
			"register":   func() *cobra.Command { return newRegister(st, keep[registerOptions](&got)) },
			"unregister": func() *cobra.Command { return newUnregister(st, keep[unregisterOptions](&got)) },
			"reload":     func() *cobra.Command { return newReload(st, keep[reloadOptions](&got)) },
			"status":     func() *cobra.Command { return newStatus(st, keep[statusOptions](&got)) },
			"validate":   func() *cobra.Command { return newValidate(st, keep[validateOptions](&got)) },
		}[verb]()
		st.Register(cmd)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(line))
		err := cmd.ExecuteContext(t.Context())
		if (err == nil) != (tc.want != nil) {
			t.Errorf("%s: error %v", tc.line, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got,
			cmp.AllowUnexported(registerOptions{}, unregisterOptions{}, reloadOptions{}, statusOptions{}, validateOptions{}),
			cmp.Comparer(func(_, _ *command.State) bool { return true })); diff != "" {
			t.Errorf("%s: %s", tc.line, diff)
		}
	}
}

func keep[T any](to *any) func(context.Context, *T) error {
	return func(_ context.Context, opts *T) error { *to = *opts; return nil }
}

// What stands in a config can't begin another workflow command or escape its own.
func TestAnnotation(t *testing.T) {
	t.Parallel()
	got := annotation(schema.Problem{
		Position: schema.Position{File: "a,b:c\n.yaml", Line: 3, Column: 5},
		Path:     "fields[0]", Message: "100%\n::error::x\x1b", Warning: true,
	})
	if diff := cmp.Diff(`::warning file=a%2Cb%3Ac%0A.yaml,line=3,col=5::fields[0]: 100%25%0A::error::x\x1b`, got); diff != "" {
		t.Fatal(diff)
	}
}
