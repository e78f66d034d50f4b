package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Who may see a project's drift may not read its records: what a file that no record names is called may be what one of them hides.
func TestDriftTellsNoFileNames(t *testing.T) {
	onMediaWith(t, mediaConfig+"mode: observe\n", func(t *testing.T, s mediaService) {
		t.Helper()
		_, reader := s.user("reader", map[string]any{"scopes": []string{"project.read"}})
		const drift = "/api/v1/_/media/_/admin/drift"
		none := s.do("GET", drift, session(reader))
		none.want(t, http.StatusOK)
		none.lacks(t, `"kind":"media"`)
		folder := filepath.Join(s.data, "uploads", "media")
		if _, err := os.Lstat(folder); !os.IsNotExist(err) {
			t.Errorf("a look made the folder of uploads, or: %v", err)
		}

		const record, name = "64b000000000000000000001", "dismissal of Ann.pdf"
		file := filepath.Join(folder, "up", "library", record, "secret", name)
		old := time.Now().Add(-100 * time.Hour)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("sorry"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		got := s.do("GET", drift, session(reader))
		got.contains(t, http.StatusOK, `"kind":"media","object":"library","action":"unexpected"`, "1 file (5 bytes) that no record names")
		got.lacks(t, "Ann")
		got.lacks(t, "secret")
		for _, made := range []string{".tmp", ".claims"} {
			if _, err := os.Lstat(filepath.Join(folder, made)); !os.IsNotExist(err) {
				t.Errorf("a look made %s, or: %v", made, err)
			}
		}
	})
}
