package differ

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// Answer is what an op came to. Both sides give it in the same form.
type Answer struct {
	// Refused is "" or why it came to nothing: one of the reasons below.
	Refused string `bson:"refused,omitempty"`
	// Docs is what a Find found. Where the order is not total it is sorted by its bytes.
	Docs []bson.Raw `bson:"docs,omitempty"`
	// Values is what Distinct found, in the order of document.Compare.
	Values []bson.RawValue `bson:"values,omitempty"`
	Count  int64           `bson:"count,omitempty"` // of Count; of a write, the documents matched

	Modified int64         `bson:"modified,omitempty"`
	Upserted bson.RawValue `bson:"upserted,omitempty"`
	Doc      bson.Raw      `bson:"doc,omitempty"`

	Parts []*Answer `bson:"parts,omitempty"` // of an Each, and of a Batch that was done
	// Failed is the op of a Batch for which all of it was refused.
	Failed int `bson:"failed,omitempty"`

	// Detail says more of a refusal; it is not compared.
	Detail string `bson:"-"`
}

// The reasons of Answer.Refused.
const (
	refused   = "refused"
	duplicate = "duplicate"
	notFound  = "not found"
	stale     = "stale"  // there is the document, but If does not match it
	broken    = "broken" // an error that is no refusal: always a difference
)

// difference names what is not the same in two answers, or is "".
func difference(ours, theirs *Answer) string {
	switch {
	case ours.Refused == broken:
		return "ours failed"
	case ours.Refused != theirs.Refused && ours.Refused == "":
		return "only theirs refused"
	case ours.Refused != theirs.Refused && theirs.Refused == "":
		return "only ours refused"
	case ours.Refused != theirs.Refused:
		return "refused otherwise"
	case ours.Failed != theirs.Failed || len(ours.Parts) != len(theirs.Parts):
		return "failed elsewhere"
	case ours.Count != theirs.Count:
		return "count"
	case ours.Modified != theirs.Modified:
		return "modified"
	case !slices.EqualFunc(ours.Docs, theirs.Docs, equalRaw):
		return "documents"
	case !equalRaw(ours.Doc, theirs.Doc):
		return "document"
	case !slices.EqualFunc(ours.Values, theirs.Values, func(a, b bson.RawValue) bool { return document.Compare(a, b) == 0 }):
		return "values"
	case ours.Upserted.Type != theirs.Upserted.Type || !bytes.Equal(ours.Upserted.Value, theirs.Upserted.Value):
		return "upserted"
	}
	for i := range ours.Parts {
		if kind := difference(ours.Parts[i], theirs.Parts[i]); kind != "" {
			return "part: " + kind
		}
	}
	return ""
}

func equalRaw(a, b bson.Raw) bool { return bytes.Equal(a, b) }

// String is the answer as Extended JSON.
func (a *Answer) String() string {
	if a.Refused != "" {
		return a.Refused + ": " + a.Detail
	}
	return text(a)
}
