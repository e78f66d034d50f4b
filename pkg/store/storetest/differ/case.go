package differ

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Case is a collection and what is done with it, one after the other. It can be written as BSON and Extended JSON.
type Case struct {
	Docs    []bson.D `bson:"docs"`
	Indexes []Index  `bson:"indexes,omitempty"`
	Ops     []Op     `bson:"ops"`
}

// Index is an index of the store; the server has it only if it is Shared, which writes need where it is unique or can't
// take every document.
type Index struct {
	Keys    bson.D `bson:"keys"`
	Unique  bool   `bson:"unique,omitempty"`
	Sparse  bool   `bson:"sparse,omitempty"`
	Partial bson.D `bson:"partial,omitempty"`
	Shared  bool   `bson:"shared,omitempty"`
}

// The kinds of an Op.
const (
	Find     = "find"
	Count    = "count"
	Distinct = "distinct"
	Insert   = "insert"
	Update   = "update"
	Replace  = "replace"
	Delete   = "delete"
	Batch    = "batch" // several writes, all or none
	Each     = "each"  // several writes, each by itself
)

// Op is one call. Which fields count depends on Kind.
type Op struct {
	Kind    string `bson:"kind"`
	Filter  bson.D `bson:"filter,omitempty"`
	Sort    bson.D `bson:"sort,omitempty"`
	Project bson.D `bson:"project,omitempty"`
	Skip    int64  `bson:"skip,omitempty"`
	Limit   int64  `bson:"limit,omitempty"`
	// After is the _id of the document behind which Find starts.
	After any    `bson:"after,omitempty"`
	Path  string `bson:"path,omitempty"` // Distinct

	Doc          bson.D   `bson:"doc,omitempty"`
	Update       bson.D   `bson:"update,omitempty"`
	ArrayFilters []bson.D `bson:"arrayFilters,omitempty"`
	Many         bool     `bson:"many,omitempty"`
	Upsert       bool     `bson:"upsert,omitempty"`
	// ID chooses the document by its _id, which has to exist unless the op is an Upsert; If is a condition on it. Without,
	// Filter chooses. A Replace goes by the _id of its Doc then.
	ID any    `bson:"id,omitempty"`
	If bson.D `bson:"if,omitempty"`
	// Batch is what a Batch or Each does: writes.
	Batch []Op `bson:"batch,omitempty"`
	// Return is "before" or "after" where the document is wanted, which makes it a find-and-modify.
	Return string `bson:"return,omitempty"`

	planned bool // the server may take any plan, and not only a scan
}

// writes says whether the op may change documents.
func (o *Op) writes() bool { return o.Kind != Find && o.Kind != Count && o.Kind != Distinct }

// String is the op as Extended JSON.
func (o *Op) String() string { return text(o) }

// String is the case as Extended JSON, for Parse.
func (c *Case) String() string { return text(c) }

func text(v any) string {
	b, err := bson.MarshalExtJSON(v, true, false)
	if err != nil {
		return fmt.Sprintf("%#v: %v", v, err)
	}
	return string(b)
}

// Parse reads a case as Case.String writes it.
func Parse(text string) (*Case, error) {
	var c Case
	if err := bson.UnmarshalExtJSON([]byte(text), true, &c); err != nil {
		return nil, err
	}
	return &c, nil
}
