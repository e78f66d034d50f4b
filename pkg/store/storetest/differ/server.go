package differ

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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
	database    string
	conn        net.Conn
	in          *bufio.Reader
	collections []indexed // the last used one is the last
	made        int
	transaction transaction
}

// indexed is a collection of the server that is used again for cases with the same indexes: those take long to make.
type indexed struct {
	indexes, name string
	uses          int
}

const (
	maxCollections = 8
	maxUses        = 12 // then what has been deleted, which a scan goes through for minutes, costs more than a new one
)

func dial(ctx context.Context, uri, database string) (*server, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	s := &server{database: database, conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}
	// Nothing has to survive the server: nobody waits for its disk.
	replies, err := s.exchange([]bson.D{{
		{Key: "setDefaultRWConcern", Value: 1},
		{Key: "defaultWriteConcern", Value: bson.D{{Key: "w", Value: 1}}},
		{Key: "$db", Value: "admin"},
	}})
	if err == nil {
		if code, text := failure(replies[0]); code != 0 {
			err = fmt.Errorf("write concern: %d %s", code, text)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *server) close() { _ = s.conn.Close() } // nothing is lost with it

// exchange runs commands and gives their replies.
func (s *server) exchange(commands []bson.D) ([]bson.Raw, error) {
	var out []byte
	for _, c := range commands {
		if c[len(c)-1].Key != "$db" {
			c = append(c, bson.E{Key: "$db", Value: s.database})
		}
		body, err := bson.Marshal(c)
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
	name, commands := s.loading(c)
	loading := len(commands)
	var replies []bson.Raw
	send := func() error {
		more, err := s.exchange(commands)
		replies, commands = append(replies, more...), nil
		return err
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		ofOp := op.commands(name)
		if op.Kind == Batch {
			s.transaction++
			s.transaction.begin(ofOp)
		}
		commands = append(commands, ofOp...)
		if op.Kind != Batch {
			continue
		}
		if err := send(); err != nil {
			return nil, nil, err
		}
		// Nothing that is stale or not found ends the transaction by itself.
		end := "commitTransaction"
		if op.readParts(replies[len(replies)-op.replies():]).Refused != "" {
			end = "abortTransaction"
		}
		commands = append(commands, s.transaction.end(end))
	}
	commands = append(commands, dumping(name))
	if err := send(); err != nil {
		return nil, nil, err
	}
	for _, reply := range replies[:loading] {
		// That documents are refused shows in what the collection holds then.
		code, text := failure(reply)
		if refusing := reply.Lookup("writeErrors").Type != 0; code != 0 && !refusing {
			return nil, nil, fmt.Errorf("loading: %d %s", code, text)
		}
	}
	answers, last := c.readAll(replies[loading:])
	return answers, batch(last), nil
}

const codeDuplicate = 11000

// loading gives a collection with the documents of a case and nothing else, and the commands that make it.
func (s *server) loading(c *Case) (name string, commands []bson.D) {
	indexes := sharedIndexes(c)
	key := text(bson.D{{Key: "indexes", Value: indexes}})
	at := slices.IndexFunc(s.collections, func(x indexed) bool { return x.indexes == key })
	if at >= 0 && s.collections[at].uses == maxUses {
		commands = append(commands, bson.D{{Key: "drop", Value: s.collections[at].name}})
		s.collections = slices.Delete(s.collections, at, at+1)
		at = -1
	}
	if at >= 0 {
		used := s.collections[at]
		used.uses++
		s.collections = append(slices.Delete(s.collections, at, at+1), used)
		name = used.name
		commands = append(commands, bson.D{{Key: "delete", Value: name}, {Key: "deletes", Value: bson.A{
			bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}},
		}}})
	} else {
		if len(s.collections) == maxCollections {
			commands = append(commands, bson.D{{Key: "drop", Value: s.collections[0].name}})
			s.collections = slices.Delete(s.collections, 0, 1)
		}
		s.made++
		name = fmt.Sprintf("%s%d", collectionName, s.made)
		s.collections = append(s.collections, indexed{key, name, 1})
		commands = append(commands, bson.D{{Key: "create", Value: name}})
		if len(indexes) > 0 {
			commands = append(commands, bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: indexes}})
		}
	}
	if len(c.Docs) > 0 {
		commands = append(commands, bson.D{
			{Key: "insert", Value: name}, {Key: "ordered", Value: false}, {Key: "documents", Value: c.Docs},
		})
	}
	return name, commands
}

func sharedIndexes(c *Case) bson.A {
	list := bson.A{}
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
		list = append(list, index)
	}
	return list
}
