package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

// file is a file in a tar, as Write has it.
func file(name, body string) string {
	return string(archive.Header(name, int64(len(body)))) + body + fill(body)
}

func fill(body string) string { return strings.Repeat("\x00", -len(body)&511) }

const end = "\x00"

// stream makes an archive of a manifest and what follows it, with the two blocks of its end.
func stream(manifest string, parts ...string) []byte {
	return archive.Frames([]byte(file(archive.ManifestName, manifest) + strings.Join(parts, "") + strings.Repeat(end, 1024)))
}

// refuses extracts a stream, and sees that it is refused by that text, and that nothing is left: neither in the folder nor
// beside it.
func refuses(t *testing.T, stream []byte, l archive.Limits, kind errs.Kind, code, text string) {
	t.Helper()
	above := t.TempDir()
	if err := os.Mkdir(filepath.Join(above, "restore"), 0o700); err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenRoot(filepath.Join(above, "restore"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	public(t, extract(t.Context(), bytes.NewReader(stream), to, l), kind, code, text)
	all, err := os.OpenRoot(above)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if diff := cmp.Diff(content{"restore/": ""}, filesIn(t, all)); diff != "" {
		t.Errorf("what is left: %s", diff)
	}
}

func invalid(t *testing.T, stream []byte, text string) {
	t.Helper()
	refuses(t, stream, archive.DefaultLimits(), errs.Invalid, "backup_invalid", text)
}

// TestS53Names has archives that are right but for a name that their manifest announces.
func TestS53Names(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                                    `the file "" of the backup has no name: it is refused whole; use the backup as it came from svcd`,
		"/etc/passwd":                         `"/etc/passwd" of the backup has an absolute path`,
		"//server/share":                      "has an absolute path",
		"..":                                  `has ".." in its path`,
		"../restored":                         `has ".." in its path`,
		"media/../../restored":                `has ".." in its path`,
		"media/..":                            `has ".." in its path`,
		".":                                   `has an empty part, or "."`,
		"./a":                                 `has an empty part, or "."`,
		"media/./a":                           `has an empty part, or "."`,
		"media//a":                            `has an empty part, or "."`,
		"media/":                              `has an empty part, or "."`,
		`..\restored`:                         "has a backslash",
		`C:\windows\a`:                        "has a backslash",
		"a\x00b":                              `"a\x00b" of the backup has a control character`,
		"a\nb":                                `"a\nb" of the backup has a control character`,
		"a\x7f":                               "has a control character",
		"a\u0085":                             "has a control character",
		"a\xff":                               "not UTF-8",
		"\u202etxt.exe/..":                    `"\u202etxt.exe/.." of the backup has ".."`,
		strings.Repeat("a", 256):              "a part of more than 255 bytes",
		strings.Repeat("é", 128):              "a part of more than 255 bytes",
		strings.Repeat("12345678/", 114):      "has a name of more than 1024 bytes",
		strings.Repeat("a/", 32) + "b":        "is more than 31 folders deep",
		"manifest.json":                       `"manifest.json" of the backup is there twice`,
		"manifest.json/a":                     "is a file, and a folder of other files",
		strings.Repeat("x", 200) + "/" + "..": `xxx"... of the backup has ".." in its path`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := entryOf(name, "evil")
			text, err := announce(bad)
			if err != nil {
				t.Fatal(err)
			}
			l := archive.DefaultLimits()
			_, err = archive.Open(t.Context(), bytes.NewReader(stream("[]")), text, l)
			public(t, err, errs.Invalid, "backup_invalid", want)
			// and so does who writes
			err = archive.Write(t.Context(), &bytes.Buffer{}, snapshot(t, content{}), text, l, nil)
			public(t, err, errs.Invalid, "snapshot_invalid", strings.ReplaceAll(strings.Split(want, ": ")[0], "the backup", "the snapshot"))
		})
	}
}

