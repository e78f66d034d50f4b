package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

var update = flag.Bool("update", false, "write the golden file")

func TestMain(m *testing.M) {
	if os.Getenv(asFull) == "" {
		goleak.VerifyTestMain(m)
	}
	if err := onAFullDisk(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// entry is a file in the manifests of these tests.
type entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func parse(manifest []byte) ([]archive.File, error) {
	var entries []entry
	if err := json.Unmarshal(manifest, &entries); err != nil {
		return nil, errs.New(errs.Invalid, "manifest_invalid", "the manifest is not JSON: give another one")
	}
	var files []archive.File
	for _, e := range entries {
		f := archive.File{Name: e.Name, Size: e.Size}
		if n, err := hex.Decode(f.SHA256[:], []byte(e.SHA256)); err != nil || n != len(f.SHA256) {
			return nil, errs.New(errs.Invalid, "manifest_invalid", "a SHA-256 of the manifest is not hexadecimal")
		}
		files = append(files, f)
	}
	return files, nil
}

// content is files by name.
type content map[string]string

func (c content) entries() (entries []entry) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		entries = append(entries, entryOf(name, c[name]))
	}
	return entries
}

func entryOf(name, body string) entry {
	sum := sha256.Sum256([]byte(body))
	return entry{name, int64(len(body)), hex.EncodeToString(sum[:])}
}

