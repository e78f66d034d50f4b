package wire

import (
	"context"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

const (
	firstBatch = 101      // documents, where the client does not say how many
	maxBatch   = 16 << 20 // bytes of documents in an answer, but for one that is larger by itself
	maxCursors = 1000
	awaitTime  = time.Second // how long a change stream waits for a change, where the client does not say
)

// batch is the documents of one answer, as the list that they are sent in.
type batch struct {
	list  []byte
	n     int
	limit int // of documents
}

func newBatch(limit int) *batch { return &batch{list: make([]byte, 4, 256), limit: limit} }

// full says whether no document fits any more, however small.
func (b *batch) full() bool { return b.n >= b.limit }

// add says whether doc has found room.
func (b *batch) add(doc bson.Raw) bool {
	if b.full() || b.n > 0 && len(b.list)+len(doc) > maxBatch {
		return false
	}
	b.list = document.AppendElement(b.list, strconv.Itoa(b.n), bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
	b.n++
	return true
}

func (b *batch) value() bson.RawValue {
	return bson.RawValue{Type: bson.TypeArray, Value: document.Close(b.list, 0)}
}

// source is where the documents of a cursor come from.
type source interface {
	// fill adds to b what comes next. done says that nothing comes any more. A source that waits for what has yet to happen
	// does so for as long as wait.
	fill(ctx context.Context, b *batch, wait time.Duration) (done bool, err error)
	// close ends it. It is not called while fill runs.
	close()
}

// finding is a find that stands still between two documents.
type finding struct {
	next    func() (bson.Raw, bool)
	stop    func()
	cancel  context.CancelFunc
	err     error    // of the find
	pending bson.Raw // has found no room in the last batch; nil: none
	left    int64    // documents until the limit; -1: there is none
}

// newFinding makes a source of a read that calls fn for each document. life is what the read may last at most.
func newFinding(life context.Context, limit int64, read func(ctx context.Context, fn func(bson.Raw) error) error) *finding {
	ctx, cancel := context.WithCancel(life)
	f := &finding{cancel: cancel, left: limit}
	if limit == 0 {
		f.left = -1
	}
	f.next, f.stop = iter.Pull(func(yield func(bson.Raw) bool) {
		f.err = read(ctx, func(doc bson.Raw) error {
			if !yield(doc) {
				return context.Canceled
			}
			return nil
		})
	})
	return f
}

func (f *finding) fill(ctx context.Context, b *batch, _ time.Duration) (done bool, err error) {
	defer context.AfterFunc(ctx, f.cancel)()
	for !b.full() {
		doc := f.pending
		if f.pending = nil; doc == nil {
			var ok bool
			if doc, ok = f.next(); !ok {
				if f.err != nil && ctx.Err() != nil {
					return true, store.Ended(ctx)
				}
				return true, f.err
			}
		}
		if !b.add(doc) {
			f.pending = doc
			return false, nil
		}
		if f.left > 0 {
			if f.left--; f.left == 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

func (f *finding) close() {
	f.cancel()
	f.stop()
}

// listed is documents that are all there already.
type listed struct{ docs []bson.Raw }

func (l *listed) fill(_ context.Context, b *batch, _ time.Duration) (done bool, err error) {
	for len(l.docs) > 0 && b.add(l.docs[0]) {
		l.docs = l.docs[1:]
	}
	return len(l.docs) == 0, nil
}

func (*listed) close() {}

// cursor is what a client fetches more of.
type cursor struct {
	id      int64
	ns      string
	session string // that it was opened in; "": none
	source  source

	// These are guarded by cursors.mu.
	used   time.Time
	inUse  bool
	killed bool // while it was in use
}

// cursors are those that clients may come back for.
type cursors struct {
	now func() time.Time

	mu     sync.Mutex
	all    map[int64]*cursor
	closed bool
}

func newCursors(now func() time.Time) *cursors { return &cursors{now: now, all: map[int64]*cursor{}} }

// add keeps a cursor, and gives it an id.
func (t *cursors) add(c *cursor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fail(codeShutdown, "the service is stopping")
	}
	if len(t.all) >= maxCursors {
		return fail(codeExceededMemory, "there are %d open cursors: read them to their end, or close them", maxCursors)
	}
	for c.id == 0 || t.all[c.id] != nil {
		c.id = rand.Int64() //nolint:gosec // no secret: whoever may use it may read anything
	}
	c.used = t.now()
	t.all[c.id] = c
	return nil
}

// take gives a cursor to the one command that uses it, until it is put back.
func (t *cursors) take(id int64, ns, session string) (*cursor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.all[id]
	switch {
	case c == nil:
		return nil, fail(codeCursorNotFound, "cursor id %d not found", id)
	case c.ns != ns:
		return nil, fail(codeUnauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.session != session:
		return nil, fail(codeUnauthorized, "Cannot run getMore on cursor %d, which was created in another session", id)
	case c.inUse:
		return nil, fail(code(143), "cursor id %d is already in use", id) // CursorInUse
	}
	c.inUse = true
	return c, nil
}

// put takes a cursor back; with done, it is closed.
func (t *cursors) put(c *cursor, done bool) {
	t.mu.Lock()
	c.inUse = false
	c.used = t.now()
	done = done || c.killed
	if done {
		delete(t.all, c.id)
	}
	t.mu.Unlock()
	if done {
		c.source.close()
	}
}

// remove closes those that which says.
func (t *cursors) remove(which func(c *cursor) bool) (n int) {
	var gone []*cursor
	t.mu.Lock()
	for id, c := range t.all {
		switch {
		case !which(c):
			continue
		case c.inUse:
			c.killed = true
		default:
			delete(t.all, id)
			gone = append(gone, c)
		}
		n++
	}
	t.mu.Unlock()
	for _, c := range gone {
		c.source.close()
	}
	return n
}

func (t *cursors) kill(id int64) bool {
	return t.remove(func(c *cursor) bool { return c.id == id }) > 0
}

func (t *cursors) closeSession(session string) {
	t.remove(func(c *cursor) bool { return c.session == session })
}

func (t *cursors) closeAll() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.remove(func(*cursor) bool { return true })
}

func (t *cursors) expire(after time.Duration) {
	before := t.now().Add(-after)
	t.remove(func(c *cursor) bool { return !c.inUse && c.used.Before(before) })
}

func (t *cursors) isStream(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.all[id]; c != nil {
		_, ok := c.source.(*stream)
		return ok
	}
	return false
}

func (t *cursors) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// sessionKey is the session that a cursor belongs to.
func (k *call) sessionKey() string {
	if k.session == nil {
		return ""
	}
	return k.session.id
}

// firstReply answers with the first batch of a source, and keeps what comes behind it for getMore. size is how many documents
// the client wants; below 0 it does not say.
func (k *call) firstReply(ns string, src source, size int64, single bool) (bson.D, error) {
	limit := firstBatch
	if size >= 0 {
		limit = clampInt(size)
	}
	b := newBatch(limit)
	done, err := src.fill(k.ctx, b, 0)
	if err != nil || done || single {
		src.close()
		if err != nil {
			return nil, err
		}
		return cursorReply(0, ns, "firstBatch", b, src), nil
	}
	c := &cursor{ns: ns, session: k.sessionKey(), source: src}
	if err := k.server.cursors.add(c); err != nil {
		src.close()
		return nil, err
	}
	return cursorReply(c.id, ns, "firstBatch", b, src), nil
}

func cursorReply(id int64, ns, name string, b *batch, src source) bson.D {
	d := bson.D{{Key: name, Value: b.value()}, {Key: "id", Value: id}, {Key: "ns", Value: ns}}
	if s, ok := src.(*stream); ok {
		d = append(d, bson.E{Key: "postBatchResumeToken", Value: s.token()})
	}
	return bson.D{{Key: "cursor", Value: d}}
}

func clampInt(n int64) int {
	const most = 1 << 31
	return int(min(n, most))
}

// cursorOptions reads {batchSize} of the commands whose cursor is an object.
func (k *call) cursorOptions() (size int64) {
	size = -1
	if o := k.args.document("cursor"); o != nil {
		sub := args{body: o}
		size = sub.integer("batchSize", -1)
		if sub.err != nil && k.args.err == nil {
			k.args.err = sub.err
		}
	}
	return size
}

func runGetMore(k *call) (bson.D, error) {
	id, coll := k.args.integer("getMore", 0), k.args.text("collection")
	if v := k.args.value("getMore"); v.Type != bson.TypeInt64 {
		k.args.wrong("getMore.getMore", v, "long")
	}
	size, ms := k.args.integer("batchSize", 0), k.args.integer("maxTimeMS", awaitTime.Milliseconds())
	if k.args.err != nil {
		return nil, k.args.err
	}
	if size < 0 {
		return nil, fail(codeNegative, "BSON field 'batchSize' value must be >= 0, actual value '%d'", size)
	}
	if size == 0 {
		size = 1 << 31
	}
	c, err := k.server.cursors.take(id, k.namespace(coll), k.sessionKey())
	if err != nil {
		return nil, err
	}
	_, k.ofStream = c.source.(*stream)
	done := true // also if it panics
	defer func() { k.server.cursors.put(c, done) }()
	b := newBatch(clampInt(size))
	if done, err = c.source.fill(k.ctx, b, time.Duration(ms)*time.Millisecond); err != nil {
		done = true
		return nil, err
	}
	next := c.id
	if done {
		next = 0
	}
	return cursorReply(next, c.ns, "nextBatch", b, c.source), nil
}

func runKillCursors(k *call) (bson.D, error) {
	v := k.args.value("cursors")
	if v.Type != bson.TypeArray {
		return nil, fail(codeTypeMismatch, "BSON field 'killCursors.cursors' is the wrong type, expected array")
	}
	killed, missing := bson.A{}, bson.A{}
	for it := document.NewIter(v.Value); it.Next(); {
		id, ok := it.Value().AsInt64OK()
		if !ok {
			return nil, fail(codeTypeMismatch, "the id of a cursor is a long")
		}
		if k.server.cursors.kill(id) {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	return bson.D{
		{Key: "cursorsKilled", Value: killed},
		{Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: bson.A{}},
		{Key: "cursorsUnknown", Value: bson.A{}},
	}, nil
}
