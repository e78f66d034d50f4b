package differ

import (
	"bytes"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// failure is the error that a command or its one write came to.
func failure(reply bson.Raw) (code int64, text string) {
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok == 1 {
		list, _ := reply.Lookup("writeErrors").ArrayOK()
		if it := document.NewIter(list); it.Next() {
			first := bson.Raw(it.Value().Value)
			code, _ = first.Lookup("code").AsInt64OK()
			text, _ = first.Lookup("errmsg").StringValueOK()
		}
		return code, text
	}
	code, _ = reply.Lookup("code").AsInt64OK()
	text, _ = reply.Lookup("errmsg").StringValueOK()
	if code == 0 {
		code = -1
	}
	return code, text
}

// readAll makes the answers of the replies to all ops, and gives the reply behind them.
func (c *Case) readAll(replies []bson.Raw) ([]*Answer, bson.Raw) {
	answers := make([]*Answer, len(c.Ops))
	for i := range answers {
		op := &c.Ops[i]
		n := op.replies()
		answers[i] = op.readParts(replies[:n])
		replies = replies[n:]
		if op.Kind != Batch {
			continue
		}
		if code, text := failure(replies[0]); code != 0 && answers[i].Refused == "" {
			answers[i] = &Answer{Refused: broken, Detail: fmt.Sprintf("commit: %d %s", code, text)}
		}
		replies = replies[1:]
	}
	return answers, replies[0]
}

// readParts makes the answer of the replies to an op, but for the end of a batch.
func (o *Op) readParts(replies []bson.Raw) *Answer {
	switch {
	case o.Kind == Batch || o.Kind == Each:
		return o.readBatch(replies)
	case len(replies) == 1:
		return o.read(replies[0])
	}
	a := o.read(replies[1])
	if a.Refused != "" || a.Count > 0 || len(a.Doc) > 0 {
		return a
	}
	if len(batch(replies[0])) == 0 {
		return &Answer{Refused: notFound}
	}
	return &Answer{Refused: stale}
}

func (o *Op) readBatch(replies []bson.Raw) *Answer {
	all := &Answer{}
	for i := range o.Batch {
		n := o.Batch[i].replies()
		part := o.Batch[i].readParts(replies[:n])
		replies = replies[n:]
		if part.Refused != "" && o.Kind == Batch {
			part.Failed = i
			return part
		}
		all.Parts = append(all.Parts, part)
	}
	return all
}

// read makes the answer of a reply.
func (o *Op) read(reply bson.Raw) *Answer {
	if code, text := failure(reply); code != 0 {
		a := &Answer{Refused: refused, Detail: fmt.Sprintf("%d %s", code, text)}
		if code == codeDuplicate {
			a.Refused = duplicate
		}
		return a
	}
	n, _ := reply.Lookup("n").AsInt64OK()
	switch o.Kind {
	case Find:
		return &Answer{Docs: o.page(batch(reply))}
	case Count:
		return &Answer{Count: n}
	case Distinct:
		return &Answer{Values: sortedValues(reply)}
	case Insert:
		return &Answer{}
	}
	if o.Return != "" {
		return modified(reply)
	}
	a := &Answer{Count: n, Modified: n}
	if o.Kind != Delete {
		a.Modified, _ = reply.Lookup("nModified").AsInt64OK()
		if list, ok := reply.Lookup("upserted").ArrayOK(); ok {
			a.Count--
			a.Upserted = clone(bson.Raw(list).Lookup("0", "_id"))
		}
	}
	return a
}

func clone(v bson.RawValue) bson.RawValue {
	return bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)}
}

func batch(reply bson.Raw) []bson.Raw {
	var docs []bson.Raw
	list, _ := reply.Lookup("cursor", "firstBatch").ArrayOK()
	for it := document.NewIter(list); it.Next(); {
		docs = append(docs, it.Value().Value)
	}
	return docs
}

// page cuts off what is not behind After, and sorts what has no order.
func (o *Op) page(docs []bson.Raw) []bson.Raw {
	if len(o.Sort) == 0 {
		slices.SortFunc(docs, func(a, b bson.Raw) int { return bytes.Compare(a, b) })
	}
	if o.After == nil {
		return docs
	}
	id, err := document.MarshalValue(o.After)
	if err != nil {
		return nil
	}
	at := slices.IndexFunc(docs, func(d bson.Raw) bool { return document.Compare(d.Lookup("_id"), id) == 0 })
	if at < 0 {
		return nil
	}
	docs = docs[at+1:]
	docs = docs[min(o.Skip, int64(len(docs))):]
	if o.Limit > 0 {
		docs = docs[:min(o.Limit, int64(len(docs)))]
	}
	return docs
}

func sortedValues(reply bson.Raw) []bson.RawValue {
	var values []bson.RawValue
	list, _ := reply.Lookup("values").ArrayOK()
	for it := document.NewIter(list); it.Next(); {
		values = append(values, it.Value())
	}
	slices.SortStableFunc(values, document.Compare)
	return values
}

// modified reads the reply of a find-and-modify.
func modified(reply bson.Raw) *Answer {
	a := &Answer{}
	a.Count, _ = reply.Lookup("lastErrorObject", "n").AsInt64OK()
	if id, err := reply.LookupErr("lastErrorObject", "upserted"); err == nil {
		a.Count, a.Upserted = 0, clone(id)
	}
	if doc, ok := reply.Lookup("value").DocumentOK(); ok {
		a.Doc = slices.Clone(doc)
	}
	return a
}
