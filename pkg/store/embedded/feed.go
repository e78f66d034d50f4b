package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// Every database has a feed of its own, with numbers of its own: whoever watches a quiet one reads nothing of, and is
// not woken by, the busy ones. The numbers have no gaps, in the order of commits. The last entry is never truncated:
// it is where the numbers go on after a restart.

// feeds is the feeds of all databases.
type feeds struct {
	mu sync.Mutex
	m  map[string]*feed
}

// of gives the feed of a database, which need not exist.
func (f *feeds) of(database string) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m[database] == nil {
		f.m[database] = &feed{prefix: feedPrefix(database)}
	}
	return f.m[database]
}

// all gives the feeds that there are.
func (f *feeds) all() map[string]*feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.m)
}

// feed is the end of a database's feed.
type feed struct {
	prefix   []byte
	watchers atomic.Int64 // calls of Watch

	mu      sync.Mutex
	last    feedHead      // the last entry that is visible; moved under the commit mutex
	durable feedHead      // the last one that is known to be on disk
	wake    chan struct{} // closed when durable moves; nil if nobody waits
}

// feedHead is a place in a feed: behind the entry seq. The zero value is the beginning.
type feedHead struct {
	seq   uint64
	time  uint64 // of the entry, in ms
	total uint64 // bytes of this entry and all before it, truncated ones too
}

// end is the place behind all that is visible.
func (f *feed) end() feedHead {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *feed) advance(head feedHead) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = head
}

// publish notes that the commit whose last entry is at head is on disk. Then all before it are, in whatever order their
// writers learn of it: commits are in the log in the order of their numbers.
func (f *feed) publish(head feedHead) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if head.seq <= f.durable.seq {
		return
	}
	f.durable = head
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

// onDisk is the place behind all that is known to be on disk. With wait it also gives what is closed when that moves.
func (f *feed) onDisk(wait bool) (feedHead, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if wait && f.wake == nil {
		f.wake = make(chan struct{})
	}
	return f.durable, f.wake
}

// entry encodes the next entry and moves head behind it.
func (f *feed) entry(head *feedHead, c change, now uint64) (key, value []byte) {
	head.seq++
	head.time = now
	key = feedKey(f.prefix, head.seq)
	size := len(c.name) + len(c.to) + len(c.id.Value) + len(c.details)
	head.total += uint64(len(key) + 8 + size)
	kind := byte(c.kind)
	if c.details != nil {
		kind |= detailed
	}
	value = append(make([]byte, 0, 24+size), kind)
	value = binary.AppendUvarint(value, head.time)
	value = binary.AppendUvarint(value, head.total)
	value = appendText(value, c.name)
	if c.kind == store.Renamed {
		return key, appendText(value, c.to)
	}
	if c.details != nil {
		value = append(binary.AppendUvarint(value, uint64(len(c.details))), c.details...)
	}
	value = append(value, byte(c.id.Type))
	return key, append(value, c.id.Value...)
}

// millis is a time as the feed keeps it.
func millis(t time.Time) uint64 { return uint64(max(t.UnixMilli(), 0)) }

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// detailed marks the kind of an entry that has details, in front of the _id.
const detailed = 0x80

// feedEntry is an entry that was read.
type feedEntry struct {
	feedHead
	change
}

var errFeedEntry = errors.New("damaged entry of the feed")

// decodeEntry reads an entry; it keeps neither key nor value.
func decodeEntry(key, value []byte) (e feedEntry, err error) {
	if len(key) < 8 || len(value) < 4 {
		return e, errFeedEntry
	}
	e.seq = binary.BigEndian.Uint64(key[len(key)-8:])
	withDetails := value[0]&detailed != 0
	e.kind, value = store.EventKind(value[0]&^detailed), value[1:]
	var name, to, details []byte
	ok := takeUvarint(&value, &e.time) && takeUvarint(&value, &e.total) && takeText(&value, &name)
	switch {
	case !ok || e.kind < store.Inserted || e.kind > store.Renamed:
		return e, errFeedEntry
	case e.kind == store.Renamed:
		ok = takeText(&value, &to) && len(value) == 0
	case withDetails && !takeText(&value, &details), len(value) == 0:
		return e, errFeedEntry
	default:
		e.id = bson.RawValue{Type: bson.Type(value[0]), Value: bytes.Clone(value[1:])}
	}
	e.name, e.to, e.details = string(name), string(to), bytes.Clone(details)
	if !ok {
		return e, errFeedEntry
	}
	return e, nil
}

func takeUvarint(from *[]byte, to *uint64) bool {
	v, n := binary.Uvarint(*from)
	if n <= 0 {
		return false
	}
	*to, *from = v, (*from)[n:]
	return true
}

func takeText(from, to *[]byte) bool {
	var n uint64
	if !takeUvarint(from, &n) || n > uint64(len(*from)) {
		return false
	}
	*to, *from = (*from)[:n], (*from)[n:]
	return true
}

// loadFeeds finds the end of each feed.
func loadFeeds(db *pebble.DB) (_ *feeds, err error) {
	f := &feeds{m: map[string]*feed{}}
	space := []byte{spaceFeed}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: space, UpperBound: document.KeyAfter(space)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; {
		name, _, found := bytes.Cut(it.Key()[1:], []byte{0})
		if !found { // a stranger, which Validate tells of
			ok = it.Next()
			continue
		}
		feed := f.of(string(name))
		end := document.KeyAfter(feed.prefix)
		for last := it.SeekLT(end); last && bytes.HasPrefix(it.Key(), feed.prefix); last = it.Prev() {
			_, seq, numbered := cutFeedKey(it.Key())
			if !numbered {
				continue
			}
			e, err := decodeEntry(it.Key(), it.Value())
			if err != nil {
				e.feedHead = feedHead{seq: seq} // numbers go on; who watches is told of the damage
			}
			feed.last, feed.durable = e.feedHead, e.feedHead
			break
		}
		ok = it.SeekGE(end)
	}
	return f, it.Error()
}
