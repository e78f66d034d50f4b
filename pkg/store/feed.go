package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// Position is a place in the feed of one database. It is opaque, survives restarts, and belongs to the store that gave
// it. Nil is none.
type Position []byte

// Watch says what Database.Watch tells of.
type Watch struct {
	After       Position // nil: from now on
	Collections []string // none: all, also those that don't exist yet. A rename is told for either name
	// Documents asks for the document of each event, as it is when the event is told.
	Documents bool
	// Fields asks for top-level fields of each document that was inserted or updated: as the change left them, or as they are when the
	// event is told. It never costs more than Documents, and much less on MongoDB.
	Fields []string
	// Gather is how long an event may wait for more that are then told with it, where that costs less than to ask for each by itself.
	Gather time.Duration
	// OnIdle, if set, is called whenever all changes so far have been told, at least every 10 s or so: p stands for
	// everything up to now. Saving it keeps the position of a quiet database from growing too old. It is not
	// called while fn runs, and its error ends Watch as fn's does.
	OnIdle func(p Position) error
}

// EventKind is what happened.
type EventKind uint8

// The kinds of event. When a database is dropped, its collections are.
const (
	Inserted EventKind = iota + 1
	Updated            // a document was changed or replaced
	Deleted            // a document went, TTL included
	Dropped            // a collection went, with everything in it
	Renamed            // a collection became Event.To, in whose place another one may have been dropped
)

// Event is one change.
type Event struct {
	Position   Position // go on behind it; of the events of one transaction any
	Kind       EventKind
	Collection string
	ID         bson.RawValue // of the document
	Doc        bson.Raw      // see Watch.Documents; nil if it is gone by now
	Fields     bson.Raw      // see Watch.Fields, and maybe others; one that is not there is not known
	To         string        // Renamed
	Time       time.Time     // about when, by the store's clock

	// Update is what an Update has changed, as MongoDB tells it: {updatedFields, removedFields, truncatedArrays}. nil: the document was
	// replaced, or the store does not know.
	Update bson.Raw
	// Before and After are the document as it was and became, of collections that keep images (ImageKeeper); nil: not known.
	Before, After bson.Raw
}

// ImageKeeper is what a Collection may be besides: one whose feed can keep what documents were before a change and what they became.
type ImageKeeper interface {
	// KeepImages has the feed keep them of changes from now on, or not. A collection that does not exist is errs.ErrNotFound.
	KeepImages(ctx context.Context, keep bool) error
	// KeepsImages says whether the feed keeps them.
	KeepsImages(ctx context.Context) (bool, error)
}

// positionsCollection holds one document for each consumer of a database's feed.
const positionsCollection = "svc.positions"

// LoadPosition gives the position that a consumer of a database's feed saved last; nil if it never did.
func LoadPosition(ctx context.Context, db Database, consumer string) (Position, error) {
	doc, err := db.Collection(positionsCollection).Get(ctx, Name(consumer))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, p, ok := doc.Lookup("position").BinaryOK()
	if !ok {
		return nil, errs.Wrap(fmt.Errorf("the position of %q is no binary", consumer), "load position")
	}
	return slices.Clone(p), nil
}

// SavePosition saves a consumer's position. Saved in the transaction that holds the effects of the events up to it,
// each event has its effects exactly once.
func SavePosition(ctx context.Context, tx Tx, consumer string, p Position) error {
	f, err := mql.Compile(bson.D{{Key: "_id", Value: consumer}})
	if err != nil {
		return err
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: consumer}, {Key: "position", Value: bson.Binary{Data: p}}})
	if err != nil {
		return errs.Wrap(err, "save position")
	}
	results, err := tx.Collection(positionsCollection).Write(ctx, []Op{{Kind: Replace, Doc: doc, Filter: f, Upsert: true}}, true)
	if err != nil {
		return err
	}
	return results[0].Err
}
