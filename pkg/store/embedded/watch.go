package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

const (
	watchChunk = 256     // entries that are read at once: no iterator is open while a watcher works
	watchBytes = 4 << 20 // and bytes of their documents
	idleEvery  = 10 * time.Second

	fewWatchers = 10                     // of a feed: so many look at each commit
	watcherTime = 200 * time.Microsecond // of all time, for each look of a watcher among many

	positionVersion = 1
	positionSize    = 1 + 8 + 8 + 3*8
)

// position is the end of a database's feed, everything that is visible now included.
func (s *Store) position(database string) store.Position {
	return s.encodePosition(database, s.feeds.of(database).end())
}

// A position is a version, the store's id, the hash of the database's name, and a feedHead: the number, with the time
// and total that its entry has, so that a store that went back to a copy of itself knows the numbers it gave before.
func (s *Store) encodePosition(database string, at feedHead) store.Position {
	p := append(make([]byte, 0, positionSize), positionVersion)
	p = append(p, s.id[:]...)
	p = binary.BigEndian.AppendUint64(p, nameHash(database))
	for _, n := range []uint64{at.seq, at.time, at.total} {
		p = binary.BigEndian.AppendUint64(p, n)
	}
	return p
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // can't fail
	return h.Sum64()
}

func (s *Store) decodePosition(database string, p store.Position) (at feedHead, err error) {
	if len(p) != positionSize || p[0] != positionVersion || !bytes.Equal(p[1:9], s.id[:]) ||
		binary.BigEndian.Uint64(p[9:]) != nameHash(database) {
		return at, store.ErrBadPosition
	}
	at.seq = binary.BigEndian.Uint64(p[17:])
	at.time = binary.BigEndian.Uint64(p[25:])
	at.total = binary.BigEndian.Uint64(p[33:])
	return at, nil
}

// Position is the end of the database's feed.
func (d database) Position(ctx context.Context) (store.Position, error) {
	done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	at, _ := d.s.feeds.of(d.name).onDisk(false)
	return d.s.encodePosition(d.name, at), nil
}

// Positions gives the end of the feed of each database in which anything was ever written, those that are gone included.
func (s *Store) Positions(ctx context.Context) (map[string]store.Position, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all := map[string]store.Position{}
	for name, f := range s.feeds.all() {
		if at, _ := f.onDisk(false); at.seq > 0 {
			all[name] = s.encodePosition(name, at)
		}
	}
	return all, nil
}

// Beginning is the place in the feed of a database before all that was ever written to it. A Watch behind it misses nothing
// of a database that has just come into being.
func (s *Store) Beginning(database string) store.Position {
	return s.encodePosition(database, feedHead{})
}

// Watch tells of the changes behind w.After, and then of those that come, until ctx ends.
func (d database) Watch(ctx context.Context, w store.Watch, fn func(store.Event) error) error {
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	v := watcher{s: d.s, database: d.name, feed: d.s.feeds.of(d.name), watch: w, tell: fn}
	if w.After == nil {
		v.at, _ = v.feed.onDisk(false)
	} else {
		if v.at, err = d.s.decodePosition(d.name, w.After); err == nil {
			err = v.check()
		}
		if err != nil {
			return err
		}
	}
	return v.run(ctx)
}

// watcher is one call of Watch.
type watcher struct {
	s        *Store
	database string
	feed     *feed
	watch    store.Watch
	tell     func(store.Event) error
	at       feedHead // told so far
}

// check says whether the position to begin behind is one of this feed's. That what follows is still there shows when it
// is read.
func (v *watcher) check() (err error) {
	if v.at.seq > v.feed.end().seq {
		return store.ErrHistoryLost
	}
	if v.at.seq == 0 {
		return nil
	}
	key := feedKey(v.feed.prefix, v.at.seq)
	value, closer, err := v.s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return internal(err, "read the feed")
	}
	defer closeInto(&err, closer.Close)
	e, err := decodeEntry(key, value)
	if err != nil {
		return internal(err, "read the feed")
	}
	if e.feedHead != v.at {
		return store.ErrHistoryLost
	}
	return nil
}

func (v *watcher) run(ctx context.Context) error {
	idle := time.NewTicker(idleEvery)
	defer idle.Stop()
	v.feed.watchers.Add(1)
	defer v.feed.watchers.Add(-1)
	var looked time.Time
	for {
		if err := v.alive(ctx); err != nil {
			return err
		}
		end, moved := v.feed.onDisk(true)
		if v.at.seq < end.seq {
			if err := v.chunk(ctx, end); err != nil {
				return err
			}
			continue
		}
		if v.watch.OnIdle != nil {
			if err := v.watch.OnIdle(v.s.encodePosition(v.database, v.at)); err != nil {
				return err
			}
		}
		select {
		case <-moved:
		case <-idle.C:
		case <-ctx.Done():
		case <-v.s.state.closing:
		}
		v.pause(ctx, looked)
		looked = time.Now()
	}
}

