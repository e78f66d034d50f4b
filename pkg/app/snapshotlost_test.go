package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// uploaded lists the files of records that are served, by path.
func (s mediaService) uploaded() (names []string) {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(s.data, "uploads", "media"), func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() == "a.txt" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// A file that is lost is told by a comparison and by a dry run, comes back by a restore, and is no warning of that; one that is damaged is named by a check, and the snapshots that
// have it are damaged from then on.
func TestLostAndDamagedUploads(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		first := s.take("daily").ID
		lost := s.uploaded()[0]
		was, err := os.ReadFile(lost)
		if err == nil {
			err = os.Remove(lost)
		}
		if err != nil {
			t.Fatal(err)
		}
		record := filepath.Base(filepath.Dir(filepath.Dir(lost)))
		var diff api.SnapshotDiff
		unmarshal(t, s.do("GET", snaps+"/"+first+"/diff", admin).body, &diff)
		told := func(what string, diff *api.SnapshotDiff, change string) {
			t.Helper()
			var files []api.SnapshotFileDiff
			for _, c := range diff.Collections {
				if files = append(files, c.FileDiffs...); c.Added+c.Removed+c.Changed > 0 || c.Files != int64(len(c.FileDiffs)) {
					t.Errorf("%s: %+v", what, c)
				}
			}
			if diff.Same || len(files) != 1 || files[0] != (api.SnapshotFileDiff{Record: record, Field: "file", Name: "a.txt", Change: change}) {
				t.Errorf("%s: same %t, %+v", what, diff.Same, files)
			}
		}
		told("since then", &diff, api.DiffRemoved)
		_, dry := s.restored(snaps+"/"+first+"/restore", `{"dryRun": true}`)
		told("a dry run", dry.Diff, api.DiffAdded)

		run, done := s.restored(snaps+"/"+first+"/restore", `{}`)
		if run.Status != api.RunSucceeded || run.Progress.Warnings != 0 || len(done.Warnings) > 0 || len(done.Restored.SafetyWarnings) != 1 || done.Restored.Files.Linked != 1 {
			t.Errorf("%+v %+v, warnings %q, of the snapshot before %q", run, done.Restored, done.Warnings, done.Restored.SafetyWarnings)
		}
		if text, err := os.ReadFile(lost); err != nil || string(text) != string(was) {
			t.Errorf("%q, %v", text, err)
		}
		unmarshal(t, s.do("GET", snaps+"/"+first+"/diff", admin).body, &diff)
		if !diff.Same {
			t.Errorf("then: %+v", diff)
		}

		second := s.take("daily").ID
		if err := os.WriteFile(lost, []byte(strings.ToUpper(string(was))), 0o600); err != nil {
			t.Fatal(err)
		}
		begun := s.do("POST", snaps+"/"+second+"/verify", admin, text(`{}`))
		var checked api.Run
		unmarshal(t, s.ended(begun.header.Get("Location"), admin), &checked)
		if e := checked.Error; e == nil || e.Code != "snapshot_damaged" || !strings.Contains(e.Message, "the file file/a.txt of open/"+record+"; the file that is served is the same one: upload it anew (its address may change)") {
			t.Errorf("%+v", checked.Error)
		}
		if other := s.snapshot(first); other.Damage == nil || !other.WholeAt.IsZero() || !strings.Contains(other.Damage.Found[0].Text, "it is the same file as in "+second) {
			t.Errorf("%+v", other)
		}
		third := s.do("POST", snaps, admin, text(`{"profile": "daily"}`))
		var taken api.Run
		unmarshal(t, s.ended(third.header.Get("Location"), admin), &taken)
		if result := resultOf(t, taken); taken.Status != api.RunSucceeded || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "open/"+record+" is not what the record says") {
			t.Errorf("%+v %q", taken, result.Warnings)
		}
	})
}
