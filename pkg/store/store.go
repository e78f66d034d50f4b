package store

import (
	"context"
)

// Store is a set of isolated databases. All methods of all types of this package are safe for concurrent use, but for
// those of a Tx, which belong to the call that was given it.
//
// Errors: every method returns errs kinds only. A store that can't be reached is errs.Unavailable, a full disk is
// errs.Full, ctx ending is ErrCanceled or ErrDeadline (see Ended), which wrap ctx.Err(). A deadline that passes while a
// store does not answer at all is errs.Unavailable, and wraps it, too. No error text of an engine is public.
//
// Cancellation: reads stop soon after ctx ends, in the server too where there is one. A write whose ctx ends before it
// starts is not applied; one that has started either is applied whole or not at all, and the caller can't tell which.
//
// Ownership: what a method returns belongs to the caller; what a callback is given is valid during the call only, unless
// it says otherwise. What a method is given it does not keep.
type Store interface {
	// Database gives a handle; the database comes into being with its first document. name is
	// [a-z0-9_-]{1,60}, but not admin, config or local. The handle is cheap and never nil.
	Database(name string) Database
	// DropDatabase removes a database with everything in it. Dropping one that does not exist is no error.
	DropDatabase(ctx context.Context, name string) error
	// Ping says whether the store can serve a read and a write now.
	Ping(ctx context.Context) error
	// Name is "embedded" or "mongodb", for status output.
	Name() string
	// Close waits for running operations, then releases everything. Open views and running Watch calls end with
	// errs.Unavailable, and so do later calls.
	Close() error
}

// Database is one namespace of collections. Nothing reached through it can touch another database.
//
// Collections whose names begin with "svc." are for bookkeeping (SavePosition, package store/lease): CollectionNames
// leaves them out, and Watch does not tell of them, but of a rename that makes one of them one that shows, or the other way.
type Database interface {
	// Collection gives a handle; the collection comes into being with its first document or index. A name has 1 to 120
	// bytes without NUL, space and "$", does not begin with "system." or a dot, and does not end with a dot.
	Collection(name string) Collection
	// CollectionNames lists the collections that exist, sorted.
	CollectionNames(ctx context.Context) ([]string, error)
	// DropCollection removes documents and indexes. Dropping one that does not exist is no error.
	DropCollection(ctx context.Context, name string) error
	// RenameCollection gives a collection with its documents and indexes another name, in one step. A collection
	// that has that name gives errs.Conflict with code "collection_exists", or with replace is dropped in the same
	// step; with replace, its own name changes nothing. One that does not exist is errs.ErrNotFound.
	RenameCollection(ctx context.Context, from, to string, replace bool) error

	// Transact runs fn in a transaction over collections of this database and commits it if fn returns nil. All
	// reads through tx see one state, that of the first one, and what the transaction itself wrote; nobody else
	// sees that before the commit. A commit is acknowledged as a write is.
	//
	// Of two transactions that write to one document the first to write wins; the other is tried again, from the
	// beginning, by itself: fn may run several times, and must do nothing that can't be repeated but through tx. It
	// gives up with errs.Unavailable (code "busy") after about 30 s. A write outside of transactions to a document
	// that one has written waits for the transaction to end; fn must therefore not write but through tx. A
	// transaction lasts 60 s at most, and its writes hold 16 MiB at most (errs.Limit).
	Transact(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error

	// View opens a read view of all collections at one point in time. The caller closes it. Views are for minutes, not
	// hours: after five minutes reads may fail with errs.Unavailable (code "view_expired").
	View(ctx context.Context) (View, error)

	// Watch calls fn for each change behind w.After, in the order in which they were committed, until ctx ends or fn
	// fails, and returns that error. Nothing is left out and nothing comes twice, unless the caller goes on from an
	// older position. Only what is durable is told. A position that is so old that changes behind it are gone
	// is ErrHistoryLost: the caller has to read everything anew, with a View and its Position.
	Watch(ctx context.Context, w Watch, fn func(Event) error) error
	// Position is the feed's end: a Watch behind it tells of what is acknowledged from now on.
	Position(ctx context.Context) (Position, error)

	// Validate checks that everything stored is intact and that what is derived (index entries, counters) agrees with the
	// documents, and calls report for each problem found.
	Validate(ctx context.Context, report func(Problem)) error
}

// Collection is a set of documents with unique _id, and its indexes.
type Collection interface {
	Reader
	Writer
	Indexer
	// Stats tells how large the collection is. One that does not exist is empty.
	Stats(ctx context.Context) (Stats, error)
}

// Tx is a transaction. It must not be used after the call that was given it, nor by several goroutines at once.
type Tx interface {
	// Collection gives a handle on a collection within the transaction. Collections come into being as elsewhere, with
	// the commit. Write results of kind errs.ErrNotFound and ErrStale leave a transaction as it is, but for those of an
	// atomic Write of several ops. These and any other error of an op end it: what follows fails with ErrAborted, and
	// Transact returns the first such error, unless fn returns one of its own.
	Collection(name string) TxCollection
}

// TxCollection is a collection within a transaction.
type TxCollection interface {
	Reader
	Writer
}

// TxCreator is a TxCollection whose collection can be made in the transaction. A store need not have it. What is made is there with
// the commit, together with what the transaction wrote, or not at all; nobody else sees it before, and a transaction that finds the collection
// there by then is tried again.
type TxCreator interface {
	// Create makes the collection. One that exists is ErrCollectionExists.
	Create(ctx context.Context) error
	// CreateIndex makes an index, and the collection if there is none. A collection that was there before the transaction, or that has
	// been written to in it, is ErrCollectionExists, unless it has an equal index.
	CreateIndex(ctx context.Context, index Index) error
}

// Steady is what a Database may be besides: one that knows whether its records were replaced as a whole.
type Steady interface {
	// Still is an error if that has begun since what ctx is for. It is for who has found something by a record, and then takes it from elsewhere.
	Still(ctx context.Context) error
}

// Gated is what a Database may be besides: one whose records nobody changes for a while.
type Gated interface {
	// Writing calls fn, and whoever is about to have nobody change records waits until it has returned. While that is so it is an error, and
	// fn is not called. Everything that changes records does that by itself, and may be refused within fn; this is for who changes what goes
	// with them, such as indexes.
	Writing(ctx context.Context, fn func() error) error
}

// Replacer is what a Database may be besides: one in which several collections take the places of others in one step.
type Replacer interface {
	// ReplaceCollections gives collections other names, as RenameCollection does with replace, all at once: nobody ever sees some of them
	// renamed, and a crash leaves all or none so. If one does not exist that is errs.ErrNotFound, and a name that comes twice is ErrBadName;
	// nothing is renamed then.
	ReplaceCollections(ctx context.Context, renames []Rename) error
}

// Rename is a collection that gets another name.
type Rename struct{ From, To string }

// View reads all collections of a database at one point in time.
type View interface {
	// Collection gives a handle on a collection as it was. One that did not exist is empty.
	Collection(name string) Reader
	// CollectionNames lists the collections that existed, sorted.
	CollectionNames(ctx context.Context) ([]string, error)
	// Position is the view's place in the feed: a Watch behind it tells of every change that the view lacks.
	Position() Position
	// Close releases the view. Reads that run end with errs.Unavailable or their result.
	Close() error
}

// Problem is something that Validate found. Its texts are for operators.
type Problem struct {
	Collection string // "": the database, or the store as a whole
	Index      string // "": the documents
	Text       string
	// Repairable says that the documents are intact and what is derived from them can be made anew.
	Repairable bool
}
