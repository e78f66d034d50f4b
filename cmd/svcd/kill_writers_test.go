package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

const writersConfig = takenConfig + `  - name: kept
    fields: [{name: title, type: string, index: [unique]}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  - name: brought
    fields: [{name: title, type: string, index: [unique]}]
    permissions: {public: {methods: {get: true}}, user: {methods: {}}}
`

// R1: svcd is killed while it takes, restores and prunes snapshots, and others write. No write that was acknowledged is lost: in a collection
// that no restore touches all are there; in one that is restored it is there, or, where what is there is the snapshot's, in the snapshot that
// was taken before. There is nothing that nobody has written, and no record twice.
func TestR1KillInSnapshotsBesideWriters(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killBesideWriters(t, newReleased(t), 8, 5*time.Second)
	})
	t.Run("mongodb", func(t *testing.T) { // where a start may wait until the process before is taken for dead
		t.Parallel()
		killBesideWriters(t, newReleased(t, ownMongoDB(t, 5*time.Second)), 3, 0)
	})
}

// writing is what one writer has written into a collection, in its order.
type writing struct {
	collection string
	tried      []string
	acked      []string
}

// write creates records one after the other, until svcd is gone or ctx ends. Where it is refused because a restore goes on, it tries the same again.
func (w *writing) write(ctx context.Context, t *testing.T, c *client.Client, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		title := fmt.Sprint(name, " ", n)
		w.tried = append(w.tried, title)
		for {
			_, err := c.CreateRecord(ctx, "blog", w.collection, api.Record(fmt.Sprintf(`{"title":%q}`, title)))
			var refused *client.Error
			switch {
			case err == nil:
				w.acked = append(w.acked, title)
			case errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable:
				continue
			case errors.As(err, &refused):
				t.Errorf("%s: %v", title, err)
				return
			default: // nobody answers any more
				return
			}
			break
		}
	}
}

