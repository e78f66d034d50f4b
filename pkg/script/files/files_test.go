package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script/files"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "project")
	for name, text := range map[string]string{"project/a.txt": "hello", "project/d/b.json": "{}", "secret": "s", "project/large": strings.Repeat("x", files.MaxFile+1)} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(parent, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(parent, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := files.New(root)
	for _, c := range []struct {
		op, path string
		want     any
		code     string
	}{
		{"files.read", "a.txt", bson.Binary{Data: []byte("hello")}, ""},
		{"files.read", "./d/../a.txt", bson.Binary{Data: []byte("hello")}, ""},
		{"files.list", "d", bson.A{bson.D{{Key: "name", Value: "b.json"}, {Key: "directory", Value: false}, {Key: "size", Value: int64(2)}}}, ""},
		{"files.exists", "a.txt", true, ""},
		{"files.exists", "d", true, ""},
		{"files.exists", "none", false, ""},
		{"files.exists", "link", false, ""},
		{"files.read", "none", nil, "no_file"},
		{"files.read", "d", nil, "bad_file"},
		{"files.read", "link", nil, "bad_file"},
		{"files.read", "../secret", nil, "bad_path"},
		{"files.read", "/etc/passwd", nil, "bad_path"},
		{"files.read", "large", nil, "file_too_large"},
		{"files.write", "a.txt", nil, "no_module"},
	} {
		got, err := f.Call(t.Context(), c.op, bson.A{c.path})
		code := ""
		if e := errs.From(err); e != nil {
			code = e.Code
		}
		if diff := cmp.Diff(c.want, got); diff != "" || code != c.code {
			t.Errorf("%s %s: %s %s", c.op, c.path, code, diff)
		}
	}
}