// announce is the parser of a manifest that announces names which JSON can't.
func announce(entries ...entry) (archive.ParseManifest, error) {
	var files []archive.File
	for _, e := range entries {
		one, err := parse([]byte(`[{"name": "x", "size": 0, "sha256": "` + e.SHA256 + `"}]`))
		if err != nil {
			return nil, err
		}
		one[0].Name, one[0].Size = e.Name, e.Size
		files = append(files, one[0])
	}
	return func([]byte) ([]archive.File, error) { return files, nil }, nil
}

// TestS53Manifests has manifests that announce what can't be.
func TestS53Manifests(t *testing.T) {
	t.Parallel()
	a, negative := entryOf("a", "1"), entryOf("a", "")
	negative.Size = -1
	for _, tt := range []struct {
		name    string
		entries []entry
		want    string
	}{
		{"a name twice", []entry{a, entryOf("b", "2"), a}, `the file "a" of the backup is there twice`},
		{"a folder that is a file", []entry{a, entryOf("a/b/c", "2")}, `the file "a" of the backup is a file, and a folder of other files`},
		{"a file that is a folder", []entry{entryOf("x/y/z", "1"), entryOf("x/y", "2")}, `the file "x/y" of the backup is a file, and a folder of other files`},
		{"a negative size", []entry{negative}, `the file "a" of the backup has a negative size`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			parts := []string{}
			for _, e := range tt.entries {
				parts = append(parts, file(e.Name, strings.Repeat("1", int(max(e.Size, 0)))))
			}
			invalid(t, stream(manifestOf(t, tt.entries...), parts...), tt.want)
		})
	}
	refuses(t, stream("not JSON"), archive.DefaultLimits(), errs.Invalid, "manifest_invalid", "the manifest is not JSON: give another one")
}

// block makes the header of a, with another type, and fields as the pairs of offset and text say.
func block(kind byte, fields ...any) string {
	b := archive.Header("a", 4)
	b[156] = kind
	for i := 0; i < len(fields); i += 2 {
		copy(b[fields[i].(int):], fields[i+1].(string))
	}
	return string(summed(b))
}

