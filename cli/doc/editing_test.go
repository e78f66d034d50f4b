package doc_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/doc"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// records answers for one record, and refuses writes as it is told.
type records struct {
	record string
	rev    string
	refuse *api.Problem
	sent   []string
}

func (s *records) client(t *testing.T) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			s.sent = append(s.sent, strings.TrimSpace(r.Method+" "+r.Header.Get(api.HeaderIfMatch)+" "+string(body)))
			if s.refuse != nil {
				w.Header().Set("Content-Type", api.MediaProblem)
				w.WriteHeader(s.refuse.Status)
				if err := json.NewEncoder(w).Encode(s.refuse); err != nil {
					t.Error(err)
				}
				return
			}
		}
		w.Header().Set("Content-Type", api.MediaJSON)
		w.Header().Set("ETag", s.rev)
		if _, err := io.WriteString(w, s.record); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// edited has an editor leave another text in the file.
func edited(t *testing.T, e *doc.Editing, old, replacement string) {
	t.Helper()
	if err := e.Write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(e.Path())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%q is not in %s", old, text)
	}
	if err := os.WriteFile(e.Path(), []byte(strings.Replace(string(text), old, replacement, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNewRecord(t *testing.T) {
	t.Parallel()
	s := &records{record: `{"id":"65f0c2a1b3d4e5f60718293a"}`, refuse: &api.Problem{Status: 400, Detail: "no", Errors: []api.FieldError{{Path: "title", Message: "is too short"}}}}
	e, err := doc.NewEditing(s.client(t), "blog", "articles", []api.FieldDescription{
		{Name: "summary", Type: "string"}, {Name: "title", Type: "string", Required: true}, {Name: "yes", Type: "boolean"}, {Name: "slug", Type: "string", Readonly: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(); err != nil || !e.Unchanged() {
		t.Fatalf("it has changed by itself, %v", err)
	}
	text, err := os.ReadFile(e.Path())
	if want := "#   title: string, required\n#   summary: string\n#   yes: boolean\ntitle: \nsummary: \n\"yes\": \n"; err != nil || !strings.HasSuffix(string(text), want) {
		t.Fatalf("got %s, want %s", text, want)
	}
	edited(t, e, "title: \n", "title: T\n")
	_, _, err = e.Save(t.Context())
	if !e.Again(err) {
		t.Fatalf("it gives up for %v", err)
	}
	edited(t, e, "title: T", "title: Title")
	if text, err = os.ReadFile(e.Path()); err != nil || !strings.HasPrefix(string(text), "# Not saved:\n#   title: is too short\n") {
		t.Errorf("the reasons are not in %s", text)
	}
	s.refuse = nil
	record, _, err := e.Save(t.Context())
	if err != nil || doc.RecordID(record) != "65f0c2a1b3d4e5f60718293a" {
		t.Errorf("%s, %v", record, err)
	}
	if diff := cmp.Diff([]string{`POST  {"title":"T"}`, `POST  {"title":"Title"}`}, s.sent); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Dir(e.Path())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

// A record without declared fields begins as an empty text, and is given up as one.
func TestNewRecordOfAnything(t *testing.T) {
	t.Parallel()
	s := &records{record: `{"id":"1"}`}
	e, err := doc.NewEditing(s.client(t), "blog", "things", nil)
	if err != nil {
		t.Fatal(err)
	}
	edited(t, e, "creates nothing.\n", "creates nothing.\nn: 9007199254740993\n")
	if _, _, err := e.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err = doc.NewEditing(s.client(t), "blog", "things", nil); err != nil {
		t.Fatal(err)
	}
	edited(t, e, "", "")
	if _, fields, err := e.Save(t.Context()); err != nil || fields != nil {
		t.Errorf("%v, %v", fields, err)
	}
	if diff := cmp.Diff([]string{`POST  {"n":9007199254740993}`}, s.sent); diff != "" {
		t.Error(diff)
	}
}

// What others have changed meanwhile is named, and the draft goes on in the record as it is now.
func TestEditOfAChangedRecord(t *testing.T) {
	t.Parallel()
	s := &records{record: `{"id":"65f0c2a1b3d4e5f60718293a","_rev":1,"title":"One","views":1}`, rev: `"1"`}
	c := s.client(t)
	e, err := doc.OpenEditing(t.Context(), c, "blog", "articles", "65f0c2a1b3d4e5f60718293a")
	if err != nil {
		t.Fatal(err)
	}
	edited(t, e, "title: One", "title: Two")
	s.record, s.rev, s.refuse = `{"id":"65f0c2a1b3d4e5f60718293a","_rev":2,"title":"One","views":5}`, `"2"`, &api.Problem{Status: 412, Detail: "changed"}
	_, _, err = e.Save(t.Context())
	if !doc.Changed(err) || e.Again(err) {
		t.Fatalf("%v is no change by others", err)
	}
	differences, err := e.Differences(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]doc.Difference{{"title", "One", "Two", "One"}, {"views", "1", "1", "5"}}, differences); diff != "" {
		t.Error(diff)
	}
	if err := e.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	edited(t, e, "views: changed by others from 1 to 5", "")
	s.refuse = nil
	if _, fields, err := e.Save(t.Context()); err != nil || len(fields) != 1 {
		t.Errorf("%v, %v", fields, err)
	}
	if diff := cmp.Diff([]string{`PATCH "1" {"title":"Two"}`, `PATCH "2" {"title":"Two"}`}, s.sent); diff != "" {
		t.Error(diff)
	}
}

// The id in an answer, and the name of a collection in a list of them, are what a service says: a draft is in its own folder whatever they are. A draft elsewhere could
// be the file with the contexts, in which a tokenCommand names a program to run.
func TestDraftStaysInItsFolder(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "config")
	for _, name := range []string{victim, strings.Repeat("../", 20) + victim, `..\..\x`, "a\x1b]0;x\ab", strings.Repeat("long", 100), ".", "", "NUL"} {
		id, err := json.Marshal("/" + name)
		if err != nil {
			t.Fatal(err)
		}
		s := &records{record: `{"id":` + string(id) + `,"users":[{"name":"x"}]}`, rev: `"1"`}
		c := s.client(t)
		old, err := doc.OpenEditing(t.Context(), c, "blog", "articles", "1")
		if err != nil {
			t.Fatal(err)
		}
		made, err := doc.NewEditing(c, "blog", "/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*doc.Editing{old, made} {
			t.Cleanup(func() {
				if err := os.RemoveAll(filepath.Dir(e.Path())); err != nil {
					t.Error(err)
				}
			})
			if err := e.Write(); err != nil {
				t.Errorf("%q: %v", name, err)
			}
			if folder := filepath.Base(filepath.Dir(e.Path())); !strings.HasPrefix(folder, "svcctl-edit-") {
				t.Fatalf("%q: the draft is %q", name, e.Path())
			}
			if base := filepath.Base(e.Path()); strings.ContainsAny(base, "\x1b\\: ") || len(base) > 100 {
				t.Errorf("%q: the draft is %q", name, base)
			}
		}
	}
	if _, err := os.Stat(victim + ".yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s.yaml was written: %v", victim, err)
	}
}

// TestRefusedEdits: what another edit can mend is told above the text, once; all else ends the editing.
func TestRefusedEdits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuse  api.Problem
		reasons string // "": no edit mends it
		changed bool   // by others
	}{
		"fields":              {api.Problem{Status: 400, Detail: "no", Errors: []api.FieldError{{Path: "title", Message: "is too short"}, {Path: "views", Message: "is no number"}}}, "#   title: is too short\n#   views: is no number\n", false},
		"without fields":      {api.Problem{Status: 422, Detail: "the hook refuses it"}, "#   the hook refuses it\n", false},
		"a value that is had": {api.Problem{Status: 409, Code: "unique", Detail: "no", Errors: []api.FieldError{{Path: "slug", Message: "is taken", Rule: "unique"}}}, "#   slug: is taken\n", false},
		"a conflict":          {api.Problem{Status: 409, Code: "conflict", Detail: "no"}, "", true},
		"changed meanwhile":   {api.Problem{Status: 412, Detail: "no"}, "", true},
		"no right":            {api.Problem{Status: 403, Detail: "no"}, "", false},
		"an error of its own": {api.Problem{Status: 500, Detail: "no"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &records{record: `{"id":"65f0c2a1b3d4e5f60718293a","title":"One"}`, rev: `"1"`, refuse: &tc.refuse}
			e, err := doc.OpenEditing(t.Context(), s.client(t), "blog", "articles", "65f0c2a1b3d4e5f60718293a")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Remove() })
			edited(t, e, "title: One", "title: Two")
			if e.Unchanged() {
				t.Error("what was edited is unchanged")
			}
			_, _, err = e.Save(t.Context())
			if doc.Changed(err) != tc.changed {
				t.Errorf("changed by others: %v", doc.Changed(err))
			}
			if again := e.Again(err); again != (tc.reasons != "") {
				t.Fatalf("it can be mended: %v, for %v", again, err)
			}
			if tc.reasons == "" {
				return
			}
			if err := e.Write(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(e.Path())
			if err != nil || !strings.HasPrefix(string(text), "# Not saved:\n"+tc.reasons+"# Change it and save, or leave it as it is to give up.\n") || !strings.Contains(string(text), "title: Two") {
				t.Errorf("%s, %v", text, err)
			}
			if _, _, err := e.Save(t.Context()); err == nil || e.Again(err) { // the same text
				t.Errorf("the same text is tried once more for %v", err)
			}
		})
	}
	s := &records{record: `{"id":"1","title":"One"}`}
	e, err := doc.OpenEditing(t.Context(), s.client(t), "blog", "articles", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Remove() })
	edited(t, e, "title: One", "title: [")
	_, _, err = e.Save(t.Context())
	if !e.Again(err) || doc.Changed(err) || doc.Changed(errors.New("other")) || e.Again(errors.New("other")) || e.Unchanged() {
		t.Errorf("what can't be read is not asked for again: %v", err)
	}
	if len(s.sent) > 0 {
		t.Errorf("it sends %q", s.sent)
	}
}

// TestDifferencesOfAnEdit: values are told by their paths, objects taken apart; what is the same for all, or the service's own, is not.
func TestDifferencesOfAnEdit(t *testing.T) {
	t.Parallel()
	s := &records{record: `{"id":"1","_rev":1,"updatedAt":"a","same":true,"seo":{"title":"A","more":{"x":1}},"tags":["a", "b"],"gone":1}`, rev: `"1"`}
	e, err := doc.OpenEditing(t.Context(), s.client(t), "blog", "articles", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Remove() })
	edited(t, e, "title: A", "title: Mine")
	if _, _, err := e.Save(t.Context()); err != nil { // it has taken the text
		t.Fatal(err)
	}
	s.record = `{"id":"1","_rev":2,"updatedAt":"b","same":true,"seo":{"title":"A","more":{"x":2}},"tags":["a","b"],"new":"n"}`
	differences, err := e.Differences(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []doc.Difference{{"gone", "1", "1", ""}, {"new", "", "", "n"}, {"seo.more.x", "1", "1", "2"}, {"seo.title", "A", "Mine", "A"}}
	if diff := cmp.Diff(want, differences); diff != "" {
		t.Error(diff)
	}
}
