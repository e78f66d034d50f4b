package mongo

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

const (
	defaultAppName       = "svc"
	defaultSelectTimeout = 10 * time.Second
	closeTimeout         = 5 * time.Second
	cursorTimeout        = 2 * time.Second // for closing a cursor, for which callers wait
	killTimeout          = 5 * time.Second // for ending what callers do not wait for, but Close does
	killAgain            = time.Second
	aliveTimeout         = 5 * time.Second // for connecting, and for a sign of life that is late
	aliveEvery           = 2 * time.Second // between signs of life; a server without any is given up after both times
	minWireVersion       = 13              // MongoDB 5.0, the first with snapshot reads outside transactions
)

// Options say which MongoDB to use and how. Only URI is needed.
type Options struct {
	// URI is a connection string, mongodb:// or mongodb+srv://, with credentials and TLS settings as MongoDB
	// defines them. It is a secret: no error and no log line has it or its password in it.
	URI     string
	AppName string       // how the server's logs call us; "" is "svc"
	Logger  *slog.Logger // nil: no log
	// SelectTimeout is how long an operation waits for a primary, also while one is elected; 0 is what the URI says
	// (serverSelectionTimeoutMS), or else 10 s.
	SelectTimeout time.Duration
}

// Store is the port store.Store on a MongoDB. All methods are safe for concurrent use.
type Store struct {
	client        *mongo.Client
	secret        redactor
	selectTimeout time.Duration
	txTime        time.Duration // how long a transaction may last

	sharded  bool   // behind a router
	identity string // of the replica set, as far as any user may know it

	closing atomic.Bool     // Close has begun: what is heard of the servers means nothing more
	life    context.Context //nolint:containedctx // ends when Close begins: views and running Watch calls end with it
	end     context.CancelFunc

	turns sync.Map      // by database, see turnOf
	slots chan struct{} // see withSlot; nil: no limit

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // added to only under mu while not closed

	// What this Store has seen last, in the cluster's time. Reads ask for this or later.
	clusterTime bson.Raw
	opTime      *bson.Timestamp
}

var _ store.Store = (*Store)(nil)

