package search

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// What keeps records from being found is told below the table, once, and in no form for programs.
func TestStatusTellsErrors(t *testing.T) {
	t.Parallel()
	near := api.SearchState{Name: "near", Mode: "vector", State: "ready", Waiting: 3, LastError: "the embedding group texts is offline"}
	of := func(last string, searches ...api.SearchState) api.CollectionQueue {
		return api.CollectionQueue{Collection: "articles", SearchQueue: api.SearchQueue{LastError: last, Searches: searches}}
	}
	for name, tc := range map[string]struct {
		queue  api.CollectionQueue
		format string
		want   string
	}{
		"a group":      {of(near.LastError, near), output.FormatTable, "articles/near: the embedding group texts is offline\n"},
		"a script":     {of("it throws", api.SearchState{Name: "main", State: "ready", Failed: 1}), output.FormatTable, "articles: it throws\n"},
		"all is well":  {of("", api.SearchState{Name: "main", State: "ready"}), output.FormatTable, ""},
		"for programs": {of(near.LastError, near), output.FormatJSON, ""},
		"wide":         {of(near.LastError, near), output.FormatWide, ""}, // which has a column for it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var notes bytes.Buffer
			st := &command.State{Out: io.Discard, Err: &notes, Env: func(string) (string, bool) { return "", false }}
			st.Flags.Output = tc.format
			if err := show(st, &api.SearchWorker{Collections: []api.CollectionQueue{tc.queue}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, notes.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	commandtest.Options(t, map[string]commandtest.Verb{"eval": commandtest.Of(newEval)}, map[string]any{
		"eval blog":                             evalOptions{Namespace: "blog", Files: []string{}},
		"eval blog a.golden.yaml b.golden.yaml": evalOptions{Namespace: "blog", Files: []string{"a.golden.yaml", "b.golden.yaml"}},
		"eval -n blog a.golden.yaml":            evalOptions{Namespace: "blog", Files: []string{"a.golden.yaml"}},
		"eval blog --dir a --collection c":      evalOptions{Namespace: "blog", Files: []string{}, Dir: "a", Collection: "c"},
		"eval blog --collection c --search s":   evalOptions{Namespace: "blog", Files: []string{}, Collection: "c", Search: "s"},
		"eval blog --baseline before.json":      evalOptions{Namespace: "blog", Files: []string{}, Baseline: "before.json"},
		"eval":                                  nil,
		"eval a.golden.yaml":                    nil,
		"eval blog --dir a b.golden.yaml":       nil,
		"eval blog --search s":                  nil,
	})
}
