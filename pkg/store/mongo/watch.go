package mongo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

const (
	awaitChanges  = 500 * time.Millisecond // how long the server waits for a change before it says there is none
	idleInterval  = 10 * time.Second       // between calls of OnIdle without events
	eventsAtOnce  = 100                    // whose documents are read together
	firstReopen   = 50 * time.Millisecond  // wait before a broken stream is opened again; doubles
	longestReopen = time.Second
)

// watcher is one running Watch.
type watcher struct {
	database *database
	watch    store.Watch
	fn       func(store.Event) error
	at       place     // everything up to here has been told
	alive    time.Time // when the server answered last
	told     bool      // something since the last OnIdle
	idle     time.Time // of the last OnIdle
}

// Watch calls fn for each change behind w.After. When the stream of changes breaks, by an election or else, it goes on
// where it was; it gives up when no server answers for as long as any other operation waits for one.
func (d *database) Watch(ctx context.Context, watch store.Watch, fn func(store.Event) error) error {
	at, err := d.place(watch.After)
	if err != nil {
		return err
	}
	w := &watcher{database: d, watch: watch, fn: fn, at: at, alive: time.Now(), told: true}
	for backoff := firstReopen; ; backoff = min(2*backoff, longestReopen) {
		answered := w.alive
		err := w.follow(ctx)
		var callback *callbackError
		switch {
		case errors.As(err, &callback):
			return callback.err
		case d.store.life.Err() != nil:
			return store.ErrClosed
		case ctx.Err() != nil:
			return store.Ended(ctx)
		case err == nil: // the database was dropped: the stream ends, and another one tells what comes behind
		case isHistoryLost(err):
			return store.ErrHistoryLost.With(d.store.secret.clean(err))
		case hasCode(err, codeInvalidResumeToken):
			return store.ErrBadPosition.With(d.store.secret.clean(err))
		case !isBroken(err) || time.Since(w.alive) > d.store.selectTimeout:
			return d.store.translate(ctx, err)
		}
		if w.alive.After(answered) {
			backoff = firstReopen
		}
		if wait(ctx, rand.N(backoff)) != nil { //nolint:gosec // spreads retries, no secret
			return store.Ended(ctx)
		}
	}
}

// follow reads one stream of changes until it breaks (with what the driver gave) or ends by itself.
func (w *watcher) follow(ctx context.Context) (broken error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.database.store.life, cancel)()
	err := w.database.run(ctx, func(ctx context.Context) error {
		stream, err := w.open(ctx)
		if err != nil {
			broken = err
			return err
		}
		defer closeCursor(ctx, stream)
		broken = w.read(ctx, stream)
		return broken
	})
	if broken == nil {
		return err // refused before it began
	}
	return broken
}

func (w *watcher) open(ctx context.Context) (*mongo.ChangeStream, error) {
	opts := options.ChangeStream().SetMaxAwaitTime(awaitChanges).SetBatchSize(eventsAtOnce)
	switch {
	case w.at.token != nil:
		opts.SetStartAfter(w.at.token)
	case !w.at.time.IsZero():
		opts.SetStartAtOperationTime(&w.at.time)
	}
	stream, err := w.database.db.Watch(ctx, w.pipeline(), opts)
	if err != nil {
		return nil, err
	}
	w.alive = time.Now()
	if token := stream.ResumeToken(); token != nil && stream.RemainingBatchLength() == 0 {
		w.at.token = slices.Clone(token)
	}
	return stream, nil
}

// pipeline leaves out events that are not asked for, and what is large in the others: the document of an insert is not
// always the one there is when the event is told.
func (w *watcher) pipeline() bson.A {
	shown := bson.E{Key: "$not", Value: bson.Regex{Pattern: `^svc\.`}}
	collections := bson.D{{Key: "$or", Value: bson.A{ // a rename shows what was for bookkeeping, or hides what was not
		bson.D{{Key: "ns.coll", Value: bson.D{shown}}}, bson.D{{Key: "to.coll", Value: bson.D{{Key: "$exists", Value: true}, shown}}},
	}}}
	if len(w.watch.Collections) > 0 {
		named := bson.D{{Key: "$in", Value: w.watch.Collections}}
		collections = bson.D{{Key: "$and", Value: bson.A{collections, bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: "ns.coll", Value: named}}, bson.D{{Key: "to.coll", Value: named}},
		}}}}}}
	}
	end := bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"dropDatabase", "invalidate"}}}}}
	stages := bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{collections, end}}}}}}
	if len(w.watch.Fields) > 0 {
		fields := bson.D{}
		for _, name := range w.watch.Fields {
			fields = append(fields, bson.E{Key: name, Value: bson.D{
				{Key: "$ifNull", Value: bson.A{"$fullDocument." + name, "$updateDescription.updatedFields." + name}},
			}})
		}
		stages = append(stages, bson.D{{Key: "$set", Value: bson.D{{Key: fieldsName, Value: fields}}}})
	}
	return append(stages, bson.D{{Key: "$unset", Value: bson.A{"fullDocument", "updateDescription"}}})
}

// fieldsName is where an event has the fields that are asked for.
const fieldsName = "fields"