// Open connects and makes sure that the server can do what the port promises. It fails with errs.Invalid for a URI
// that isn't one, and with errs.Unavailable if no primary is reached (code "store_unavailable") or the server is a
// standalone ("standalone_server") or too old ("server_too_old").
func Open(ctx context.Context, o Options) (*Store, error) {
	secret := newRedactor(o.URI)
	opts := options.Client().ApplyURI(o.URI)
	if opts.Validate() != nil { // the error quotes the URI
		return nil, errs.New(errs.Invalid, "bad_store_uri", "the store's URI is not a MongoDB connection string: "+
			"expected mongodb://[user:password@]host[:port][,…]/[?options], with user and password percent-encoded")
	}
	if o.AppName == "" {
		o.AppName = defaultAppName
	}
	if given := opts.ServerSelectionTimeout; o.SelectTimeout == 0 && given != nil {
		o.SelectTimeout = *given
	}
	if o.SelectTimeout <= 0 {
		o.SelectTimeout = defaultSelectTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{secret: secret, selectTimeout: o.SelectTimeout, txTime: transactionTime}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	journaled := true
	majority := writeconcern.Majority()
	majority.Journal = &journaled
	opts.SetAppName(o.AppName).
		SetServerSelectionTimeout(o.SelectTimeout).
		SetReadPreference(readpref.Primary()).
		SetReadConcern(readconcern.Majority()).
		SetWriteConcern(majority).
		SetRetryWrites(true).
		SetRetryReads(true).
		SetServerMonitor(&event.ServerMonitor{TopologyDescriptionChanged: logPrimary(o.Logger, &s.closing)})
	// The driver's own 30 s and 10 s leave calls without a deadline waiting for a server that hangs.
	if opts.ConnectTimeout == nil {
		opts.SetConnectTimeout(aliveTimeout)
	}
	if opts.HeartbeatInterval == nil {
		opts.SetHeartbeatInterval(aliveEvery)
	}
	s.slots = limitWaiting(opts)
	client, err := mongo.Connect(opts)
	if err != nil {
		s.end()
		return nil, errs.New(errs.Invalid, "bad_store_uri", "the store's URI has an option that does not work here").With(secret.clean(err))
	}
	s.client = client
	if err := s.checkServer(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// checkServer refuses servers that cannot keep the port's promises.
func (s *Store) checkServer(ctx context.Context) error {
	hello, err := s.hello(ctx)
	if err != nil {
		return err
	}
	setName, inSet := hello.Lookup("setName").StringValueOK()
	kind, _ := hello.Lookup("msg").StringValueOK()
	s.sharded, s.identity = kind == "isdbgrid", setName
	if !inSet && !s.sharded {
		return errs.New(errs.Unavailable, "standalone_server", "the MongoDB server is a standalone, which has no transactions: "+
			"start mongod with --replSet rs0, and run rs.initiate() on it once")
	}
	if version, _ := hello.Lookup("maxWireVersion").AsInt64OK(); version < minWireVersion {
		return errs.New(errs.Unavailable, "server_too_old", "the MongoDB server is too old: version 5.0 or later is needed")
	}
	return nil
}

func (s *Store) hello(ctx context.Context) (hello bson.Raw, err error) {
	err = s.inSession(ctx, func(ctx context.Context) error {
		return s.again(ctx, func() error {
			hello, err = s.client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Raw()
			return err
		}, isPassing)
	})
	return hello, err
}

// Database gives a handle.
func (s *Store) Database(name string) store.Database {
	return &database{store: s, name: name, db: s.client.Database(name)}
}

// DropDatabase removes a database with everything in it.
func (s *Store) DropDatabase(ctx context.Context, name string) error {
	return s.inSession(ctx, func(ctx context.Context) error {
		if err := store.CheckDatabaseName(name); err != nil {
			return err
		}
		return s.again(ctx, func() error { return s.client.Database(name).Drop(ctx) }, isPassing)
	})
}

// Ping says whether there is a primary that takes writes.
func (s *Store) Ping(ctx context.Context) error {
	hello, err := s.hello(ctx)
	if err != nil {
		return err
	}
	if primary, _ := hello.Lookup("isWritablePrimary").BooleanOK(); !primary {
		return unavailable(nil)
	}
	return nil
}

// Name is "mongodb".
func (*Store) Name() string { return "mongodb" }

// Close waits for running operations, then closes all connections.
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.closing.Store(true)
	s.mu.Unlock()
	if was {
		return nil
	}
	s.end()
	s.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout) //nolint:forbidigo // no caller's ctx may cut it short
	defer cancel()
	if err := s.client.Disconnect(ctx); err != nil {
		return s.secret.wrap(err, "closing the connections")
	}
	return nil
}

// A scope is where an operation runs: in a session of its own, in a transaction or in a view. It runs fn with a ctx that
// has the session, and turns what the driver fails with into the port's errors.
type scope func(ctx context.Context, fn func(ctx context.Context) error) error

// inSession is the scope of an operation that stands by itself: it keeps Close waiting, gives fn a session that sees everything the Store
// has seen, and turns what the driver fails with into the port's errors.
func (s *Store) inSession(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	s.mu.Lock()
	clusterTime, opTime := s.clusterTime, s.opTime
	s.mu.Unlock()
	session, err := s.client.StartSession(options.Session().SetCausalConsistency(true))
	if err != nil {
		return s.translate(ctx, err)
	}
	defer s.release(ctx, session)
	if opTime != nil {
		if err := session.AdvanceClusterTime(clusterTime); err != nil {
			return s.translate(ctx, err)
		}
		if err := session.AdvanceOperationTime(opTime); err != nil {
			return s.translate(ctx, err)
		}
	}
	persistent, cancel := persistently(ctx)
	defer cancel()
	err = fn(mongo.NewSessionContext(persistent, session))
	s.observe(session)
	return s.translate(ctx, err)
}

// begin keeps Close waiting for an operation, which says s.running.Done() at its end.
func (s *Store) begin(ctx context.Context) error {
	if err := store.Ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.running.Add(1)
	return nil
}

// release gives a session back. If ctx ended under its work, the server is told to stop that: it looks for whether
// anybody waits for the result at some commands only, and knows deadlines of some only.
func (s *Store) release(ctx context.Context, session *mongo.Session) {
	if ctx.Err() == nil {
		session.EndSession(ctx)
		return
	}
	s.running.Go(func() { // the caller is in running itself: Close waits for this, too
		s.kill(ctx, session)
		// A command that was on its way may come behind that, and begin a transaction that nobody would end.
		select {
		case <-time.After(killAgain):
		case <-s.life.Done():
		}
		s.kill(ctx, session)
		session.EndSession(context.WithoutCancel(ctx))
	})
}

// kill ends all that a session does on the server, whether or not ctx has ended.
func (s *Store) kill(ctx context.Context, session *mongo.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	_ = s.client.Database("admin").RunCommand(ctx, bson.D{{Key: "killSessions", Value: bson.A{session.ID()}}}).Err()
}

type closer interface {
	Close(ctx context.Context) error
}

// closeCursor lets the server forget a cursor or a stream. If ctx has ended, release does that with the whole session, and
// nobody waits for a server that may not answer. What can't be closed expires.
func closeCursor(ctx context.Context, cursor closer) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cursorTimeout)
	defer cancel()
	_ = cursor.Close(ctx)
}

// observe moves the Store's time to that of a session that has done something.
func (s *Store) observe(session *mongo.Session) {
	opTime, clusterTime := session.OperationTime(), session.ClusterTime()
	if opTime == nil || clusterTime == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opTime == nil || opTime.After(*s.opTime) {
		s.opTime, s.clusterTime = opTime, clusterTime
	}
}

// logPrimary logs when the primary changes, is lost or is found.
func logPrimary(logger *slog.Logger, closing *atomic.Bool) func(*event.TopologyDescriptionChangedEvent) {
	return func(e *event.TopologyDescriptionChangedEvent) {
		if closing.Load() {
			return // we leave, not the primary
		}
		was, is := primaryOf(e.PreviousDescription), primaryOf(e.NewDescription)
		switch {
		case was == is:
		case is == "":
			logger.Warn("mongodb has no primary", "was", was)
		default:
			logger.Info("mongodb primary", "address", is)
		}
	}
}

func primaryOf(topology event.TopologyDescription) string {
	var addrs []string
	for _, server := range topology.Servers {
		if server.Kind == "RSPrimary" || server.Kind == "Mongos" {
			addrs = append(addrs, server.Addr.String())
		}
	}
	return strings.Join(addrs, ",")
}
