package project_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// TestDetachForeign: a config of which nobody knows who has written it is told nothing of this service.
func TestDetachForeign(t *testing.T) {
	t.Parallel()
	l := &project.Loader{Env: func(name string) (string, bool) { return "told", name == "SECRET" }}
	for name, tt := range map[string]struct {
		value   string
		foreign bool
		code    string
	}{
		"plain, foreign":    {"a shop", true, ""},
		"variable":          {"${env:SECRET}", false, ""},
		"variable, foreign": {"${env:SECRET}", true, "config_foreign"},
		"file, foreign":     {"${file:/run/secrets/x}", true, "config_foreign"},
	} {
		config := "namespace: shop\ncollections:\n  - {name: things, permissions: {public: {methods: {get: true}}, user: {methods: {}}}, fields: [{name: n, type: string, meta: {label: \"" + tt.value + "\"}}]}\n"
		p, err := l.Detach(project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte(config)}}, "copy", t.TempDir(), tt.foreign)
		code := ""
		if e := errs.From(err); e != nil {
			code = e.Code
		}
		if code != tt.code || (p == nil) != (tt.code != "") {
			t.Errorf("%s: %v, %v, want %q", name, p, err, tt.code)
		}
	}
}
