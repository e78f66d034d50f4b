package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// User is the name that clients log in with. Its password is Options.Password.
const User = "admin"

// setName is the replica set that a server says it is the primary of.
const setName = "svc"

const (
	defaultConnections = 256
	sweepEvery         = 30 * time.Second
	defaultCursorTime  = 10 * time.Minute
	defaultSessionTime = 30 * time.Minute
)

// Options configure a Server.
type Options struct {
	Store store.Store // required
	// Databases lists the databases that there are. Required.
	Databases func(ctx context.Context) ([]string, error)
	// Hidden says which databases can't be reached; nil: none is hidden.
	Hidden func(name string) bool
	// Moment gives the context of a command that takes several reads and writes of Store, which is refused if the records were replaced in
	// between; nil: nobody replaces them.
	Moment   func(ctx context.Context) context.Context
	Feeds    Feeds  // of Store; nil: there is no change stream of all databases
	Address  string // host:port to listen on
	Password string // required
	ReadOnly bool   // refuses whatever writes
	Logger   *slog.Logger
	Now      func() time.Time
	Testing  Testing // nothing in a service
	// CursorTime and SessionTime are how long those are kept that nobody uses; 0: 10 and 30 minutes, as MongoDB has it.
	CursorTime, SessionTime time.Duration
	// MaxTime is how long a command that reads may take that does not say maxTimeMS, and each batch of its cursor; 0: as long
	// as it takes.
	MaxTime time.Duration
	// Connections is how many there may be at once (0: 256), half of them of such as have not authenticated, as the monitors of
	// drivers never do.
	Connections int
}

// Server answers MongoDB's wire protocol. Serve it once.
type Server struct {
	opts     Options
	listener net.Listener
	scram    *credentials
	started  time.Time
	process  bson.ObjectID // tells this run from others, for drivers that follow hello
	commands map[string]*command
	// bookkeeping lets clients reach the collections that the service keeps for itself, for tests of adapters.
	bookkeeping bool

	life    context.Context    //nolint:containedctx // ends when nothing may go on any more
	end     context.CancelFunc // of life
	closing chan struct{}      // closed when Shutdown begins

	cursors   *cursors
	sessions  *sessions
	clock     clock
	history   history
	snapshots snapshots
	counters  counters
	aliases   aliases
	pipelines pipelines

	running sync.WaitGroup // connections, transactions and change streams

	messages atomic.Int64 // of all connections, so far

	mu        sync.Mutex
	stopped   bool
	conns     map[*conn]struct{}
	unknown   int // of conns
	lastConn  int64
	failPoint *failPoint
}

// CheckAddress refuses an address that can't be listened on, or that says nothing about who can reach it. loopback is
// whether only this machine can.
func CheckAddress(address string) (loopback bool, err error) {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil || port == "":
		return false, fmt.Errorf("%q is no address such as 127.0.0.1:27018", address)
	case host == "":
		return false, fmt.Errorf("%q has no host: 127.0.0.1%s is this machine alone, 0.0.0.0%s every network it is in", address, address, address)
	case host == "localhost":
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false, fmt.Errorf("%q has a name for its host: give the network address, or localhost", address)
	}
	return ip.IsLoopback(), nil
}

// Listen makes a server that listens, and serves nobody yet. Serve or Shutdown releases what it holds.
func Listen(ctx context.Context, o Options) (*Server, error) {
	if o.Store == nil || o.Databases == nil || o.Password == "" || o.Logger == nil || o.Now == nil {
		return nil, errors.New("the MongoDB endpoint needs a store, its databases, a password, a logger and a clock")
	}
	loopback, err := CheckAddress(o.Address)
	if err != nil {
		return nil, err
	}
	if o.CursorTime <= 0 {
		o.CursorTime = defaultCursorTime
	}
	if o.SessionTime <= 0 {
		o.SessionTime = defaultSessionTime
	}
	if o.Connections <= 0 {
		o.Connections = defaultConnections
	}
	scram, err := newCredentials(o.Password)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, listener: listener, scram: scram, started: o.Now(), process: bson.NewObjectID(),
		commands: commandTable(), closing: make(chan struct{}), conns: map[*conn]struct{}{},
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.cursors = newCursors(o.Now)
	s.sessions = newSessions(o.Now)
	s.clock.now = o.Now
	if !loopback {
		o.Logger.WarnContext(ctx, "the MongoDB endpoint is open to other machines, and its connections are not encrypted: "+
			"whoever can listen on the network reads all that goes through it; a tunnel (ssh -L) to a loopback address does not have that",
			"address", listener.Addr().String())
	}
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until Shutdown, which it gives nil for, or until its listener fails.
func (s *Server) Serve() error {
	if !s.starts(s.sweep) {
		return nil
	}
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.closing:
				return nil
			default:
			}
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				continue
			}
			return err
		}
		if !s.admit(nc) {
			_ = nc.Close() // nobody to tell
		}
	}
}

