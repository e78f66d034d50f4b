package doc

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ was, now, want string }{
		{`{"a":1,"b":{"c":1}}`, `{"b":{"c":1},"a":1}`, `{}`},
		{`{"a":1}`, `{"a":1.0}`, `{"a":1.0}`},
		{`{"a":1,"b":2}`, `{"a":1}`, `{"b":null}`},
		{`{"a":{"x":1,"y":{"z":1}}}`, `{"a":{"y":{"z":2,"n":3}}}`, `{"a":{"y":{"z":2,"n":3},"x":null}}`},
		{`{"a":[1,2]}`, `{"a":[2]}`, `{"a":[2]}`},
		{`{"a":{"x":1}}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`},
	} {
		was, err1 := members(api.Record(tc.was))
		now, err2 := members(api.Record(tc.now))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		patch := object(mergePatch(was, now))
		if string(patch) != tc.want {
			t.Errorf("%s to %s: got %s, want %s", tc.was, tc.now, patch, tc.want)
		}
		if got := applyPatch(api.Record(tc.was), patch); !same(got, api.Record(tc.now)) {
			t.Errorf("%s with %s: got %s", tc.was, patch, got)
		}
	}
}

// A record in a draft that nobody touches makes no change, whatever it holds.
func TestDraftKeepsValues(t *testing.T) {
	t.Parallel()
	for _, record := range []string{
		`{}`, `{"id":"1","_rev":3}`, `{"n":9007199254740993,"f":0.10000000000000000055,"e":1e400,"s":"12","d":"2026-01-01","y":"yes"}`,
		`{"text":"# no comment\nsecond line\n\n","list":[],"o":{},"null":null,"deep":[{"a":[1,"x\ny"]}]}`,
	} {
		d, err := newDraft("t", opened{ETag: `"3"`, Record: api.Record(record)})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.write([]string{"a note", "two\nlines"}); err != nil {
			t.Fatal(err)
		}
		text, err := d.read()
		if err != nil || strings.Contains(text, "a note") || strings.Contains(text, "lines\n\n#") {
			t.Fatalf("%v in %s", err, text)
		}
		if patch, fields, err := d.patch(); err != nil || len(fields) > 0 {
			t.Errorf("%s: patch %s, %v", record, patch, err)
		}
		if err := d.remove(); err != nil {
			t.Error(err)
		}
	}
}

// A draft is replaced, not written over: a full disk in the middle of it would have taken the user's text.
func TestDraftIsReplaced(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := newDraft("t", opened{Record: api.Record(`{"title":"one"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write(nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	d.text = "title: two\n"
	if err := d.write(nil); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(before); err != nil || string(text) != "title: one\n" {
		t.Errorf("the old file has %q, %v", text, err)
	}
	info, err := os.Stat(d.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := d.remove(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(os.Getenv("TMPDIR") + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := newDraft("t", opened{Record: api.Record("no JSON")}); err == nil {
		t.Error("a record that is none is taken")
	}
	if left, err := filepath.Glob(os.Getenv("TMPDIR") + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
