package httpapi_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/httpapi"
)

// An archive that can't be a config's is refused, whatever leads out of the project's directory.
func TestReadBundle(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }
	for name, tt := range map[string]struct {
		heads []tar.Header
		want  string // the names of the files, or the code of the refusal
	}{
		"plain":         {[]tar.Header{{Name: "./", Typeflag: tar.TypeDir}, {Name: "./a/", Typeflag: tar.TypeDir}, file("./a/b.yaml"), file("project.yaml")}, "[a/b.yaml project.yaml]"},
		"of git":        {[]tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}, file("project.yaml")}, "[project.yaml]"},
		"none":          {nil, "bad_bundle"},
		"above":         {[]tar.Header{file("../x.yaml")}, "bad_bundle"},
		"above, inside": {[]tar.Header{file("a/../../x.yaml")}, "bad_bundle"},
		"steps":         {[]tar.Header{file("a/../x.yaml")}, "bad_bundle"},
		"absolute":      {[]tar.Header{file("/etc/x.yaml")}, "bad_bundle"},
		"backslash":     {[]tar.Header{file(`..\x.yaml`)}, "bad_bundle"},
		"folder above":  {[]tar.Header{{Name: "../a/", Typeflag: tar.TypeDir}, file("x")}, "bad_bundle"},
		"symbolic link": {[]tar.Header{{Name: "x.yaml", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}}, "bad_bundle"},
		"hard link":     {[]tar.Header{{Name: "x.yaml", Linkname: "y.yaml", Typeflag: tar.TypeLink}}, "bad_bundle"},
		"pipe":          {[]tar.Header{{Name: "x.yaml", Typeflag: tar.TypeFifo}}, "bad_bundle"},
		"twice":         {[]tar.Header{file("x.yaml"), file("./x.yaml")}, "bad_bundle"},
		"large":         {[]tar.Header{{Name: "x.yaml", Typeflag: tar.TypeReg, Size: 1<<20 + 1}}, "bundle_too_large"},
		"many": {slices.Collect(func(yield func(tar.Header) bool) {
			for i := range 1001 {
				yield(file(strconv.Itoa(i)))
			}
		}), "bundle_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var data bytes.Buffer
			w := tar.NewWriter(&data)
			for i := range tt.heads {
				if err := w.WriteHeader(&tt.heads[i]); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(make([]byte, tt.heads[i].Size)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := httpapi.ReadBundle(data.Bytes())
			got := fmt.Sprint(slices.Sorted(maps.Keys(files)))
			if err != nil {
				got = errs.From(err).Code
			}
			if got != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
	for _, data := range []string{"x", strings.Repeat("x", 1024)} {
		if _, err := httpapi.ReadBundle([]byte(data)); err == nil || errs.From(err).Code != "bad_bundle" {
			t.Errorf("what is no archive: %v", err)
		}
	}
}
