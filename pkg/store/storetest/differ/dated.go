package differ

import (
	"encoding/binary"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// dated says whether the case ends with an update that puts the current date somewhere: clocks differ.
func (c *Case) dated() bool {
	return len(c.Ops) > 0 && slices.ContainsFunc(c.Ops[len(c.Ops)-1].Update, func(e bson.E) bool { return e.Key == "$currentDate" })
}

// timeless gives documents with 0 for the dates of today.
func timeless(docs []bson.Raw) []bson.Raw {
	out := make([]bson.Raw, len(docs))
	for i, d := range docs {
		out[i] = slices.Clone(d)
		zeroDates(out[i])
	}
	return out
}

// zeroDates changes an object or list in place.
func zeroDates(doc []byte) {
	for it := document.NewIter(doc); it.Next(); {
		v := it.Value()
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			zeroDates(v.Value)
		}
		if v.Type != bson.TypeDateTime {
			continue
		}
		at := time.UnixMilli(int64(binary.LittleEndian.Uint64(v.Value)))
		if since := time.Since(at); since < 24*time.Hour && since > -24*time.Hour {
			clear(v.Value)
		}
	}
}
