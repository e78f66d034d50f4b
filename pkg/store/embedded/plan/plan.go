package plan

import "github.com/svcctl/svc/pkg/store"

const (
	maxRanges = 10_000 // of keys, for one query; fields that would make it more are left to the filter
	maxMerge  = 200    // ranges that are read side by side, to have their keys in one order
	maxSplit  = 200    // pieces that negations may cut the keys of a field into
	maxOrs    = 4      // $or side by side for whose branches plans are made
)

// Index describes an index whose entries are complete. Paths with a number for a name are not to be given: they may mean
// an element of a list or a field.
type Index struct {
	ID       uint32 // not 0
	Def      *store.Index
	Prefix   []byte // begins the keys of all its entries; behind it are the keys of the fields and of the _id
	Multikey uint32 // a bit for each key field that may have led to or through a list
}

// Plan is one way to find the documents of a query. It is immutable.
type Plan struct {
	ID    ID
	Scans []*Scan
	Order Order
	// Sorted: documents come in the order asked for.
	Sorted bool
	// Seeked: scans begin behind Query.After. Else each document has to be compared with it.
	Seeked bool
	// Exact: each key of the scans is a document that matches.
	Exact bool
	// Repeats: documents may come more than once.
	Repeats bool

	bound  []string // paths that are bound
	points []string // those to single values
	unique bool     // finds one document at most
}

// ID names a plan among those for queries of one shape.
type ID struct {
	or    int    // 1 for the first $or, and so on; 0: not of an $or
	index uint32 // 0: the documents by _id
}

// Order is how the scans of a plan are put together.
type Order uint8

// The ways to put scans together.
const (
	InTurn  Order = iota // one after the other
	ByKey                // merged by what is behind Range.Fixed in their keys
	ByValue              // merged by the sort key of their documents
)

// Scan walks the keys of one index, or the documents by _id.
type Scan struct {
	Index   *Index // nil: the documents themselves
	Prefix  []byte // begins all keys
	Ranges  []Range
	Reverse bool // walk backwards
	Bounded bool // the filter says something about the keys
}

// Range is the keys from Lo to before Hi. The first Fixed bytes are the same for all of them: the fields that are bound to
// single values. Those of a scan are sorted and disjoint.
type Range struct {
	Lo, Hi []byte
	Fixed  int
}
