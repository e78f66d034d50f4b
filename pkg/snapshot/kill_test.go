package snapshot_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// What the process that is killed is told.
const (
	killDirEnv = "SNAPSHOT_TEST_KILL_DIR"
	killURIEnv = "SNAPSHOT_TEST_KILL_URI" // "": the embedded store
	killInEnv  = "SNAPSHOT_TEST_KILL_IN"  // "drill": it does nothing but drills
)

const killNamespace = "killed"

// drills is the number that has the victim rehearse a restore.
const drills = 4

// openWorld is a world in a folder, whose processes come and go.
func openWorld(t *testing.T, dir, uri string) (w *world, end func()) {
	t.Helper()
	var s store.Store
	var err error
	if uri == "" {
		s, err = embedded.Open(t.Context(), embedded.Options{
			Dir: filepath.Join(dir, "store"), Ballast: -1, MemTableSize: 1 << 20, CacheSize: 4 << 20,
			OnFatal: func(err error) { fmt.Fprintln(os.Stderr, err); os.Exit(3) },
		})
	} else {
		s, err = mongo.Open(t.Context(), mongo.Options{URI: uri})
	}
	if err != nil {
		t.Fatal(err)
	}
	p, problems := project.Load(filepath.Join(dir, "project"), "project.yaml", func(string) (string, bool) { return "", false })
	if p == nil {
		t.Fatal(problems)
	}
	logger := slog.New(slog.DiscardHandler)
	w = &world{TB: t, store: s, gate: gate.New(s), p: p, media: filepath.Join(dir, "media"), clock: teststore.NewClock(time.Now())}
	w.library = media.NewLibrary(w.media, media.Options{Logger: logger, Now: w.clock.Now})
	w.useGate()
	w.db = s.Database(project.DatabaseName(p.Namespace))
	return w, func() {
		if err := errors.Join(w.library.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestKillVictim is not a test: TestR1Kill runs it in a process of its own, where it takes, restores and deletes snapshots until it is killed.
func TestKillVictim(t *testing.T) {
	dir := os.Getenv(killDirEnv)
	if dir == "" {
		t.Skip("run by TestR1Kill")
	}
	w, _ := openWorld(t, dir, os.Getenv(killURIEnv))
	ctx := t.Context()
	err := errors.Join(w.snaps.Recover(ctx, w.p), w.snaps.Sweep(ctx, w.p))
	fmt.Println("begun")
	for err == nil {
		w.clock.Pass(time.Second)
		var list []snapshot.Info
		if list, err = w.snaps.List(ctx, w.p); err != nil {
			break
		}
		some := list[randtest.Of(t).IntN(len(list))]
		n := randtest.Of(t).IntN(10)
		if os.Getenv(killInEnv) == "drill" {
			n = drills
		}
		switch {
		case n < 2:
			_, err = w.snaps.Create(ctx, w.p, w.profile("daily"), nil)
		case n < 4:
			if err = w.snaps.Delete(ctx, w.p, some.ID); errors.Is(err, snapshot.ErrPinned) {
				err = nil
			}
		case n == drills:
			_, err = w.snaps.Drill(ctx, w.p, some.ID, func(p snapshot.Progress) { fmt.Println("drill", p.Phase) })
		default:
			o := replaceAll
			if n == 5 {
				o.Mode = snapshot.Merge
			}
			_, err = w.snaps.Restore(ctx, w.p, some.ID, w.p, o, nil)
		}
	}
	fmt.Fprintln(os.Stderr, "the victim failed:", err)
	os.Exit(3)
}

// R1: a process that takes, restores and deletes snapshots is killed at random moments. The next one finds every snapshot whole, and all
// records and files as one of two snapshots has them. SOAK=1 kills 200 times.
func TestR1Kill(t *testing.T) {
	t.Parallel()
	kills, drilled := 6, 3
	if os.Getenv("SOAK") != "" {
		kills, drilled = 200, 40
	}
	t.Run("embedded", func(t *testing.T) { killAgain(t, "", "", kills) })
	t.Run("drills", func(t *testing.T) { killAgain(t, "", "drill", drilled) })
	t.Run("mongodb", func(t *testing.T) {
		if os.Getenv("SOAK") == "" {
			t.Skip("SOAK=1 runs it")
		}
		killAgain(t, mongotest.URI(t), "", kills)
		killAgain(t, mongotest.URI(t), "drill", drilled)
	})
}

func killAgain(t *testing.T, uri, in string, kills int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "project"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimPrefix(strings.Replace(config, "NAMESPACE", killNamespace, 1), "\n")
	if err := os.WriteFile(filepath.Join(dir, "project", "project.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, end := openWorld(t, dir, uri)
	if err := w.store.DropDatabase(t.Context(), project.DatabaseName(killNamespace)); err != nil {
		t.Fatal(err)
	}
	states := w.killStates()
	end()
	seen, restores, others, rehearsals := map[int]int{}, 0, 0, 0
	for round := range kills {
		killOnce(t, dir, uri, in)
		w, end := openWorld(t, dir, uri)
		before := w.withoutIndexes()
		if notes, err := w.db.Collection("svc.restores").Count(t.Context(), notLast, 0); err != nil {
			t.Fatal(err)
		} else if notes > 0 {
			restores++
		}
		scratch := w.scratch()
		if len(scratch) > 0 {
			rehearsals++
		}
		for _, mark := range []string{".partial-*", ".trash-*"} {
			if left, err := filepath.Glob(filepath.Join(w.p.Dir, "snapshots", "*", mark)); err != nil {
				t.Fatal(err)
			} else if len(left) > 0 {
				others++
				break
			}
		}
		if err := w.snaps.Recover(t.Context(), w.p); err != nil {
			t.Fatal(err)
		}
		if err := w.snaps.Sweep(t.Context(), w.p); err != nil {
			t.Fatal(err)
		}
		got := w.withoutIndexes()
		is := slices.IndexFunc(states, func(one state) bool { return cmp.Equal(one, got) })
		if is < 0 {
			t.Fatalf("kill %d leaves none of the states: to the first %s\nbefore it was recovered: to the first %s", round, cmp.Diff(states[0], got), cmp.Diff(states[0], before))
		}
		seen[is]++
		list, err := w.snaps.List(t.Context(), w.p)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			if v := w.verify(info); v.Dangling > 0 {
				t.Errorf("%s lacks files: %+v", info.ID, v.Without)
			}
		}
		if n, err := w.db.Collection("svc.restores").Count(t.Context(), notLast, 0); n != 0 || err != nil {
			t.Errorf("%d notes are left, %v", n, err)
		}
		w.noScratch(scratch, uri)
		end()
		if t.Failed() {
			t.Fatalf("kill %d", round)
		}
	}
	t.Logf("%d kills: %v; %d in a restore or drill, %d of them in a drill, %d while a snapshot was made or removed", kills, seen, restores, rehearsals, others)
	switch {
	case in != "" && rehearsals < max(1, kills/2), in == "" && kills > 100 && (restores < kills/10 || rehearsals == 0 || others < kills/20 || len(seen) < 2):
		t.Error("too few were killed on their way")
	}
	w, end = openWorld(t, dir, uri)
	defer end()
	if err := w.store.DropDatabase(t.Context(), project.DatabaseName(killNamespace)); err != nil {
		t.Error(err)
	}
}

// scratch are the databases that drills have noted, which are to be removed.
func (w *world) scratch() (names []string) {
	w.Helper()
	err := w.db.Collection("svc.restores").Find(w.Context(), store.Query{}, func(doc bson.Raw) error {
		if name, ok := doc.Lookup("database").StringValueOK(); ok {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return names
}

// noScratch wants such databases to be gone, with the collections that do not show.
func (w *world) noScratch(names []string, uri string) {
	w.Helper()
	for _, name := range names {
		db := w.store.Database(name)
		all, err := db.CollectionNames(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for n := range 4 {
			all = append(all, fmt.Sprintf("svc.restore.%s.%d", strings.TrimPrefix(name, "svc-drill-"), n))
		}
		for _, collection := range all {
			if n, err := db.Collection(collection).Count(w.Context(), nil, 0); n > 0 || err != nil {
				w.Errorf("%s.%s has %d records still, %v", name, collection, n, err)
			}
		}
	}
	if uri == "" {
		return
	}
	list := mongotest.Dial(w).Run(w, "admin", bson.D{{Key: "listDatabases", Value: 1}, {Key: "nameOnly", Value: true}})
	for _, name := range names {
		if strings.Contains(list.String(), name) {
			w.Errorf("the database %s is left", name)
		}
	}
}

// killStates fills the project, takes two snapshots of it, which stay, and gives all states that restores of these, and of what they
// lead to, can lead to.
func (w *world) killStates() (states []state) {
	w.Helper()
	var infos []snapshot.Info
	for n := range 2 {
		if n == 0 {
			w.fillWith(10, 600)
		} else {
			w.change()
			w.insert("legacy", bson.D{{Key: "_id", Value: "b"}})
		}
		states = append(states, w.withoutIndexes())
		info := w.create("daily")
		if err := w.snaps.Pin(w.Context(), w.p, info.ID, true); err != nil {
			w.Fatal(err)
		}
		infos = append(infos, info)
	}
	for n, over := range infos { // the second one is what there is
		w.restore(infos[1-n], replaceAll)
		w.restore(over, snapshot.RestoreOptions{Media: true, Mode: snapshot.Merge})
		states = append(states, w.withoutIndexes())
	}
	return states
}

// withoutIndexes is the state without what merges take from one side and replacements from the other.
func (w *world) withoutIndexes() state {
	out := w.state()
	for name, lines := range out.Records {
		out.Records[name] = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "{Name:") })
	}
	return out
}

// killOnce starts a process and kills it: at a random moment, or, if it does nothing but drills, in one of the phases of a drill.
func killOnce(t *testing.T, dir, uri, in string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillVictim$", "-test.timeout=0") //nolint:gosec // it is this test
	cmd.Env = append(os.Environ(), killDirEnv+"="+dir, killURIEnv+"="+uri, killInEnv+"="+in, randtest.ForChild(t))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := bufio.NewReader(out)
	if line, err := says.ReadString('\n'); line != "begun\n" {
		t.Errorf("the victim says %q, %v", line, err)
	}
	moment := 500 * time.Millisecond
	if in == "drill" {
		moment = 10 * time.Millisecond
		want := []string{"drill verify\n", "drill load\n", "drill index\n"}[randtest.Of(t).IntN(3)]
		for skip := randtest.Of(t).IntN(3); skip >= 0; { // it may be told several times
			line, err := says.ReadString('\n')
			if err != nil {
				t.Fatalf("the victim does not come to %q: %v", want, err)
			}
			if line == want {
				skip--
			}
		}
	}
	go func() { _, _ = io.Copy(io.Discard, says) }() // so that it is not held up
	time.Sleep(time.Duration(randtest.Of(t).Int64N(int64(moment))))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("it has ended before: %v", err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.ExitCode() != -1 {
		t.Fatal("the victim ended by itself")
	}
}
