package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// eventsAhead is how many events a stream reads before a client asks for them.
const eventsAhead = 64

// stream is the source of a change stream: a Watch in a goroutine of its own, or one for each database.
type stream struct {
	server     *Server
	all        bool               // of all databases
	full       string             // which document an update is told with, as fullDocument says
	before     string             // and which one was there before, as fullDocumentBeforeChange does
	collection string             // "": all
	stages     *pipeline.Pipeline // that events go through; nil: none

	cancel context.CancelFunc
	events chan streamed // closed when the Watch has ended
	err    error         // of the Watch; after events is closed

	// turn is held while an event is told: those of several databases come one after the other.
	turn   sync.Mutex
	places places // behind what was told

	// These belong to the command that uses the cursor.
	at      token     // behind what the client has been told
	pending *streamed // has found no room in the last batch
}

// streamed is an event, or only a place that stands for everything so far.
type streamed struct {
	doc bson.Raw
	at  token
}

// errInvalidated ends a stream whose collection is gone.
var errInvalidated = errors.New("the collection is gone")

// openStream opens a change stream: of a collection, a database, or all that can be seen.
func (k *call) openStream(name string, options bson.Raw, stages []bson.Raw, size int64) (bson.D, error) {
	if k.tx != nil {
		return nil, fail(codeNotInTransaction, "$changeStream is not supported within a transaction")
	}
	a := args{body: options}
	s := &stream{server: k.server, all: a.boolean("allChangesForCluster", false), collection: name, events: make(chan streamed, eventsAhead)}
	ns := k.namespace(name)
	if name == "" {
		ns = k.namespace("$cmd.aggregate")
	}
	err := a.err
	if err == nil {
		err = k.checkStream(s)
	}
	if err != nil {
		return nil, err
	}
	if s.places, err = k.streamStart(s, options); err != nil {
		return nil, err
	}
	if s.stages, err = k.compileEventStages(stages); err != nil {
		return nil, err
	}
	if s.at, err = s.places.token(s.all); err != nil {
		return nil, err
	}
	s.start()
	if err := s.begun(k.ctx); err != nil {
		s.close()
		return nil, err
	}
	return k.firstReply(ns, s, size, false)
}

