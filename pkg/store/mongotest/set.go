package mongotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// askTimeout is how long a member may take to say whether it is primary. A paused one never does.
const askTimeout = time.Second

// Set is a replica set of several servers, which can be killed and paused one by one. Its methods, and those of its
// members, are for one goroutine at a time.
type Set struct {
	URI     string
	Members []*Server
}

// StartSet starts a replica set of n members with nothing in it. It needs a mongod that runs on this machine; see Start.
func StartSet(ctx context.Context, n int, options ...Option) (*Set, error) {
	s := defaults()
	for _, option := range options {
		option(&s)
	}
	if _, err := findMongod(ctx); err != nil {
		return nil, fmt.Errorf("a replica set of several needs a mongod on this machine (the wheel: %w)", err)
	}
	set := &Set{}
	var addrs []string
	for range n {
		member, err := launch(ctx, s, "--replSet", replicaSet)
		if err != nil {
			return nil, errors.Join(err, set.Stop())
		}
		set.Members = append(set.Members, member)
		addrs = append(addrs, member.addr)
	}
	if err := set.initiate(ctx, addrs); err != nil {
		return nil, errors.Join(err, set.Stop())
	}
	set.URI = "mongodb://" + strings.Join(addrs, ",") + "/?replicaSet=" + replicaSet
	return set, nil
}

func (s *Set) initiate(ctx context.Context, addrs []string) error {
	for _, member := range s.Members[1:] {
		conn, err := dial(ctx, member.addr)
		if err != nil {
			return err
		}
		_ = conn.Close() // it listens
	}
	return s.Members[0].initiate(ctx, addrs...)
}

// Primary waits for a primary and gives it, and the others.
func (s *Set) Primary(ctx context.Context) (primary *Server, others []*Server, err error) {
	for giveUp := time.Now().Add(startTimeout); ; time.Sleep(pollInterval) {
		for _, member := range s.Members {
			if member.isPrimary(ctx) {
				primary = member
			} else {
				others = append(others, member)
			}
		}
		switch {
		case primary != nil && len(others) == len(s.Members)-1: // not two, as there may be for a moment
			return primary, others, nil
		case ctx.Err() != nil || time.Now().After(giveUp):
			return nil, nil, errors.Join(errors.New("there is no primary"), ctx.Err())
		}
		primary, others = nil, nil
	}
}

// Stop ends all members and removes their data.
func (s *Set) Stop() error {
	var failed []error
	for _, member := range s.Members {
		failed = append(failed, member.Stop())
	}
	return errors.Join(failed...)
}

func (s *Server) isPrimary(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // the answer has come
	if conn.SetDeadline(time.Now().Add(askTimeout)) != nil {
		return false
	}
	reply, err := command(conn, bson.D{{Key: "hello", Value: 1}})
	if err != nil {
		return false
	}
	primary, _ := reply.Lookup("isWritablePrimary").BooleanOK()
	return primary
}

// Addr is where the server listens: host and port.
func (s *Server) Addr() string { return s.addr }

// Kill ends the server's process at once, as a crash does. Its data stay.
func (s *Server) Kill() error { return s.order("KILL") }

// Restart starts the server again after Kill, on its data. It does not wait until the server takes connections.
func (s *Server) Restart() error { return s.order("start") }

// Pause makes the server stand still with all its connections open, as one does that hangs.
func (s *Server) Pause() error { return s.order("STOP") }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.order("CONT") }

func (s *Server) order(order string) error {
	_, err := io.WriteString(s.pipe, order+"\n")
	return err
}

// StepDown has a primary become a secondary for a second, with the others, or itself, to follow.
func (s *Server) StepDown(ctx context.Context) error {
	conn, err := dial(ctx, s.addr)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the answer has come, or never will
	return mustCommand(conn, bson.D{{Key: "replSetStepDown", Value: 1}, {Key: "force", Value: true}})
}
