package media_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/schema"
)

func openImages(t testing.TB, dir string, opts media.ImagesOptions) *media.Images {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = newClock().now
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = 1 << 20
	}
	i, err := media.OpenImages(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func closing(t testing.TB, i *media.Images) {
	t.Helper()
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}

func keyOf(n any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(n)))
	return hex.EncodeToString(sum[:])
}

// making counts how often pictures are made.
type making struct{ atomic.Int64 }

func (m *making) of(data string) media.Make {
	return func(context.Context, func(int64) error) (imagefilter.Result, error) {
		m.Add(1)
		return imagefilter.Result{Data: []byte(data), Type: "image/png", Width: 3, Height: 2, Warning: "so so"}, nil
	}
}

func (m *making) failing(err error) media.Make {
	return func(context.Context, func(int64) error) (imagefilter.Result, error) {
		m.Add(1)
		return imagefilter.Result{}, err
	}
}

// get reads a picture and closes it.
func get(t testing.TB, i *media.Images, key string, work media.Make) (string, imagefilter.Result, error) {
	t.Helper()
	file, result, err := i.Get(t.Context(), key, work)
	if err != nil {
		return "", result, err
	}
	data, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Error(err)
	}
	if file.Size != int64(len(data)) {
		t.Errorf("%d bytes, not %d", len(data), file.Size)
	}
	return string(data), result, nil
}

