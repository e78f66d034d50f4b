package snapshot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestDrift: of a config that has changed since, a restore tells what concerns the collections that it restores; that something else has changed it
// tells, too, but as nothing to be looked at.
func TestDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t))
	w.fillWith(2, 2)
	info := w.create("daily")
	elsewhere := []string{": elsewhere: the config is another one than that of the snapshot, but not in the fields of what is restored"}
	for what, tt := range map[string]struct {
		from, to    string
		collections []string
		want        []string
	}{
		"nothing":         {"", "", nil, nil},
		"a profile":       {"{name: daily, ", "{name: daily, description: new, ", nil, elsewhere},
		"a permission":    {"public: {methods: {}}", "public: {methods: {get: true}}", nil, elsewhere},
		"a field":         {"{name: title, type: string}", "{name: title, type: string, validator: {max: 9}}", nil, []string{`posts: config: the config declares these fields otherwise than when the snapshot was taken: "title"`}},
		"fields":          {"{name: title, type: string}", "{name: name, type: string}", []string{"posts"}, []string{`posts: config: the config declares these fields otherwise than when the snapshot was taken: "name", "title"`}},
		"one of another":  {"{name: title, type: string}", "{name: title, type: string, validator: {max: 9}}", []string{"items"}, elsewhere},
		"not declared":    {"name: empty\n", "name: other\n", []string{"empty"}, []string{"empty: undeclared: the config does not have the collection: it is in the store, and nobody can reach it", elsewhere[0]}},
		"of what is gone": {"name: empty\n", "name: other\n", []string{"items"}, elsewhere},
	} {
		p := load(t, strings.Replace(config, tt.from, tt.to, 1), w.p.Namespace)
		if tt.collections == nil {
			tt.collections = []string{"empty", "items", "posts"}
		}
		for _, dry := range []bool{true, false} {
			result, err := w.snaps.Restore(t.Context(), w.p, info.ID, p, snapshot.RestoreOptions{Collections: tt.collections, DryRun: dry}, nil)
			var got []string
			for _, d := range result.Drift {
				got = append(got, d.Collection+": "+d.Kind+": "+d.Text)
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s, dry run %v: %v %s", what, dry, err, diff)
			}
		}
	}
	// What can't be compared may be anything.
	p := *load(t, strings.Replace(config, "{name: daily, ", "{name: daily, description: new, ", 1), w.p.Namespace)
	p.Bundle = project.Bundle{Entry: "project.yaml", Files: map[string][]byte{"project.yaml": []byte("[")}}
	result, err := w.snaps.Restore(t.Context(), w.p, info.ID, &p, snapshot.RestoreOptions{DryRun: true}, nil)
	if err != nil || len(result.Drift) != 2 || result.Drift[0].Kind != snapshot.DriftConfig || result.Drift[0].Collection != "" {
		t.Errorf("%v %+v", err, result.Drift)
	}
}
