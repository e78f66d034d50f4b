package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

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
	Note       string          `json:"note,omitempty"` // what a script of the project has to say

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

// String is the place as people note it: 42:<hash>.
func (p AuditPlace) String() string { return strconv.FormatInt(p.Seq, 10) + ":" + p.Hash }

// ParseAuditPlace reads what String gives.
func ParseAuditPlace(text string) (AuditPlace, error) {
	seq, hash, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	raw, hexErr := hex.DecodeString(hash)
	if err != nil || hexErr != nil || n < 0 || len(raw) != sha256.Size && (n > 0 || hash != "") {
		return AuditPlace{}, errors.New("want the number and the hash of an entry, such as 42:9f86d0818…")
	}
	return AuditPlace{Seq: n, Hash: strings.ToLower(hash)}, nil
}

// AuditReport is what GET /audit/verify has to say of a log.
type AuditReport struct {
	OK       bool           `json:"ok"`
	Entries  int64          `json:"entries"`
	Unsealed int64          `json:"unsealed,omitempty"` // that are not in the chain yet
	Anchor   AuditPlace     `json:"anchor"`             // entries up to this one have expired
	Head     AuditPlace     `json:"head"`               // the newest entry
	Problems []AuditProblem `json:"problems"`
	More     bool           `json:"more,omitempty"` // there are more problems than are listed
}

// AuditProblem is something wrong with an audit log.
type AuditProblem struct {
	Problem string `json:"problem"` // changed, missing or foreign; of what is expected: replaced or expired
	Seq     int64  `json:"seq"`
	Through int64  `json:"through,omitempty"` // of missing entries: the last one
	ID      string `json:"id,omitempty"`
	Message string `json:"message"`
}
