package media

import (
	"bytes"
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/imagefilter"
)

// A kept picture is a file of its bytes, then what is known of it as JSON, then how long that is. It is not synced: the hash
// tells whether it is whole, and another is made when it is not.

// about is what a kept picture is, beside its bytes.
type about struct {
	Type    string `json:"type"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Warning string `json:"warning,omitempty"`
	Size    int64  `json:"size"`
	Hash    string `json:"hash"`
}

// entry is one kept picture.
type entry struct {
	key     string
	size    int64     // of its file
	used    time.Time // as the file's time says; it is written rarely
	checked *about    // since it was found whole
}

const (
	trailer    = 4       // bytes
	maxAbout   = 4 << 10 // bytes
	block      = 4 << 10 // what a file takes on a disk is a multiple of that
	touchEvery = time.Hour
	staleTemp  = time.Hour
)

var keyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func keptName(key string) string { return key[:2] + "/" + key }

// keptFile is a kept picture that is open: its bytes without what follows them.
type keptFile struct {
	*io.SectionReader

	file *os.File
}

func (f keptFile) Close() error { return f.file.Close() }

// memoryFile is a picture that was made for those who read it.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

func inMemory(r imagefilter.Result, now time.Time) *File {
	return &File{ReadSeekCloser: memoryFile{bytes.NewReader(r.Data)}, Size: int64(len(r.Data)), ModTime: now}
}

// kept opens the picture when it is there and whole. Its result has no Data.
func (i *Images) kept(ctx context.Context, key string) (*File, imagefilter.Result, bool) {
	now := i.opts.Now()
	i.mu.Lock()
	var known entry
	touch := false
	at := i.entries[key]
	if at != nil {
		i.order.MoveToFront(at)
		e := entryOf(at)
		if touch = now.Sub(e.used) > touchEvery; touch {
			e.used = now
		}
		known = *e
	}
	i.mu.Unlock()

	file, err := i.root.Open(keptName(key))
	if err != nil {
		i.drop(key, at, false)
		return nil, imagefilter.Result{}, false
	}
	info, err := file.Stat()
	if err == nil && (known.checked == nil || known.size != info.Size()) {
		known.checked, err = check(context.WithoutCancel(ctx), file, info.Size())
	}
	if err != nil {
		_ = file.Close() // it was only read
		i.opts.Logger.WarnContext(ctx, "a derived picture is damaged and will be made again", "key", key, "error", err)
		i.drop(key, at, true)
		return nil, imagefilter.Result{}, false
	}
	i.mu.Lock()
	if at := i.entries[key]; at != nil {
		e := entryOf(at)
		e.checked = known.checked
	} else { // another instance made it, or the scan has not come to it
		i.insert(&entry{key: key, size: info.Size(), used: now, checked: known.checked})
	}
	i.mu.Unlock()
	if touch {
		_ = i.root.Chtimes(keptName(key), now, now) // else it counts as older than it is
	}
	a := known.checked
	return &File{ReadSeekCloser: keptFile{io.NewSectionReader(file, 0, a.Size), file}, Size: a.Size, ModTime: info.ModTime()},
		imagefilter.Result{Type: a.Type, Width: a.Width, Height: a.Height, Warning: a.Warning}, true
}

func entryOf(at *list.Element) *entry {
	e, _ := at.Value.(*entry)
	return e
}

// check says what a kept picture is, if it is whole.
func check(ctx context.Context, file *os.File, size int64) (*about, error) {
	errShort := errors.New("it is not whole")
	end := make([]byte, trailer)
	if size < trailer {
		return nil, errShort
	}
	if _, err := file.ReadAt(end, size-trailer); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(end))
	if n > maxAbout || n > size-trailer {
		return nil, errShort
	}
	text := make([]byte, n)
	if _, err := file.ReadAt(text, size-trailer-n); err != nil {
		return nil, err
	}
	a := &about{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, err
	}
	if a.Size != size-trailer-n {
		return nil, errShort
	}
	sum, err := hashOf(ctx, io.NewSectionReader(file, 0, a.Size))
	if err == nil && sum != a.Hash {
		err = errShort
	}
	return a, err
}

// write writes a picture to a temporary file. It gives "" when the picture is not to be kept, or can't be.
func (i *Images) write(r imagefilter.Result) (temp string, size int64) {
	sum := sha256.Sum256(r.Data)
	text, err := json.Marshal(about{r.Type, r.Width, r.Height, r.Warning, int64(len(r.Data)), hex.EncodeToString(sum[:])})
	size = int64(len(r.Data) + len(text) + trailer)
	if err != nil || len(text) > maxAbout || onDisk(size) > i.opts.MaxBytes {
		return "", 0
	}
	temp = tmpDir + "/" + rand.Text()
	err = i.root.Mkdir(tmpDir, folderMode)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = i.root.WriteFile(temp, slices.Concat(r.Data, text, binary.BigEndian.AppendUint32(nil, uint32(len(text)))), fileMode) //nolint:gosec // it is at most maxAbout
	}
	if now := i.opts.Now(); err == nil {
		err = i.root.Chtimes(temp, now, now) // the next start goes by it
	}
	i.written(err)
	if err != nil {
		_ = i.root.Remove(temp) // it may not be there
		return "", 0
	}
	return temp, size
}

// written tells the log when nothing can be kept any more. Pictures are then made for each request.
func (i *Images) written(err error) {
	i.mu.Lock()
	first := err != nil && !i.fullLog
	i.fullLog = err != nil
	i.mu.Unlock()
	if first {
		i.opts.Logger.Warn("derived pictures can't be kept", "error", err)
	}
}

// keep puts a written picture in its place. mu is held.
func (i *Images) keep(key, temp string, size int64, r imagefilter.Result) {
	err := i.root.Mkdir(key[:2], folderMode)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = i.root.Rename(temp, keptName(key))
	}
	if err != nil {
		i.opts.Logger.Warn("a derived picture can't be kept", "error", err)
		_ = i.root.Remove(temp) // the next start does it
		return
	}
	i.insert(&entry{key: key, size: size, used: i.opts.Now(), checked: &about{Type: r.Type, Width: r.Width, Height: r.Height, Warning: r.Warning, Size: int64(len(r.Data))}})
}

// insert takes an entry in as the one that was used last, and removes those that there is no more room for. mu is held.
func (i *Images) insert(e *entry) {
	if at := i.entries[e.key]; at != nil {
		i.forget(at)
	}
	i.entries[e.key] = i.order.PushFront(e)
	i.total += onDisk(e.size)
	i.evict()
}

// evict removes what was used longest ago, until the rest is within the bound. mu is held.
func (i *Images) evict() {
	for i.total > i.opts.MaxBytes && i.order.Len() > 0 {
		last := i.order.Back()
		e := entryOf(last)
		i.forget(last)
		_ = i.root.Remove(keptName(e.key)) // the next start sees it again
	}
}

func (i *Images) forget(at *list.Element) {
	e := entryOf(at)
	i.order.Remove(at)
	delete(i.entries, e.key)
	i.total -= onDisk(e.size)
}

// drop forgets a picture that is not there, or is damaged, as it was found by at.
func (i *Images) drop(key string, at *list.Element, remove bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at != nil && i.entries[key] == at {
		i.forget(at)
	}
	if remove {
		_ = i.root.Remove(keptName(key)) // else it is found damaged again
	}
}

func onDisk(size int64) int64 { return (size + block - 1) / block * block }

// scan takes in what earlier runs of the service kept, in the order of its use.
func (i *Images) scan() {
	var found []*entry
	err := fs.WalkDir(i.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if i.ctx.Err() != nil {
			return i.ctx.Err()
		}
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // it can't be read, and is not used
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		switch key := e.Name(); {
		case keyForm.MatchString(key) && name == keptName(key):
			found = append(found, &entry{key: key, size: info.Size(), used: info.ModTime()})
		case name == tmpDir+"/"+key && older(info, i.opts.Now().Add(-staleTemp)):
			_ = i.root.Remove(name) // the next start does it
		}
		return nil
	})
	if err != nil {
		return // it is closed
	}
	slices.SortFunc(found, func(a, b *entry) int { return b.used.Compare(a.used) })
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, e := range found {
		if i.entries[e.key] == nil {
			i.entries[e.key] = i.order.PushBack(e)
			i.total += onDisk(e.size)
		}
	}
	i.evict()
}
