package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// MarkIndex begins an index build and leaves it there, as an end of the process does.
func MarkIndex(c store.Collection, def store.Index) error {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	_, _, err := coll.s.markIndex(coll.name, coll.s.cat.get(coll.name), def)
	return err
}

// Building names the indexes that are not ready.
func Building(c store.Collection) []string {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	set := coll.currentIndexes()
	var names []string
	for _, x := range set.all {
		if !slices.Contains(set.ready, x) {
			names = append(names, x.def.Name)
		}
	}
	return names
}

// Waiters says how many calls wait for a build.
func Waiters(c store.Collection, name string) int {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	if x := coll.currentIndexes().find(name); x != nil && x.build != nil {
		return x.build.waiters
	}
	return 0
}

// HoldBuilds lets no build run until release is called.
func HoldBuilds(s *Store) (release func()) {
	s.building <- struct{}{}
	return func() { <-s.building }
}

// StartFlush begins to write what is in memory to tables; the channel is closed when it is there.
func StartFlush(s *Store) (<-chan struct{}, error) { return s.db.AsyncFlush() }

// Sweep lets documents expire and truncates feeds.
func Sweep(ctx context.Context, s *Store) { s.sweep(ctx) }

// ExpireFound does what a sweep does that has found a document to have expired.
func ExpireFound(ctx context.Context, c store.Collection, name string, id bson.RawValue) error {
	coll := c.(*Collection)
	x := coll.currentIndexes().find(name)
	e := expiry{s: coll.s, coll: coll.s.cat.get(coll.name), index: x, until: coll.s.opts.Now().Add(-x.def.ExpireAfter)}
	return e.remove(ctx, []bson.RawValue{id})
}

// FeedSize is the bytes that are kept of a feed.
func FeedSize(tb testing.TB, s *Store, database string) uint64 {
	tb.Helper()
	spans, err := s.feedSpans()
	if err != nil {
		tb.Fatal(err)
	}
	for _, span := range spans {
		if span.feed == s.feeds.of(database) {
			return span.size()
		}
	}
	return 0
}

// Chased says whether somebody chases a document of c.
func Chased(c store.Collection) bool {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	return len(coll.s.cat.get(coll.name).chases) > 0
}

// Flush writes what is in memory to tables.
func Flush(s *Store) error { return s.db.Flush() }

// Damage writes a raw key, or deletes it.
func Damage(s *Store, key, value []byte) error {
	if value == nil {
		return s.db.Delete(key, pebble.Sync)
	}
	return s.db.Set(key, value, pebble.Sync)
}

// Limits are how long things may take, and how large a commit may be; what is zero stays as it is.
type Limits struct {
	Transaction, Patience, View time.Duration
	Commit                      int
}

// SetLimits is to be called before the store is used.
func SetLimits(s *Store, l Limits) {
	s.limits = limits{
		transaction: cmp.Or(l.Transaction, s.limits.transaction),
		patience:    cmp.Or(l.Patience, s.limits.patience),
		view:        cmp.Or(l.View, s.limits.view),
		commit:      cmp.Or(l.Commit, s.limits.commit),
	}
}

// WaitForWaiting returns when n writes wait for transactions.
func WaitForWaiting(s *Store, n int64) {
	for s.waiting.Load() != n {
		runtime.Gosched()
	}
}

// Held says how many documents and keys transactions hold.
func Held(s *Store) int {
	s.commit.Lock()
	defer s.commit.Unlock()
	return len(s.intents)
}

// Snapshots says how many snapshots of the engine are open.
func Snapshots(s *Store) int { return s.db.Metrics().Snapshots.Count }

// Dir is where a store is.
func Dir(s *Store) string { return s.opts.Dir }

// Entries gives the whole keys that doc has in an index, and which of the index's fields led to lists.
func Entries(def store.Index, doc bson.Raw) (keys [][]byte, multikey uint32, err error) {
	entries, err := newIndex(1, def).entriesOf(doc)
	if err != nil {
		return nil, 0, err
	}
	id, _ := document.Field(doc, "_id")
	for _, key := range entries.keys {
		keys = append(keys, append(append(IndexPrefix(), key...), idKey(id)...))
	}
	return keys, entries.multikey, nil
}

// DocKey and IndexPrefix are where a collection and an index are.
func DocKey(doc bson.Raw) []byte {
	id, _ := document.Field(doc, "_id")
	return append(DocPrefix(), idKey(id)...)
}

// DocPrefix begins the keys of DocKey.
func DocPrefix() []byte { return docPrefix(1) }

// IndexPrefix begins the keys of Entries.
func IndexPrefix() []byte { return indexPrefix(1, 1) }

// Commits says how many commits there were since the store was opened.
func Commits(s *Store) uint64 { return s.applied.Load() }

// ReadFeed reads a feed from its beginning as a watcher does that has learned that it ends at an entry, when it has gone
// on since.
func ReadFeed(s *Store, database string, end uint64) error {
	v := watcher{s: s, database: database, feed: s.feeds.of(database)}
	_, err := v.read(feedHead{seq: end})
	return err
}

// LogDamaged says whether the content of a log tells that a part of it is lost that was on disk, and where that begins.
func LogDamaged(data []byte, number uint32) (at int, yes bool) {
	return logContent{data: data, number: number}.damaged()
}

// AppendLogChunk appends to a log a whole record of one chunk, as the engine writes it when all before synced is on disk.
func AppendLogChunk(log []byte, number uint32, synced uint64, data []byte) []byte {
	const whole = 9
	body := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32([]byte{whole}, number), synced)
	body = append(body, data...)
	log = binary.LittleEndian.AppendUint32(log, checksum(body))
	log = binary.LittleEndian.AppendUint16(log, uint16(len(data)))
	return append(log, body...)
}

// CutLog is what is done to the newest log of a copy.
func CutLog(dir string, files vfs.FS) error { return cutLog(dir, files) }

// LogBlock is the size of the blocks of a log.
const LogBlock = logBlock

// Tallies says how many counts a collection keeps up to date.
func Tallies(c store.Collection) int {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	return len(coll.s.cat.get(coll.name).tallies.kept)
}
