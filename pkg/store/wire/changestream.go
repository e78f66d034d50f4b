package wire

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// eventsAhead is how many events a stream reads before a client asks for them.
const eventsAhead = 64

// stream is the source of a change stream: a Watch in a goroutine of its own.
type stream struct {
	database   string
	collection string             // "": all
	stages     *pipeline.Pipeline // that events go through; nil: none
	now        func() time.Time

	cancel  context.CancelFunc
	closing <-chan struct{} // nobody waits any more
	events  chan streamed   // closed when the Watch has ended
	err     error           // of the Watch; after events is closed

	// These belong to the command that uses the cursor.
	at      store.Position // behind what the client has been told
	pending *streamed      // has found no room in the last batch
}

// streamed is an event, or only a position that stands for everything so far.
type streamed struct {
	doc bson.Raw
	at  store.Position
}

// errInvalidated ends a stream whose collection is gone.
var errInvalidated = errors.New("the collection is gone")

// openStream opens a change stream.
func (k *call) openStream(name string, options bson.Raw, stages []bson.Raw, size int64) (bson.D, error) {
	if k.tx != nil {
		return nil, fail(codeNotInTransaction, "$changeStream is not supported within a transaction")
	}
	db, err := k.server.database(k.db)
	if err != nil {
		return nil, err
	}
	ns := k.namespace(name)
	if name == "" {
		ns = k.namespace("$cmd.aggregate")
	} else if err := k.server.checkCollection(name); err != nil {
		return nil, err
	}
	s := &stream{database: k.db, collection: name, now: k.server.opts.Now, events: make(chan streamed, eventsAhead)}
	if s.at, err = k.streamStart(db, options); err != nil {
		return nil, err
	}
	if s.stages, err = k.compileStages(stages); err != nil {
		return nil, err
	}
	s.start(k.server, db)
	if err := s.begun(k.ctx); err != nil {
		s.close()
		return nil, err
	}
	return k.firstReply(ns, s, size, false)
}

// streamStart reads where a stream begins, and refuses what it can't do.
func (k *call) streamStart(db store.Database, options bson.Raw) (store.Position, error) {
	if err := onlyFields("$changeStream", options,
		"fullDocument fullDocumentBeforeChange resumeAfter startAfter startAtOperationTime", "allChangesForCluster showExpandedEvents"); err != nil {
		return nil, err
	}
	a := args{body: options}
	full, before := a.text("fullDocument"), a.text("fullDocumentBeforeChange")
	resume, after := a.document("resumeAfter"), a.document("startAfter")
	t, i, hasTime := options.Lookup("startAtOperationTime").TimestampOK()
	switch {
	case a.err != nil:
		return nil, a.err
	case full != "" && full != "default" && full != "updateLookup" && full != "whenAvailable":
		return nil, notImplemented("'$changeStream.fullDocument: " + clip(full) + "'")
	case before != "" && before != "off" && before != "whenAvailable":
		return nil, notImplemented("'$changeStream.fullDocumentBeforeChange: " + clip(before) + "'")
	case resume != nil && after != nil, hasTime && (resume != nil || after != nil):
		return nil, fail(code(50674), "give one of resumeAfter, startAfter and startAtOperationTime")
	case resume != nil:
		return positionOf(resume)
	case after != nil:
		return positionOf(after)
	case hasTime:
		return k.server.history.find(k.db, bson.Timestamp{T: t, I: i})
	}
	return db.Position(k.ctx)
}

// tokenOf is a position as a client keeps it.
func tokenOf(p store.Position) bson.D {
	return bson.D{{Key: "_data", Value: strings.ToUpper(hex.EncodeToString(p))}}
}

func positionOf(token bson.Raw) (store.Position, error) {
	data, ok := token.Lookup("_data").StringValueOK()
	p, err := hex.DecodeString(data)
	if !ok || err != nil || len(p) == 0 {
		return nil, fail(codeInvalidResumeToken, "the resume token is not one that this server gave")
	}
	return p, nil
}

