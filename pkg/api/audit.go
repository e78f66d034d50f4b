package api

import "encoding/json"

// AuditEntry is one entry of an audit log: who did what, and what it changed.
type AuditEntry struct {
	ID         string          `json:"id"`
	At         Time            `json:"at"`
	Kind       string          `json:"kind"` // system or records
	Op         string          `json:"op"`   // create, update, delete, login, …
	Namespace  string          `json:"namespace,omitempty"`
	Collection string          `json:"collection,omitempty"` // or the model, such as users
	RecordID   string          `json:"recordId,omitempty"`
	Actor      AuditActor      `json:"actor"`
	TokenID    string          `json:"tokenId,omitempty"` // of the personal access token that was used
	RequestID  string          `json:"requestId,omitempty"`
	Address    string          `json:"address,omitempty"`
	Before     json.RawMessage `json:"before,omitempty"` // the record, as far as the caller may see it
	After      json.RawMessage `json:"after,omitempty"`

	// The place in the chain, for administrators; Seq is 0 until the entry is sealed, which is a matter of moments.
	Seq  int64  `json:"seq,omitempty"`
	Prev string `json:"prev,omitempty"`
	Hash string `json:"hash,omitempty"`
}

// AuditActor is who did it.
type AuditActor struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// AuditPlace is a place in the chain of an audit log.
type AuditPlace struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// AuditReport is what GET /audit/verify has to say of a log.
type AuditReport struct {
	OK       bool           `json:"ok"`
	Entries  int64          `json:"entries"`
	Anchor   AuditPlace     `json:"anchor"` // entries up to this one have expired
	Head     AuditPlace     `json:"head"`   // the newest entry
	Problems []AuditProblem `json:"problems"`
	More     bool           `json:"more,omitempty"` // there are more problems than are listed
}

// AuditProblem is something wrong with an audit log.
type AuditProblem struct {
	Problem string `json:"problem"` // changed, missing or foreign
	Seq     int64  `json:"seq"`
	Through int64  `json:"through,omitempty"` // of missing entries: the last one
	ID      string `json:"id,omitempty"`
	Message string `json:"message"`
}
