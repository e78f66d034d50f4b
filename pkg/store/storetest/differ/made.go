package differ

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// made gives what the sides make up themselves the same values on both: the _id of inserted documents a number, in the
// order in which they were made, which is the order of the ids, too; and the time 0.
type made struct {
	ids  map[bson.ObjectID]bson.ObjectID
	next uint32
	// dates says whether dates are made, too: clocks differ.
	dates bool
}

// settle changes the answers to a case and the documents behind it.
func (c *Case) settle(answers []*Answer, after []bson.Raw) {
	m := &made{ids: map[bson.ObjectID]bson.ObjectID{}, dates: c.dated()}
	for _, d := range c.Docs { // some may have been made in a stretch before
		for _, e := range d {
			if id, ok := e.Value.(bson.ObjectID); ok && e.Key == "_id" && isNumbered(id) {
				m.next = max(m.next, binary.BigEndian.Uint32(id[8:]))
			}
		}
	}
	for _, a := range answers {
		m.number(a)
	}
	for i, a := range answers {
		m.answer(a, i < len(c.Ops) && c.Ops[i].Kind == Find && len(c.Ops[i].Sort) == 0)
	}
	m.docs(after)
}

// dated says whether the case ends with an update that puts the current date somewhere.
func (c *Case) dated() bool {
	return len(c.Ops) > 0 && slices.ContainsFunc(c.Ops[len(c.Ops)-1].Update, func(e bson.E) bool { return e.Key == "$currentDate" })
}

func isNumbered(id bson.ObjectID) bool {
	return bytes.HasPrefix(id[:], []byte("\x00\x00new\x00\x00\x00"))
}

// number gives the ids that an answer tells of their numbers.
func (m *made) number(a *Answer) {
	for _, part := range a.Parts {
		m.number(part)
	}
	id, ok := a.Upserted.ObjectIDOK()
	if _, known := m.ids[id]; !ok || known || !isNow(id.Timestamp()) {
		return
	}
	m.next++
	number := bson.ObjectID{2: 'n', 3: 'e', 4: 'w'}
	binary.BigEndian.PutUint32(number[8:], m.next)
	m.ids[id] = number
}

func isNow(t time.Time) bool { return time.Since(t).Abs() < 24*time.Hour }

func (m *made) answer(a *Answer, anyOrder bool) {
	for _, part := range a.Parts {
		m.answer(part, anyOrder)
	}
	m.id(a.Upserted)
	m.docs(a.Docs)
	if anyOrder {
		slices.SortFunc(a.Docs, func(a, b bson.Raw) int { return bytes.Compare(a, b) })
	}
	m.docs([]bson.Raw{a.Doc})
	for _, v := range a.Values {
		m.value(v)
	}
}

func (m *made) docs(docs []bson.Raw) {
	for _, d := range docs {
		if d == nil {
			continue
		}
		if id, err := d.LookupErr("_id"); err == nil {
			m.id(id)
		}
		m.times(d)
	}
}

// id changes an id in place.
func (m *made) id(v bson.RawValue) {
	if id, ok := v.ObjectIDOK(); ok {
		if number, known := m.ids[id]; known {
			copy(v.Value, number[:])
		}
	}
}

// times changes an object or list in place.
func (m *made) times(doc []byte) {
	for it := document.NewIter(doc); it.Next(); {
		m.value(it.Value())
	}
}

func (m *made) value(v bson.RawValue) {
	switch v.Type { //nolint:exhaustive // nothing else is made
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		m.times(v.Value)
	case bson.TypeTimestamp:
		if isNow(time.Unix(int64(binary.LittleEndian.Uint32(v.Value[4:])), 0)) {
			clear(v.Value)
		}
	case bson.TypeDateTime:
		if m.dates && isNow(time.UnixMilli(int64(binary.LittleEndian.Uint64(v.Value)))) {
			clear(v.Value)
		}
	}
}
