package differ

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

const (
	opMsg      = 2013
	frameSize  = 16 + 4 + 1       // of an OP_MSG: four integers, flags, and the kind of the one section
	replyLimit = 48 << 20         // of a MongoDB server
	patience   = 60 * time.Second // for one reply
)

// server runs cases on a MongoDB. Commands are written ahead and their replies read in order: a command costs no round
// trip.
type server struct {
	database string
	conn     net.Conn
	in       *bufio.Reader
	indexed  bool // the collection has indexes, or may not be there
}

func dial(ctx context.Context, uri, database string) (*server, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &server{database: database, conn: conn, in: bufio.NewReaderSize(conn, 1<<16), indexed: true}, nil
}

func (s *server) close() { _ = s.conn.Close() } // nothing is lost with it

// exchange runs commands and gives their replies.
func (s *server) exchange(commands []bson.D) ([]bson.Raw, error) {
	var out []byte
	for _, c := range commands {
		body, err := bson.Marshal(append(c, bson.E{Key: "$db", Value: s.database}))
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(frameSize+len(body)))
		out = append(out, make([]byte, 8)...)
		out = binary.LittleEndian.AppendUint32(out, opMsg)
		out = append(out, 0, 0, 0, 0, 0)
		out = append(out, body...)
	}
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	written := make(chan error, 1)
	go func() {
		_, err := s.conn.Write(out)
		written <- err
	}()
	replies := make([]bson.Raw, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = s.read(); err != nil {
			return nil, err
		}
	}
	return replies, <-written
}

func (s *server) read() (bson.Raw, error) {
	header := make([]byte, frameSize)
	if _, err := io.ReadFull(s.in, header); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header)
	if size < frameSize || size > replyLimit {
		return nil, fmt.Errorf("a reply of %d bytes", size)
	}
	reply := make([]byte, size-frameSize)
	_, err := io.ReadFull(s.in, reply)
	return reply, err
}

// run does a whole case and gives an answer to each op, and the documents there are then.
func (s *server) run(c *Case) ([]*Answer, []bson.Raw, error) {
	commands := s.loading(c)
	first := len(commands)
	for i := range c.Ops {
		commands = append(commands, c.Ops[i].command())
	}
	commands = append(commands, dumping())
	replies, err := s.exchange(commands)
	if err != nil {
		return nil, nil, err
	}
	for _, reply := range replies[:first] {
		// That documents are refused shows in what the collection holds then.
		code, text := failure(reply)
		if refusing := reply.Lookup("writeErrors").Type != 0; code != 0 && code != codeNamespaceNotFound && !refusing {
			return nil, nil, fmt.Errorf("loading: %d %s", code, text)
		}
	}
	answers := make([]*Answer, len(c.Ops))
	for i := range answers {
		answers[i] = c.Ops[i].read(replies[first+i])
	}
	return answers, batch(replies[len(replies)-1]), nil
}

const (
	codeNamespaceNotFound = 26
	codeDuplicate         = 11000
)

// loading makes the collection anew.
func (s *server) loading(c *Case) []bson.D {
	// A collection takes long to make: one without indexes is used again.
	shared := slices.ContainsFunc(c.Indexes, func(x Index) bool { return x.Shared })
	commands := []bson.D{{{Key: "delete", Value: collectionName}, {Key: "deletes", Value: bson.A{
		bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}},
	}}}}
	if s.indexed || shared {
		commands = []bson.D{{{Key: "drop", Value: collectionName}}, {{Key: "create", Value: collectionName}}}
	}
	s.indexed = shared
	for i, x := range c.Indexes {
		if !x.Shared {
			continue
		}
		index := bson.D{{Key: "name", Value: indexName(i)}, {Key: "key", Value: x.Keys}}
		if x.Unique {
			index = append(index, bson.E{Key: "unique", Value: true})
		}
		if x.Sparse {
			index = append(index, bson.E{Key: "sparse", Value: true})
		}
		if x.Partial != nil {
			index = append(index, bson.E{Key: "partialFilterExpression", Value: x.Partial})
		}
		commands = append(commands, bson.D{{Key: "createIndexes", Value: collectionName}, {Key: "indexes", Value: bson.A{index}}})
	}
	if len(c.Docs) > 0 {
		commands = append(commands, bson.D{
			{Key: "insert", Value: collectionName}, {Key: "ordered", Value: false}, {Key: "documents", Value: c.Docs},
		})
	}
	return commands
}

