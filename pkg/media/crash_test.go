package media_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

// What this test program is when it is started anew: a process that uploads into the folder of its argument.
const (
	asUploader = "MEDIA_TEST_UPLOADER" // until it is killed
	asFull     = "MEDIA_TEST_FULL"     // with a disk that is full at fullSize
	fullSize   = 64 << 10
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asUploader) != "":
		child(uploads)
	case os.Getenv(asFull) != "":
		child(fullDisk)
	default:
		goleak.VerifyTestMain(m) // R19: no goroutine outlives the tests
	}
}

func child(do func(dir string, s *media.Store) error) {
	dir := os.Args[1]
	s, err := media.Open(filepath.Join(dir, "uploads"), media.Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err == nil {
		err = do(dir, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func start(t *testing.T, as, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), as+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

func recordOf(n int) string { return fmt.Sprintf("%024x", n) }

func contentOf(n int) string { return strings.Repeat(fmt.Sprint("content of ", n, "\n"), 2000) }

// uploads writes records, which are lines in a file, each after the file that it names. Every other upload is given up.
func uploads(dir string, s *media.Store) error {
	ctx := context.Background()
	records, err := os.OpenFile(filepath.Join(dir, "records"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		fmt.Println("stage")
		st, err := s.Stage(ctx, "a.txt", strings.NewReader(contentOf(n)), media.Limits{})
		if err != nil {
			return err
		}
		fmt.Println("put")
		info, err := st.Put(ctx, media.Place{Dir: "medialib", Record: recordOf(n), Field: "file"})
		if err != nil {
			return err
		}
		fmt.Println("record")
		if n%2 == 0 {
			if _, err := fmt.Fprintf(records, "%d %s\n", n, info.Name); err != nil {
				return err
			}
			st.Keep()
		}
		fmt.Println("discard")
		st.Discard()
	}
}

// TestR5KilledUploads: whenever the process is killed, every record has its file, whole, and the sweep leaves no others.
func TestR5KilledUploads(t *testing.T) {
	t.Parallel()
	rounds := 8
	if os.Getenv("SOAK") != "" {
		rounds = 200
	}
	for range rounds {
		dir := t.TempDir()
		cmd := start(t, asUploader, dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		steps := bufio.NewScanner(out)
		for n := 1 + rand.IntN(60); n > 0 && steps.Scan(); n-- {
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		checkKilled(t, dir)
	}
}

func checkKilled(t *testing.T, dir string) {
	t.Helper()
	s := open(t, filepath.Join(dir, "uploads"), newClock())
	lines, err := os.ReadFile(filepath.Join(dir, "records"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	named, want := map[string]string{}, []string(nil)
	for line := range strings.Lines(string(lines)) {
		var n int
		var name string
		if !strings.HasSuffix(line, "\n") { // the record was not written
			continue
		}
		if _, err := fmt.Sscanf(line, "%d %s", &n, &name); err != nil {
			t.Fatal(err)
		}
		named[recordOf(n)] = name
		folder := "medialib/" + recordOf(n) + "/"
		want = append(want, folder, folder+"file/", folder+"file/"+name)
		if got, err := read(t, s, media.Place{Dir: "medialib", Record: recordOf(n), Field: "file"}, name); got != contentOf(n) || err != nil {
			t.Errorf("record %d has no whole file: %v", n, err)
		}
	}
	_, err = s.Sweep(t.Context(), time.Now().Add(time.Hour), func(_ context.Context, dir, id string) (map[string]bool, error) {
		if dir != "medialib" {
			t.Errorf("it asks for %s of %s", id, dir)
		}
		return map[string]bool{media.Key("file", named[id]): true}, nil
	})
	if err != nil {
		t.Error(err)
	}
	var left []string
	for _, name := range tree(t, filepath.Join(dir, "uploads")) {
		if name != "medialib/" {
			left = append(left, name)
		}
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
}

// fullDisk uploads more than the disk takes.
func fullDisk(_ string, s *media.Store) error {
	signal.Ignore(syscall.SIGXFSZ) // a write then fails, as on a full disk
	limit := syscall.Rlimit{Cur: fullSize, Max: fullSize}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	ctx := context.Background()
	for range 3 {
		_, err := s.Stage(ctx, "a.txt", strings.NewReader(strings.Repeat("x", 10*fullSize)), media.Limits{})
		if e := errs.From(err); e == nil || e.Kind != errs.Full || e.Code != "uploads_full" {
			return fmt.Errorf("an upload onto a full disk: %w", err)
		}
	}
	st, err := s.Stage(ctx, "small.txt", strings.NewReader("small"), media.Limits{}) // there is room for this one
	if err != nil {
		return err
	}
	if _, err = st.Put(ctx, photo); err == nil {
		st.Keep()
	}
	return err
}

// TestR5FullDisk: an upload that the disk has no room for is refused as such, and leaves nothing.
func TestR5FullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := start(t, asFull, dir).Run(); err != nil {
		t.Fatal(err)
	}
	folder := "medialib/" + record + "/"
	want := []string{"medialib/", folder, folder + "photo/", folder + "photo/small.txt"}
	if diff := cmp.Diff(want, tree(t, filepath.Join(dir, "uploads"))); diff != "" {
		t.Error(diff)
	}
}

func TestR5Sweep(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	s := open(t, dir, c)
	other := media.Place{Dir: "a/b", Record: recordOf(7), Field: "f/g"}
	put(t, s, photo, "live.txt", "live")
	put(t, s, photo, "orphan.txt", "orphan")
	put(t, s, photo, "again.txt", "again")
	put(t, s, other, "odd.txt", "odd")
	put(t, s, other, "orphan.txt", "orphan")
	put(t, s, media.Place{Dir: "unknown", Record: record, Field: "x"}, "a.txt", "x")
	put(t, s, media.Place{Dir: "gone", Record: record, Field: "x"}, "a.txt", "x")
	for _, name := range []string{".tmp/stale", "medialib/not-a-record/x", recordOf(9) + "/f/x", "medialib/" + recordOf(8) + "/empty/"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, c.now(), c.now()); err != nil {
			t.Fatal(err)
		}
	}
	c.add(time.Hour)
	put(t, s, photo, "again.txt", "again") // by a record that is written in a moment
	put(t, s, photo, "young.txt", "young")
	held := stage(t, s, "orphan.txt", "orphan") // its record comes late
	if _, err := held.Put(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	staged := stage(t, s, "slow.txt", "slow")
	before := c.now()
	c.add(time.Hour)

	asked := map[string]int{}
	live := func(_ context.Context, dir, id string) (map[string]bool, error) {
		asked[dir+" "+id]++
		switch dir {
		case "medialib":
			return map[string]bool{"photo/live.txt": true}, nil
		case "a/b":
			return map[string]bool{"f/g/odd.txt": true}, nil
		case "gone":
			return map[string]bool{}, nil
		}
		return nil, nil //nolint:nilnil // it can't say
	}
	var orphans []string
	err := s.Orphans(t.Context(), before, live, func(dir, record string, bytes int64) error {
		orphans = append(orphans, fmt.Sprint(dir, " ", record, " ", bytes))
		return nil
	})
	slices.Sort(orphans)
	if want := []string{"gone " + record + " 1", "medialib " + record + " 6"}; err != nil || !slices.Equal(orphans, want) {
		t.Errorf("orphans are %q, want %q: %v", orphans, want, err)
	}
	clear(asked)
	if n, err := s.Sweep(t.Context(), before, live); n != 3 || err != nil { // orphan.txt, stale, gone's
		t.Errorf("%d were removed: %v", n, err)
	}
	for _, want := range []string{"medialib/" + record + "/photo/live.txt", "medialib/" + record + "/photo/again.txt", "medialib/" + record + "/photo/young.txt", "unknown/" + record + "/x/a.txt", "medialib/not-a-record/x", recordOf(9) + "/f/x"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Error(err)
		}
	}
	for _, gone := range []string{"medialib/" + record + "/photo/orphan.txt", ".tmp/stale", "gone/" + record, "medialib/" + recordOf(8)} {
		if _, err := os.Stat(filepath.Join(dir, gone)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	if diff := cmp.Diff(map[string]int{"medialib " + record: 1, "a/b " + recordOf(7): 1, "unknown " + record: 1, "gone " + record: 1}, asked); diff != "" {
		t.Errorf("it asked for other records: %s", diff)
	}
	if got, err := read(t, s, other, "orphan.txt"); got != "orphan" || err != nil {
		t.Errorf("a file that is held is gone: %v", err)
	}
	if _, err := staged.Put(t.Context(), photo); err != nil {
		t.Errorf("an upload lost its temporary file: %v", err)
	}
	held.Keep()

	failing := func(context.Context, string, string) (map[string]bool, error) {
		return map[string]bool{}, errs.ErrNotFound
	}
	if n, err := s.Sweep(t.Context(), c.now().Add(time.Hour), failing); n != 0 || err == nil {
		t.Errorf("%d were removed, though no record could be read: %v", n, err)
	}
}