func (s *stream) token() bson.D { return tokenOf(s.at) }

func (s *stream) start(server *Server, db store.Database) {
	ctx, cancel := context.WithCancel(server.life)
	s.cancel, s.closing = cancel, server.closing
	w := store.Watch{After: s.at, Documents: true, OnIdle: func(p store.Position) error { return s.send(ctx, streamed{at: p}) }}
	if s.collection != "" {
		w.Collections = []string{s.collection}
	}
	server.running.Go(func() {
		defer cancel()
		defer close(s.events)
		s.err = db.Watch(ctx, w, func(e store.Event) error { return s.tell(ctx, e) })
	})
}

// begun waits for the first sign of the Watch: that of one which refuses where it is to begin is its end.
func (s *stream) begun(ctx context.Context) error {
	select {
	case e, ok := <-s.events:
		if !ok {
			return s.err
		}
		s.pending = &e
		return nil
	case <-ctx.Done():
		return store.Ended(ctx)
	}
}

func (s *stream) send(ctx context.Context, e streamed) error {
	select {
	case s.events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell passes an event on, as MongoDB would tell it.
func (s *stream) tell(ctx context.Context, e store.Event) error {
	d := s.event(e)
	if err := s.pass(ctx, d, e.Position); err != nil {
		return err
	}
	if s.collection == "" || e.Kind != store.Dropped && e.Kind != store.Renamed {
		return nil
	}
	if err := s.pass(ctx, eventHead(e, "invalidate"), e.Position); err != nil {
		return err
	}
	return errInvalidated
}

// pass sends what the stages leave of an event.
func (s *stream) pass(ctx context.Context, d bson.D, at store.Position) error {
	doc, err := bson.Marshal(d)
	if err != nil {
		return err
	}
	if s.stages != nil {
		if doc, err = s.staged(ctx, doc); err != nil {
			return err
		}
	}
	return s.send(ctx, streamed{doc: doc, at: slices.Clone(at)})
}

// staged gives what the stages make of an event; nil if they leave nothing. Its _id stays as it is, for a client resumes by it.
func (s *stream) staged(ctx context.Context, event bson.Raw) (made bson.Raw, err error) {
	err = s.stages.Run(ctx, documents{event}, pipeline.Budget{Now: s.now()}, func(doc bson.Raw) error {
		made = slices.Clone(doc)
		return nil
	})
	if err != nil || made == nil {
		return nil, err
	}
	before, _ := document.Field(event, "_id")
	if after, ok := document.Field(made, "_id"); !ok || !before.Equal(after) {
		return nil, fail(codeChangeStreamFatal, "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. "+
			"Modifying the _id field of an event makes it impossible to resume the stream from that point.")
	}
	return made, nil
}

func eventHead(e store.Event, kind string) bson.D {
	return bson.D{
		{Key: "_id", Value: tokenOf(e.Position)},
		{Key: "operationType", Value: kind},
		{Key: "clusterTime", Value: bson.Timestamp{T: uint32(e.Time.Unix()), I: 1}}, //nolint:gosec // until 2106, as in BSON
		{Key: "wallTime", Value: e.Time},
	}
}

// event is a change as MongoDB tells it. What an update has changed in a document the port does not know: it is told as a
// replacement, which has the whole document.
func (s *stream) event(e store.Event) bson.D {
	kind := map[store.EventKind]string{
		store.Inserted: "insert", store.Updated: "replace", store.Deleted: "delete", store.Dropped: "drop", store.Renamed: "rename",
	}[e.Kind]
	d := eventHead(e, kind)
	if e.Kind == store.Inserted || e.Kind == store.Updated {
		var full any
		if e.Doc != nil {
			full = e.Doc
		}
		d = append(d, bson.E{Key: "fullDocument", Value: full})
	}
	d = append(d, bson.E{Key: "ns", Value: bson.D{{Key: "db", Value: s.database}, {Key: "coll", Value: e.Collection}}})
	switch e.Kind {
	case store.Renamed:
		d = append(d, bson.E{Key: "to", Value: bson.D{{Key: "db", Value: s.database}, {Key: "coll", Value: e.To}}})
	case store.Inserted, store.Updated, store.Deleted:
		d = append(d, bson.E{Key: "documentKey", Value: bson.D{{Key: "_id", Value: e.ID}}})
	case store.Dropped:
	}
	return d
}

func (s *stream) fill(ctx context.Context, b *batch, wait time.Duration) (done bool, err error) {
	var expired <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	for !b.full() {
		e, ok, ended := s.next(ctx, b.n == 0 && wait > 0, expired)
		switch {
		case ended && errors.Is(s.err, errInvalidated):
			return true, nil
		case ended:
			f := failureOf(s.err)
			if f.code != codeChangeStreamFatal {
				f = f.labeled(labelResumable)
			}
			return true, f
		case !ok:
			return false, ctx.Err()
		}
		if e.doc != nil && !b.add(e.doc) {
			s.pending = &e
			return false, nil
		}
		s.at = e.at
	}
	return false, nil
}

// next gives the next event, if there is one, or waits for it.
func (s *stream) next(ctx context.Context, wait bool, expired <-chan time.Time) (e streamed, ok, ended bool) {
	if p := s.pending; p != nil {
		s.pending = nil
		return *p, true, false
	}
	select {
	case e, ok = <-s.events:
		return e, ok, !ok
	default:
	}
	if !wait {
		return e, false, false
	}
	select {
	case e, ok = <-s.events:
		return e, ok, !ok
	case <-expired:
	case <-s.closing:
	case <-ctx.Done():
	}
	return e, false, false
}

func (s *stream) close() { s.cancel() }

// compileStages makes the stages behind a $changeStream runnable. nil: there are none.
func (k *call) compileStages(stages []bson.Raw) (*pipeline.Pipeline, error) {
	if len(stages) == 0 {
		return nil, nil
	}
	p, err := k.compilePipeline(stages)
	if err != nil {
		return nil, err
	}
	for _, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil {
			return nil, fail(codeStageFields, "A pipeline stage specification object must contain exactly one field.")
		}
		switch name := e.Key(); name {
		case "$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith":
		default:
			return nil, fail(codeIllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		}
	}
	return p, nil
}

// maxHistory is how many times of each database are remembered.
const maxHistory = 4096

// history says where in the feed of a database a time stands that a client was told: a change stream may begin there.
type history struct {
	mu  sync.Mutex
	all map[string][]told
}

type told struct {
	time bson.Timestamp
	at   store.Position
}

// note looks where the feed stands before the command.
func (k *call) note() {
	if k.command.global || isSystem(k.db) {
		return
	}
	name := k.server.storeName(k.db)
	if slices.Contains(k.server.opts.Hidden, name) || store.CheckDatabaseName(name) != nil {
		return
	}
	if p, err := k.server.opts.Store.Database(name).Position(k.ctx); err == nil {
		k.position = p
	}
}

// record remembers what note saw under the time that the answer has.
func (k *call) record(now bson.Timestamp) {
	if k.position == nil {
		return
	}
	h := &k.server.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string][]told{}
	}
	list := h.all[k.db]
	if n := len(list); n > 0 && string(list[n-1].at) == string(k.position) {
		return
	}
	if len(list) >= maxHistory {
		list = slices.Clone(list[maxHistory/2:])
	}
	h.all[k.db] = append(list, told{time: now, at: k.position})
}

// find gives the last place that is known to be before a time.
func (h *history) find(db string, t bson.Timestamp) (store.Position, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.all[db]
	n, found := slices.BinarySearchFunc(list, t, func(e told, t bson.Timestamp) int { return e.time.Compare(t) })
	if found {
		n++
	}
	if n == 0 {
		return nil, fail(codeHistoryLost, "this time is not known here any more: a change stream begins now, or behind a resume token")
	}
	return list[n-1].at, nil
}