// starts runs fn, which Shutdown waits for, unless that has begun.
func (s *Server) starts(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.running.Go(fn)
	}
	return !s.stopped
}

// admit serves a connection, unless there are too many. Of those that have not authenticated, the one that was silent for
// the longest time makes room: they can't keep out who has the password.
func (s *Server) admit(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.opts.Connections
	if s.unknown >= most/2 {
		s.dropSilent()
	}
	if s.stopped || len(s.conns) >= most {
		if !s.stopped {
			s.opts.Logger.Warn("the MongoDB endpoint has refused a connection: there are too many", "connections", len(s.conns))
		}
		return false
	}
	s.lastConn++
	c := newConn(s, nc, s.lastConn)
	s.conns[c] = struct{}{}
	s.unknown++
	s.running.Go(func() {
		defer s.leave(c)
		c.serve(s.life)
	})
	return true
}

// dropSilent ends the connection that was silent for the longest time, of those that have not authenticated.
func (s *Server) dropSilent() {
	var silent *conn
	for c := range s.conns {
		if !c.known && (silent == nil || c.spoke.Load() < silent.spoke.Load()) {
			silent = c
		}
	}
	if silent == nil {
		return
	}
	silent.known = true // counts no more
	s.unknown--
	_ = silent.nc.Close() // its goroutine comes to its end
	s.opts.Logger.Warn("the MongoDB endpoint has ended a connection that had not logged in: there are too many", "client", silent.nc.RemoteAddr().String())
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if !c.known {
		s.unknown--
	}
}

// nowKnown counts a connection that has authenticated.
func (s *Server) nowKnown(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.known {
		c.known = true
		s.unknown--
	}
}

// Shutdown takes no more connections and commands, waits for those that run until ctx ends, which then are cut off, and
// releases everything.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	was := s.stopped
	s.stopped = true
	if !was {
		close(s.closing)
	}
	for c := range s.conns {
		c.finish()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	s.sessions.abortAll()
	s.cursors.closeAll()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.opts.Logger.WarnContext(ctx, "commands of the MongoDB endpoint were cut off at the end of the grace time")
		s.end()
		s.mu.Lock()
		for c := range s.conns {
			_ = c.nc.Close() // it may be closed already
		}
		s.mu.Unlock()
		<-done
	}
	s.end()
	s.cursors.closeAll() // such as came into being meanwhile
	s.snapshots.closeAll()
	return err
}

// sweep forgets cursors and sessions that nobody has used for long.
func (s *Server) sweep() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.Sweep()
		case <-s.closing:
			return
		}
	}
}

// Sweep forgets cursors and sessions that nobody has used for long. Serve does it every half a minute.
func (s *Server) Sweep() {
	s.cursors.expire(s.opts.CursorTime)
	s.snapshots.expire(s.opts.Now().Add(-snapshotTime))
	for _, id := range s.sessions.expire(s.opts.SessionTime) {
		s.cursors.closeSession(id)
	}
}

func (s *Server) hidden(name string) bool { return s.opts.Hidden != nil && s.opts.Hidden(name) }

// reachable says whether clients may see a database, by the store's name.
func (s *Server) reachable(name string) bool {
	return !s.hidden(name) && store.CheckDatabaseName(name) == nil
}

// database gives a database that a client may reach.
func (s *Server) database(name string) (store.Database, error) {
	name = s.storeName(name)
	if s.hidden(name) {
		return nil, fail(codeUnauthorized, "the database %s belongs to the service itself and can't be reached here", name)
	}
	if err := store.CheckDatabaseName(name); err != nil {
		return nil, fail(codeInvalidNamespace, "%q can't be the name of a database here: it takes a-z, 0-9, _ and -, and is not admin, config or local", name)
	}
	return s.opts.Store.Database(name), nil
}

// databases lists what a client may reach.
func (s *Server) databases(ctx context.Context) ([]string, error) {
	all, err := s.opts.Databases(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Clone(all), s.hidden)
	for i := range names {
		names[i] = s.clientName(names[i])
	}
	slices.Sort(names)
	return names, nil
}

// isSystem says whether a database is one of a MongoDB server's own, which are empty here.
func isSystem(name string) bool { return name == "admin" || name == "config" || name == "local" }

// splitNamespace takes database.collection apart.
func splitNamespace(ns string) (db, coll string, ok bool) { return strings.Cut(ns, ".") }

// clock makes times as the cluster of a real server has: each one is later than the one before.
type clock struct {
	now func() time.Time

	mu   sync.Mutex
	last bson.Timestamp
}

func (c *clock) next() bson.Timestamp {
	seconds := uint32(c.now().Unix()) //nolint:gosec // until 2106, as in BSON
	c.mu.Lock()
	defer c.mu.Unlock()
	if seconds > c.last.T {
		c.last = bson.Timestamp{T: seconds}
	}
	c.last.I++
	return c.last
}
