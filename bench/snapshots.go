package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	mediaFiles      = 500 // beside the articles
	mediaSize       = 200_000
	manyMediaFiles  = 5_000 // beside the many records
	snapshotRounds  = 5
	snapshotWriters = 4
	writerRounds    = 9
	snapshotsPath   = "/api/v1/_/bench/_/admin/snapshots"
)

// snapshotProfiles are added to the project: one whose second snapshot links to the first, and one that writes all records each time.
const snapshotProfiles = `snapshots:
  - name: linking
    collectionDedup: true
  - name: writing
`

// measureSnapshots measures how long snapshots take and how much room, what they cost those who write meanwhile, and how memory grows with
// what is in them.
func measureSnapshots(ctx context.Context, o options) (err error) {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	config := filepath.Join(s.projectDir(), "project.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, append(text, snapshotProfiles...), 0o644); err != nil {
		return err
	}
	if err := s.addCollection("notes", "many", nil); err != nil {
		return err
	}
	if err := s.start(ctx, "/readyz"); err != nil {
		return err
	}
	a, err := seed(ctx, s, o.articles)
	if err != nil {
		return err
	}
	if err := s.upload(ctx, mediaFiles); err != nil {
		return err
	}
	fmt.Printf("%d articles, %d files of %d KB, %s store\n", o.articles, mediaFiles, mediaSize/1000, s.store())
	if err := s.snapshotTimes(ctx); err != nil {
		return err
	}
	if err := s.snapshotMemory(ctx); err != nil {
		return err
	}
	if err := s.writersMeanwhile(ctx, operations(a)[2]); err != nil {
		return err
	}
	if _, err := a.fill(ctx, s, "many", o.records, a.note); err != nil {
		return err
	}
	if err := s.upload(ctx, manyMediaFiles); err != nil {
		return err
	}
	fmt.Printf("%d records more, and %d files\n", o.records, manyMediaFiles)
	return s.snapshotMemory(ctx)
}

