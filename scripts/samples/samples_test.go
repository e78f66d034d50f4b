package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestContent keeps the files in the repository what this program makes.
func TestContent(t *testing.T) {
	for name, records := range files() {
		want, err := encode(records)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "projects", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("projects/%s is not what go run ./scripts/samples projects writes (-want +got):\n%s", name, diff[:min(len(diff), 2000)])
		}
	}
}
