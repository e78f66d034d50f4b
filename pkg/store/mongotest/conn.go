package mongotest

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Conn is a connection to the MongoDB of URI, for tests of packages that may not import a driver. It is not safe for
// concurrent use.
type Conn struct{ conn net.Conn }

// Dial connects to the first host of URI, without TLS and credentials, until the test ends.
func Dial(tb testing.TB) *Conn {
	tb.Helper()
	return dialURI(tb, URI(tb))
}

// Dial connects to the server, without TLS and credentials, until the test ends.
func (s *Server) Dial(tb testing.TB) *Conn {
	tb.Helper()
	return dialURI(tb, s.URI)
}

func dialURI(tb testing.TB, server string) *Conn {
	tb.Helper()
	uri, err := url.Parse(server)
	if err != nil {
		tb.Fatal(err)
	}
	host, _, _ := strings.Cut(uri.Host, ",")
	conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", host)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return &Conn{conn}
}

// Run runs a command on a database and gives the reply. A reply that says that the whole command has failed fails the
// test; errors of single writes stand in the reply.
func (c *Conn) Run(tb testing.TB, db string, cmd bson.D) bson.Raw {
	tb.Helper()
	body, err := bson.Marshal(append(cmd, bson.E{Key: "$db", Value: db}))
	if err != nil {
		tb.Fatal(err)
	}
	reply, err := roundTrip(c.conn, body)
	if err != nil {
		tb.Fatalf("%s: %v", cmd[0].Key, err)
	}
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok != 1 {
		tb.Fatalf("%s: %v", cmd[0].Key, reply)
	}
	return reply
}

// RunAll runs commands on a database, all of them at once, and gives their replies, those that say that a command has
// failed among them.
func (c *Conn) RunAll(tb testing.TB, db string, cmds []bson.D) []bson.Raw {
	tb.Helper()
	sent := make(chan error, 1)
	go func() { sent <- c.sendAll(db, cmds) }()
	replies := make([]bson.Raw, len(cmds))
	for i := range replies {
		var err error
		if replies[i], err = receive(c.conn); err != nil {
			tb.Fatalf("%s: %v", cmds[i][0].Key, err)
		}
	}
	if err := <-sent; err != nil {
		tb.Fatal(err)
	}
	return replies
}

func (c *Conn) sendAll(db string, cmds []bson.D) error {
	for _, cmd := range cmds {
		body, err := bson.Marshal(append(cmd, bson.E{Key: "$db", Value: db}))
		if err != nil {
			return err
		}
		if err := send(c.conn, body); err != nil {
			return err
		}
	}
	return nil
}
