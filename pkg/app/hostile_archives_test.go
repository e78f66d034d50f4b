package app_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// opened is the tar inside of an archive.
func opened(t *testing.T, archived string) []byte {
	t.Helper()
	r, err := zstd.NewReader(strings.NewReader(archived))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// closed compresses a tar as svcd does.
func closed(t *testing.T, content []byte) string {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for chunk := range slices.Chunk(content, 1<<20) {
		out = w.EncodeAll(chunk, out)
	}
	return string(out)
}

// entry is a file of a tar with what stands before it.
func entry(t *testing.T, h tar.Header, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	h.Size, h.ModTime, h.Format = int64(len(content)), time.Unix(315532800, 0), tar.FormatUSTAR
	if h.Mode == 0 {
		h.Mode = 0o600
	}
	err := w.WriteHeader(&h)
	if err == nil && content != "" {
		_, err = io.WriteString(w, content)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const tarEnd = 1024

// S53 and S54: an archive can say nothing about where its files go and what they are that isn't ours: it is refused whole, whatever stands in
// it, and nothing is left, in the project's folder or beside it.
func TestS53HostileArchives(t *testing.T) {
	s := mediaService{service: run(t, nil)}
	s.register("media", snapshotsConfig)
	s.do("POST", "/api/v1/_/media/other", admin, text(`{"n": 1}`)).want(t, http.StatusCreated)
	id := s.take("daily").ID
	whole := s.download(id, admin)
	s.do("DELETE", snaps+"/"+id, admin).want(t, http.StatusNoContent)
	before := strings.Join(s.everything(), "\n")
	inside := opened(t, whole)
	if closed(t, inside) == "" || string(opened(t, closed(t, inside))) != string(inside) {
		t.Fatal("the test can't make archives")
	}
	body := inside[:len(inside)-tarEnd]
	end := make([]byte, tarEnd)
	after := func(extra []byte) string { return closed(t, slices.Concat(body, extra, end)) }
	first := entry(t, tar.Header{Name: "manifest.json"}, manifestOf(t, inside))
	if !bytes.HasPrefix(inside, first[:100]) {
		t.Fatal("an archive does not begin with its manifest")
	}
	behind := len(first)

	hostile := map[string]string{
		"more data":             after(entry(t, tar.Header{Name: "users.json"}, "{}")),
		"an absolute path":      after(entry(t, tar.Header{Name: "/etc/cron.d/x"}, "x")),
		"a path that leads out": after(entry(t, tar.Header{Name: "../../outside.yaml"}, "x")),
		"one inside of a name":  after(entry(t, tar.Header{Name: "config/../../outside.yaml"}, "x")),
		"a backslash":           after(entry(t, tar.Header{Name: `..\outside.yaml`}, "x")),
		"a file twice":          after(entry(t, tar.Header{Name: "config/project.yaml"}, snapshotsConfig)),
		"the manifest twice":    after(first),
		"a symbolic link":       after(entry(t, tar.Header{Name: "config/l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, "")),
		"a hard link":           after(entry(t, tar.Header{Name: "config/l", Typeflag: tar.TypeLink, Linkname: "manifest.json"}, "")),
		"a folder":              after(entry(t, tar.Header{Name: "config/", Typeflag: tar.TypeDir, Mode: 0o777}, "")),
		"a character device":    after(entry(t, tar.Header{Name: "config/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, "")),
		"a block device":        after(entry(t, tar.Header{Name: "config/sda", Typeflag: tar.TypeBlock, Devmajor: 8}, "")),
		"a pipe":                after(entry(t, tar.Header{Name: "config/fifo", Typeflag: tar.TypeFifo}, "")),
		"another owner":         after(entry(t, tar.Header{Name: "config/x", Uid: 1000, Mode: 0o4755}, "x")),
		"another order":         closed(t, slices.Concat(inside[behind:len(inside)-tarEnd], first, end)),
		"no end":                closed(t, body),
		"zeros for ever":        closed(t, slices.Concat(inside[:behind], make([]byte, 64<<20))),
		"no tar":                closed(t, []byte("hello")),
		"gzip":                  "\x1f\x8b\x08\x00\x00\x00\x00\x00",
		"nothing":               "",
		"a bomb":                bomb(t, inside),
	}
	for name, archive := range hostile {
		got := s.do("POST", snaps+"/import", admin, archived(archive))
		if code := got.field("code"); got.status != http.StatusBadRequest || code != "backup_invalid" && code != "backup_truncated" {
			t.Errorf("%s: %s", name, got)
		}
		checkShape(t, name, got)
		if now := strings.Join(s.everything(), "\n"); now != before {
			t.Errorf("%s has left something:\n%s\n\n%s", name, before, now)
		}
	}
	// What no disk holds is refused by its head: nothing of it has to come.
	got := s.do("POST", snaps+"/import", admin, archived(closed(t, entry(t, tar.Header{Name: "manifest.json"}, announcing(t, inside, 3, 1<<40)))))
	if got.status != http.StatusInsufficientStorage || got.field("code") != "snapshots_full" {
		t.Errorf("more than there is space for: %s", got)
	}
	got = s.do("POST", snaps+"/import", admin, archived(closed(t, entry(t, tar.Header{Name: "manifest.json"}, announcing(t, inside, 5, 1<<40)))))
	if got.status != http.StatusRequestEntityTooLarge || got.field("code") != "backup_too_large" {
		t.Errorf("more than the limit: %s", got)
	}
	s.do("POST", snaps+"/import", admin, archived(closed(t, inside))).want(t, http.StatusCreated)
}

// everything lists what is in the folder of projects, and beside it.
func (s *service) everything() []string {
	s.t.Helper()
	var out []string
	for dir := range map[string]bool{s.dir: true, filepath.Dir(s.dir): true} {
		err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
			if e != nil && e.IsDir() && dir != s.dir && name != dir {
				return filepath.SkipDir
			}
			out = append(out, name)
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

func manifestOf(t *testing.T, inside []byte) string {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(inside))
	if h, err := r.Next(); err != nil || h.Name != "manifest.json" {
		t.Fatal(h, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var fileLine = regexp.MustCompile(`(?m)^    (\{"path":"([^"]*)","size":(\d+),"sha256":"([0-9a-f]{64})".*?\}),?$`)

// withFiles is a manifest with more files, which are what it would say of them.
func withFiles(t *testing.T, manifest string, more ...string) string {
	t.Helper()
	lines := more
	for _, m := range fileLine.FindAllStringSubmatch(manifest, -1) {
		lines = append(lines, m[1])
	}
	slices.Sort(lines) // by path, with which each begins
	sum := sha256.New()
	for i, line := range lines {
		m := fileLine.FindStringSubmatch("    " + line)
		if m == nil {
			t.Fatal(line)
		}
		fmt.Fprintf(sum, "%s  %s  %s\n", m[4], m[3], m[2])
		lines[i] = "    " + line
	}
	head, _, _ := strings.Cut(manifest, `"files": [`)
	head = regexp.MustCompile(`"root": "[0-9a-f]*"`).ReplaceAllString(head, `"root": "`+hex.EncodeToString(sum.Sum(nil))+`"`)
	return head + "\"files\": [\n" + strings.Join(lines, ",\n") + "\n  ]\n}\n"
}

// announcing is a manifest with files that are large.
func announcing(t *testing.T, inside []byte, n int, size int64) string {
	t.Helper()
	var more []string
	for i := range n {
		more = append(more, fmt.Sprintf(`{"path":"config/large%d","size":%d,"sha256":"%064d","how":"written"}`, i, size, i))
	}
	return withFiles(t, manifestOf(t, inside), more...)
}

// bomb announces zeros, and has them in little.
func bomb(t *testing.T, inside []byte) string {
	t.Helper()
	const size = 200 << 20
	zeros := make([]byte, size)
	sum := sha256.Sum256(zeros)
	manifest := withFiles(t, manifestOf(t, inside), fmt.Sprintf(`{"path":"config/a","size":%d,"sha256":"%x","how":"written"}`, size, sum))
	line := sha256.Sum256([]byte(manifest))
	return closed(t, slices.Concat(
		entry(t, tar.Header{Name: "manifest.json"}, manifest),
		entry(t, tar.Header{Name: "manifest.json.sha256"}, hex.EncodeToString(line[:])+"  manifest.json\n"),
		entriesBefore(t, inside, "config/a"),
		entry(t, tar.Header{Name: "config/a"}, string(zeros)), make([]byte, tarEnd),
	))
}

// entriesBefore are the files of an archive, behind the manifest and its sum, whose names come before one.
func entriesBefore(t *testing.T, inside []byte, name string) []byte {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(inside))
	var out []byte
	for {
		h, err := r.Next()
		if err != nil || !strings.HasPrefix(h.Name, "manifest.json") && h.Name > name {
			return out
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(h.Name, "manifest.json") {
			out = append(out, entry(t, tar.Header{Name: h.Name}, string(content))...)
		}
	}
}