func manifestOf(t testing.TB, entries ...entry) string {
	t.Helper()
	out, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// snapshot makes a folder with these files and their manifest.
func snapshot(t testing.TB, c content) *os.Root {
	t.Helper()
	root := folder(t)
	for name, body := range c {
		write(t, root, name, body)
	}
	write(t, root, archive.ManifestName, manifestOf(t, c.entries()...))
	return root
}

func folder(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func write(t testing.TB, root *os.Root, name, body string) {
	t.Helper()
	if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o700), root.WriteFile(name, []byte(body), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// filesIn reads what is in a folder. A folder in it that is empty stands with a slash, a link with an @.
func filesIn(t testing.TB, root *os.Root) content {
	t.Helper()
	got := content{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			inside, err := fs.ReadDir(root.FS(), name)
			if len(inside) == 0 {
				got[name+"/"] = ""
			}
			return err
		}
		if !d.Type().IsRegular() {
			got[name+"@"] = ""
			return nil
		}
		body, err := root.ReadFile(name)
		got[name] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func backup(t testing.TB, c content) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := archive.Write(t.Context(), &out, snapshot(t, c), parse, archive.DefaultLimits(), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func extract(ctx context.Context, stream io.Reader, to *os.Root, l archive.Limits) error {
	r, err := archive.Open(ctx, stream, parse, l)
	if err != nil {
		return err
	}
	return r.Extract(ctx, to, nil)
}

// public holds an error against what callers are told.
func public(t *testing.T, err error, kind errs.Kind, code, text string) {
	t.Helper()
	e, ok := errors.AsType[*errs.Error](err)
	switch {
	case !ok:
		t.Errorf("%v is no error for the public; want %q", err, text)
	case e.Kind != kind || e.Code != code || !strings.Contains(e.Message, text):
		t.Errorf("got kind %d, code %s, text %q (%v)\nwant kind %d, code %s, text %q", e.Kind, e.Code, e.Message, e.Cause, kind, code, text)
	case !strings.Contains(e.Message, ": ") && !strings.Contains(e.Message, "; "):
		t.Errorf("%q does not say what to do", e.Message)
	}
}

// noise is bytes that don't compress.
func noise(n int) string {
	out := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return string(out)
}

// sample has files of all kinds: small, empty, of many chunks, of bad and good ratio, with all that names may have.
func sample() content {
	return content{
		"collections/posts.jsonl.zst":       noise(300_000),
		"collections/empty.jsonl.zst":       "",
		"indexes.json":                      "[]",
		"config/project.yaml":               strings.Repeat("x", 511),
		"config/.hidden":                    strings.Repeat("y", 512),
		"config/a b/c.yaml":                 strings.Repeat("z", 513),
		"media/é.png":                       "not ASCII",
		"media/e\u0301.png":                 "the same, decomposed",
		"media/Photo.png":                   "upper",
		"media/photo.png":                   "lower",
		"media/👩‍🚀.png":                     "joined",
		"media/" + strings.Repeat("l", 255): "a long name",
		"media/" + strings.Repeat("m", 94):  "a name of 100 bytes",
		"media/" + strings.Repeat("n", 95):  "a name of 101 bytes",
		"media/big":                         noise(3<<20 + 17),
		"media/zeros":                       strings.Repeat("\x00", 5<<20),
		strings.Repeat("d/", 31) + "deep":   "the deepest",
		strings.Repeat("0123456/", 28) + "x/" + strings.Repeat("y", 255): "long, and deep",
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	want := sample()
	stream := backup(t, want)
	if again := backup(t, want); !bytes.Equal(stream, again) {
		t.Error("a second backup of the same snapshot has other bytes")
	}
	r, err := archive.Open(t.Context(), bytes.NewReader(stream), parse, archive.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want[archive.ManifestName] = manifestOf(t, sample().entries()...)
	if string(r.Manifest()) != want[archive.ManifestName] || len(r.Files()) != len(sample()) {
		t.Errorf("%d files are announced by the manifest %s", len(r.Files()), r.Manifest())
	}
	to := folder(t)
	var last archive.Progress
	err = r.Extract(t.Context(), to, func(p archive.Progress) {
		if p.Files < last.Files || p.Bytes < last.Bytes || p.Bytes-last.Bytes > 1<<20 || p.File == "" {
			t.Errorf("progress went from %+v to %+v", last, p)
		}
		if _, err := to.Stat(archive.ManifestName); err == nil {
			t.Error("the manifest is there before the files are")
		}
		last = p
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, filesIn(t, to)); diff != "" {
		t.Error(diff)
	}
	names := slices.Sorted(maps.Keys(sample()))
	whole := archive.Progress{File: names[len(names)-1], Files: len(names), FilesTotal: len(names), Bytes: r.Bytes(), BytesTotal: r.Bytes()}
	if diff := cmp.Diff(whole, last); diff != "" {
		t.Error(diff)
	}
	info, err := to.Stat("indexes.json")
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode of a file: %v, %v", info.Mode(), err)
	}
	if info, err = to.Stat("media"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of a folder: %v, %v", info.Mode(), err)
	}
}

// TestOtherReadersTakeIt reads a backup as any other program does.
func TestOtherReadersTakeIt(t *testing.T) {
	t.Parallel()
	want := sample()
	z, err := zstd.NewReader(bytes.NewReader(backup(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	want[archive.ManifestName] = manifestOf(t, want.entries()...)
	got, r := content{}, tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || h.Mode != 0o600 || h.ModTime.UTC().Format("2006-01-02 15:04:05") != "1980-01-01 00:00:00" {
			t.Errorf("%s: type %c, mode %o, time %s", h.Name, h.Typeflag, h.Mode, h.ModTime)
		}
		if len(got) == 0 && h.Name != archive.ManifestName {
			t.Errorf("the first file is %s", h.Name)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHeaders holds headers against another writer and reader of the format.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		size   int64
		blocks int
	}{
		{"a", 0, 1},
		{"a/b.txt", 8<<30 - 1, 1},
		{"a/b.txt", 8 << 30, 3},
		{strings.Repeat("a", 100), 1, 1},
		{strings.Repeat("a", 101), 1, 3},
		{strings.Repeat("a/", 300) + "é", 1<<62 + 1, 4},
		{strings.Repeat("a", 84), 5, 1},
		{strings.Repeat("é", 42) + "a", 5, 3}, // the record's length is of two digits
		{strings.Repeat("é", 43) + "a", 5, 3},
		{strings.Repeat("é", 44) + "aa", 5, 3}, // of three
		{"=\" 1", 5, 1},
	} {
		got := archive.Header(tt.name, tt.size)
		if len(got) != tt.blocks*512 {
			t.Errorf("%s: %d bytes", tt.name, len(got))
		}
		h, err := tar.NewReader(bytes.NewReader(got)).Next()
		if err != nil || h.Name != tt.name || h.Size != tt.size || h.Typeflag != tar.TypeReg {
			t.Errorf("%s of %d bytes is read as %+v, %v", tt.name, tt.size, h, err)
		}
		if tt.blocks > 1 {
			continue
		}
		var theirs bytes.Buffer
		h = &tar.Header{Typeflag: tar.TypeReg, Name: tt.name, Size: tt.size, Mode: 0o600, ModTime: h.ModTime, Format: tar.FormatUSTAR}
		if err := tar.NewWriter(&theirs).WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs.Bytes(), got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestTheFormatStays: a backup of today is read by all versions to come.
func TestTheFormatStays(t *testing.T) {
	t.Parallel()
	const file = "testdata/backup.tar.zst"
	small := content{"indexes.json": "[]", "media/é.txt": "hello", "config/project.yaml": "namespace: blog\n"}
	if *update {
		if err := os.WriteFile(file, backup(t, small), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	to := folder(t)
	if err := extract(t.Context(), bytes.NewReader(stream), to, archive.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(small)
	want[archive.ManifestName] = manifestOf(t, small.entries()...)
	if diff := cmp.Diff(want, filesIn(t, to)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(archive.Unframed(stream), archive.Unframed(backup(t, small))); diff != "" {
		t.Errorf("the tar is another one now: %s", diff)
	}
}
