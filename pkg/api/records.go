package api

import "encoding/json"

// Record is one record as JSON, kept raw so that its key order and its 64-bit integers survive.
type Record = json.RawMessage

// List is the envelope of every list.
type List[T any] struct {
	Items   []T    `json:"items"`
	Limit   int    `json:"limit"`
	Offset  int    `json:"offset"`
	HasMore bool   `json:"hasMore"`
	Total   *int64 `json:"total,omitempty"` // only with count=true
	Next    string `json:"next,omitempty"`  // cursor for after=, when HasMore
}

// CountResult is the body of a count-only read.
type CountResult struct {
	Count int64 `json:"count"`
}

// DryRunResult is what a write with dryRun=true would do.
type DryRunResult struct {
	DryRun    bool         `json:"dryRun"`
	Matched   *int         `json:"matched,omitempty"` // bulk update and delete
	Succeeded int          `json:"succeeded"`
	Failed    int          `json:"failed"`
	IDs       []string     `json:"ids"`             // the first 10 of the records that would be written; a create has none
	Items     []DryRunItem `json:"items,omitempty"` // the first 10 that would fail; of a bulk create all
}

// DryRunItem is one record or item that would not be written, with its place in the bulk write.
type DryRunItem struct {
	Index  int      `json:"index"`
	ID     string   `json:"id,omitempty"`
	Status int      `json:"status"`
	Error  *Problem `json:"error"`
}

// FacetResult is the body of facets: by field, its values and how many records have each, those that most have first.
type FacetResult struct {
	Facets    map[string][]FacetValue `json:"facets"`
	Window    int64                   `json:"window"`    // how many records were looked at
	Truncated bool                    `json:"truncated"` // a field has more values than are listed
}

// FacetValue is a value of a field, and how many records have it.
type FacetValue struct {
	Value json.RawMessage `json:"value"`
	Count int64           `json:"count"`
}

// The events of a feed of changes, beside EventStopping.
const (
	EventReady  = "ready"  // what changes from now on is told
	EventCreate = "create" // a record came into the reader's sight
	EventUpdate = "update"
	EventDelete = "delete" // a record is gone, or out of the reader's sight
	EventReset  = "reset"  // the feed can't go on: the records have to be read anew
)

// Change is an event of a feed of changes. Token is for going on behind it.
type Change struct {
	Token string `json:"-"`
	Event string `json:"-"`
	ID    string `json:"id,omitempty"`
	Item  Record `json:"item,omitempty"`
}

// BulkCreateRequest is the body of a bulk create.
type BulkCreateRequest struct {
	Items []Record `json:"items"`
}

// BulkCreateResult answers a bulk create: 201 when all items succeeded, else 207. Items are in the order sent.
type BulkCreateResult struct {
	Items     []BulkCreateItem `json:"items"`
	Succeeded int              `json:"succeeded"`
	Failed    int              `json:"failed"`
}

// BulkCreateItem is the outcome of one item; Item is the record as the caller may read it.
type BulkCreateItem struct {
	ID     string   `json:"id,omitempty"`
	Status int      `json:"status"`
	Error  *Problem `json:"error,omitempty"`
	Item   Record   `json:"item,omitempty"`
	// Warning says what went wrong behind the write, which stands.
	Warning string `json:"warning,omitempty"`
}

// BulkUpdateResult answers a bulk update.
type BulkUpdateResult struct {
	Matched   int              `json:"matched"`
	Succeeded int              `json:"succeeded"`
	Failed    int              `json:"failed"`
	Items     []BulkUpdateItem `json:"items"`
}

// BulkUpdateItem is the outcome for one matched record.
type BulkUpdateItem struct {
	ID      string   `json:"id"`
	Status  int      `json:"status"`
	Error   *Problem `json:"error,omitempty"`
	Item    Record   `json:"item,omitempty"`    // what a hook of the project answers
	Warning string   `json:"warning,omitempty"` // what went wrong behind the write, which stands
}

// DeleteResult answers the delete of one thing. Warning says what was left behind, if anything.
type DeleteResult struct {
	ID      string `json:"id"`
	Warning string `json:"warning,omitempty"`
}

// BulkDeleteResult answers a bulk delete.
type BulkDeleteResult struct {
	Matched   int              `json:"matched"`
	Succeeded int              `json:"succeeded"`
	Failed    int              `json:"failed"`
	Items     []BulkDeleteItem `json:"items"`
}

// BulkDeleteItem is the outcome for one matched record; Error is set when it was not deleted.
type BulkDeleteItem struct {
	ID      string   `json:"id"`
	Status  int      `json:"status"` // what the delete of the record alone would have answered
	Warning string   `json:"warning,omitempty"`
	Error   *Problem `json:"error,omitempty"`
	Item    Record   `json:"item,omitempty"` // what a hook of the project answers
}