// pause waits until it is time to look again. Watchers that are many look less often, and find more each time: else all
// of them would look at each commit, and leave no time for the next.
func (v *watcher) pause(ctx context.Context, looked time.Time) {
	n := v.feed.watchers.Load()
	if n <= fewWatchers {
		return
	}
	select {
	case <-time.After(time.Until(looked.Add(time.Duration(n) * watcherTime))):
	case <-ctx.Done():
	case <-v.s.state.closing:
	}
}

func (v *watcher) alive(ctx context.Context) error {
	if ctx.Err() != nil {
		return store.Ended(ctx)
	}
	if v.s.failed.Load() != nil {
		return errFailed.With(*v.s.failed.Load())
	}
	select {
	case <-v.s.state.closing:
		return store.ErrClosed
	default:
		return nil
	}
}

// chunk tells of the next entries, up to end.
func (v *watcher) chunk(ctx context.Context, end feedHead) error {
	entries, err := v.read(end)
	if err != nil {
		return err
	}
	docs := make([]bson.Raw, len(entries))
	if v.watch.Documents || len(v.watch.Fields) > 0 {
		if entries, err = v.documents(ctx, entries, docs); err != nil {
			return err
		}
	}
	for i := range entries {
		e := &entries[i]
		if v.wants(e) {
			if err := v.alive(ctx); err != nil {
				return err
			}
			event := store.Event{
				Position: v.s.encodePosition(v.database, e.feedHead), Kind: e.kind, Collection: e.name,
				ID: e.id, Doc: docs[i], To: e.to, Time: time.UnixMilli(int64(e.time)), //nolint:gosec // was an int64
				Update: e.detail(detailUpdate), Before: e.detail(detailBefore), After: e.detail(detailAfter),
			}
			if len(v.watch.Fields) > 0 && (e.kind == store.Inserted || e.kind == store.Updated) {
				event.Fields = event.Doc
			}
			if !v.watch.Documents {
				event.Doc = nil
			}
			if err := v.tell(event); err != nil {
				return err
			}
		}
		v.at = e.feedHead
	}
	return nil
}

func (v *watcher) wants(e *feedEntry) bool {
	names := v.watch.Collections
	return len(names) == 0 || slices.Contains(names, e.name) || e.kind == store.Renamed && slices.Contains(names, e.to)
}

// read gives the next entries. A gap before one of them is where the feed was truncated.
func (v *watcher) read(end feedHead) (entries []feedEntry, err error) {
	it, err := v.s.db.NewIter(&pebble.IterOptions{
		LowerBound: feedKey(v.feed.prefix, v.at.seq+1), UpperBound: feedKey(v.feed.prefix, end.seq+1),
	})
	if err != nil {
		return nil, internal(err, "open an iterator")
	}
	defer closeInto(&err, it.Close)
	next, size := v.at.seq+1, 0
	for ok := it.First(); ok && len(entries) < watchChunk && size < watchBytes; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, internal(err, "read the feed")
		}
		size += len(value)
		e, err := decodeEntry(it.Key(), value)
		if err != nil {
			return nil, internal(err, fmt.Sprintf("read the feed at %x", it.Key()))
		}
		if e.seq != next {
			return nil, store.ErrHistoryLost
		}
		entries = append(entries, e)
		next++
	}
	if err := it.Error(); err != nil {
		return nil, internal(err, "read the feed")
	}
	if len(entries) == 0 { // the last entry always stays
		if now, _ := v.feed.onDisk(false); now.seq > end.seq { // but this is not the last one any more
			return nil, store.ErrHistoryLost
		}
		return nil, internal(errors.New("the end is missing"), "read the feed")
	}
	return entries, nil
}

// documents reads the documents of as many entries as are not too large together, and gives those entries. A document
// may be newer than what is durable, which a crash could take back without an event; so it waits until that is, too.
func (v *watcher) documents(ctx context.Context, entries []feedEntry, docs []bson.Raw) ([]feedEntry, error) {
	size := 0
	for i := range entries {
		e := &entries[i]
		if size > watchBytes {
			entries = entries[:i]
			break
		}
		coll := v.s.cat.get(collectionName{database: v.database, collection: e.name})
		if coll == nil || e.id.Type == 0 || !v.wants(e) {
			continue
		}
		doc, err := getDoc(v.s.db, docKey(coll.id, idKey(e.id)))
		if err != nil {
			return nil, err
		}
		docs[i] = doc
		size += len(doc)
	}
	seen := v.feed.end()
	for {
		if err := v.alive(ctx); err != nil {
			return nil, err
		}
		end, moved := v.feed.onDisk(true)
		if end.seq >= seen.seq {
			return entries, nil
		}
		select {
		case <-moved:
		case <-time.After(time.Second): // the engine may have failed
		case <-ctx.Done():
		case <-v.s.state.closing:
		}
	}
}
