package index_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/svcctl/svc/pkg/search/index"
)

// step is one of the changes that TestKilled makes, the same in each process; its number is the position after it.
func (w *world) step(n int) []index.Change {
	w.r, w.rev = rand.New(rand.NewPCG(*seed, uint64(n))), int64(n)*100
	changes, _ := w.change(&sync.Mutex{})
	return changes
}

func (w *world) openAt(dir string) (position int) {
	w.Helper()
	db, err := index.OpenSmall(index.Options{Dir: dir}, vfs.Default)
	if err != nil {
		w.Fatal(err)
	}
	w.db, w.ix = db, openIndex(w.T, db, "a")
	if at := w.ix.Position(); at != nil {
		if position, err = strconv.Atoi(string(at)); err != nil {
			w.Fatal(err)
		}
	}
	return position
}

// TestKilled kills a process that writes, again and again, and goes on from where the index says that it is. It is then what the
// records were at that point, each time. SOAK=1 does so 50 times.
func TestKilled(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("KILLED_DIR"); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	rounds, dir := 4, t.TempDir()
	if os.Getenv("SOAK") != "" {
		rounds = 50
	}
	how := rand.New(rand.NewPCG(*seed, 6))
	last := 0
	for range rounds {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$", "-seed="+strconv.FormatUint(*seed, 10))
		child.Env = append(os.Environ(), "KILLED_DIR="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + how.IntN(150) {
			if !lines.Scan() {
				t.Fatal("the process that writes ended by itself")
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		w := &world{T: t, records: map[string]record{}}
		at := w.openAt(dir)
		if at < last {
			t.Fatalf("the index is at %d, and was at %d before", at, last)
		}
		last = at
		for n := range at {
			w.step(n + 1)
		}
		w.check(w.view(""), "")
		closeDB(t, w.db)
	}
	if last == 0 {
		t.Error("nothing was ever kept")
	}
	t.Logf("killed %d times, at %d in the end", rounds, last)
}

// writeUntilKilled says on its output how far it is.
func writeUntilKilled(t *testing.T, dir string) {
	t.Helper()
	w := &world{T: t, records: map[string]record{}}
	for n := w.openAt(dir) + 1; ; n++ {
		changes := w.step(n)
		if err := w.ix.Apply(t.Context(), changes, strconv.AppendInt(nil, int64(n), 10)); err != nil {
			t.Fatal(err)
		}
		if n%20 == 0 {
			if err := w.db.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println(n)
	}
}
