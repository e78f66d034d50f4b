package api

// Parameters of what is made anew.
const (
	ParamCollection = "collection"
	ParamSearch     = "search" // of the collection
)

// SearchQueue is what a collection has to index yet, and how its searches stand, on the instance that answers.
type SearchQueue struct {
	Pending          int           `json:"pending"`  // records that wait
	InFlight         int           `json:"inFlight"` // records that are being indexed
	Failed           int           `json:"failed"`   // records for which evals of searches fail, or whose text a group refuses, so that these don't find them
	OldestAgeSeconds float64       `json:"oldestAgeSeconds"`
	LastError        string        `json:"lastError"` // of the last try, or of an eval; "": it went well
	Searches         []SearchState `json:"searches"`
}

// SearchState is how a search stands.
type SearchState struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	// State is ready, building (there is no index yet), rebuilding (the index before answers) or stale (the index is of a config before, and
	// autoRegenerate is off).
	State   string `json:"state"`
	Records int    `json:"records"` // that can be found
	Bytes   int64  `json:"bytes"`   // of the index on the disk, about
	Memory  int64  `json:"memory"`  // bytes, about
	Done    int64  `json:"done"`    // records of the index that is being made
	Total   int64  `json:"total"`   // of about so many
	Failed  int    `json:"failed"`  // records for which its eval fails

	// Of mode vector alone.
	Group     string `json:"group,omitempty"`     // the embedding group
	Waiting   int    `json:"waiting,omitempty"`   // records whose vectors are still to come
	Refused   int    `json:"refused,omitempty"`   // records whose text the group refuses
	LastError string `json:"lastError,omitempty"` // why they still wait
}

// SearchWorker is what a project has to index yet.
type SearchWorker struct {
	Collections []CollectionQueue `json:"collections"`
}

// CollectionQueue is that of a collection.
type CollectionQueue struct {
	Collection string `json:"collection"`
	SearchQueue
}

// Found is what a search says of a record, in members of its own beside those of the record.
type Found struct {
	ID         string              `json:"id"`
	Score      float64             `json:"_score"`
	Highlights map[string][]string `json:"_highlights,omitempty"` // by field: texts in HTML, where <mark> is around what was found
	Explain    *ScoreExplanation   `json:"_explain,omitempty"`
}

// ScoreExplanation is how a score came to be. Which members it has depends on the mode.
type ScoreExplanation struct {
	Mode    string        `json:"mode"`
	Sources []ScoreSource `json:"sources,omitempty"` // of rrf
	Parts   []ScorePart   `json:"parts,omitempty"`   // of text and ngram
	Group   string        `json:"group,omitempty"`   // of vector
	Cosine  float64       `json:"cosine,omitempty"`  // of vector
	Recency *float64      `json:"recency,omitempty"` // what the score was multiplied by, where the search has that
}

// ScoreSource is what a search gave to the score of one that fuses several.
type ScoreSource struct {
	Search string  `json:"search"`
	Rank   int64   `json:"rank"`
	Score  float64 `json:"score"` // of that search
	Share  float64 `json:"share"` // of the score
}

// ScorePart is what words in a field gave to a score.
type ScorePart struct {
	Field   string   `json:"field"`
	Words   []string `json:"words"`
	Count   int64    `json:"count"`   // how often they are there
	Records int64    `json:"records"` // that have them
	Of      int64    `json:"of"`      // so many
	Score   float64  `json:"score"`
}
