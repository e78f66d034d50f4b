package store

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// Writer changes documents. A write is acknowledged only when it is durable (fsync, or majority with journal).
type Writer interface {
	// Write applies ops in order and returns one Result for each. With atomic, either all are applied or none:
	// the first failing op has its error and every other one ErrAborted. Without, each op stands by itself, and
	// with Many each of its documents. The error return is for failures of the store as a whole; results are then
	// nil, and ops that are not atomic may have been applied in part.
	//
	// An op that would leave a document as it is, to the byte, writes nothing and is in no feed; of a Replace whose Doc
	// has no _id that is not promised. All of an op is one atomic step on its document: nobody writes between its look at
	// the document and its write.
	Write(ctx context.Context, ops []Op, atomic bool) ([]Result, error)
}

// WriteAll applies ops, all or none. Its error is that of the op which failed.
func WriteAll(ctx context.Context, to Writer, ops ...Op) error {
	results, err := to.Write(ctx, ops, true)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, ErrAborted) {
			return r.Err
		}
	}
	return nil
}

// Name is the _id of a document that has a name in place of an ObjectID, as reads and ops take it.
func Name(name string) bson.RawValue {
	kind, data, err := bson.MarshalValue(name)
	if err != nil { // a string always encodes
		return bson.RawValue{}
	}
	return bson.RawValue{Type: kind, Value: data}
}

// OpKind is what an Op does.
type OpKind uint8

// The kinds of write.
const (
	Insert  OpKind = iota + 1 // Doc is new; its _id must be free
	Replace                   // the document becomes Doc, but for its _id
	Delete                    // the document goes
	Update                    // Update is applied to the document
)

// Returning says which state of the document a Result has.
type Returning uint8

// What Op.Return may ask for. After a Delete there is only Before.
const (
	ReturnNone Returning = iota
	ReturnBefore
	ReturnAfter
)

// Op is one write. All but an Insert choose their document in one of two ways: by its _id, which must exist
// (errs.ErrNotFound); or, where Filter is set, as what matches it, and nothing is no error (Matched is 0).
type Op struct {
	Kind   OpKind
	Doc    bson.Raw    // Insert: the document, with its _id. Replace: the new one; its _id may be left out with Filter.
	Update *mql.Update // Update

	// ID is the document's _id. A Replace without Filter goes by Doc's _id, and takes over its type (1.0 for 1).
	ID bson.RawValue
	// If is a condition on the document chosen by its _id (nil: none), checked in the same atomic step as the write. An
	// existing document that does not match gives ErrStale. It is asked where other writers wait, so it is the service's own
	// (a revision, a token), never one that a caller has written: those go into Filter.
	If *mql.Filter

	Filter *mql.Filter
	Sort   mql.Sort // with Filter, not with Many: the first in this order; empty: any
	Many   bool     // with Filter, for Update and Delete: all that match; without atomic, some at a time
	// Upsert inserts a document if none is there to write to, for Replace and Update: Doc, or what Update makes of the
	// equalities of Filter (or of ID). A document without _id gets a new ObjectID. Not with If or Many.
	Upsert bool
	// Return asks for the document before or after the write (find-and-modify), of which Project leaves the parts wanted
	// (nil: all), without the position $ in what is asked for after. Not with Many.
	Return  Returning
	Project *mql.Projection
}

// Result is the outcome of one Op: Err is nil, errs.ErrNotFound, ErrStale, ErrAborted, a *DuplicateKeyError, or of the
// kinds errs.Invalid or errs.TooLarge when the op can't be applied to the document or the document can't be stored.
// With Many, the documents before the one that failed are counted.
type Result struct {
	Err      error
	Matched  int64         // documents found: those there were, not the one that an Upsert or Insert made
	Modified int64         // documents of them that are another now, or gone
	Upserted bson.RawValue // _id of the document that an Upsert inserted; its Type is 0 if none was
	Doc      bson.Raw      // Return; nil if there was none
}
