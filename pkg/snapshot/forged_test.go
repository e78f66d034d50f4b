package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

// forgery is a snapshot that somebody has made by hand: all its sums are right.
type forgery struct {
	snapshot.Manifest

	lines map[string][]string // of the exports, by collection
	files map[string]string   // all others, by path
}

// forged is an archive of a forgery that begins as a snapshot.
func forged(t *testing.T, w *world, info snapshot.Info, change func(*forgery)) []byte {
	t.Helper()
	f := &forgery{lines: map[string][]string{}, files: contents(w, w.path(info))}
	show, err := w.snaps.Show(t.Context(), w.p, info.ID)
	if err != nil {
		t.Fatal(err)
	}
	f.Manifest = show.Manifest
	zip, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer zip.Close()
	for _, c := range f.Collections {
		text, err := zip.DecodeAll([]byte(f.files["collections/"+c.File+".jsonl.zst"]), nil)
		if err != nil {
			t.Fatal(err)
		}
		f.lines[c.Name] = strings.SplitAfter(string(text), "\n")
	}
	change(f)
	return f.archive(t)
}

// collection has the forgery have a collection with these records.
func (f *forgery) collection(name string, lines ...string) {
	if !slices.ContainsFunc(f.Collections, func(c snapshot.Collection) bool { return c.Name == name }) {
		f.Collections = append(f.Collections, snapshot.Collection{Name: name, File: fmt.Sprintf("forged%d", len(f.Collections))})
	}
	f.lines[name] = nil
	for _, line := range lines {
		f.lines[name] = append(f.lines[name], line+"\n")
	}
}

func (f *forgery) media(content string) (hash string) {
	hash = hashOf(content)
	f.files["media/"+hash] = content
	return hash
}

func (f *forgery) archive(t *testing.T) []byte {
	t.Helper()
	zip, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for i := range f.Collections {
		c := &f.Collections[i]
		text := strings.Join(f.lines[c.Name], "")
		c.Bytes, c.Documents = 0, int64(strings.Count(text, "\n"))
		for _, line := range f.lines[c.Name] {
			if doc, err := document.ParseExtended([]byte(strings.TrimSuffix(line, "\n"))); err == nil {
				c.Bytes += int64(len(doc))
			}
		}
		sum := sha256.Sum256([]byte(text))
		c.SHA256 = hex.EncodeToString(sum[:])
		name := "collections/" + c.File + ".jsonl.zst"
		f.files[name], counts[name] = string(zip.EncodeAll([]byte(text), nil)), c.Documents
	}
	delete(f.files, "manifest.json")
	delete(f.files, "manifest.json.sha256")
	f.Files = nil
	dir := t.TempDir()
	var list []archive.File
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		content := f.files[name]
		f.Files = append(f.Files, snapshot.File{Path: name, Size: int64(len(content)), SHA256: hashOf(content), Count: counts[name], How: snapshot.Written})
		list = append(list, archive.File{Name: name, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))})
	}
	manifest, sum, err := snapshot.Forged(&f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	f.files["manifest.json"], f.files["manifest.json.sha256"] = string(manifest), string(sum)
	list = slices.Insert(list, 0, archive.File{Name: "manifest.json.sha256", Size: int64(len(sum)), SHA256: sha256.Sum256(sum)})
	for name, content := range f.files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var out bytes.Buffer
	if err := archive.Write(t.Context(), &out, root, func([]byte) ([]archive.File, error) { return list, nil }, archive.DefaultLimits(), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inBase64 is a record that no Extended JSON says, of its elements.
func inBase64(elements string) string {
	doc := binary.LittleEndian.AppendUint32(nil, uint32(len(elements)+5)) //nolint:gosec // it is short
	doc = append(append(doc, elements...), 0)
	return `{"$bson":"` + base64.StdEncoding.EncodeToString(doc) + `"}`
}