func dumping() bson.D { return finding(bson.D{{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}}) }

// finding asks for everything in one reply.
func finding(args bson.D) bson.D {
	return append(append(bson.D{{Key: "find", Value: collectionName}}, args...),
		hint(), bson.E{Key: "batchSize", Value: 1 << 20}, bson.E{Key: "singleBatch", Value: true})
}

// hint keeps the server from its indexes: it gives less where a sparse one serves {a: {$lte: MaxKey}}, say.
func hint() bson.E { return bson.E{Key: "hint", Value: bson.D{{Key: "$natural", Value: 1}}} }

// orEmpty is for commands that need an object.
func orEmpty(d bson.D) bson.D {
	if d == nil {
		return bson.D{}
	}
	return d
}

func (o *Op) command() bson.D {
	switch o.Kind {
	case Find:
		return finding(o.findArgs())
	case Count:
		return bson.D{{Key: "count", Value: collectionName}, {Key: "query", Value: orEmpty(o.Filter)}, {Key: "limit", Value: o.Limit}, hint()}
	case Distinct:
		return bson.D{{Key: "distinct", Value: collectionName}, {Key: "key", Value: o.Path}, {Key: "query", Value: orEmpty(o.Filter)}}
	case Insert:
		return bson.D{{Key: "insert", Value: collectionName}, {Key: "documents", Value: bson.A{o.Doc}}}
	}
	if o.Return != "" {
		return o.findAndModify()
	}
	if o.Kind == Delete {
		limit := 1
		if o.Many {
			limit = 0
		}
		return bson.D{{Key: "delete", Value: collectionName}, {Key: "deletes", Value: bson.A{
			bson.D{{Key: "q", Value: orEmpty(o.Filter)}, {Key: "limit", Value: limit}, hint()},
		}}}
	}
	u := bson.D{
		{Key: "q", Value: orEmpty(o.Filter)},
		{Key: "u", Value: o.change()},
		{Key: "multi", Value: o.Many},
		{Key: "upsert", Value: o.Upsert},
		hint(),
	}
	if o.ArrayFilters != nil {
		u = append(u, bson.E{Key: "arrayFilters", Value: o.ArrayFilters})
	}
	return bson.D{{Key: "update", Value: collectionName}, {Key: "updates", Value: bson.A{u}}}
}

func (o *Op) change() bson.D {
	if o.Kind == Replace {
		return orEmpty(o.Doc)
	}
	return orEmpty(o.Update)
}

func (o *Op) findArgs() bson.D {
	filter := orEmpty(o.Filter)
	args := bson.D{{Key: "sort", Value: orEmpty(o.Sort)}}
	if o.After != nil {
		// The documents up to it are cut off when the reply is read; it has to be there for that.
		filter = bson.D{{Key: "$or", Value: bson.A{filter, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: o.After}}}}}}}
	} else {
		args = append(args, bson.E{Key: "skip", Value: o.Skip}, bson.E{Key: "limit", Value: o.Limit})
	}
	if o.Project != nil {
		args = append(args, bson.E{Key: "projection", Value: o.Project})
	}
	return append(args, bson.E{Key: "filter", Value: filter})
}

func (o *Op) findAndModify() bson.D {
	c := bson.D{{Key: "findAndModify", Value: collectionName}, {Key: "query", Value: orEmpty(o.Filter)}, hint()}
	if len(o.Sort) > 0 {
		c = append(c, bson.E{Key: "sort", Value: o.Sort})
	}
	if o.Project != nil {
		c = append(c, bson.E{Key: "fields", Value: o.Project})
	}
	if o.Kind == Delete {
		return append(c, bson.E{Key: "remove", Value: true})
	}
	c = append(c, bson.E{Key: "update", Value: o.change()}, bson.E{Key: "upsert", Value: o.Upsert},
		bson.E{Key: "new", Value: o.Return == "after"})
	if o.ArrayFilters != nil {
		c = append(c, bson.E{Key: "arrayFilters", Value: o.ArrayFilters})
	}
	return c
}

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
