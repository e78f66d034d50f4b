package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/svcctl/svc/pkg/store/embedded"
)

const killDirEnv, killSeedEnv, killRoundEnv = "EMBEDDED_TEST_KILL_DIR", "EMBEDDED_TEST_KILL_SEED", "EMBEDDED_TEST_KILL_ROUND"

// killWriters is how many writers the process that is killed has.
const killWriters = 4

// note is a line from the process that is killed to the one that kills it.
type note struct {
	Writer  int   `json:",omitempty"`
	Try     *step `json:",omitempty"`
	Settled *bool `json:",omitempty"` // applied, or refused
}

// pipe is the ledger's end in the process that is killed. What was written to it outlives the process.
type pipe struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *pipe) send(n note) {
	line, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	_, err = p.w.Write(append(line, '\n'))
	p.mu.Unlock()
	if err != nil {
		os.Exit(1) // nobody is listening any more
	}
}

func (p *pipe) try(w int, s step)          { p.send(note{Writer: w, Try: &s}) }
func (p *pipe) settle(w int, applied bool) { p.send(note{Writer: w, Settled: &applied}) }

// TestKillVictim is not a test: TestR1Kill runs it in a process of its own, where it works with a store until it is
// killed.
func TestKillVictim(t *testing.T) {
	dir := os.Getenv(killDirEnv)
	if dir == "" {
		t.Skip("run by TestR1Kill")
	}
	seed, _ := strconv.ParseUint(os.Getenv(killSeedEnv), 10, 64)
	round, _ := strconv.Atoi(os.Getenv(killRoundEnv))
	notes := &pipe{w: os.NewFile(3, "notes")}
	s, err := embedded.Open(t.Context(), killOptions(dir))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	found := contents(t, s.Database("db"))
	for i := range killWriters {
		cur := state{}
		for k, v := range found {
			if k.id/idsPerWriter == int64(i) {
				cur[k] = v
			}
		}
		w := newWorker(t, s.Database("db"), notes, i, cur, seed, round)
		go func() { die(w.run(t.Context())) }()
	}
	for i, job := range jobs(true) {
		r := rand.New(rand.NewPCG(seed, uint64(100+i)))
		go func() {
			for {
				die(job(t.Context(), s, r))
			}
		}()
	}
	select {}
}

// die ends the process that is to be killed, because something went wrong in it.
func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the store failed:", err)
		os.Exit(3)
	}
}

func killOptions(dir string) embedded.Options {
	return embedded.Options{Dir: dir, Ballast: -1, MemTableSize: 512 << 10, CacheSize: 1 << 20, FeedBytes: 64 << 10, OnFatal: die}
}

// TestR1Kill kills a process at random moments of its work with a store in a directory, again and again, and looks at
// what the next one finds. KILLS is the number of kills.
func TestR1Kill(t *testing.T) {
	kills, seed := figure(t, "KILLS", 8, 3), seedOf(t)
	k := &killer{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: filepath.Join(t.TempDir(), "store"), ledger: newLedger(killWriters)}
	for k.round = range kills {
		k.kill()
		k.check()
		if t.Failed() {
			t.Fatalf("round %d", k.round)
		}
	}
	if k.ledger.acked < k.working {
		t.Errorf("only %d steps were acknowledged in %d rounds: this tested little", k.ledger.acked, k.working)
	}
	t.Logf("%d kills, %d acknowledged steps, none lost; opened in %s at most", kills, k.ledger.acked, k.slowest.Round(time.Millisecond))
}

type killer struct {
	t       *testing.T
	r       *rand.Rand
	dir     string
	ledger  *ledger
	round   int
	working int           // rounds that were ended at work, not before
	slowest time.Duration // opening
}

// kill runs a process until a random moment, and takes down what it tells.
func (k *killer) kill() {
	t := k.t
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // it hangs
	defer stop()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKillVictim$")
	cmd.Env = append(os.Environ(), killDirEnv+"="+k.dir, killSeedEnv+"="+strconv.FormatUint(k.r.Uint64(), 10), killRoundEnv+"="+strconv.Itoa(k.round+1))
	cmd.Stderr = os.Stderr
	notes, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer notes.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	wait := time.Duration(k.r.IntN(150)) * time.Millisecond
	fromStart := k.r.IntN(4) == 0 // it may be opening the store then
	end := sync.OnceFunc(func() { time.AfterFunc(wait, func() { _ = cmd.Process.Kill() }) })
	if fromStart {
		end()
	} else {
		k.working++
	}
	lines := bufio.NewScanner(notes)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n note
		switch err := json.Unmarshal(lines.Bytes(), &n); {
		case err != nil: // the last line, cut short
		case n.Try != nil:
			k.ledger.try(n.Writer, *n.Try)
		case n.Settled != nil:
			k.ledger.settle(n.Writer, *n.Settled)
			end() // it works, however slow the machine is
		}
	}
	_ = cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Errorf("the process ended by itself with %d", cmd.ProcessState.ExitCode())
	}
}

// check opens what is left and holds it against the ledger.
func (k *killer) check() {
	opts := killOptions(k.dir)
	opts.OnFatal = nil
	began := time.Now()
	s := start(k.t, opts)
	k.slowest = max(k.slowest, time.Since(began))
	defer validateAndClose(k.t, s)
	found := contents(k.t, s.Database("db"))
	if err := k.ledger.resolve(found, k.ledger.settledSteps()); err != nil {
		k.t.Error(err)
	}
	wantFollowed(k.t, s.Database("db"), found)
	opts.FS = vfs.Default
	wantCopies(k.t, opts)
}
