package audit

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// Redacted stands in an entry for a value that nobody reads.
const Redacted = "[redacted]"

// maxState is how large a state may be, in bytes. An entry has two, and must fit into a transaction with the record.
const maxState = 1 << 20

// Omitted is the only member of a state that was too large to keep: its size in bytes.
const Omitted = "_omitted"

// State is a document as an entry keeps it: the values of the paths in secret are Redacted, and don't count for whether it is
// too large. nil gives nil.
func State(doc bson.Raw, secret *document.PathSet) (bson.Raw, error) {
	if doc == nil {
		return nil, nil
	}
	if secret != nil {
		d, err := document.Unmarshal(doc)
		if err == nil {
			doc, err = document.Marshal(redactObject(d, "", secret))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(doc) > maxState {
		return document.Marshal(bson.D{{Key: Omitted, Value: int64(len(doc))}})
	}
	return doc, nil
}

func redactObject(d bson.D, path string, secret *document.PathSet) bson.D {
	out := make(bson.D, len(d))
	for i, e := range d {
		at := e.Key
		if path != "" {
			at = path + "." + e.Key
		}
		out[i] = bson.E{Key: e.Key, Value: redact(e.Value, at, secret)}
	}
	return out
}

func redact(v any, path string, secret *document.PathSet) any {
	if secret.Covers(path) {
		return Redacted
	}
	if !secret.Touches(path) {
		return v
	}
	switch v := v.(type) {
	case bson.D:
		return redactObject(v, path, secret)
	case bson.A:
		out := make(bson.A, len(v))
		for i := range v {
			out[i] = redact(v[i], path, secret)
		}
		return out
	}
	return v
}
