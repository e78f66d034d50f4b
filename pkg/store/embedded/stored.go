package embedded

import (
	"encoding/binary"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

var emptyDoc = bson.Raw{5, 0, 0, 0, 0} //nolint:gochecknoglobals // a constant

// stored gives doc as it is stored: as MongoDB does, with its _id first, and with the time in place of each empty
// timestamp that is no deeper than its other fields. It may be doc itself.
func (s *Store) stored(doc bson.Raw) bson.Raw {
	plain := true
	n := 0
	for it := document.NewIter(doc); it.Next() && plain; n++ {
		plain = !isEmptyTimestamp(it.Value()) && (n == 0 || string(it.Key()) != "_id")
	}
	if plain {
		return doc
	}
	out := make(bson.Raw, 4, len(doc))
	id, found := document.Field(doc, "_id")
	if found {
		out = document.AppendElement(out, "_id", id)
	}
	for it := document.NewIter(doc); it.Next(); {
		v := it.Value()
		switch {
		case string(it.Key()) == "_id":
			continue
		case isEmptyTimestamp(v):
			v.Value = s.stamps.next(s.opts.Now())
		}
		out = document.AppendElement(out, it.Key(), v)
	}
	return document.Close(out, 0)
}

func newID() bson.RawValue {
	id := bson.NewObjectID()
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}

func isEmptyTimestamp(v bson.RawValue) bool {
	return v.Type == bson.TypeTimestamp && len(v.Value) == 8 && binary.LittleEndian.Uint64(v.Value) == 0
}

// stamps gives timestamps that grow.
type stamps struct {
	mu   sync.Mutex
	last uint64
}

// next gives the value of a timestamp: the second in the upper half, and a number within it in the lower one.
func (s *stamps) next(now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, uint64(now.Unix())<<32|1) //nolint:gosec // not before 1970
	return binary.LittleEndian.AppendUint64(nil, s.last)
}
