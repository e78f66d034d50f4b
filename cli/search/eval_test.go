package search

import (
	"testing"

	"github.com/svcctl/svc/cli/command/commandtest"
)

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