// read tells of changes until the stream breaks. It ends without an error behind a drop of the database.
func (w *watcher) read(ctx context.Context, stream *mongo.ChangeStream) error {
	for {
		var events []store.Event
		ended := false
		for !ended && len(events) < eventsAtOnce && stream.TryNext(ctx) {
			w.alive = time.Now()
			e, kind := w.event(stream)
			ended = kind == "invalidate"
			if e.Kind != 0 {
				events = append(events, e)
			} else if len(events) == 0 {
				w.at.token = slices.Clone(stream.ResumeToken())
			}
			if stream.RemainingBatchLength() == 0 {
				break
			}
		}
		if err := w.tell(ctx, events); err != nil {
			return err
		}
		switch {
		case ended:
			w.at.token = slices.Clone(stream.ResumeToken())
			return nil
		case stream.Err() != nil:
			return stream.Err()
		case stream.ID() == 0 && stream.RemainingBatchLength() == 0:
			return nil
		}
		w.alive = time.Now()
		if stream.RemainingBatchLength() > 0 {
			continue
		}
		w.at.token = slices.Clone(stream.ResumeToken())
		if err := w.rest(len(events) == 0); err != nil {
			return err
		}
		if len(events) > 0 && w.watch.Gather > 0 && wait(ctx, w.watch.Gather) != nil {
			return ctx.Err()
		}
	}
}

// event reads the stream's current event. Its Kind is 0 if it is none of the port's.
func (w *watcher) event(stream *mongo.ChangeStream) (e store.Event, kind string) {
	change := stream.Current
	kind, _ = change.Lookup("operationType").StringValueOK()
	e.Collection, _ = change.Lookup("ns", "coll").StringValueOK()
	switch kind {
	case "insert":
		e.Kind = store.Inserted
	case "update", "replace":
		e.Kind = store.Updated
	case "delete":
		e.Kind = store.Deleted
	case "drop":
		e.Kind = store.Dropped
	case "rename":
		e.Kind = store.Renamed
		e.To, _ = change.Lookup("to", "coll").StringValueOK()
	default:
		return e, kind
	}
	e.Position = w.database.positionOf(change.Lookup("_id").Document())
	e.ID = change.Lookup("documentKey", "_id")
	e.ID.Value = slices.Clone(e.ID.Value)
	if fields, ok := change.Lookup(fieldsName).DocumentOK(); ok && (e.Kind == store.Inserted || e.Kind == store.Updated) {
		e.Fields = slices.Clone(fields)
	}
	if seconds, _, ok := change.Lookup("clusterTime").TimestampOK(); ok {
		e.Time = time.Unix(int64(seconds), 0).UTC()
	}
	if wall, ok := change.Lookup("wallTime").TimeOK(); ok { // since 6.0
		e.Time = wall.UTC()
	}
	return e, kind
}

// tell calls fn for events.
func (w *watcher) tell(ctx context.Context, events []store.Event) error {
	if w.watch.Documents {
		if err := w.addDocuments(ctx, events); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.fn(e); err != nil {
			return &callbackError{err}
		}
		w.at.token = bson.Raw(e.Position[positionHeader:])
		w.told = true
	}
	return nil
}

// addDocuments reads the documents of events as they are now.
func (w *watcher) addDocuments(ctx context.Context, events []store.Event) error {
	ids := map[string]bson.A{} // by collection
	for _, e := range events {
		if e.Kind == store.Inserted || e.Kind == store.Updated {
			ids[e.Collection] = append(ids[e.Collection], e.ID)
		}
	}
	for name, ids := range ids {
		docs, err := w.documents(ctx, name, ids)
		if err != nil {
			return err
		}
		for i, e := range events {
			if e.Collection == name && (e.Kind == store.Inserted || e.Kind == store.Updated) {
				events[i].Doc = docs[string(document.AppendKey(nil, e.ID, false))]
			}
		}
	}
	return nil
}

// documents gives documents by the key of their _id.
func (w *watcher) documents(ctx context.Context, name string, ids bson.A) (map[string]bson.Raw, error) {
	c := w.database.collection(name, nil)
	docs := map[string]bson.Raw{}
	cursor, err := c.coll.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
	if err != nil {
		return nil, err
	}
	defer closeCursor(ctx, cursor)
	for cursor.Next(ctx) {
		docs[string(document.AppendKey(nil, cursor.Current.Lookup("_id"), false))] = slices.Clone(cursor.Current)
	}
	return docs, cursor.Err()
}

// rest calls OnIdle if there was nothing to tell, and something before, or it was called long ago.
func (w *watcher) rest(nothing bool) error {
	if w.watch.OnIdle == nil || !nothing || !w.told && time.Since(w.idle) < idleInterval {
		return nil
	}
	if err := w.watch.OnIdle(w.database.positionOf(w.at.token)); err != nil {
		return &callbackError{err}
	}
	w.told, w.idle = false, time.Now()
	return nil
}

// isBroken says whether a stream that ended with err can be opened again.
func isBroken(err error) bool {
	if isOutage(err) || hasLabel(err, "ResumableChangeStreamError") {
		return true
	}
	return hasCode(err, codeCursorNotFound) || hasCode(err, 234) || hasCode(err, 63) || hasCode(err, 150)
}

// isHistoryLost says whether the server has no longer what comes behind a position.
func isHistoryLost(err error) bool {
	return hasCode(err, 136) || hasCode(err, 280) || hasCode(err, 286)
}
