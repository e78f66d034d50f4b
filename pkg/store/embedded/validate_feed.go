package embedded

import (
	"bytes"
	"encoding/binary"

	"github.com/svcctl/svc/pkg/store"
)

// feeds checks that each feed can be read and has no gaps.
func (v *validation) feeds(database string) error {
	prefix := []byte{spaceFeed}
	if database != "" {
		prefix = feedPrefix(database)
	}
	f := checkedFeed{v: v, findings: v.of("", "")}
	damage, err := v.each(prefix, func(key, value []byte) error {
		f.entry(key, value)
		return nil
	})
	f.end()
	if damage != nil {
		f.add(false, "feeds can't be read: %s", damageText(damage))
	}
	f.findings.end()
	return err
}

// checkedFeed walks through the entries of one feed after the other.
type checkedFeed struct {
	*findings
	v       *validation
	name    string
	last    feedHead
	damaged bool // the last entry is
}

func (f *checkedFeed) entry(key, value []byte) {
	db, seq, ok := cutFeedKey(key)
	if !ok {
		f.add(true, "the key %x belongs to no feed", key)
		f.v.faults.strangers = append(f.v.faults.strangers, single(key))
		return
	}
	if db != f.name {
		f.end()
		f.name, f.last = db, feedHead{}
	}
	if f.damaged {
		f.damaged = false
		f.cut(seq, "entry %d of the feed of %s is damaged", f.last.seq, db)
	}
	if f.last.seq > 0 && seq != f.last.seq+1 {
		f.cut(seq, "the feed of %s goes on with %d after %d", db, seq, f.last.seq)
	}
	e, err := decodeEntry(key, value)
	f.damaged = err != nil
	if !f.damaged && e.total <= f.last.total {
		f.cut(seq, "the sizes of the feed of %s go down at entry %d", db, seq)
	}
	f.last = feedHead{seq: seq, total: e.total}
}

// cut tells of a problem that is gone when the feed begins with seq.
func (f *checkedFeed) cut(seq uint64, format string, args ...any) {
	f.add(true, format, args...)
	f.v.faults.feeds[f.name] = seq
}

// end is behind the last entry of a feed.
func (f *checkedFeed) end() {
	if f.damaged {
		f.add(false, "the last entry of the feed of %s, %d, is damaged", f.name, f.last.seq)
	}
	f.damaged = false
}

// cutFeedKey takes the key of an entry apart.
func cutFeedKey(key []byte) (database string, seq uint64, ok bool) {
	name, number, found := bytes.Cut(key[1:], []byte{0})
	if !found || len(number) != 8 || store.CheckDatabaseName(string(name)) != nil {
		return "", 0, false
	}
	return string(name), binary.BigEndian.Uint64(number), true
}
