package wire

import (
	"bytes"
	"context"
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// AllowBookkeeping lets clients reach the collections that the service keeps for itself: an adapter's tests do.
func (s *Server) AllowBookkeeping() { s.bookkeeping = true }

// OpenCursors is how many cursors there are.
func (s *Server) OpenCursors() int { return s.cursors.count() }

// ParseMessage reads a message as a connection does, and gives the body and the documents beside it.
func ParseMessage(data []byte, limit int) (body bson.Raw, beside int, err error) {
	m, err := readMessage(bytes.NewReader(data), limit, func() {})
	if err != nil {
		return nil, 0, err
	}
	for _, s := range m.sequences {
		beside += len(s.docs)
	}
	return m.body, beside, nil
}

// Request is a command as it is sent.
func Request(body bson.Raw, flags uint32) []byte { return appendReply(nil, 7, 0, flags, false, body) }

// Answer runs a command as one who has logged in would have it run.
func (s *Server) Answer(ctx context.Context, body bson.Raw) bson.D {
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	c := newConn(s, here, 1)
	c.user = true
	reply, _ := c.run(ctx, &message{body: body})
	return reply
}

// DropMade drops a collection that a command has made and can't use.
func (s *Server) DropMade(ctx context.Context, db store.Database, name string) error {
	return s.dropMade(ctx, db, name)
}
