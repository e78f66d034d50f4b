package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/randtest"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/mongo"
)

// R1: svcd is killed in drills. The records and the snapshot are as they were, the next start removes the database into which the drill has restored, and the next drill
// comes back equal.
func TestR1KillInDrills(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := newReleased(t)
		killInDrills(t, s, 6, func() (store.Store, error) {
			return embedded.Open(t.Context(), embedded.Options{Dir: filepath.Join(s.dir, "data", "store"), OnFatal: func(err error) { t.Error(err) }})
		})
	})
	t.Run("mongodb", func(t *testing.T) { // where a start waits until the process before is taken for dead
		t.Parallel()
		if os.Getenv("SOAK") == "" {
			t.Skip("SOAK=1 runs it")
		}
		uri := ownMongoDB(t, 5*time.Second)
		killInDrills(t, newReleased(t, uri), 1, func() (store.Store, error) {
			return mongo.Open(t.Context(), mongo.Options{URI: strings.TrimPrefix(uri, "STORE_URI=")})
		})
	})
}

func killInDrills(t *testing.T, s svcd, rounds int, open func() (store.Store, error)) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds *= 5
	}
	const size = 3000
	s.write("projects/blog/project.yaml", takenConfig)
	srv := s.start()
	srv.register(t)
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", size, "")); err != nil {
		t.Fatal(err)
	}
	run, err := srv.CreateSnapshot(t.Context(), "blog", "daily")
	id := srv.ends(t, run, err)
	left := map[string]bool{} // databases of drills that were killed
	for round := range rounds {
		run, err := srv.DrillSnapshot(t.Context(), "blog", id)
		if err != nil {
			t.Fatal(err)
		}
		srv.comesTo(t, run, []string{"load", "verify"}[round%2])
		time.Sleep(time.Duration(randtest.Of(t).IntN(10)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for name := range drillsLeft(t, open) {
			left[name] = true
		}
		srv = s.start()
		srv.served(t)
		until(t, "a drill comes back equal", func() bool { // one that was killed counts as going on for a while, for who shares the store with it
			run, err := srv.begin(t, func() (*api.Run, error) { return srv.DrillSnapshot(t.Context(), "blog", id) })
			if err != nil {
				t.Fatal(err)
			}
			_ = srv.reaches(t, run, ended)
			if run, err = srv.SnapshotRun(t.Context(), "blog", run.ID); err != nil || run.Error != nil && run.Error.Code != "snapshots_busy" {
				t.Fatal(err, run)
			}
			return run.Status == api.RunSucceeded
		})
		if whole(t, "one", srv.sets(t, "sets")["one"], size); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	srv.wholeSnapshots(t, "drills")
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
	for name, records := range drillsLeft(t, open, left) {
		t.Errorf("%s is left, of %d records", name, records)
	}
	t.Logf("%d of %d kills were in a drill", len(left), rounds)
	if len(left) < max(1, rounds/2) {
		t.Error("that is few")
	}
}

// drillsLeft gives the databases that are noted of drills, and those of some that have records though they are not.
func drillsLeft(t *testing.T, open func() (store.Store, error), known ...map[string]bool) map[string]int64 {
	t.Helper()
	st, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	left := map[string]int64{}
	err = st.Database("svc_blog").Collection("svc.restores").Find(t.Context(), store.Query{}, func(doc bson.Raw) error {
		if name, ok := doc.Lookup("database").StringValueOK(); ok {
			left[name] = 0
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range known {
		for name := range names {
			for _, collection := range []string{"sets", "svc.restore." + strings.TrimPrefix(name, "svc-drill-") + ".0"} {
				n, err := st.Database(name).Collection(collection).Count(t.Context(), nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				if n > 0 {
					left[name] += n
				}
			}
		}
	}
	return left
}
