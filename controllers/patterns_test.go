package controllers_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPatternsFollowFiles has a project whose collections are the files of a folder: one more is one more collection, and a
// generation that is served again has those that it had.
func TestPatternsFollowFiles(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		w := newWorld(t, s, t.TempDir(), nil)
		file := func(name string) string { return filepath.Join(w.ProjectsDir, "blog", "collections", name+".yaml") }
		add := func(name string) {
			write(t, file(name), "name: "+name+"\npermissions: {public: {methods: {}}, user: {methods: {}}}\n")
		}
		wants := func(generation int64, names ...string) {
			t.Helper()
			w.eventuallyServed(generation)
			p, err := w.Registry.Get("blog")
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "collections", names, slices.Sorted(maps.Keys(p.Collections)))
		}
		add("a")
		_, id := w.serve("namespace: blog\ncollections: [\"collections/*.yaml\"]\n")
		wants(1, "a")
		add("b")
		wants(2, "a", "b")
		if err := os.Remove(file("a")); err != nil {
			t.Fatal(err)
		}
		wants(3, "b")
		w.rollBack(id, 2)
		wants(4, "a", "b")
	})
}
