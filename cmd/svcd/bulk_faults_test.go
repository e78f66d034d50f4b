package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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

// Bulk writes of sets are done as a whole, those of notes item by item.
const bulkConfig = `
namespace: blog
collections:
  - name: sets
    bulk: {mode: atomic, maxItems: 5000}
    fields: &fields [{name: set, type: string, index: [single]}, {name: k, type: string, index: [unique]}, {name: n, type: number}, {name: text, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: notes
    bulk: {maxItems: 5000}
    fields: *fields
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

// member is one record of a set.
type member struct {
	Set string `json:"set"`
	K   string `json:"k"`
	N   int    `json:"n"`
}

// members are the records of a new set.
func members(set string, size int, text string) []api.Record {
	records := make([]api.Record, size)
	for i := range records {
		records[i] = api.Record(fmt.Sprintf(`{"set":%q,"k":"%s %d","n":1,"text":%q}`, set, set, i, text))
	}
	return records
}

func inSet(set string) string { return fmt.Sprintf(`{"set":%q}`, set) }

// sets gives the numbers that the records of each set have, and how many there are of each.
func (s *server) sets(t *testing.T, collection string) map[string]map[int]int {
	t.Helper()
	found := map[string]map[int]int{}
	for rec, err := range s.Records(t.Context(), "blog", collection, client.Query{Limit: 1000, Select: "set,k,n"}) {
		var m member
		if err == nil {
			err = json.Unmarshal(rec, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[m.Set] == nil {
			found[m.Set] = map[int]int{}
		}
		found[m.Set][m.N]++
	}
	return found
}

// served waits until the project is served.
func (s *server) served(t *testing.T) {
	t.Helper()
	until(t, "the project is served", func() bool {
		_, err := s.CountRecords(t.Context(), "blog", "sets", "")
		return err == nil
	})
}

// whole holds that a set is there as a whole, with the number of one write, or not at all. It gives that number, 0 for none.
func whole(t *testing.T, set string, numbers map[int]int, size int) int {
	t.Helper()
	for n, count := range numbers {
		if len(numbers) != 1 || count != size {
			t.Errorf("of %s, which has %d records, these are there, by their numbers: %v", set, size, numbers)
		}
		return n
	}
	return 0
}

// TestR1KillInAtomicBulk ends svcd without warning while it creates, changes and deletes sets of thousands of records, each by
// one atomic bulk write: after the restart each set is as one of them made it, and no write that was acknowledged is lost.
func TestR1KillInAtomicBulk(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		killInBulk(t, newReleased(t), 3)
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		killInBulk(t, newReleased(t, ownMongoDB(t, 5*time.Second)), 2)
	})
}

func killInBulk(t *testing.T, s svcd, rounds int) {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		rounds *= 10
	}
	const size = 2000
	s.write("projects/blog/project.yaml", bulkConfig)
	srv := s.start()
	srv.register(t)
	type fate struct{ acked, tried, writes int } // acked and tried are numbers of the set; 0: it is not there
	writes := 0
	for round := range rounds {
		fates := make([]fate, 2)
		name := func(i int) string { return fmt.Sprint("r", round, " ", i) }
		var writers sync.WaitGroup
		for i := range fates {
			f, set := &fates[i], name(i)
			writers.Go(func() {
				for n := 1; ; n++ { // created, changed twice, deleted, and so on
					var err error
					switch f.tried = n; n % 4 {
					case 1:
						_, err = srv.BulkCreate(t.Context(), "blog", "sets", members(set, size, ""))
						f.tried = 1
					case 0:
						_, err = srv.BulkDelete(t.Context(), "blog", "sets", inSet(set))
						f.tried = 0
					default:
						_, err = srv.BulkUpdate(t.Context(), "blog", "sets", inSet(set), api.Record(fmt.Sprintf(`{"n":%d}`, n)))
					}
					if err != nil {
						return
					}
					f.acked = f.tried
					f.writes++
				}
			})
			if i == 0 {
				until(t, "the first set is there", func() bool {
					n, err := srv.CountRecords(t.Context(), "blog", "sets", inSet(set))
					return err == nil && n == size
				})
			}
		}
		time.Sleep(time.Duration(randtest.Of(t).IntN(1500)) * time.Millisecond) // the random moment
		if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		srv = s.start()
		srv.served(t)
		found := srv.sets(t, "sets")
		for i, f := range fates {
			writes += f.writes
			if n := whole(t, name(i), found[name(i)], size); n != f.acked && n != f.tried {
				t.Errorf("round %d: %s is as of write %d, acknowledged was %d, and %d was tried", round, name(i), n, f.acked, f.tried)
			}
			// On MongoDB what the process had open when it was killed stays open for a while.
			until(t, "the set is deleted", func() bool {
				_, err := srv.BulkDelete(t.Context(), "blog", "sets", inSet(name(i)))
				return err == nil
			})
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d bulk writes of %d records in %d rounds", writes, size, rounds)
}

// TestStoreFailsInBulk kills MongoDB in the midst of bulk writes of thousands of records. An answer is right about each record,
// and a request that is sent again with its Idempotency-Key until it is answered was carried out once.
func TestStoreFailsInBulk(t *testing.T) {
	t.Parallel()
	rounds := 2
	if os.Getenv("SOAK") != "" {
		rounds = 20
	}
	mongod := startMongoDB(t)
	s := newSvcd(t, "STORE_URI="+mongod.URI)
	s.write("projects/blog/project.yaml", bulkConfig)
	srv := s.start()
	srv.register(t)
	for round := range rounds {
		var writers sync.WaitGroup
		for _, collection := range []string{"sets", "notes"} {
			for i := range 2 {
				set := fmt.Sprint(collection, " ", round, " ", i)
				writers.Go(func() { srv.fill(t, collection, set, 2000) })
			}
		}
		until(t, "the first records are there", func() bool {
			n, err := srv.CountRecords(t.Context(), "blog", "notes", fmt.Sprintf(`{"set":{"$regex":"^notes %d"}}`, round))
			return err == nil && n > 0
		})
		time.Sleep(time.Duration(randtest.Of(t).IntN(200)) * time.Millisecond) // the random moment
		if err := errors.Join(mongod.Kill(), mongod.Restart()); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// fill creates a set by one bulk write, which is sent again until it is answered, and holds what is there against the answer.
func (s *server) fill(t *testing.T, collection, set string, size int) {
	key := client.WriteOptions{IdempotencyKey: strings.ReplaceAll(set, " ", "-")}
	var res *api.BulkCreateResult
	for giveUp := time.Now().Add(4 * patience); ; time.Sleep(20 * time.Millisecond) {
		var err error
		if res, err = s.BulkCreate(t.Context(), "blog", collection, members(set, size, ""), key); err == nil {
			break
		}
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable && refused.Status != http.StatusConflict || time.Now().After(giveUp) {
			t.Errorf("%s: %v", set, err)
			return
		}
	}
	found := map[string]bool{}
	for rec, err := range s.Records(t.Context(), "blog", collection, client.Query{Filter: inSet(set), Limit: 1000}) {
		var m struct{ ID, K string }
		if err == nil {
			err = json.Unmarshal(rec, &m)
		}
		if err != nil {
			t.Error(err)
			return
		}
		found[m.ID] = true
	}
	made := 0
	for i, item := range res.Items {
		switch {
		case item.Status == http.StatusCreated:
			if made++; !found[item.ID] {
				t.Errorf("%s: item %d was acknowledged, and is not there", set, i)
				return
			}
		case item.Status != http.StatusServiceUnavailable:
			t.Errorf("%s: item %d: %d %+v", set, i, item.Status, item.Error)
			return
		}
	}
	if len(res.Items) != size || len(found) < made || len(found) > size || collection == "sets" && made != size {
		t.Errorf("%s: %d items were answered, %d of them created, and %d are there", set, len(res.Items), made, len(found))
	}
}

// TestR4FullDiskByHTTP takes the room of the disk while records are created one by one, in bulk and in atomic bulk. A write is
// carried out or refused as a whole, with a problem that says why; reads go on; and writes do once there is room.
func TestR4FullDiskByHTTP(t *testing.T) {
	s := onSmallDisk(t, newSvcd(t), 200)
	s.write("projects/blog/project.yaml", bulkConfig)
	srv := s.start()
	srv.register(t)
	disk := fmt.Sprintf("/proc/%d/root%s/data", srv.cmd.Process.Pid, s.dir)
	filler := filepath.Join(disk, "filler")
	text := strings.Repeat("x", 1000)
	var mu sync.Mutex
	acked, refused := map[string]int{}, 0 // acked: how many records of a set
	note := func(set string, n int, err error) {
		mu.Lock()
		defer mu.Unlock()
		var problem *client.Error
		switch {
		case err == nil:
			acked[set] = n
		case errors.As(err, &problem) && problem.Status == http.StatusInsufficientStorage && problem.Code() == "store_full" && strings.Contains(problem.Error(), "make room"):
			refused++
		default:
			t.Errorf("%s: %v", set, err)
		}
	}
	write := func(set string) {
		_, err := srv.CreateRecord(t.Context(), "blog", "notes", members(set+" one", 1, text)[0])
		note(set+" one", 1, err)
		_, err = srv.BulkCreate(t.Context(), "blog", "sets", members(set+" atomic", 100, text))
		note(set+" atomic", 100, err)
		res, err := srv.BulkCreate(t.Context(), "blog", "notes", members(set+" each", 600, text))
		if err != nil {
			note(set+" each", 0, err)
			return
		}
		note(set+" each", res.Succeeded, nil)
		for _, item := range res.Items {
			if item.Status != http.StatusCreated && item.Status != http.StatusInsufficientStorage {
				t.Errorf("%s: %d %+v", set, item.Status, item.Error)
			}
		}
	}
	for _, c := range []struct {
		name string
		left int64 // what is left of the room; below 64 MiB the store refuses writes, and 0 is what it did not expect
	}{{"nearly full", 60 << 20}, {"full", 0}} {
		write(c.name + " before")
		stop := make(chan struct{})
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := 0; ; i++ {
				write(fmt.Sprint(c.name, " ", i))
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		takeRoom(t, filler, disk, c.left)
		until(t, "writes are refused", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return refused > 5 || t.Failed()
		})
		srv.sets(t, "sets") // reads go on
		if err := srv.Ready(t.Context()); err == nil {
			t.Error("the service says nothing of its disk")
		}
		close(stop)
		writer.Wait()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		until(t, "there is room again", func() bool { return srv.Ready(t.Context()) == nil })
		before := refused
		if write(c.name + " after"); refused != before {
			t.Error("there is room, and writes are refused")
		}
		refused = 0
	}
	found := map[string]int{}
	for _, collection := range []string{"sets", "notes"} {
		for set, numbers := range srv.sets(t, collection) {
			found[set] = numbers[1]
		}
	}
	for set, n := range acked {
		if found[set] != n {
			t.Errorf("of %s %d records were acknowledged, and %d are there", set, n, found[set])
		}
		delete(found, set)
	}
	if len(found) > 0 {
		t.Errorf("these were refused, and are there: %v", found)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

// onSmallDisk gives the process to be a disk of its own for its data, of that many MiB.
func onSmallDisk(t *testing.T, s svcd, mib int) svcd {
	t.Helper()
	if err := os.Mkdir(filepath.Join(s.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	return withMounts(t, s, fmt.Sprintf(`mount -t tmpfs -o size=%dm tmpfs data`, mib))
}

// withMounts has the process to be run behind commands that mount file systems for it alone.
func withMounts(t *testing.T, s svcd, commands string) svcd {
	t.Helper()
	s.under = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", commands + ` && exec "$0" "$@"`}
	try := exec.CommandContext(t.Context(), s.under[0], append(s.under[1:], "true")...)
	if try.Dir = s.dir; try.Run() != nil {
		t.Skip("this machine lets nobody mount a disk of their own")
	}
	return s
}

// takeRoom writes a file that leaves that many bytes of a disk.
func takeRoom(t *testing.T, file, disk string, left int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for {
		var use syscall.Statfs_t
		if err := syscall.Statfs(disk, &use); err != nil {
			t.Fatal(err)
		}
		free := int64(use.Bavail)*use.Bsize - left
		if free <= 0 {
			return
		}
		if _, err := f.Write(block[:min(free, int64(len(block)))]); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
