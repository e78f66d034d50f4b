package store

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// Store is a set of isolated databases. All methods of all types of this package are safe for concurrent use.
//
// Errors: every method returns errs kinds only. A store that can't be reached is errs.Unavailable, a full disk is
// errs.Full, ctx ending is ctx.Err() (wrapped). No error text of an engine is public.
//
// Cancellation: reads stop soon after ctx ends. A write whose ctx ends before it starts is not applied; one that has
// started either is applied whole or not at all, and the caller can't tell which.
type Store interface {
	// Database gives a handle; the database comes into being with its first document. name is
	// [a-z0-9_-]{1,60}. The handle is cheap and never nil.
	Database(name string) Database
	// DropDatabase removes a database with everything in it. Dropping one that does not exist is no error.
	DropDatabase(ctx context.Context, name string) error
	// Ping says whether the store can serve a read and a write now.
	Ping(ctx context.Context) error
	// Name is "embedded" or "mongodb", for status output.
	Name() string
	// Close waits for running operations, then releases everything. Later calls fail with errs.Unavailable.
	Close() error
}

// Database is one namespace of collections. Nothing reached through it can touch another database.
type Database interface {
	// Collection gives a handle; the collection comes into being with its first document or index.
	Collection(name string) Collection
	// CollectionNames lists the collections that exist, sorted.
	CollectionNames(ctx context.Context) ([]string, error)
	// DropCollection removes documents and indexes. Dropping one that does not exist is no error.
	DropCollection(ctx context.Context, name string) error
}

// Collection is a set of documents with unique _id, and its indexes.
type Collection interface {
	Reader
	Writer
	Indexer
}

// Reader reads one consistent state of a collection per call.
type Reader interface {
	// Get returns the document whose _id is id, or errs.ErrNotFound. The caller owns the result.
	Get(ctx context.Context, id bson.RawValue) (bson.Raw, error)
	// Find calls fn for each match in order and stops at the first error of fn, which it returns. The document
	// is valid only during the call: copy what outlives it. fn must not call the store's writers.
	Find(ctx context.Context, q Query, fn func(doc bson.Raw) error) error
	// Count counts the matches, up to limit (0: all).
	Count(ctx context.Context, filter *mql.Filter, limit int64) (int64, error)
	// Explain tells how Find would run q, by running it.
	Explain(ctx context.Context, q Query) (Explanation, error)
}

// Writer changes documents. A write is acknowledged only when it is durable (fsync, or majority with journal).
type Writer interface {
	// Write applies ops in order and returns one Result for each. With atomic, either all are applied or none:
	// the first failing op has its error and every other one ErrAborted. Without, each op stands by itself.
	// The error return is for failures of the store as a whole; results are then nil.
	Write(ctx context.Context, ops []Op, atomic bool) ([]Result, error)
}

// Indexer manages the indexes of a collection. The index on _id always exists, is unique and is not listed.
type Indexer interface {
	// Indexes lists the indexes that exist and are ready, by name.
	Indexes(ctx context.Context) ([]Index, error)
	// CreateIndex builds an index and returns when it serves queries. Writes go on meanwhile. An equal index
	// is no error; one of the same name with another definition is errs.Conflict with code "index_exists", and
	// so may be one of the same definition with another name. Names that begin with _id are taken. A
	// unique index that documents violate fails with a *ViolationError, and leaves nothing behind.
	CreateIndex(ctx context.Context, index Index) error
	// DropIndex removes an index; one that does not exist is no error.
	DropIndex(ctx context.Context, name string) error
}

// Query says which documents Find returns, in which order.
type Query struct {
	Filter *mql.Filter // nil: all
	// Sort is empty for any order. Callers who page append _id to make the order total. Of the fields at most one
	// may be or lie in a list: what else happens is up to the adapter (errs.Invalid, or some order).
	Sort mql.Sort
	// After is the sort key (Sort.Key) of the last document of the page before: Find starts behind it.
	// It has as many values as Sort has fields; empty: from the start.
	After []bson.RawValue
	Skip  int64
	Limit int64 // 0: no limit
}

// OpKind is what an Op does.
type OpKind uint8

// The kinds of write.
const (
	Insert  OpKind = iota + 1 // Doc is new; its _id must be free
	Replace                   // the document with Doc's _id becomes Doc
	Delete                    // the document with ID goes
)

// Op is one write to one document.
type Op struct {
	Kind OpKind
	Doc  bson.Raw      // Insert and Replace: the whole document, _id included. Not kept after the call.
	ID   bson.RawValue // Delete
	// If is a condition on the stored document for Replace and Delete (nil: none), checked in the same atomic
	// step as the write. An existing document that does not match gives ErrStale.
	If *mql.Filter
}

// Result is the outcome of one Op: Err is nil, errs.ErrNotFound, ErrStale, ErrAborted, a *DuplicateKeyError, or of the
// kinds errs.Invalid or errs.TooLarge when the document itself can't be stored.
type Result struct{ Err error }

// Index is the definition of an index.
type Index struct {
	Name   string
	Keys   []IndexKey // 1 to 32; behind them an index has the _id, in the last one's direction, which is not named
	Unique bool       // no two documents have one key; a missing field counts as null (as in MongoDB)
	Sparse bool       // documents that lack all key fields are not in the index
}

// IndexKey is one field of an index key.
type IndexKey struct {
	Path string // dotted
	Desc bool
}

// Explanation is how a query ran.
type Explanation struct {
	Index        string // name of the index used, "_id" for the primary key, "" for a scan of the collection
	KeysExamined int64
	DocsExamined int64
	SortInMemory bool
}
