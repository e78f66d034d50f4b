package doc

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
)

var fileTestFields = []api.FieldDescription{
	{Name: "title", Type: "string"},
	{Name: "cover", Type: "file"},
	{Name: "pages", Type: "file[]"},
	{Name: "rooms", Type: "object[]", SubFields: []api.FieldDescription{{Name: "plan", Type: "file"}, {Name: "views", Type: "file[]"}}},
	{Name: "seo", Type: "object", SubFields: []api.FieldDescription{{Name: "image", Type: "file"}}},
}

// Files are found wherever fields say that there are some, and all else stays as it is, to the order.
func TestEachFile(t *testing.T) {
	t.Parallel()
	const record = `{"title":"x","cover":{"path":"a"},"pages":[{"path":"b"},null,{"path":"c"}],"other":{"path":"z","src":"z"},` +
		`"rooms":[{},{"plan":{"path":"d"},"n":1.50},{"plan":null,"views":[{"path":"e"}]}],"seo":{"image":{"path":"f"}},` +
		`"_i18n":{"de":{"title":"y","seo":{"image":{"path":"g"}}},"fr":null}}`
	var got [][3]string
	out, err := eachFile(func(field, at string, file []member) ([]member, error) {
		got = append(got, [3]string{field, at, text(file, "path")})
		return file, nil
	}).record(fileTestFields, api.Record(record))
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != record {
		t.Errorf("the record has become\n%s\nfrom\n%s", out, record)
	}
	want := [][3]string{
		{"seo.image", "_i18n.de.seo.image", "g"},
		{"cover", "cover", "a"},
		{"pages", "pages.0", "b"},
		{"pages", "pages.2", "c"},
		{"rooms.plan", "rooms.1.plan", "d"},
		{"rooms.views", "rooms.2.views.0", "e"},
		{"seo.image", "seo.image", "f"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIsPlainName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.jpg", ".hidden", "Übersicht 1.pdf", "gallery.image", "console.txt", "a..b"} {
		if !isPlainName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{
		"", ".", "..", "../a", "/a", "a/b", `a\b`, `..\a`, "C:a", `\\host\a`, "a:stream", "con", "NUL.txt", "com1", "LPT9.jpg", "aux .x", "conin$",
		"a.", "a ", "a\x00b", "a\nb", "\x1b[2J",
	} {
		if isPlainName(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

// A service that names files, fields or ids to write elsewhere is refused before anything is asked for or written.
func TestExportHostileNames(t *testing.T) {
	t.Parallel()
	const id = "65f0c2a1b3d4e5f60718293a"
	for _, test := range []struct{ name, field, record string }{
		{"name up", "cover", `{"id":"` + id + `","cover":{"path":"../../x"}}`},
		{"name absolute", "cover", `{"id":"` + id + `","cover":{"path":"/tmp/x"}}`},
		{"name of a device", "cover", `{"id":"` + id + `","cover":{"path":"NUL.txt"}}`},
		{"name of the folder", "cover", `{"id":"` + id + `","cover":{"path":"."}}`},
		{"no name", "cover", `{"id":"` + id + `","cover":{"src":"x"}}`},
		{"id up", "cover", `{"id":"../x","cover":{"path":"x"}}`},
		{"no id", "cover", `{"cover":{"path":"x"}}`},
		{"field up", "..", `{"id":"` + id + `","..":{"path":"x"}}`},
		{"field with a separator", "../y", `{"id":"` + id + `","../y":{"path":"x"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			root := openRoot(t, filepath.Join(outer, "files"))
			e := &fileExport{root: root, fields: []api.FieldDescription{{Name: test.field, Type: "file"}}} // without a client, asking would panic
			if _, err := e.take(t.Context(), api.Record(test.record)); err == nil {
				t.Error("no error")
			}
			if got := len(under(t, outer)); got != 0 {
				t.Errorf("%d files were written", got)
			}
		})
	}
}

// A file is whole in its place, replaces what was there, and nothing is written through a link that leaves the folder.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	dir := filepath.Join(outer, "files")
	root := openRoot(t, dir)
	for _, content := range []string{"one", "two"} {
		if err := writeFile(root, "id/cover/a.txt", strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeFile(root, "id/cover/b.txt", io.MultiReader(strings.NewReader("b"), broken{})); err == nil {
		t.Error("a broken download is no error")
	}
	if diff := cmp.Diff(map[string]string{"files/id/cover/a.txt": "two"}, under(t, outer)); diff != "" {
		t.Error(diff)
	}
	if err := os.Symlink(outer, filepath.Join(dir, "out")); err != nil {
		t.Skip("no symbolic links:", err)
	}
	if err := writeFile(root, "out/x.txt", strings.NewReader("x")); err == nil {
		t.Error("a file was written through a link")
	}
	target := filepath.Join(outer, "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "id", "cover", "l.txt")); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(root, "id/cover/l.txt", strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "mine" {
		t.Errorf("what the link led to is %q, %v", got, err)
	}
}

// A src of an import reads nothing outside of the folder, and nothing that is no file.
func TestAttach(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	dir := filepath.Join(outer, "files")
	root := openRoot(t, dir)
	if err := writeFile(root, "id/cover/a.txt", strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outer, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": filepath.Join(outer, "secret"), "up": "../secret"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links:", err)
		}
	}
	for _, src := range []string{
		"../secret", "id/../../secret", filepath.Join(outer, "secret"), "link", "up", `..\secret`, "id", "id/cover", "id/cover/none.txt", "./id/cover/a.txt",
		"id//cover/a.txt", "nul", "/api/v1/_/blog/medialib/65f0c2a1b3d4e5f60718293a/cover/a.txt", "https://example.com/a.txt", "id/cover/a.txt\x00",
	} {
		raw, err := json.Marshal(map[string]any{"cover": map[string]string{"src": src, "path": "a.txt"}})
		if err != nil {
			t.Fatal(err)
		}
		_, files, problem, err := attach(root, fileTestFields, raw)
		if err != nil || problem == nil || len(files) > 0 {
			t.Errorf("%q: %d files, problem %v, %v", src, len(files), problem, err)
		}
	}

	const record = `{"cover":{"src":"id/cover/a.txt","path":"b.txt","alt":"A","size":7,"hash":"x"},"pages":[{"src":"DATA:,x"},{"src":"id/cover/a.txt"}],` +
		`"_i18n":{"de":{"seo":{"image":{"src":"id/cover/a.txt"}}}}}`
	out, files, problem, err := attach(root, fileTestFields, api.Record(record))
	if err != nil || problem != nil {
		t.Fatal(problem, err)
	}
	if want := `{"cover":{"alt":"A"},"pages":[{"src":"DATA:,x"},{}],"_i18n":{"de":{"seo":{"image":{}}}}}`; string(out) != want {
		t.Errorf("the record is %s, want %s", out, want)
	}
	var got [][3]string
	for _, f := range files {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || f.Size != int64(len(content)) {
			t.Errorf("%s: %d bytes, %v", f.Field, len(content), err)
		}
		got = append(got, [3]string{f.Field, f.Name, string(content)})
	}
	want := [][3]string{{"_i18n.de.seo.image", "a.txt", "content"}, {"cover", "b.txt", "content"}, {"pages.1", "a.txt", "content"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// under gives all files below a folder.
func under(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
