package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/search"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// TestR21SearchOfADamagedIndex is row R21: a search that comes upon damage has it made anew, and is told to come again at the most.
func TestR21SearchOfADamagedIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), articles)
	for n := range 2000 {
		var words strings.Builder
		for i := range 20 {
			fmt.Fprintf(&words, "w%dx%d ", n, i)
		}
		w.write("articles", doc(n, "title", words.String()))
	}
	if err := w.engine.Settle(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	w.close()
	w.open()
	files, err := filepath.Glob(filepath.Join(w.dir, "*", "*.sst"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(raw); i += 50 {
			raw[i] ^= 0x55
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // the file that is open
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(raw, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c := w.project.Collections["articles"]
	for n := range 2000 {
		q := fmt.Sprintf("w%dx7", n)
		words, err := search.Parse(q)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.engine.Search(t.Context(), engine.Query{Project: w.project, Collection: c, Search: c.Search("main"), Text: q, Words: words})
		if errors.Is(err, engine.ErrBuilding) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if err := r.Close(); err != nil { // of what was damaged
			t.Logf("%s: %v", q, err)
		}
	}
	w.soon("main", "+w7x7", []int{7})
}

// TestServeOnADamagedIndex serves a config while indexes can't be made: it is served whole when they can, without another change of it.
func TestServeOnADamagedIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), articles)
	w.put("articles", doc(1, "title", "fox"))
	w.settle()
	folders, err := filepath.Glob(filepath.Join(w.dir, "v*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	if err := os.Rename(folders[0], filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	w.put("articles", doc(2, "title", "fox"))
	if err := engine.Flush(t.Context(), w.engine); err != nil && !errors.Is(err, index.ErrDamaged) { // nil: the engine has found it, and made another
		t.Fatal(err)
	}
	p := w.load(w.project.Namespace, articles+strings.Replace(articles, "name: articles", "name: others", 1))
	p.Generation = w.project.Generation + 1
	w.project = p
	w.write("others", doc(1, "title", "fox"))
	if err := w.engine.Serve(p); err != nil && !errors.Is(err, index.ErrDamaged) { // likewise
		t.Fatal(err)
	}
	for until := time.Now().Add(patience); w.engine.Serve(p) != nil && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
	}
	w.soon("main", "fox", []int{1, 2})
	w.finds("others", "main", "fox", []int{1})
}

// TestServeWhileIndexesAreMade: what is served drops indexes that are of no use, and never one that was begun meanwhile.
func TestServeWhileIndexesAreMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), articles)
	w.put("articles", doc(1, "title", "fox"))
	w.settle()
	p := w.project
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			next := *p
			next.Generation++
			p = &next
			if err := w.engine.Serve(p); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 60 {
		engine.Lose(w.engine)
		w.settle()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
