package snapshot_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// R4: whichever operation on the disk fails while a snapshot is pinned or checked, or is the last one before the process dies, what is known of it is what was known
// before or what is known now, it can be read, the snapshot is whole, and the next time goes.
func TestR4StateFails(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(w *world, id string) error{
		"pin": func(w *world, id string) error { return w.snaps.Pin(w.Context(), w.p, id, true) },
		"check": func(w *world, id string) error {
			v, err := w.snaps.Verify(w.Context(), w.p, id, snapshot.VerifyOptions{})
			if err == nil && !v.Whole() && len(v.Found) > 0 { // a file that can't be read is what a check finds
				text := v.Found[0].Text
				for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
					if strings.Contains(text, errno.Error()) {
						return errno
					}
				}
			}
			return err
		},
	} {
		for name, errno := range map[string]syscall.Errno{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC} {
			for _, dies := range []bool{false, true} {
				t.Run(fmt.Sprint(what, " ", name, " dies ", dies), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, teststore.Memory(t))
					w.fillWith(2, 2)
					info := w.create("daily")
					failed := 0
					for at := 1; ; at++ {
						if err := w.snaps.Pin(t.Context(), w.p, info.ID, false); err != nil {
							t.Fatal(err)
						}
						before := w.list(t)[0].State
						f := &nth{at: at, stays: dies, what: errno}
						w.faults = f.fault
						err := do(w, info.ID)
						w.faults = nil
						now := w.list(t)
						if len(now) != 1 || now[0].Problem != "" || now[0].State.Damaged {
							t.Fatalf("operation %d: there is %+v", at, now)
						}
						if f.n < at {
							if err != nil || failed < 5 {
								t.Fatalf("nothing failed in %d operations: %v", f.n, err)
							}
							break
						}
						if err != nil {
							failed++
						}
						if err != nil && !errors.Is(err, errno) || errors.Is(err, syscall.ENOSPC) && !errors.Is(err, errno) {
							t.Fatalf("operation %d: %v", at, err)
						}
						if e := errs.From(err); what == "pin" && errno == syscall.ENOSPC && e != nil && e.Kind != errs.Full {
							t.Fatalf("operation %d: %v", at, err)
						}
						if what == "pin" && err == nil && !now[0].State.Pinned {
							t.Fatalf("operation %d failed, and nothing was said", at)
						}
						if what == "check" && now[0].State.Pinned != before.Pinned {
							t.Fatalf("operation %d: a check has pinned it: %+v", at, now[0].State)
						}
						if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
							t.Fatal(err)
						}
						if v := w.verify(info); v.Dangling > 0 { // so that the next check starts from a whole one
							t.Fatalf("operation %d: %+v", at, v)
						}
						for name := range contents(t, filepath.Join(w.p.Dir, "snapshots")) {
							if base := filepath.Base(name); strings.HasPrefix(base, ".") && base != ".lock" {
								t.Fatalf("operation %d left %s", at, name)
							}
						}
					}
				})
			}
		}
	}
}

// TestLostStateStaysForeign: a snapshot that has come in is no own one again when what was known of it is lost and written anew, and when that was, is told where it can be
// made out; neither is one of which nobody knows any more.
func TestLostStateStaysForeign(t *testing.T) {
	t.Parallel()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(1, 1)
	archived := from.export(from.create("daily"))
	for what, tt := range map[string]struct {
		spoil func(text string) string
		known bool
	}{
		"a bit":     {func(text string) string { return strings.Replace(text, `"sha256":"`, `"sha256":"0`, 1) }, true},
		"no end":    {func(text string) string { return text[:len(text)-70] }, true},
		"nothing":   {func(string) string { return "" }, false},
		"the time":  {func(text string) string { return strings.Replace(text, `"importedAt":"2`, `"importedAt":"x`, 1) }, false},
		"the whole": {func(string) string { return strings.Repeat("\x00", 200) }, false},
	} {
		for name, change := range map[string]func(w *world, id string) error{
			"pinned": func(w *world, id string) error { return w.snaps.Pin(t.Context(), w.p, id, true) },
			"checked": func(w *world, id string) error {
				_, err := w.snaps.Verify(t.Context(), w.p, id, snapshot.VerifyOptions{})
				return err
			},
		} {
			w := newWorld(t, teststore.Memory(t))
			info, err := w.imports(archived, nil)
			if err != nil {
				t.Fatal(err)
			}
			before, err := w.snaps.Look(t.Context(), w.p, info.ID)
			if err != nil || before.State.ImportedAt.IsZero() {
				t.Fatal(before.State, err)
			}
			file := w.path(info) + ".state.json"
			text, err := os.ReadFile(file) // #nosec G304 -- a file of the test
			if err != nil {
				t.Fatal(err)
			}
			replace(t, file, tt.spoil(string(text)))
			w.clock.Pass(time.Hour)
			if err := change(w, info.ID); err != nil {
				t.Fatal(err)
			}
			after, err := w.snaps.Look(t.Context(), w.p, info.ID)
			if err != nil || after.State.Damaged || !after.State.LostAt.Equal(w.clock.Now()) || !after.State.Foreign() {
				t.Errorf("%s, %s: %+v, %v", what, name, after.State, err)
			}
			want := time.Time{}
			if tt.known {
				want = before.State.ImportedAt
			}
			if !after.State.ImportedAt.Equal(want) {
				t.Errorf("%s, %s: it has come in at %v, want %v", what, name, after.State.ImportedAt, want)
			}
			if err := w.snaps.Pin(t.Context(), w.p, info.ID, false); err != nil { // which takes nothing from that
				t.Fatal(err)
			}
			if again, err := w.snaps.Look(t.Context(), w.p, info.ID); err != nil || !again.State.Foreign() || !again.State.LostAt.Equal(after.State.LostAt) {
				t.Errorf("%s, %s: then %+v, %v", what, name, again.State, err)
			}
		}
	}
}

// TestStateOfLongNames: what is known of a snapshot can be read again however long the names are of what was found; what is not named any more is counted.
func TestStateOfLongNames(t *testing.T) {
	t.Parallel()
	root, err := folder.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for size, named := range map[int]int{10: 100, 4000: 50, 2 << 20: 0} { // of the texts of a hundred findings
		v := &snapshot.Verification{At: at, Problems: 120, Dangling: 120}
		for n := range 100 {
			f := snapshot.Finding{Path: fmt.Sprint("media/", n), Text: strings.Repeat("x", size)}
			v.Found, v.Without = append(v.Found, f), append(v.Without, f)
		}
		got, err := snapshot.Kept(root, "s", snapshot.State{Verified: v, Damage: v})
		if err != nil || got.Damaged || got.Pinned {
			t.Fatalf("%d: %v, %+v", size, err, got)
		}
		for _, v := range []*snapshot.Verification{got.Verified, got.Damage} {
			if v.Problems != 120 || v.Dangling != 120 || len(v.Found) != named || len(v.Without) != named || named > 0 && v.Found[0].Path != "media/0" {
				t.Errorf("%d: %d of %d are named", size, len(v.Found), v.Problems)
			}
		}
		if got.Spoil(at, snapshot.Finding{Path: "media/more"}) || got.Damage.Problems != 120 {
			t.Errorf("%d: one that may be counted is counted again: %d", size, got.Damage.Problems)
		}
	}
}
