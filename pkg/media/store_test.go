package media_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
)

const record = "0123456789abcdef01234567"

var photo = media.Place{Dir: "medialib", Record: record, Field: "photo"}

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newClock() *clock { return &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func open(t testing.TB, dir string, c *clock) *media.Store {
	t.Helper()
	s, err := media.Open(dir, media.Options{Logger: slog.New(slog.DiscardHandler), Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func stage(t testing.TB, s *media.Store, name, content string) *media.Staged {
	t.Helper()
	st, err := s.Stage(t.Context(), name, strings.NewReader(content), media.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Discard)
	return st
}

// put stores a file as a write of a record does that succeeds.
func put(t testing.TB, s *media.Store, p media.Place, name, content string) media.Info {
	t.Helper()
	st := stage(t, s, name, content)
	info, err := st.Put(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	st.Keep()
	return info
}

// tree lists the files and folders below dir.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if e.IsDir() {
			rel += "/"
		}
		if rel != "./" && rel != ".tmp/" && rel != ".claims" {
			list = append(list, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t testing.TB, s *media.Store, p media.Place, name string) (string, error) {
	t.Helper()
	f, err := s.OpenFile(t.Context(), p, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if int64(len(data)) != f.Size {
		t.Errorf("%s has %d bytes, and says %d", name, len(data), f.Size)
	}
	return string(data), err
}

// names gives the live function of records that name these.
func names(keys ...string) media.Live {
	return func(context.Context, string, string) (map[string]bool, error) {
		m := map[string]bool{}
		for _, k := range keys {
			m[k] = true
		}
		return m, nil
	}
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestPut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, hash := open(t, dir, newClock()), hashOf("other")
	for _, c := range []struct {
		place         media.Place
		name, content string
		want          string
	}{
		{photo, "a.txt", "hello", "a.txt"},
		{photo, "a.txt", "hello", "a.txt"}, // it stays
		{photo, "a.txt", "other", "a-" + hash[:8] + ".txt"},
		{photo, "a.txt", "other", "a-" + hash[:8] + ".txt"},
		{photo, "a-" + hash[:8] + ".txt", "third", "a-" + hash[:8] + "-" + hashOf("third")[:8] + ".txt"},
		{photo, strings.Repeat("é", 150), "hello", strings.Repeat("é", 127)},
		{photo, strings.Repeat("é", 150), "other", strings.Repeat("é", 123) + "-" + hash[:8]},
		{media.Place{Dir: "media/lib", Record: record, Field: "hero.image"}, "a.txt", "hello", "a.txt"},
		{media.Place{Dir: "medialib", Record: record, Field: "../a/b"}, "a.txt", "hello", "a.txt"},
	} {
		info := put(t, s, c.place, c.name, c.content)
		if info.Name != c.want || info.Hash != hashOf(c.content) || info.Size != int64(len(c.content)) || info.Type != "text/plain" {
			t.Errorf("%s as %s: %+v", c.content, c.name, info)
		}
		if got, err := read(t, s, c.place, info.Name); got != c.content || err != nil {
			t.Errorf("%s: %q, %v", info.Name, got, err)
		}
	}
	for _, name := range tree(t, dir) {
		if strings.HasPrefix(name, ".tmp/") || strings.Contains(name, "..") {
			t.Errorf("%s is there", name)
		}
	}
}

// TestNeverChanged holds that a file in place stays what it is while others of its name come and go.
func TestNeverChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, newClock())
	put(t, s, photo, "a.txt", "first")
	before, err := os.Stat(filepath.Join(dir, "medialib", record, "photo", "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		put(t, s, photo, "a.txt", fmt.Sprint("other ", i))
		put(t, s, photo, "a.txt", "first")
	}
	after, err := os.Stat(filepath.Join(dir, "medialib", record, "photo", "a.txt"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file is another now: %v", err)
	}
	if got, err := read(t, s, photo, "a.txt"); got != "first" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestRacingUploads lets many uploads of few contents under one name race with those who give up, and with removals.
func TestRacingUploads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	s := open(t, dir, c)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		named = map[string]string{} // name -> content
	)
	live := func(context.Context, string, string) (map[string]bool, error) {
		mu.Lock()
		defer mu.Unlock()
		m := map[string]bool{}
		for name := range named {
			m[media.Key("photo", name)] = true
		}
		return m, nil
	}
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				content := fmt.Sprint("content ", (i+n)%3)
				st, err := s.Stage(t.Context(), "a.txt", strings.NewReader(content), media.Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				info, err := st.Put(t.Context(), photo)
				if err != nil {
					t.Error(err)
					return
				}
				if n%2 == 0 {
					mu.Lock()
					named[info.Name] = content
					mu.Unlock()
					st.Keep()
				}
				st.Discard()
				if n%5 == 4 { // another write takes it away again
					mu.Lock()
					delete(named, info.Name)
					mu.Unlock()
					if err := s.Remove(t.Context(), photo.Dir, record, []string{media.Key("photo", info.Name)}, live); err != nil {
						t.Error(err)
					}
					if _, err := s.Sweep(t.Context(), c.now().Add(time.Second), live); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for name, content := range named {
		if got, err := read(t, s, photo, name); got != content || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := s.Sweep(t.Context(), c.now().Add(time.Second), names()); err != nil {
		t.Error(err)
	}
	if left := tree(t, dir); !slices.Equal(left, []string{"medialib/"}) {
		t.Errorf("%v are left", left)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, newClock())
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		doing   string
		ctx     context.Context
		content io.Reader
		limits  media.Limits
		kind    errs.Kind
		code    string
	}{
		{"as large as allowed", t.Context(), strings.NewReader(strings.Repeat("x", 100)), media.Limits{MaxBytes: 100}, 0, ""},
		{"a byte too much", t.Context(), strings.NewReader(strings.Repeat("x", 101)), media.Limits{MaxBytes: 100}, errs.TooLarge, "file_too_large"},
		{"without an end", t.Context(), endless{}, media.Limits{MaxBytes: 1 << 20}, errs.TooLarge, "file_too_large"},
		{"a type that is refused, without an end", t.Context(), endless{}, media.Limits{Types: []string{"image/*"}}, errs.Invalid, "file_type_refused"},
		{"cut off", t.Context(), io.MultiReader(strings.NewReader(strings.Repeat("x", 10000)), broken{}), media.Limits{}, errs.Invalid, "upload_incomplete"},
		{"canceled", canceled, endless{}, media.Limits{}, 0, "internal"},
		{"empty", t.Context(), strings.NewReader(""), media.Limits{}, 0, ""},
	} {
		st, err := s.Stage(c.ctx, "a.txt", c.content, c.limits)
		if err == nil {
			st.Discard()
		}
		e := errs.From(err)
		if e == nil {
			e = &errs.Error{}
		}
		if e.Code != c.code || e.Kind != c.kind {
			t.Errorf("%s: %v", c.doing, err)
		}
		if left := tree(t, dir); len(left) > 0 {
			t.Errorf("%s: %v are left", c.doing, left)
		}
	}
	if _, err := s.Stage(canceled, "a.txt", endless{}, media.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestStageTakesLittleMemory streams much, and sees what was allocated meanwhile. It is not parallel for that.
func TestStageTakesLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	size := int64(64 << 20)
	if os.Getenv("SOAK") != "" {
		size = 1 << 30
	}
	s := open(t, t.TempDir(), newClock())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	st, err := s.Stage(t.Context(), "a.txt", io.LimitReader(endless{}, size), media.Limits{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if st.Info().Size != size {
		t.Errorf("it has %d bytes", st.Info().Size)
	}
	st.Discard()
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("an upload of %d MiB took %d KiB of memory", size>>20, took>>10)
	}
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, newClock())
	put := func(content string) *media.Staged {
		st := stage(t, s, "a.txt", content)
		if _, err := st.Put(t.Context(), photo); err != nil {
			t.Fatal(err)
		}
		return st
	}
	there := func(want bool, doing string) {
		t.Helper()
		if _, err := read(t, s, photo, "a.txt"); (err == nil) != want {
			t.Errorf("%s: %v", doing, err)
		}
	}
	first, second := put("x"), put("x")
	first.Discard()
	there(true, "another upload has it")
	second.Discard()
	there(false, "nobody wants it")
	if left := tree(t, dir); !slices.Equal(left, []string{"medialib/"}) {
		t.Errorf("%v are left", left)
	}

	first, second = put("x"), put("x")
	second.Keep()
	first.Discard()
	there(true, "the other has its record")
	put("x").Discard()
	there(true, "it was there before")

	third := put("x") // its record is being written
	if err := s.Remove(t.Context(), photo.Dir, record, []string{"photo/a.txt"}, names()); err != nil {
		t.Error(err)
	}
	if err := s.RemoveRecord(t.Context(), photo.Dir, record, names()); err != nil {
		t.Error(err)
	}
	there(true, "it is held")
	third.Keep()
	third.Discard()
	there(true, "it is kept")
	if _, err := third.Put(t.Context(), photo); err == nil {
		t.Error("it was put in place twice")
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, newClock())
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		put(t, s, photo, name, name)
	}
	keys := []string{"photo/a.txt", "photo/b.txt", "photo/none.txt", "photo/../../x", "x"}
	if err := s.Remove(t.Context(), photo.Dir, record, keys, names("photo/b.txt")); err != nil {
		t.Error(err)
	}
	unknown := func(context.Context, string, string) (map[string]bool, error) { return nil, nil } //nolint:nilnil // that is what it is about
	if err := s.Remove(t.Context(), photo.Dir, record, keys, unknown); err != nil {
		t.Error(err)
	}
	want := []string{"medialib/", "medialib/" + record + "/", "medialib/" + record + "/photo/", "medialib/" + record + "/photo/b.txt", "medialib/" + record + "/photo/c.txt"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}

	// What can't be removed is said, and the rest goes.
	stuck := filepath.Join(dir, "medialib", record, "photo", "d.txt")
	if err := os.MkdirAll(filepath.Join(stuck, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	for doing, err := range map[string]error{
		"Remove":       s.Remove(t.Context(), photo.Dir, record, []string{"photo/d.txt", "photo/c.txt"}, names()),
		"RemoveRecord": s.RemoveRecord(t.Context(), photo.Dir, record, names()),
	} {
		if e := errs.From(err); e == nil || e.Code != "file_cleanup_failed" || e.Message != "d.txt can't be removed: directory not empty" {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if err := s.CheckRemove(photo.Dir, record, []string{"photo/d.txt"}); errs.From(err) == nil || errs.From(err).Message != "d.txt can't be removed: is a directory" {
		t.Errorf("CheckRemove: %v", err)
	}
	if err := os.RemoveAll(stuck); err != nil {
		t.Fatal(err)
	}
	put(t, s, photo, "e.txt", "e")
	if err := s.CheckRemove(photo.Dir, record, []string{"photo/e.txt", "photo/none.txt"}); err != nil {
		t.Errorf("CheckRemove of what could be removed: %v", err)
	}
	want = []string{"medialib/", "medialib/" + record + "/", "medialib/" + record + "/photo/", "medialib/" + record + "/photo/e.txt"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("CheckRemove leaves (-want +got):\n%s", diff)
	}
	if err := s.RemoveRecord(t.Context(), photo.Dir, record, names("photo/e.txt")); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("what another record of that id names (-want +got):\n%s", diff)
	}
	for range 2 { // the second time there is nothing
		if err := s.RemoveRecord(t.Context(), photo.Dir, record, names()); err != nil {
			t.Error(err)
		}
	}
	if left := tree(t, dir); !slices.Equal(left, []string{"medialib/"}) {
		t.Errorf("%v are left", left)
	}
}

// madeUp is a body of so many bytes, which looks at each piece of it where the others are.
type madeUp struct {
	left, given int64
	look        func(given int64)
	end         error
}

func (m *madeUp) Read(p []byte) (int, error) {
	m.look(m.given)
	if m.left == 0 {
		return 0, m.end
	}
	n := min(int64(len(p)), m.left)
	for i := range p[:n] {
		p[i] = byte(m.given + int64(i))
	}
	m.left -= n
	m.given += n
	return int(n), nil
}

// A body that is spooled is on the disk as it comes, and nowhere else; it can be read as often as one likes, and goes.
func TestSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, newClock())
	const size, piece = 8 << 20, 64 << 10
	temps := func() []os.DirEntry {
		t.Helper()
		list, err := os.ReadDir(filepath.Join(dir, ".tmp"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	body := func(end error) *madeUp {
		return &madeUp{left: size, end: end, look: func(given int64) {
			list := temps()
			if len(list) != 1 {
				t.Fatalf("%d temporary files", len(list))
			}
			info, err := list[0].Info()
			if err != nil {
				t.Fatal(err)
			}
			if held := given - info.Size(); held > piece {
				t.Fatalf("%d bytes have come, %d of them are in memory", given, held)
			}
		}}
	}
	sp, err := s.Spool(t.Context(), body(io.EOF))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		sum := sha256.New()
		if n, err := io.Copy(sum, sp.Reader()); err != nil || n != size || [32]byte(sum.Sum(nil)) != sp.Sum() {
			t.Errorf("%d bytes, %v; the sum is %x", n, err, sp.Sum())
		}
	}
	sp.Discard()
	if list := temps(); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
	broken := errors.New("broken")
	if _, err := s.Spool(t.Context(), body(broken)); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if list := temps(); len(list) > 0 {
		t.Errorf("left of one that broke off: %v", list)
	}
}