// TestS50SingleFlight: 200 at once who ask for one picture make it once; those who give up change nothing for the others.
func TestS50SingleFlight(t *testing.T) {
	t.Parallel()
	i := openImages(t, t.TempDir(), media.ImagesOptions{})
	defer closing(t, i)
	var made atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	work := func(ctx context.Context, reserve func(int64) error) (imagefilter.Result, error) {
		if made.Add(1) == 1 {
			close(begun)
		}
		if err := reserve(1); err != nil {
			return imagefilter.Result{}, err
		}
		select {
		case <-release:
		case <-ctx.Done():
			return imagefilter.Result{}, ctx.Err()
		}
		return imagefilter.Result{Data: []byte("picture"), Type: "image/png"}, nil
	}
	var wg sync.WaitGroup
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	wg.Go(func() {
		defer close(gone)
		if _, _, err := i.Get(first, keyOf(1), work); !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
	})
	<-begun
	for range 199 {
		wg.Go(func() {
			if got, _, err := get(t, i, keyOf(1), work); got != "picture" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for i.Waiting(keyOf(1)) < 200 { // until all are there
		runtime.Gosched()
	}
	cancel()
	<-gone
	close(release)
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("it was made %d times", made.Load())
	}
}

// TestS50NobodyWaits: what nobody waits for is given up, and made anew for who comes later.
func TestS50NobodyWaits(t *testing.T) {
	t.Parallel()
	i := openImages(t, t.TempDir(), media.ImagesOptions{})
	defer closing(t, i)
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go cancelWhen(begun, cancel)
	_, _, err := i.Get(ctx, keyOf(1), func(ctx context.Context, _ func(int64) error) (imagefilter.Result, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return imagefilter.Result{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended by %v", err)
	}
	var m making
	if got, _, err := get(t, i, keyOf(1), m.of("picture")); got != "picture" || err != nil || m.Load() != 1 {
		t.Errorf("%q, %v", got, err)
	}
}

func cancelWhen(begun <-chan struct{}, cancel context.CancelFunc) {
	<-begun
	cancel()
}

// TestS49Memory: what is made at once never takes more than the memory, nor more cores, than there are; one that needs
// more is made alone, and one that needs more than 1¾ times as much is refused.
func TestS49Memory(t *testing.T) {
	t.Parallel()
	const memory, cores = 1000, 4
	i := openImages(t, t.TempDir(), media.ImagesOptions{Memory: memory, Cores: cores, Wait: time.Hour})
	defer closing(t, i)
	var bytes, running atomic.Int64
	work := func(n int64) media.Make {
		return func(_ context.Context, reserve func(int64) error) (imagefilter.Result, error) {
			if err := reserve(n); err != nil {
				return imagefilter.Result{}, err
			}
			if b, r := bytes.Add(min(n, memory)), running.Add(1); b > memory || r > cores {
				t.Errorf("%d at once take %d", r, b)
			}
			for range 100 {
				runtime.Gosched()
			}
			bytes.Add(-min(n, memory))
			running.Add(-1)
			return imagefilter.Result{Data: []byte("x")}, nil
		}
	}
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			size := []int64{1, 250, 400, 600, 1000, 1750}[n%6]
			if got, _, err := get(t, i, keyOf(n), work(size)); got != "x" || err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, _, err := get(t, i, keyOf(64), work(1751)); errs.KindOf(err) != errs.Limit || !strings.Contains(err.Error(), "media.pictureMemory") {
		t.Errorf("of more than 1¾ times the memory: %v", err)
	}
}

// TestS49Gigabyte: with what is set when nobody sets anything, a picture that would take the process above 1 GB is refused,
// however small what is made of it, and the large ones that there are in practice are made.
func TestS49Gigabyte(t *testing.T) {
	t.Parallel()
	const rgba, interlaced = 6, 1
	header := func(side uint32, bits byte, interlace byte) io.ReadSeeker {
		chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
		chunk = append(binary.BigEndian.AppendUint32(chunk, side), bits, rgba, 0, 0, interlace)
		file := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
		return bytes.NewReader(binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(chunk)))
	}
	i := openImages(t, t.TempDir(), media.ImagesOptions{})
	defer closing(t, i)
	f := filters(t)["thumb"]
	for name, c := range map[string]struct {
		file    io.ReadSeeker
		refused bool
	}{
		"64 megapixels, 16 bits, interlaced": {header(8000, 16, interlaced), true},
		"64 megapixels, 16 bits":             {header(8000, 16, 0), false},
		"64 megapixels, interlaced":          {header(8000, 8, interlaced), false},
		"48 megapixels, 16 bits, interlaced": {header(6928, 16, interlaced), false},
	} {
		info, err := imagefilter.Inspect(t.Context(), c.file, imagefilter.Limits{})
		if err != nil {
			t.Fatal(name, err)
		}
		_, _, err = get(t, i, keyOf(name), func(_ context.Context, reserve func(int64) error) (imagefilter.Result, error) {
			return imagefilter.Result{Data: []byte("x")}, reserve(f.Memory(info))
		})
		if refused := errs.KindOf(err) == errs.Limit; refused != c.refused || !refused && err != nil {
			t.Errorf("%s, of %d bytes: %v", name, f.Memory(info), err)
		}
	}
}

// TestS49Wait: who waits for memory too long is told to come again, and who gives up waits no more.
func TestS49Wait(t *testing.T) {
	t.Parallel()
	i := openImages(t, t.TempDir(), media.ImagesOptions{Memory: 10, Wait: time.Millisecond})
	defer closing(t, i)
	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := i.Get(t.Context(), keyOf(1), func(_ context.Context, reserve func(int64) error) (imagefilter.Result, error) {
			err := reserve(10)
			close(begun)
			<-release
			return imagefilter.Result{}, err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	_, _, err := i.Get(t.Context(), keyOf(2), func(_ context.Context, reserve func(int64) error) (imagefilter.Result, error) {
		return imagefilter.Result{}, reserve(1)
	})
	if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.RetryAfter == 0 {
		t.Errorf("who waited too long got %v", err)
	}
	close(release)
	wg.Wait()
	if _, _, err := get(t, i, keyOf(2), func(_ context.Context, reserve func(int64) error) (imagefilter.Result, error) {
		return imagefilter.Result{}, reserve(10) // the memory is free again, and the failure was not remembered
	}); err != nil {
		t.Error(err)
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	var m making
	for range 2 { // two lives
		i := openImages(t, dir, media.ImagesOptions{Now: c.now})
		for range 3 {
			got, r, err := get(t, i, keyOf(1), m.of("picture"))
			if got != "picture" || r.Type != "image/png" || r.Width != 3 || r.Height != 2 || r.Warning != "so so" || err != nil {
				t.Errorf("%q, %+v, %v", got, r, err)
			}
		}
		closing(t, i)
		if _, _, err := i.Get(t.Context(), keyOf(2), m.of("x")); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("it is closed: %v", err)
		}
	}
	if m.Load() != 1 {
		t.Errorf("it was made %d times", m.Load())
	}
}

// TestEviction: the disk never has more than the bound; what was used longest ago goes first, across restarts.
func TestEviction(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	const picture = 8 << 10 // bytes on the disk
	opts := media.ImagesOptions{Now: c.now, MaxBytes: 4 * picture}
	var m making
	data := strings.Repeat("x", 5000)
	i := openImages(t, dir, opts)
	use := func(n int, made int64) {
		t.Helper()
		c.add(2 * time.Hour)
		before := m.Load()
		if got, _, err := get(t, i, keyOf(n), m.of(data)); got != data || err != nil {
			t.Error(err)
		}
		if m.Load()-before != made {
			t.Errorf("picture %d was made %d times", n, m.Load()-before)
		}
		if i.Total() > opts.MaxBytes {
			t.Errorf("%d bytes are kept", i.Total())
		}
	}
	for n := range 4 {
		use(n, 1)
	}
	use(0, 0)
	use(4, 1) // in place of 1
	use(0, 0)
	closing(t, i)
	i = openImages(t, dir, opts)
	i.Scanned()
	use(5, 1) // in place of 2
	use(0, 0)
	use(3, 0)
	use(4, 0)
	use(1, 1) // in place of 5
	use(5, 1)
	closing(t, i)

	opts.MaxBytes = picture
	i = openImages(t, dir, opts)
	i.Scanned()
	if n := countFiles(t, dir); n != 1 || i.Total() != picture {
		t.Errorf("%d files with %d bytes are left", n, i.Total())
	}
	if got, _, err := get(t, i, keyOf("large"), m.of(strings.Repeat("x", 3*picture))); len(got) != 3*picture || err != nil {
		t.Errorf("one that is too large to be kept has %d bytes: %v", len(got), err)
	}
	closing(t, i)
	if n := countFiles(t, dir); n != 1 {
		t.Errorf("%d files are left", n)
	}
}

func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, name := range tree(t, dir) {
		if !strings.HasSuffix(name, "/") {
			n++
		}
	}
	return n
}

// TestDamaged: a kept picture that is not whole is made again, in this life and in the next.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for doing, damage := range map[string]func(b []byte) []byte{
		"empty":          func([]byte) []byte { return nil },
		"cut off":        func(b []byte) []byte { return b[:len(b)-1] },
		"cut in front":   func(b []byte) []byte { return b[1:] },
		"a byte":         func(b []byte) []byte { b[2] ^= 1; return b },
		"zeros":          func(b []byte) []byte { clear(b); return b },
		"no JSON":        func(b []byte) []byte { b[len(b)-5] = 'x'; return b },
		"a wrong length": func(b []byte) []byte { b[len(b)-4] = 0xff; return b },
		"longer":         func(b []byte) []byte { return append(b, b...) },
	} {
		dir := t.TempDir()
		var m making
		file := filepath.Join(dir, keyOf(1)[:2], keyOf(1))
		for life := range 2 {
			i := openImages(t, dir, media.ImagesOptions{})
			if got, _, err := get(t, i, keyOf(1), m.of("picture")); got != "picture" || err != nil || m.Load() != int64(life+1) {
				t.Errorf("%s: %q, %v, made %d times", doing, got, err, m.Load())
			}
			closing(t, i)
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, damage(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	var m making
	i := openImages(t, dir, media.ImagesOptions{})
	defer closing(t, i)
	file := filepath.Join(dir, keyOf(1)[:2], keyOf(1))
	for n, meanwhile := range []func(string) error{
		func(file string) error { return os.Truncate(file, 3) }, os.Remove, func(string) error { return nil },
	} {
		if got, _, err := get(t, i, keyOf(1), m.of("picture")); got != "picture" || err != nil || m.Load() != int64(n+1) {
			t.Errorf("%q, %v, made %d times", got, err, m.Load())
		}
		if err := meanwhile(file); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFailures: a picture that can't be made is not tried again for a while; a failure that has to do with the moment is.
func TestFailures(t *testing.T) {
	t.Parallel()
	c := newClock()
	var log bytes.Buffer
	i := openImages(t, t.TempDir(), media.ImagesOptions{Now: c.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer closing(t, i)
	for n, row := range []struct {
		err  error
		once bool
	}{
		{imagefilter.ErrDamaged, true},
		{imagefilter.ErrFormat, true},
		{errs.New(errs.Limit, "image_too_large", "large"), true},
		{errs.ErrNotFound, false},
		{errs.New(errs.Unavailable, "x", "x"), false},
		{fs.ErrPermission, false},
		{context.DeadlineExceeded, false},
	} {
		var m making
		for range 3 {
			if _, _, err := get(t, i, keyOf(n), m.failing(row.err)); !errors.Is(err, row.err) {
				t.Errorf("%v became %v", row.err, err)
			}
		}
		if row.once != (m.Load() == 1) {
			t.Errorf("%v: it was tried %d times", row.err, m.Load())
		}
		c.add(time.Hour)
		if got, _, err := get(t, i, keyOf(n), m.of("picture")); got != "picture" || err != nil {
			t.Errorf("after %v: %v", row.err, err)
		}
	}
	var m making
	for range 3 {
		_, _, err := get(t, i, keyOf("panic"), func(context.Context, func(int64) error) (imagefilter.Result, error) {
			m.Add(1)
			panic("secret")
		})
		if e := errs.From(err); e == nil || e.Kind != errs.Internal || strings.Contains(e.Message, "secret") {
			t.Errorf("a panic became %v", err)
		}
	}
	if m.Load() != 1 {
		t.Errorf("what panics was tried %d times", m.Load())
	}
	for n := range 3000 { // they take no memory for ever
		_, _, _ = get(t, i, keyOf([]int{n}), m.failing(imagefilter.ErrDamaged))
	}
}

// TestNotWritable: a disk that takes nothing more only makes it slower, and the log has it once.
func TestNotWritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	i := openImages(t, dir, media.ImagesOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var m making
	for range 3 {
		if got, r, err := get(t, i, keyOf(1), m.of("picture")); got != "picture" || r.Type != "image/png" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	closing(t, i)
	if n := strings.Count(log.String(), "can't be kept"); n != 1 {
		t.Errorf("the log has it %d times: %s", n, log.String())
	}
}

// TestImagesClose: it ends what is being made, and waits for it.
func TestImagesClose(t *testing.T) {
	t.Parallel()
	i := openImages(t, t.TempDir(), media.ImagesOptions{})
	begun, ended := make(chan struct{}), atomic.Bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := i.Get(t.Context(), keyOf(1), func(ctx context.Context, _ func(int64) error) (imagefilter.Result, error) {
			close(begun)
			<-ctx.Done()
			ended.Store(true)
			return imagefilter.Result{}, ctx.Err()
		})
		if errs.KindOf(err) != errs.Unavailable {
			t.Errorf("who waited got %v", err)
		}
	})
	<-begun
	closing(t, i)
	if !ended.Load() {
		t.Error("it did not wait")
	}
	wg.Wait()
}

// pattern is a picture of that size.
func pattern(width, height int) func(w io.Writer, _ image.Image) error {
	return func(w io.Writer, _ image.Image) error {
		img := image.NewNRGBA(image.Rect(0, 0, width, height))
		for n := range img.Pix {
			img.Pix[n] = uint8(n % 251)
		}
		return png.Encode(w, img)
	}
}

func filters(t testing.TB) map[string]*imagefilter.Filter {
	t.Helper()
	width := 10.0
	f, problems := imagefilter.Compile(schema.ImageFilter{"thumb": {{Width: &width}}, "grey": {{Grayscale: true}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return f
}

// TestImage: a filter's picture of a stored file, and the errors of those that are none.
func TestImage(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	images := openImages(t, filepath.Join(dir, "cache"), media.ImagesOptions{})
	defer closing(t, images)
	s, err := media.Open(filepath.Join(dir, "uploads"), media.Options{Logger: slog.New(slog.DiscardHandler), Now: c.now, Images: images})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := filters(t)
	content := picture(t, pattern(40, 20))
	info := put(t, s, photo, "a.png", content)
	if info.Width != 40 || info.Height != 20 || info.Type != "image/png" {
		t.Errorf("%+v", info)
	}
	var hashes []string
	for range 2 {
		file, made, err := s.Image(t.Context(), photo, "a.png", info.Hash, f["thumb"], always)
		if err != nil {
			t.Fatal(err)
		}
		config, kind, err := image.DecodeConfig(file)
		if err != nil || kind != "png" || config.Width != 10 || config.Height != 5 {
			t.Errorf("%s, %+v, %v", kind, config, err)
		}
		if made.Width != 10 || made.Height != 5 || made.Type != "image/png" || made.Size != file.Size || !file.ModTime.Equal(info.ModTime) || made.Hash == info.Hash {
			t.Errorf("%+v, of %+v", made, info)
		}
		hashes = append(hashes, made.Hash)
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	other := errors.New("it is another file by now")
	if _, _, err := s.Image(t.Context(), photo, "a.png", info.Hash, f["grey"], func() error { return other }); !errors.Is(err, other) {
		t.Errorf("of a file that may be another one: %v", err)
	}
	_, grey, err := s.Image(t.Context(), photo, "a.png", info.Hash, f["grey"], always)
	if err != nil || hashes[0] != hashes[1] || grey.Hash == hashes[0] {
		t.Errorf("%v, %s: %v", hashes, grey.Hash, err)
	}

	text := put(t, s, photo, "a.txt", "hello")
	cut := put(t, s, photo, "cut.png", content[:len(content)/2])
	bomb := put(t, s, photo, "bomb.png", bombOf(10_000))
	for _, c := range []struct {
		place media.Place
		info  media.Info
		kind  errs.Kind
	}{
		{photo, text, errs.MediaType},
		{photo, cut, errs.Invalid},
		{photo, bomb, errs.Limit},
		{photo, media.Info{Name: "none.png", Hash: info.Hash}, errs.NotFound},
		{photo, media.Info{Name: "../photo/a.png", Hash: info.Hash}, errs.NotFound},
		{media.Place{Dir: "..", Record: record, Field: "photo"}, info, errs.NotFound},
	} {
		if _, _, err := s.Image(t.Context(), c.place, c.info.Name, c.info.Hash, f["thumb"], always); errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v", c.info.Name, err)
		}
	}
	if bomb.Width != 0 {
		t.Errorf("%+v", bomb)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "cache", ".tmp")); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// bombOf is the beginning of a square PNG.
func bombOf(side uint32) string {
	chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), side)
	chunk = append(binary.BigEndian.AppendUint32(chunk, side), 8, 0, 0, 0, 0) // 8 bits, gray
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk))
	return "\x89PNG\r\n\x1a\n\x00\x00\x00\x0d" + string(chunk)
}

// A file that goes while a picture is made of it is the end for who asked for that one; who has the same picture of another
// record gets it.
func TestSharedPictureOfAnotherRecord(t *testing.T) {
	t.Parallel()
	i := openImages(t, t.TempDir(), media.ImagesOptions{})
	defer closing(t, i)
	begun, gone := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, _, err := i.Get(t.Context(), keyOf(1), func(context.Context, func(int64) error) (imagefilter.Result, error) {
			close(begun)
			<-gone
			return imagefilter.Result{}, errs.ErrNotFound
		})
		first <- err
	}()
	<-begun
	var m making
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			if got, _, err := get(t, i, keyOf(1), m.of("theirs")); got != "theirs" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for i.Waiting(keyOf(1)) < 4 {
		runtime.Gosched()
	}
	close(gone)
	if err := <-first; !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("who asked for what is gone: %v", err)
	}
	others.Wait()
	if m.Load() != 1 {
		t.Errorf("made %d times", m.Load())
	}
	// Who is the last to have a record, which goes, too, is told so.
	if _, _, err := get(t, i, keyOf(2), m.failing(errs.ErrNotFound)); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// overdue is a context whose deadline comes when the channel is closed.
type overdue struct {
	context.Context

	at chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.at }

func (o overdue) Err() error {
	select {
	case <-o.at:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A picture that takes longer than a request may is made to its end for who asks again; one that takes too long is given up,
// and not tried with every request.
func TestSlowPictures(t *testing.T) {
	t.Parallel()
	i := openImages(t, t.TempDir(), media.ImagesOptions{})
	defer closing(t, i)
	begun, release := make(chan struct{}), make(chan struct{})
	slow := func(ctx context.Context, _ func(int64) error) (imagefilter.Result, error) {
		close(begun)
		select {
		case <-release:
			return imagefilter.Result{Data: []byte("slow"), Type: "image/png"}, nil
		case <-ctx.Done():
			return imagefilter.Result{}, ctx.Err()
		}
	}
	at := make(chan struct{})
	go func() {
		<-begun
		close(at)
	}()
	_, _, err := i.Get(overdue{t.Context(), at}, keyOf(1), slow)
	if e := errs.From(err); e == nil || e.Code != "image_under_way" || e.RetryAfter == 0 {
		t.Errorf("who waited as long as they could: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := i.Get(ctx, keyOf(1), nil)
		left <- err
	}()
	for i.Waiting(keyOf(1)) < 1 {
		runtime.Gosched()
	}
	cancel() // somebody who does not wait changes nothing
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	close(release)
	if got, _, err := get(t, i, keyOf(1), nil); got != "slow" || err != nil {
		t.Errorf("who asks again: %q, %v", got, err)
	}

	short := openImages(t, t.TempDir(), media.ImagesOptions{MaxTime: 1})
	defer closing(t, short)
	tries := 0
	for range 2 {
		_, _, err := get(t, short, keyOf(2), func(ctx context.Context, _ func(int64) error) (imagefilter.Result, error) {
			tries++
			<-ctx.Done()
			return imagefilter.Result{}, ctx.Err()
		})
		if e := errs.From(err); e == nil || e.Code != "image_too_slow" || e.Kind != errs.Limit {
			t.Errorf("one that takes too long: %v", err)
		}
	}
	if tries != 1 {
		t.Errorf("tried %d times", tries)
	}
}

func always() error { return nil }
