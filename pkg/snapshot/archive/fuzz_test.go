package archive_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/snapshot/archive"
)

// seeds are archives of all kinds, as tars.
func seeds(t testing.TB) (tars [][]byte) {
	t.Helper()
	for _, c := range []content{
		{}, {"a": ""}, {"a": "body", "dir/b": "two"}, {"media/é": "x", "config/project.yaml": "name: blog\n"},
	} {
		tars = append(tars, archive.Unframed(backup(t, c)))
	}
	a := manifestOf(t, entryOf("a", "body"))
	for _, parts := range []string{block('2', 157, "/etc/passwd"), block('0', 0, "../x"), block('x'), block('L'), block('S'), file("b", "body")} {
		tars = append(tars, []byte(file(archive.ManifestName, a)+parts))
	}
	return tars
}

// takes extracts what is not known to be a backup. It is refused for all to read, and leaves nothing; or else it has what its
// manifest says, and a backup of that is the same tar.
func takes(t *testing.T, stream, tar []byte) {
	t.Helper()
	l := archive.Limits{Files: 20, Bytes: 1 << 20, FileBytes: 1 << 20, ManifestBytes: 1 << 16}
	to := folder(t)
	err := extract(t.Context(), bytes.NewReader(stream), to, l)
	if err != nil {
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind == errs.Internal {
			t.Fatalf("refused by %v", err)
		}
		if diff := cmp.Diff(content{}, filesIn(t, to)); diff != "" {
			t.Fatal(diff)
		}
		return
	}
	var again bytes.Buffer
	if err := archive.Write(t.Context(), &again, to, parse, l, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tar, archive.Unframed(again.Bytes())); diff != "" {
		t.Fatal(diff)
	}
}

// FuzzTar has any bytes behind the compression.
func FuzzTar(f *testing.F) {
	for _, tar := range seeds(f) {
		f.Add(tar)
	}
	f.Fuzz(func(t *testing.T, tar []byte) { takes(t, archive.Frames(tar), tar) })
}

// FuzzStream has any bytes.
func FuzzStream(f *testing.F) {
	for _, tar := range seeds(f) {
		f.Add(archive.Frames(tar))
		if len(tar) > 600 {
			f.Add(bytes.Join([][]byte{archive.Stored(tar[:600]), archive.Frames(tar[600:])}, nil))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte) { takes(t, stream, archive.Unframed(stream)) })
}
