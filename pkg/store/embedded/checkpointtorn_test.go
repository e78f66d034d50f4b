package embedded_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store/embedded"
)

// betweenFS calls between after the first read of a log: what is copied of the log afterwards is younger.
type betweenFS struct {
	vfs.FS
	between atomic.Pointer[func()]
}

func (fs *betweenFS) Unwrap() vfs.FS { return fs.FS }

func (fs *betweenFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &betweenFile{File: f, fs: fs}, nil
}

type betweenFile struct {
	vfs.File
	fs *betweenFS
}

func (f *betweenFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if between := f.fs.between.Swap(nil); between != nil {
		(*between)()
	}
	return n, err
}

// A log that is copied while it is written over an older one has a gap, of what the older log has left, in front of what
// came later. Whatever the gap looks like, the copy opens, and has what was acknowledged before it was made.
func TestCheckpointTornLog(t *testing.T) {
	for _, before := range []int{100, 3000, 20_000, 31_000} { // bytes in front of the gap, about
		t.Run(strconv.Itoa(before), func(t *testing.T) {
			fs := &betweenFS{FS: vfs.NewMem()}
			s := open(t, embedded.Options{Dir: "/store", FS: fs, Ballast: -1, MemTableSize: 256 << 10})
			pad := func(n int) string { return strings.Repeat("x", n) }
			for i := range 100 { // logs to write over
				must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: fmt.Sprint("old", i)}, {Key: "pad", Value: pad(30_000)}}))
			}
			if err := embedded.Flush(s); err != nil {
				t.Fatal(err)
			}
			must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: "before"}, {Key: "pad", Value: pad(before)}}))
			torn := func() {
				for i := range 4 { // into the next block
					must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: fmt.Sprint("later", i)}, {Key: "pad", Value: pad(9000)}}))
				}
			}
			fs.between.Store(&torn)
			if err := s.Checkpoint(t.Context(), "/copy"); err != nil {
				t.Fatal(err)
			}
			if fs.between.Load() != nil {
				t.Fatal("no log was read")
			}
			copied := open(t, embedded.Options{Dir: "/copy", FS: fs.FS, Ballast: -1})
			if _, err := collection(copied).Get(t.Context(), value(t, "before")); err != nil {
				t.Error(err)
			}
		})
	}
}
