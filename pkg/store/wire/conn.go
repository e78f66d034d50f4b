package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	idleTime    = 30 * time.Minute // between two messages; drivers open another connection when they need one
	unknownTime = 2 * time.Minute  // the same for those who have not authenticated; monitors ask every 10 s
	messageTime = time.Minute      // from the first byte of a message to its last, either way
	maxFailures = 3                // wrong passwords on one connection
)

// conn is one client's connection. Its goroutine alone uses it, but for finish, spoke and known.
type conn struct {
	server *Server
	nc     net.Conn
	in     *bufio.Reader
	id     int64
	log    *slog.Logger

	finishing atomic.Bool
	spoke     atomic.Int64 // Server.messages, when it last sent one or was answered
	lastReply int32

	login    *login // under way
	failures int    // of logins
	user     bool   // has authenticated
	known    bool   // the same, or it is being ended, guarded by server.mu
	client   bson.Raw
}

func newConn(s *Server, nc net.Conn, id int64) *conn {
	c := &conn{
		server: s, nc: nc, in: bufio.NewReaderSize(nc, 16<<10), id: id,
		log: s.opts.Logger.With("client", nc.RemoteAddr().String()),
	}
	c.speaks()
	return c
}

// speaks notes that there was a message.
func (c *conn) speaks() { c.spoke.Store(c.server.messages.Add(1)) }

// finish has the connection end after the command that it runs.
func (c *conn) finish() {
	c.finishing.Store(true)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // whoever waits for a message stops
}

// serve answers messages until the connection ends.
func (c *conn) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { _ = c.nc.Close() }() // it may be closed already
	defer func() {
		if r := recover(); r != nil { // contained in this connection
			c.log.ErrorContext(ctx, "a command of the MongoDB endpoint has failed badly", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
	}()
	for !c.finishing.Load() {
		m, err := c.read()
		if err != nil {
			c.logEnd(ctx, err)
			return
		}
		if err := c.answer(ctx, m); err != nil {
			c.logEnd(ctx, err)
			return
		}
	}
}

func (c *conn) logEnd(ctx context.Context, err error) {
	switch {
	case errors.Is(err, errMessage):
		c.log.WarnContext(ctx, "a connection of the MongoDB endpoint is closed", "error", err)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		c.log.DebugContext(ctx, "a connection of the MongoDB endpoint broke", "error", err)
	}
}

func (c *conn) read() (*message, error) {
	limit, idle := maxMessage, idleTime
	if !c.user {
		limit, idle = maxBefore, unknownTime
	}
	if err := c.nc.SetReadDeadline(time.Now().Add(idle)); err != nil {
		return nil, err
	}
	if c.finishing.Load() { // its deadline may have been overwritten just now
		return nil, io.EOF
	}
	return readMessage(c.in, limit, func() {
		_ = c.nc.SetReadDeadline(time.Now().Add(messageTime)) // a broken connection tells when it is read
		if c.finishing.Load() {
			c.finish()
		}
	})
}

// whileThere gives a context that ends when the client hangs up. Nothing else may read until stop is called.
func (c *conn) whileThere(ctx context.Context) (there context.Context, stop func()) {
	there, cancel := context.WithCancel(ctx)
	if c.in.Buffered() > 0 || c.nc.SetReadDeadline(time.Time{}) != nil { // it has sent more already, or is gone, which the answer will tell
		return there, cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := c.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
	}()
	return there, func() {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // else it reads on, and the client has to say something
		<-done
		cancel()
	}
}

// answer runs the command of a message and sends what it gives, more than once if the client wants to be told what changes.
func (c *conn) answer(ctx context.Context, m *message) error {
	responseTo := m.id
	for {
		c.speaks()
		reply, again := c.run(ctx, m)
		if reply == nil {
			return io.EOF
		}
		if m.flags&flagMoreToCome != 0 { // nobody waits for an answer
			return nil
		}
		flags := m.flags & flagChecksum
		if again {
			flags |= flagMoreToCome
		}
		id, err := c.write(reply, responseTo, flags, m.legacy)
		if err != nil || !again {
			return err
		}
		responseTo = id
	}
}

func (c *conn) write(reply bson.D, responseTo int32, flags uint32, legacy bool) (id int32, err error) {
	body, err := bson.Marshal(reply)
	if err != nil {
		return 0, err
	}
	c.lastReply++
	if err := c.nc.SetWriteDeadline(time.Now().Add(messageTime)); err != nil {
		return 0, err
	}
	_, err = c.nc.Write(appendReply(make([]byte, 0, len(body)+40), c.lastReply, responseTo, flags, legacy, body))
	return c.lastReply, err
}