func killBesideWriters(t *testing.T, s svcd, rounds int, within time.Duration) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds *= 10
	}
	s.write("projects/blog/project.yaml", writersConfig)
	srv := s.start()
	srv.register(t)
	srv.served(t)
	if _, err := srv.BulkCreate(t.Context(), "blog", "sets", members("one", 3000, strings.Repeat("x", 200))); err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{} // all that is to be in the collection that is never restored
	replaced, stayed, beside, restores, slowest := 0, 0, 0, 0, time.Duration(0)
	for round := 0; round < rounds || (replaced == 0 || stayed == 0) && round < rounds+extraRounds; round++ {
		what := []string{"restore", "restore", "take", "restore", "restore", "prune"}[round%6]
		snap, now := fmt.Sprint("of the snapshot ", round), fmt.Sprint("of now ", round)
		var mark string
		until(t, "writes are taken", func() bool { // instances that share a store wait a while for one that is killed while it restores
			rec, err := srv.CreateRecord(t.Context(), "blog", "brought", api.Record(fmt.Sprintf(`{"title":%q}`, snap)))
			var r stored
			if err == nil {
				err = json.Unmarshal(rec, &r)
			}
			if err != nil && !isStatus(err, http.StatusServiceUnavailable) {
				t.Fatal(err)
			}
			mark = r.ID
			return err == nil
		})
		run, err := srv.begin(t, func() (*api.Run, error) { return srv.CreateSnapshot(t.Context(), "blog", "daily") })
		id := srv.ends(t, run, err)
		saved := srv.titles(t, "brought")
		if _, err := srv.DeleteRecord(t.Context(), "blog", "brought", mark, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		srv.mustCreate(t, "brought", api.Record(fmt.Sprintf(`{"title":%q}`, now)))
		old := srv.titles(t, "brought")

		ctx, stop := context.WithCancel(t.Context())
		var all []*writing
		var writers sync.WaitGroup
		for i, collection := range []string{"kept", "brought", "kept", "brought"} {
			w := &writing{collection: collection}
			all = append(all, w)
			writers.Go(func() { w.write(ctx, t, srv.Client, fmt.Sprint(round, "/", i)) })
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(50)) * time.Millisecond)
		run, err = srv.begin(t, func() (*api.Run, error) {
			switch what {
			case "take":
				return srv.CreateSnapshot(ctx, "blog", "daily")
			case "prune":
				return srv.PruneSnapshots(ctx, "blog", "")
			default:
				return srv.RestoreSnapshot(ctx, "blog", id, api.SnapshotRestore{Collections: []string{"sets", "brought"}})
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		moment := 60
		if what == "restore" {
			at := aims[restores%len(aims)]
			restores++
			if srv.comesTo(t, run, at); at == ended {
				moment = 300 // others write behind it
			}
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(moment)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		stop()
		writers.Wait()
		began := time.Now()
		srv = s.start()
		srv.served(t)
		slowest = max(slowest, time.Since(began))

		found := srv.titles(t, "kept")
		for _, w := range all {
			if w.collection == "kept" {
				w.there(t, found, w.acked)
				for _, title := range w.tried {
					kept[title] = kept[title] || found[title]
				}
			}
		}
		wantTitles(t, "kept", found, kept)

		found = srv.titles(t, "brought")
		was := old
		if found[snap] {
			was = saved
			replaced++
			if what != "restore" {
				t.Errorf("%s has brought back a snapshot", what)
			}
		} else if what == "restore" {
			stayed++
		}
		want := map[string]bool{}
		for title := range was {
			want[title] = true
		}
		for _, w := range all {
			if w.collection != "brought" {
				continue
			}
			first := 0 // of those that are behind the restore
			if found[snap] {
				for first < len(w.acked) && !found[w.acked[first]] {
					first++
				}
				srv.inSafety(t, s.dir, w.acked[:first])
				if first > 0 && first < len(w.acked) {
					beside++
				}
			}
			w.there(t, found, w.acked[first:])
			for _, title := range w.tried {
				want[title] = found[title]
			}
		}
		wantTitles(t, "brought", found, want)
		srv.wholeSnapshots(t, what)
		if t.Failed() {
			t.Fatalf("round %d: %s", round, what)
		}
		list, err := srv.ListSnapshots(t.Context(), "blog", "before-restore", client.Query{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list.Items { // so that each round has its own to check
			until(t, "nobody is at the snapshots", func() bool {
				err := srv.DeleteSnapshot(t.Context(), "blog", info.ID)
				if err != nil && !isStatus(err, http.StatusConflict) {
					t.Fatal(err)
				}
				return err == nil
			})
		}
	}
	t.Logf("%d kills in restores: %d of them are done, %d are not, %d writers wrote before and behind one; %d records; the slowest start took %s", restores, replaced, stayed, beside, len(kept), slowest)
	if len(kept) < rounds {
		t.Error("too little was written: this tested little")
	}
	if replaced == 0 || stayed == 0 {
		t.Error("all kills came before a restore took effect, or all behind it")
	}
	if os.Getenv("SOAK") != "" && (replaced < rounds/10 || within > 0 && slowest > within) {
		t.Errorf("%d restores were done; the slowest start took %s", replaced, slowest)
	}
}

// there wants records to be there.
func (w *writing) there(t *testing.T, found map[string]bool, acked []string) {
	t.Helper()
	for _, title := range acked {
		if !found[title] {
			t.Errorf("%s: %s was acknowledged, and is lost", w.collection, title)
		}
	}
}

// wantTitles wants a collection to have records that somebody has written, and no others.
func wantTitles(t *testing.T, collection string, found, want map[string]bool) {
	t.Helper()
	for title := range found {
		if !want[title] {
			t.Errorf("%s: nobody has %s be there", collection, title)
		}
	}
	for title, there := range want {
		if there && !found[title] {
			t.Errorf("%s: %s is gone", collection, title)
		}
	}
}

// titles are those of the records of a collection. None may be there twice.
func (s *server) titles(t *testing.T, collection string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for rec, err := range s.Records(t.Context(), "blog", collection, client.Query{Limit: 1000}) {
		var r struct{ Title string }
		if err == nil {
			err = json.Unmarshal(rec, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[r.Title] {
			t.Errorf("%s: %s is there twice", collection, r.Title)
		}
		found[r.Title] = true
	}
	return found
}

// inSafety wants records that a restore has replaced to be in a snapshot that one took before.
func (s *server) inSafety(t *testing.T, dir string, titles []string) {
	t.Helper()
	if len(titles) == 0 {
		return
	}
	all, err := filepath.Glob(filepath.Join(dir, "projects", "blog", "snapshots", "before-restore", "*Z-*", "collections", "brought.jsonl.zst"))
	if err != nil || len(all) == 0 {
		t.Fatalf("there is no snapshot of before: %v", err)
	}
	var text strings.Builder // the titles are of one round
	for _, name := range all {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		zip, err := zstd.NewReader(file)
		if err == nil {
			_, err = io.Copy(&text, zip)
			zip.Close()
		}
		_ = file.Close() // it was only read
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, title := range titles {
		if !strings.Contains(text.String(), fmt.Sprintf(`"title":%q`, title)) {
			t.Errorf("%s was acknowledged before the restore, and is not in the snapshot that it took", title)
		}
	}
}
