package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/mql"
)

// Indexer manages the indexes of a collection. The index on _id always exists, is unique and is not listed.
type Indexer interface {
	// Indexes lists the indexes that exist and are ready, by name.
	Indexes(ctx context.Context) ([]Index, error)
	// CreateIndex builds an index and returns when it serves queries. Reads and writes go on meanwhile. An equal
	// index is no error; one of the same name with another definition is errs.Conflict with code "index_exists", and
	// so may be one of the same definition with another name. Names that begin with _id are taken. A
	// unique index that documents violate fails with a *ViolationError, and leaves nothing behind. If ctx
	// ends, nothing is left behind either; if the process does, the build may go on by itself when the store is
	// opened again, and CreateIndex for the same index joins it.
	CreateIndex(ctx context.Context, index Index) error
	// DropIndex removes an index; one that does not exist is no error.
	DropIndex(ctx context.Context, name string) error
}

// Index is the definition of an index.
type Index struct {
	Name string
	// Keys are 1 to 32. Behind them an index has the _id, in the last one's direction, which is not named; in MongoDB not
	// one that is unique, sparse or has ExpireAfter.
	Keys   []IndexKey
	Unique bool // no two documents have one key; a missing field counts as null (as in MongoDB)
	Sparse bool // documents that lack all key fields are not in the index; not with Partial
	// Partial leaves documents that do not match out of the index, and out of what Unique means; nil: none. It takes
	// $eq, $gt, $gte, $lt, $lte, $in, $type, $exists: true, $and and $or.
	Partial *mql.Filter
	// ExpireAfter, in whole seconds, deletes documents that long after the date in the one key field (the earliest of a
	// list), within about a minute; 0: never. Documents without a date there stay.
	ExpireAfter time.Duration
}

// IndexKey is one field of an index key.
type IndexKey struct {
	Path string // dotted
	Desc bool
}

// Equal says whether two definitions are the same, names included.
func (i Index) Equal(o Index) bool {
	return i.Name == o.Name && slices.Equal(i.Keys, o.Keys) && i.Unique == o.Unique && i.Sparse == o.Sparse &&
		i.ExpireAfter == o.ExpireAfter && (i.Partial == nil) == (o.Partial == nil) &&
		bytes.Equal(i.Partial.Raw(), o.Partial.Raw())
}

// Stats is how large a collection is. Bytes are as the documents are encoded, sizes on disk are estimates.
type Stats struct {
	Documents  int64
	Bytes      int64
	DiskBytes  int64 // documents alone
	IndexBytes map[string]int64
}