// checkStream refuses streams of what there are none of.
func (k *call) checkStream(s *stream) error {
	switch {
	case s.all && (k.db != "admin" || s.collection != ""):
		return fail(codeInvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name")
	case s.all && k.server.opts.Feeds == nil:
		return notImplemented("a change stream of all databases")
	case s.all:
		return nil
	case isSystem(k.db):
		return fail(codeInvalidNamespace, "$changeStream may not be opened on the internal %s database", k.db)
	}
	if _, err := k.server.database(k.db); err != nil || s.collection == "" {
		return err
	}
	return k.server.checkCollection(s.collection)
}

// streamStart reads where a stream begins, and refuses what it can't do.
func (k *call) streamStart(s *stream, options bson.Raw) (places, error) {
	if err := onlyFields("$changeStream", options,
		"fullDocument fullDocumentBeforeChange resumeAfter startAfter startAtOperationTime allChangesForCluster", "showExpandedEvents"); err != nil {
		return nil, err
	}
	a := args{body: options}
	s.full, s.before = a.text("fullDocument"), a.text("fullDocumentBeforeChange")
	resume, after := a.document("resumeAfter"), a.document("startAfter")
	t, i, hasTime := options.Lookup("startAtOperationTime").TimestampOK()
	switch {
	case a.err != nil:
		return nil, a.err
	case s.full != "" && !slices.Contains(words("default updateLookup whenAvailable required"), s.full):
		return nil, fail(codeBadValue, "Enumeration value '%s' for field '$changeStream.fullDocument' is not a valid value.", clip(s.full))
	case s.before != "" && !slices.Contains(words("off whenAvailable required"), s.before):
		return nil, fail(codeBadValue, "Enumeration value '%s' for field '$changeStream.fullDocumentBeforeChange' is not a valid value.", clip(s.before))
	case resume != nil && after != nil, hasTime && (resume != nil || after != nil):
		return nil, fail(code(50674), "give one of resumeAfter, startAfter and startAtOperationTime")
	case resume == nil:
		resume = after
	}
	switch {
	case resume != nil:
		return k.resumed(s, resume)
	case s.all && hasTime:
		return nil, notImplemented("'$changeStream.startAtOperationTime' of all databases")
	case s.all:
		return k.server.ends(k.ctx)
	}
	db, err := k.server.database(k.db)
	if err != nil {
		return nil, err
	}
	var p store.Position
	if hasTime {
		p, err = k.server.history.find(k.db, bson.Timestamp{T: t, I: i})
	} else {
		p, err = db.Position(k.ctx)
	}
	return places{k.server.storeName(k.db): p}, err
}

func (s *stream) send(ctx context.Context, e streamed) error {
	select {
	case s.events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell passes an event of a database on, as MongoDB would tell it.
func (s *stream) tell(ctx context.Context, database string, e store.Event) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.places[database] = slices.Clone(e.Position)
	at, err := s.places.token(s.all)
	if err != nil {
		return err
	}
	d, err := s.event(at, database, e)
	if err != nil {
		return err
	}
	if err := s.pass(ctx, d, at); err != nil {
		return err
	}
	if s.collection == "" || e.Kind != store.Dropped && e.Kind != store.Renamed {
		return nil
	}
	if err := s.pass(ctx, eventHead(at, e, "invalidate"), at); err != nil {
		return err
	}
	return errInvalidated
}

// pass sends what the stages leave of an event.
func (s *stream) pass(ctx context.Context, d bson.D, at token) error {
	doc, err := bson.Marshal(d)
	if err != nil {
		return err
	}
	if s.stages != nil {
		if doc, err = s.staged(ctx, doc); err != nil {
			return err
		}
	}
	return s.send(ctx, streamed{doc: doc, at: at})
}

// staged gives what the stages make of an event; nil if they leave nothing. Its _id stays as it is, for a client resumes by it.
func (s *stream) staged(ctx context.Context, event bson.Raw) (made bson.Raw, err error) {
	err = s.stages.Run(ctx, documents{event}, pipeline.Budget{Now: s.server.opts.Now()}, func(doc bson.Raw) error {
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

func eventHead(at token, e store.Event, kind string) bson.D {
	return bson.D{
		{Key: "_id", Value: at.value()},
		{Key: "operationType", Value: kind},
		{Key: "clusterTime", Value: bson.Timestamp{T: uint32(e.Time.Unix()), I: 1}}, //nolint:gosec // until 2106, as in BSON
		{Key: "wallTime", Value: e.Time},
	}
}

// event is a change as MongoDB tells it.
func (s *stream) event(at token, database string, e store.Event) (bson.D, error) {
	database = s.server.clientName(database)
	kind := map[store.EventKind]string{
		store.Inserted: "insert", store.Updated: "replace", store.Deleted: "delete", store.Dropped: "drop", store.Renamed: "rename",
	}[e.Kind]
	if e.Update != nil {
		kind = "update"
	}
	d := eventHead(at, e, kind)
	images, err := s.images(e)
	if err != nil {
		return nil, err
	}
	d = append(append(d, images...), bson.E{Key: "ns", Value: bson.D{{Key: "db", Value: database}, {Key: "coll", Value: e.Collection}}})
	switch e.Kind {
	case store.Renamed:
		d = append(d, bson.E{Key: "to", Value: bson.D{{Key: "db", Value: database}, {Key: "coll", Value: e.To}}})
	case store.Inserted, store.Updated, store.Deleted:
		d = append(d, bson.E{Key: "documentKey", Value: bson.D{{Key: "_id", Value: e.ID}}})
	case store.Dropped:
	}
	if e.Update != nil {
		d = append(d, bson.E{Key: "updateDescription", Value: e.Update})
	}
	return d, nil
}

// images are the documents that an event is told with: of an insert or a replacement always, as it is by now where the feed does
// not keep it; of an update as the stream was asked for.
func (s *stream) images(e store.Event) (d bson.D, err error) {
	full := e.Doc
	if e.After != nil {
		full = e.After
	}
	wanted := e.Kind == store.Inserted || e.Kind == store.Updated
	if e.Update != nil {
		switch s.full {
		case "updateLookup":
			full = e.Doc
		case "whenAvailable", "required":
			full = e.After
		default:
			wanted = false
		}
		if s.full == "required" && full == nil {
			return nil, errNoImage("fullDocument")
		}
	}
	if wanted {
		d = append(d, bson.E{Key: "fullDocument", Value: orNull(full)})
	}
	changes := e.Kind == store.Updated || e.Kind == store.Deleted
	if s.before == "" || s.before == "off" || !changes {
		return d, nil
	}
	if s.before == "required" && e.Before == nil {
		return nil, errNoImage("fullDocumentBeforeChange")
	}
	return append(d, bson.E{Key: "fullDocumentBeforeChange", Value: orNull(e.Before)}), nil
}

func orNull(doc bson.Raw) any {
	if doc == nil {
		return nil
	}
	return doc
}

func errNoImage(option string) *failure {
	return fail(codeNoMatchingDocument, "the stream was opened with '%s: required', and the document is not known: "+
		"only a collection with changeStreamPreAndPostImages keeps it, from then on", option)
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
			switch f.code {
			case codeChangeStreamFatal, codeHistoryLost, codeInvalidResumeToken, codeNoMatchingDocument: // it would end in the same way
			default:
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
	case <-s.server.closing:
	case <-ctx.Done():
	}
	return e, false, false
}

func (s *stream) close() { s.cancel() }

// compileEventStages makes the stages behind a $changeStream runnable. nil: there are none.
func (k *call) compileEventStages(stages []bson.Raw) (*pipeline.Pipeline, error) {
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
			return nil, errStageFields()
		}
		switch name := e.Key(); name {
		case "$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith":
		default:
			return nil, fail(codeIllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		}
	}
	return p, nil
}
