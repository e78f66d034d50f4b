package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

const uploadsConfig = `
namespace: blog
collections:
  - name: library
    fields: [{name: title, type: string}, {name: file, type: file}, {name: more, type: "file[]"}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// stored is a record of these tests.
type stored struct {
	ID   string      `json:"id"`
	File *storedFile `json:"file"`
	More []storedFile
}

type storedFile struct {
	Src  string `json:"src"`
	Path string `json:"path"`
	Hash string `json:"hash"`
}

// fileOf is a file as a body brings it.
func fileOf(name string, size int) string {
	content := []byte(strings.Repeat(name+" ", size/len(name)+1))
	return fmt.Sprintf(`{"src":"data:text/plain;base64,%s","path":%q}`, base64.StdEncoding.EncodeToString(content), name+".txt")
}

// uploads creates, replaces and deletes records with files, until a call fails. It gives how many calls were answered.
func (s *server) uploads(t *testing.T, name string, size int) (answered int) {
	t.Helper()
	for i := 0; ; i++ {
		file := fmt.Sprint(name, "-", i)
		rec, err := s.CreateRecord(t.Context(), "blog", "library", api.Record(fmt.Sprintf(`{"title":%q,"file":%s,"more":[%s]}`, name, fileOf(file, size), fileOf(file+"m", size))))
		var r stored
		if err != nil || json.Unmarshal(rec, &r) != nil {
			return answered
		}
		answered++
		if _, err := s.UpdateRecord(t.Context(), "blog", "library", r.ID, api.Record(fmt.Sprintf(`{"file":%s,"more":[%s,%s]}`, fileOf(file+"n", size), fileOf(file+"o", size), fileOf(file+"m", size))), client.WriteOptions{}); err != nil {
			return answered
		}
		if i%3 != 0 {
			continue
		}
		if _, err := s.DeleteRecord(t.Context(), "blog", "library", r.ID, client.WriteOptions{}); err != nil {
			return answered
		}
	}
}

// whole checks that each record has its files, with the content that it says. It gives how many files the records name, and
// how many are on the disk.
func (s *server) whole(t *testing.T, dir string) (named, onDisk int) {
	t.Helper()
	return s.wholeIn(t, dir, "blog")
}

// wholeIn is whole of another project.
func (s *server) wholeIn(t *testing.T, dir, namespace string) (named, onDisk int) {
	t.Helper()
	root := filepath.Join(dir, "data", "uploads", namespace)
	for rec, err := range s.Records(t.Context(), namespace, "library", client.Query{Limit: 1000}) {
		var r stored
		if err == nil {
			err = json.Unmarshal(rec, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]storedFile{}
		if r.File != nil {
			files["file/"+r.File.Path] = *r.File
		}
		for _, f := range r.More {
			files["more/"+f.Path] = f
		}
		named += len(files)
		for place, f := range files {
			content, err := os.ReadFile(filepath.Join(root, "library", r.ID, place))
			sum := sha256.Sum256(content)
			if err != nil || hex.EncodeToString(sum[:]) != f.Hash {
				t.Errorf("record %s names %s: %v, %d bytes", r.ID, place, err, len(content))
			}
		}
	}
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".claims" {
			onDisk++
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return named, onDisk
}

// TestR5Uploads ends svcd without warning while it stores files: no record ever names one that is not there, whole, and what
// no record names is swept.
func TestR5Uploads(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killUploads(t, newReleased(t, "MEDIA_SWEEP_AFTER=1s"), 10)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killUploads(t, newReleased(t, "MEDIA_SWEEP_AFTER=1s", ownMongoDB(t, time.Second)), 3)
	})
}

func killUploads(t *testing.T, s svcd, rounds int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds *= 20
	}
	s.write("projects/blog/project.yaml", uploadsConfig)
	srv := s.start()
	srv.register(t)
	total := 0
	for round := range rounds {
		until(t, "the project is served", func() bool {
			_, err := srv.CountRecords(t.Context(), "blog", "library", "")
			return err == nil
		})
		var mu sync.Mutex
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				n := srv.uploads(t, fmt.Sprint("r", round, "w", i), 200<<(5*(i%3)))
				mu.Lock()
				defer mu.Unlock()
				total += n
			})
		}
		time.Sleep(20*time.Millisecond + time.Duration(randtest.Of(t).IntN(200))*time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		srv = s.start()
		until(t, "the project is served", func() bool {
			_, err := srv.CountRecords(t.Context(), "blog", "library", "")
			return err == nil
		})
		srv.whole(t, s.dir)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	if total == 0 {
		t.Error("nothing was written: this tested nothing")
	}
	until(t, "what no record names is swept", func() bool {
		named, onDisk := srv.whole(t, s.dir)
		return named == onDisk
	})
	t.Logf("%d records were written, %d kills", total, rounds)
}

// TestR5UploadsFullDisk stores files until there is no room: that is said as such, no record names what is not there, what was
// put in place for nothing goes, and with room again it goes on.
func TestR5UploadsFullDisk(t *testing.T) {
	t.Parallel()
	s := onSmallDisk(t, newSvcd(t, "MEDIA_SWEEP_AFTER=1s"), 160)
	s.write("projects/blog/project.yaml", uploadsConfig)
	srv := s.start()
	srv.register(t)
	until(t, "the project is served", func() bool {
		_, err := srv.CountRecords(t.Context(), "blog", "library", "")
		return err == nil
	})
	dir := fmt.Sprintf("/proc/%d/root%s", srv.cmd.Process.Pid, s.dir)
	disk := filepath.Join(dir, "data")
	create := func(name string) error {
		_, err := srv.CreateRecord(t.Context(), "blog", "library", api.Record(`{"file":`+fileOf(name, 1<<20)+`}`))
		return err
	}
	if err := create("first"); err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{72 << 20, 0} { // below 64 MiB the store refuses writes, and at 0 there is none for the file
		filler := filepath.Join(disk, "filler")
		takeRoom(t, filler, disk, left)
		full := false
		for i := 0; i < 100 && !full; i++ {
			err := create(fmt.Sprint(left, "-", i))
			var refusal *client.Error
			switch {
			case err == nil:
			case errors.As(err, &refusal) && refusal.Status == http.StatusInsufficientStorage:
				full = true
			default:
				t.Fatal(err)
			}
		}
		if !full {
			t.Error("the disk is full, and files are stored")
		}
		srv.whole(t, dir)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		until(t, "there is room again", func() bool { return srv.Ready(t.Context()) == nil })
		if err := create(fmt.Sprint("after ", left)); err != nil {
			t.Errorf("there is room, and %v", err)
		}
	}
	until(t, "what no record names is swept", func() bool {
		named, onDisk := srv.whole(t, dir)
		return named == onDisk
	})
}