// snapshotTimes prints how long a first and a second snapshot take, to check one, and to put one back.
func (s *server) snapshotTimes(ctx context.Context) error {
	var first, second, checks, restores, firstRoom, secondRoom []float64
	for range snapshotRounds {
		one, err := s.snapshot(ctx, "linking")
		if err != nil {
			return err
		}
		two, err := s.snapshot(ctx, "linking")
		if err != nil {
			return err
		}
		check, err := s.run(ctx, snapshotsPath+"/"+two.id+"/verify", nil)
		if err != nil {
			return err
		}
		restore, err := s.run(ctx, snapshotsPath+"/"+two.id+"/restore", map[string]any{})
		if err != nil {
			return err
		}
		first, second, checks, restores = append(first, one.seconds), append(second, two.seconds), append(checks, check.seconds), append(restores, restore.seconds)
		firstRoom, secondRoom = append(firstRoom, one.newBytes), append(secondRoom, two.newBytes)
		if err := s.removeSnapshots(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("first snapshot   %.3f s, %.1f MB new on disk\n", median(first), median(firstRoom)/1e6)
	fmt.Printf("second, linking  %.3f s, %.1f MB new on disk\n", median(second), median(secondRoom)/1e6)
	fmt.Printf("check of all     %.3f s\nrestore of all   %.3f s, with the snapshot before it\n\n", median(checks), median(restores))
	return nil
}

// writersMeanwhile prints what the slowest of writes take while snapshots are taken one after the other, and while none is.
func (s *server) writersMeanwhile(ctx context.Context, create operation) error {
	const round = 3 * time.Second
	var alone, meanwhile, slower []float64
	if _, err := load(ctx, s, create, snapshotWriters, time.Second, nil); err != nil { // warm-up
		return err
	}
	for range writerRounds {
		quiet, err := load(ctx, s, create, snapshotWriters, round, nil)
		if err != nil {
			return err
		}
		taking, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			var err error
			for taking.Err() == nil && err == nil {
				_, err = s.snapshot(ctx, "writing")
			}
			ended <- err
		}()
		busy, err := load(ctx, s, create, snapshotWriters, round, nil)
		stop()
		if err := errors.Join(err, <-ended, s.removeSnapshots(ctx)); err != nil {
			return err
		}
		alone, meanwhile, slower = append(alone, quiet.P99), append(meanwhile, busy.P99), append(slower, busy.P99/quiet.P99)
	}
	fmt.Printf("creates over %d connections, %d rounds of %s: p99 %.2f ms, while snapshots are taken %.2f ms; by rounds %.2f times (target: 2), %.2f at worst\n\n",
		snapshotWriters, writerRounds, round, median(alone), median(meanwhile), median(slower), slices.Max(slower))
	return nil
}

// snapshotMemory prints how much memory there is at most while a snapshot of everything is taken and checked.
func (s *server) snapshotMemory(ctx context.Context) error {
	before, err := s.atRest(ctx)
	if err != nil {
		return err
	}
	most, stop := s.watchMemory(ctx)
	taken, err := s.snapshot(ctx, "writing")
	if err == nil {
		_, err = s.run(ctx, snapshotsPath+"/"+taken.id+"/verify", nil)
	}
	stop()
	fmt.Printf("a snapshot in %.1f s, %.1f MB; memory at rest %.0f MiB, at most %.0f MiB\n\n", taken.seconds, taken.newBytes/1e6, before.mib, *most)
	return errors.Join(err, s.removeSnapshots(ctx))
}

// watchMemory notes the most memory that is seen until stop is called.
func (s *server) watchMemory(ctx context.Context) (most *float64, stop func()) {
	most = new(float64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if u, err := s.usage(ctx); err == nil {
				*most = max(*most, u.mib)
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return most, func() { close(done); <-ended }
}

// upload makes records of the collection media, each with a file of other bytes.
func (s *server) upload(ctx context.Context, n int) error {
	rng := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	data := make([]byte, mediaSize)
	for i := range n {
		_, _ = rng.Read(data) // never fails
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		file, err := form.CreateFormFile("file", fmt.Sprintf("f%05d.bin", i))
		if err == nil {
			_, err = file.Write(data)
		}
		if err := errors.Join(err, form.Close()); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/api/v1/_/bench/media", &body)
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", form.FormDataContentType())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("upload: status %d: %.500s", resp.StatusCode, answer)
		}
	}
	return nil
}

// taken is a run of snapshots that has succeeded.
type taken struct {
	id       string // of the snapshot
	seconds  float64
	newBytes float64 // that are no links
}

func (s *server) snapshot(ctx context.Context, profile string) (taken, error) {
	return s.run(ctx, snapshotsPath, map[string]any{"profile": profile})
}

// run starts a run of snapshots and waits for its end.
func (s *server) run(ctx context.Context, path string, body any) (taken, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return taken{}, err
		}
	}
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+path, bytes.NewReader(data))
	if err != nil {
		return taken{}, err
	}
	req.Header.Set("X-Admin-Token", adminToken)
	req.Header.Set("Accept", "text/event-stream")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return taken{}, err
	}
	events, err := io.ReadAll(resp.Body)
	seconds := time.Since(began).Seconds()
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return taken{}, err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(events, []byte("event: done")) {
		return taken{}, fmt.Errorf("POST %s: status %d: %s", path, resp.StatusCode, events[max(0, len(events)-500):])
	}
	var run struct {
		Result struct {
			Snapshot string
			Counts   struct{ NewBytes float64 }
		}
	}
	err = s.want(ctx, http.MethodGet, strings.Replace(resp.Header.Get("Location"), "http://"+s.addr, "", 1), nil, http.StatusOK, &run)
	return taken{run.Result.Snapshot, seconds, run.Result.Counts.NewBytes}, err
}

func (s *server) removeSnapshots(ctx context.Context) error {
	var list struct{ Items []struct{ ID string } }
	if err := s.want(ctx, http.MethodGet, snapshotsPath+"?limit=1000", nil, http.StatusOK, &list); err != nil {
		return err
	}
	for _, one := range list.Items {
		if err := s.want(ctx, http.MethodDelete, snapshotsPath+"/"+one.ID, nil, http.StatusNoContent, nil); err != nil {
			return err
		}
	}
	return nil
}
