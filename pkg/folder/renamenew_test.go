package folder_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestRenameNew: what has a name keeps it, be it an empty folder, in one step and in two.
func TestRenameNew(t *testing.T) {
	t.Parallel()
	for how, fault := range map[string]func(op, name string) error{
		"one step":  nil,
		"two steps": func(string, string) error { return errors.ErrUnsupported },
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"made/a": "a", "full/b": "b", "file": "c"} {
			name = filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
			t.Fatal(err)
		}
		f, plain := open(t, dir, fault), open(t, dir, nil)
		for _, to := range []string{"full", "empty", "file", "made"} {
			if err := f.RenameNew("made", to); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s, %s: %v", how, to, err)
			}
		}
		if err := f.RenameNew("made", "full/made"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s, elsewhere: %v", how, err)
		}
		if err := f.RenameNew("none", "new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, of nothing: %v", how, err)
		}
		if err := f.RenameNew("made", "new"); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		wantFile(t, plain, "new/a", "a")
		wantFile(t, plain, "full/b", "b")
		entries, err := os.ReadDir(filepath.Join(dir, "empty"))
		if err != nil || len(entries) > 0 {
			t.Errorf("%s: the empty folder has %v, %v", how, entries, err)
		}
	}
}
