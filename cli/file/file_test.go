package file

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/command/commandtest"
	"github.com/svcctl/svc/pkg/api"
)

const id = "65f0c2a1b3d4e5f60718293a"

func TestParse(t *testing.T) {
	t.Parallel()
	at := place{"blog", "medialib", id}
	dir := t.TempDir()
	commandtest.Options(t, map[string]commandtest.Verb{
		"upload":   commandtest.Of(newUpload),
		"download": commandtest.Of(newDownload),
	}, map[string]any{
		"upload blog medialib " + id + " file a.jpg":                      uploadOptions{place: at, Field: "file", Files: []string{"a.jpg"}},
		"upload -n blog medialib " + id + " file a.jpg b.jpg --replace":   uploadOptions{place: at, Field: "file", Files: []string{"a.jpg", "b.jpg"}, Replace: true},
		"upload blog medialib new file a.jpg -d {}":                       uploadOptions{place: place{"blog", "medialib", "new"}, Field: "file", Files: []string{"a.jpg"}, Data: command.Input{Data: "{}"}},
		"upload blog medialib new file a.jpg --append":                    nil,
		"upload blog medialib " + id + " file a.jpg --append --replace":   nil,
		"upload blog medialib " + id + " file":                            nil,
		"upload medialib " + id + " file a.jpg":                           nil, // of which project?
		"upload blog medialib x file a.jpg":                               nil,
		"download blog medialib " + id + " file":                          downloadOptions{place: at, Field: "file", Names: []string{}, To: command.Destination{File: "."}},
		"download -n blog medialib " + id + " file a.jpg --filter t -f -": downloadOptions{place: at, Field: "file", Names: []string{"a.jpg"}, Filter: "t", To: command.Destination{File: "-"}},
		"download blog medialib " + id + " file a b -f " + dir:            downloadOptions{place: at, Field: "file", Names: []string{"a", "b"}, To: command.Destination{File: dir}},
		"download blog medialib " + id + " file a b -f -":                 nil,
		"download blog medialib " + id + " file a b -f x.jpg":             nil,
		"download blog medialib " + id:                                    nil,
	})
}

// Files are found in objects and lists of them, by the fields that are declared.
func TestFilesOf(t *testing.T) {
	t.Parallel()
	fields := []api.FieldDescription{
		{Name: "title", Type: "string"},
		{Name: "cover", Type: "file"},
		{Name: "pages", Type: "file[]"},
		{Name: "rooms", Type: "object[]", SubFields: []api.FieldDescription{{Name: "plan", Type: "file"}}},
		{Name: "seo", Type: "object", SubFields: []api.FieldDescription{{Name: "image", Type: "file"}}},
	}
	record := `{"title": "x", "cover": {"path": "a", "alt": "A"}, "pages": [{"path": "b"}, {"path": "c"}], "rooms": [{}, {"plan": {"path": "d"}}, {"plan": null}],
		"seo": {"image": {"path": "e"}}, "other": {"path": "f"}}`
	files, err := filesOf(fields, json.RawMessage(record))
	if err != nil {
		t.Fatal(err)
	}
	var got [][3]string
	for _, f := range files {
		got = append(got, [3]string{f.Field, f.in, f.Path})
	}
	want := [][3]string{{"cover", "cover", "a"}, {"pages.0", "pages", "b"}, {"pages.1", "pages", "c"}, {"rooms.1.plan", "rooms.plan", "d"}, {"seo.image", "seo.image", "e"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`[]`, `{"cover": 1}`, `{"pages": {}}`, `{"cover": null, "pages": null, "seo": "x"}`} {
		if _, err := filesOf(fields, json.RawMessage(bad)); err == nil {
			t.Errorf("%s is no error", bad)
		}
	}
}