// summed gives a header its checksum.
func summed(b []byte) []byte {
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// TestS53Entries has archives whose manifest is right, and whose tar is another one.
func TestS53Entries(t *testing.T) {
	t.Parallel()
	a, b := entryOf("a", "body"), entryOf("dir/b", "b")
	manifest := manifestOf(t, a, b)
	body, fileA, fileB := "body"+fill("body"), file("a", "body"), file("dir/b", "b")
	long := strings.Repeat("l", 150)
	longFile := file(long, "body")
	pax := func(records string) string { // in place of the header that says what the name is
		header := archive.Header("pax-header", int64(len(records)))
		header[156] = 'x'
		return string(summed(header)) + records + fill(records)
	}
	for _, tt := range []struct {
		name  string
		parts []string
		want  string
	}{
		{"hard link", []string{block('1', 157, "dir/b")}, `the file "a" of the backup is a hard link`},
		{"hard link out of the folder", []string{block('1', 157, "/etc/passwd")}, `the file "a" of the backup is a hard link`},
		{"symbolic link", []string{block('2', 157, "../..")}, `the file "a" of the backup is a symbolic link`},
		{"character device", []string{block('3')}, `the file "a" of the backup is a device`},
		{"block device", []string{block('4')}, `the file "a" of the backup is a device`},
		{"folder", []string{block('5')}, `the file "a" of the backup is a folder`},
		{"named pipe", []string{block('6')}, `the file "a" of the backup is a named pipe`},
		{"contiguous file", []string{block('7'), body}, `the file "a" of the backup is of an unknown type, "7"`},
		{"file of an old type", []string{block(0), body}, `the file "a" of the backup has a header that svcd does not write`},
		{"global PAX header", []string{block('g')}, `is a global PAX header`},
		{"PAX header", []string{block('x')}, `is a PAX header that says other`},
		{"long name of GNU", []string{block('L', 0, "././@LongLink")}, `the file "././@LongLink" of the backup is a long name in GNU's form`},
		{"long link of GNU", []string{block('K', 0, "././@LongLink")}, `is a long name in GNU's form`},
		{"sparse file of GNU", []string{block('S')}, `the file "a" of the backup is a sparse file`},
		{"volume of GNU", []string{block('V')}, `is of an unknown type, "V"`},
		{"attributes of Solaris", []string{block('X')}, `is of an unknown type, "X"`},
		{"unknown type", []string{block(200)}, `is of an unknown type, "\u00c8"`},
		{"magic of GNU", []string{block('0', 257, "ustar  \x00"), body}, `the file "a" of the backup has a header that svcd does not write`},
		{"no magic", []string{block('0', 257, strings.Repeat("\x00", 8)), body}, `has a header that svcd does not write`},
		{"executable", []string{block('0', 100, "0000755"), body}, `has a header that svcd does not write`},
		{"of a user", []string{block('0', 265, "root"), body}, `has a header that svcd does not write`},
		{"a link's target", []string{block('0', 157, "/etc/passwd"), body}, `has a header that svcd does not write`},
		{"name with more behind its end", []string{block('0', 2, "../x"), body}, `has a header that svcd does not write`},
		{"prefix", []string{block('0', 345, "../.."), body}, `the file "../../a" of the backup has ".." in its path`},
		{"absolute path", []string{block('0', 0, "/etc/passwd"), body}, `the file "/etc/passwd" of the backup has an absolute path`},
		{"control character", []string{block('0', 0, "a\x1b[2J"), body}, `the file "a\x1b[2J" of the backup has a control character in its name`},
		{"size that is larger", []string{block('0', 124, "00000000005"), "body1" + fill("body1"), fileB}, `the file "a" of the backup has another size than the manifest says`},
		{"size that is smaller", []string{block('0', 124, "00000000003"), "bod" + fill("bod"), fileB}, `the file "a" of the backup has another size than the manifest says`},
		{"size in GNU's form", []string{block('0', 124, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04"), body}, `has another size than the manifest says`},
		{"negative size", []string{block('0', 124, "-0000000004"), body}, `has another size than the manifest says`},
		{"size with spaces", []string{block('0', 124, "         4 \x00"), body}, `has another size than the manifest says`},
		{"wrong checksum", []string{strings.Replace(block('0'), "0000600", "0000601", 1), body}, `the file "a" of the backup has a damaged header`},
		{"other content", []string{file("a", "BODY"), fileB}, `the file "a" of the backup has another SHA-256 than the manifest says`},
		{"the second's content", []string{fileA, file("dir/b", "B")}, `the file "dir/b" of the backup has another SHA-256 than the manifest says`},
		{"bytes behind a file", []string{string(archive.Header("a", 4)) + "body1" + fill("body1"), fileB}, `the file "a" of the backup has bytes behind its end`},
		{"twice", []string{fileA, fileA, fileB}, `the file "a" of the backup is there twice`},
		{"twice at the end", []string{fileA, fileB, fileA}, `the file "a" of the backup is there twice`},
		{"the manifest twice", []string{fileA, file(archive.ManifestName, "[]"), fileB}, `the file "manifest.json" of the backup is there twice`},
		{"other order", []string{fileB, fileA}, `the file "dir/b" of the backup is not in its place`},
		{"not announced", []string{fileA, file("c", "c"), fileB}, `the file "c" of the backup is not in the manifest`},
		{"not announced, at the end", []string{fileA, fileB, file("c", "c")}, `the file "c" of the backup is not in the manifest`},
		{"other case", []string{file("A", "body"), fileB}, `the file "A" of the backup is not in the manifest`},
		{"the first is missing", []string{fileB}, `the file "dir/b" of the backup is not in its place`},
		{"the last is missing", []string{fileA}, `the file "dir/b" of the backup is announced, and missing`},
		{"all are missing", nil, `the file "a" of the backup is announced, and missing`},
		{"a block behind the end", []string{fileA, fileB, strings.Repeat(end, 512)}, `the backup has data behind its end`},
		{"a file behind the end", []string{fileA, fileB, strings.Repeat(end, 1024), file("c", "c")}, `the backup has data behind its end`},
		{"a file within the end", []string{fileA, fileB, strings.Repeat(end, 512), file("a", "body")}, `the file "a" of the backup is there twice`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			invalid(t, stream(manifest, tt.parts...), tt.want)
		})
	}
	for _, tt := range []struct {
		name  string
		parts []string
	}{
		{"size besides", []string{pax("159 path=" + long + "\n10 size=99\n"), longFile[1024:]}},
		{"other path", []string{pax("159 path=" + strings.Repeat("m", 150) + "\n"), longFile[1024:]}},
		{"path out of the folder", []string{pax("159 path=" + strings.Repeat("../", 50) + "\n"), longFile[1024:]}},
		{"sparse", []string{pax("22 GNU.sparse.major=1\n" + "22 GNU.sparse.minor=0\n"), longFile[1024:]}},
		{"link", []string{pax("20 linkpath=/etc/pw\n"), longFile[1024:]}},
		{"attributes", []string{pax("30 SCHILY.xattr.user.evil=abc\n"), longFile[1024:]}},
		{"twice", []string{longFile[:1024], longFile}},
	} {
		t.Run("PAX header: "+tt.name, func(t *testing.T) {
			t.Parallel()
			invalid(t, stream(manifestOf(t, entryOf(long, "body")), tt.parts...), "")
		})
	}
	to := folder(t) // what all these are made from
	if err := extract(t.Context(), bytes.NewReader(stream(manifest, fileA, fileB)), to, archive.DefaultLimits()); err != nil {
		t.Error(err)
	}
}

// TestS53Headers has archives in each of which one byte of a header is another one, and the checksum is that of the new.
func TestS53Headers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("l", 150)
	for _, name := range []string{archive.ManifestName, "a", long} {
		good, body := archive.Header(name, 4), "[]\n\n"
		before := ""
		if name != archive.ManifestName {
			before = file(archive.ManifestName, manifestOf(t, entryOf(name, body)))
		}
		with := func(header []byte) error {
			to := folder(t)
			defer to.Close()
			tar := before + string(header) + body + fill(body) + strings.Repeat(end, 1024)
			return extract(t.Context(), bytes.NewReader(archive.Frames([]byte(tar))), to, archive.DefaultLimits())
		}
		if err := with(good); err != nil {
			t.Errorf("%.20s: %v", name, err)
		}
		for at := range good {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			if changed := bytes.Clone(bad); at/512 != 1 { // which has no header
				if summed(changed[at/512*512:][:512]); !bytes.Equal(good, changed) {
					bad = changed
				}
			}
			if e, ok := errors.AsType[*errs.Error](with(bad)); !ok || e.Kind != errs.Invalid {
				t.Errorf("%.20s with another byte %d: %v", name, at, e)
			}
		}
	}
}

// TestS53OtherTars has what other programs make of the files of a backup.
func TestS53OtherTars(t *testing.T) {
	t.Parallel()
	manifest := manifestOf(t, entryOf("a", "body"))
	for _, tt := range []struct {
		name    string
		headers []tar.Header
		want    string
	}{
		{"no manifest", []tar.Header{{Name: "a", Size: 4}}, "the backup does not begin with a manifest.json"},
		{"a folder first", []tar.Header{{Name: "./", Typeflag: tar.TypeDir}}, `the file "./" of the backup is a folder`},
		{"a link as the manifest", []tar.Header{{Name: archive.ManifestName, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, `the file "manifest.json" of the backup is a symbolic link`},
		{"a link out of the folder first", []tar.Header{{Name: "../a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, `the file "../a" of the backup is a hard link`},
		{"a global header first", []tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "x"}}}, "is a global PAX header"},
		{"attributes of a file", []tar.Header{{Name: "a", Size: 4, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y"}}}, "is a PAX header that says other"},
		{"a name in GNU's form", []tar.Header{{Name: strings.Repeat("x", 200), Size: 4, Format: tar.FormatGNU}}, "is a long name in GNU's form"},
		{"a manifest of another mode", []tar.Header{{Name: archive.ManifestName, Size: int64(len(manifest)), Mode: 0o644}}, "the backup does not begin with a manifest.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := tar.NewWriter(&out)
			for i := range tt.headers {
				h := &tt.headers[i]
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write([]byte("body" + strings.Repeat(" ", 1000))[:h.Size]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			invalid(t, archive.Frames(out.Bytes()), tt.want)
		})
	}
	for name, other := range map[string]string{
		"text": "hello, this is no backup", "a short text": "hi", "text of zstd": string(archive.Frames([]byte(strings.Repeat("hello, this is no backup\n", 100)))), "a short text of zstd": string(archive.Frames([]byte("hi"))), "zip": "PK\x03\x04" + noise(100), "gzip": "\x1f\x8b\x08" + noise(100),
		"tar": string(archive.Unframed(backup(t, content{}))), "zeros": strings.Repeat("\x00", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invalid(t, []byte(other), "the backup is not in the form that svcd writes, which is .tar.zst: it is no archive of svc; download one of a snapshot or a backup, and send that as it comes")
		})
	}
}

// TestS53Planted: somebody who can write to the folder puts something in the way meanwhile. It is not written over, and not
// followed.
func TestS53Planted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		plant func(to *os.Root) error
		taken string
	}{
		{"a file", func(to *os.Root) error { return to.WriteFile("b", []byte("theirs"), 0o600) }, "b"},
		{"a link to a file", func(to *os.Root) error {
			return errors.Join(to.WriteFile("x", []byte("theirs"), 0o600), to.Symlink("x", "b"))
		}, "b"},
		{"a link out of the folder", func(to *os.Root) error { return to.Symlink("../outside", "b") }, "b"},
		{"a link to what was written", func(to *os.Root) error { return to.Symlink("a", "b") }, "b"},
		{"a folder", func(to *os.Root) error { return to.Mkdir("dir", 0o700) }, "dir"},
		{"a file in a folder", func(to *os.Root) error {
			return errors.Join(to.Mkdir("dir", 0o700), to.WriteFile("dir/c", []byte("theirs"), 0o600))
		}, "dir"},
		{"a link to a folder", func(to *os.Root) error { return to.Symlink(".", "dir") }, "dir"},
		{"a link to a folder outside", func(to *os.Root) error { return to.Symlink("..", "dir") }, "dir"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			above := folder(t)
			if err := above.Mkdir("restore", 0o700); err != nil {
				t.Fatal(err)
			}
			to, err := above.OpenRoot("restore")
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			r, err := archive.Open(t.Context(), bytes.NewReader(backup(t, content{"a": "1", "b": "2", "dir/c": "3"})), parse, archive.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			planted := false
			err = r.Extract(t.Context(), to, func(archive.Progress) {
				if !planted {
					planted = true
					if err := tt.plant(to); err != nil {
						t.Error(err)
					}
				}
			})
			public(t, err, errs.Conflict, "backup_name_taken", fmt.Sprintf("the file %q of the backup is there already", tt.taken))
			if _, err := to.Lstat(tt.taken); err != nil {
				t.Errorf("what was planted is gone: %v", err)
			}
			if _, err := to.Lstat("a"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what was written is left: %v", err)
			}
			for name, body := range filesIn(t, to) {
				if body != "theirs" && body != "" {
					t.Errorf("%s has %q", name, body)
				}
			}
			if outside, err := os.ReadDir(above.Name()); err != nil || len(outside) != 1 {
				t.Errorf("beside the folder are %v, %v", outside, err)
			}
		})
	}
}

func TestS53AFolderThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	to := folder(t)
	write(t, to, "theirs/file", "x")
	public(t, extract(t.Context(), bytes.NewReader(backup(t, content{"a": "1"})), to, archive.DefaultLimits()), errs.Conflict, "folder_not_empty", "give an empty one")
	if diff := cmp.Diff(content{"theirs/file": "x"}, filesIn(t, to)); diff != "" {
		t.Error(diff)
	}
}
