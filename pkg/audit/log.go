package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

// The collections of a log. No collection of a project can have such a name, and the store lists them nowhere.
const (
	entriesName = "svc.audit"
	headName    = "svc.audit_head"
)

// Options are what the logs need from outside.
type Options struct {
	Store  store.Store      // required
	Now    func() time.Time // required
	Logger *slog.Logger     // nil: nothing is logged
	// Holder names this process to people who look at leases; "": "svcd".
	Holder string
	// SystemDatabase is where the log of the system models is, and SystemRetention how long its entries are kept; 0: for
	// ever. The entries of records say themselves how long.
	SystemDatabase  string
	SystemRetention time.Duration
}

// Logs are the logs of all databases of a store. They are safe for concurrent use.
type Logs struct {
	opts Options
	now  func() time.Time // as dates in the store are

	wake  chan struct{} // has something when dirty has
	mu    sync.Mutex
	logs  map[string]*Log
	dirty map[string]bool // databases with entries to seal
}

// New makes the logs. Run seals them.
func New(opts Options) *Logs {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Holder == "" {
		opts.Holder = "svcd"
	}
	return &Logs{
		opts: opts, now: func() time.Time { return opts.Now().UTC().Truncate(time.Millisecond) },
		wake: make(chan struct{}, 1), logs: map[string]*Log{}, dirty: map[string]bool{},
	}
}

// System is the log of the system models.
func (ls *Logs) System() *Log { return ls.Of(ls.opts.SystemDatabase) }

// Of gives the log of a database.
func (ls *Logs) Of(database string) *Log {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.logs[database]
	if l == nil {
		db := ls.opts.Store.Database(database)
		l = &Log{
			logs: ls, name: database, db: db, entries: db.Collection(entriesName), head: db.Collection(headName),
			leases: lease.New(db, ls.opts.Holder, nil),
		}
		ls.logs[database] = l
	}
	return l
}

// Log is the log of one database. It is safe for concurrent use.
type Log struct {
	logs          *Logs
	name          string
	db            store.Database
	entries, head store.Collection
	leases        *lease.Leases

	mu    sync.Mutex
	ready bool // the indexes are there
}

// Prepare makes the indexes of the log, once for each process. Every write does it, too.
func (l *Log) Prepare(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready {
		return nil
	}
	for _, path := range []string{"at", "seq"} {
		index := store.Index{Name: path, Keys: []store.IndexKey{{Path: path}, {Path: "_id"}}}
		if err := l.entries.CreateIndex(ctx, index); err != nil {
			return err
		}
	}
	l.ready = true
	return nil
}

// Write makes a change and the entries about it, both or neither. change writes through tx only, and may run several
// times: see store.Database.Transact. Who did it and when is filled in.
func (l *Log) Write(ctx context.Context, change func(ctx context.Context, tx store.Tx) error, entries ...Entry) error {
	return l.WriteAll(ctx, func(ctx context.Context, tx store.Tx) ([]Entry, error) { return entries, change(ctx, tx) })
}

// WriteAll is Write for a change that finds out itself what it does: it gives the entries, at least one.
func (l *Log) WriteAll(ctx context.Context, change func(ctx context.Context, tx store.Tx) ([]Entry, error)) error {
	if err := l.Prepare(ctx); err != nil {
		return err
	}
	err := l.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		entries, err := change(ctx, tx)
		if err != nil {
			return err
		}
		ops, err := l.inserts(ctx, entries)
		if err != nil {
			return err
		}
		return store.WriteAll(ctx, tx.Collection(entriesName), ops...)
	})
	if err == nil {
		l.logs.written(l.name)
	}
	return err
}

// WriteIn writes entries with a transaction of somebody else's, which has to call Committed once it is committed. Prepare
// must have been called before the transaction began.
func (l *Log) WriteIn(ctx context.Context, tx store.Tx, entries ...Entry) error {
	ops, err := l.inserts(ctx, entries)
	if err != nil {
		return err
	}
	return store.WriteAll(ctx, tx.Collection(entriesName), ops...)
}

// Committed says that entries of WriteIn are there.
func (l *Log) Committed() { l.logs.written(l.name) }

// WithReserve is a context by which entries, and what else is written by it, may go into the reserve of a store: for what only reads or makes room. See
// store.WithReserve.
func WithReserve(ctx context.Context) context.Context { return store.WithReserve(ctx) }

// Append writes entries about something that is no change of this database.
func (l *Log) Append(ctx context.Context, entries ...Entry) error {
	if err := l.Prepare(ctx); err != nil {
		return err
	}
	ops, err := l.inserts(ctx, entries)
	if err != nil {
		return err
	}
	if err := store.WriteAll(ctx, l.entries, ops...); err != nil {
		return err
	}
	l.logs.written(l.name)
	return nil
}

// inserts completes entries.
func (l *Log) inserts(ctx context.Context, entries []Entry) ([]store.Op, error) {
	now, by := l.logs.now(), caller(ctx)
	ops := make([]store.Op, len(entries))
	for i, e := range entries {
		e.ID, e.At = bson.NewObjectIDFromTimestamp(now), now
		e.Actor, e.TokenID, e.RequestID, e.Address = by.Actor, by.TokenID, by.RequestID, by.Address
		if keep := l.logs.opts.SystemRetention; e.Kind == System && keep > 0 {
			e.Expires = now.Add(keep)
		}
		e.Seq, e.Prev, e.Hash = 0, "", ""
		doc, err := bson.Marshal(e)
		if err != nil {
			return nil, errs.Wrap(err, "encode an entry of the audit log")
		}
		ops[i] = store.Op{Kind: store.Insert, Doc: doc}
	}
	return ops, nil
}

// mark notes that a log may have entries to seal.
func (ls *Logs) mark(database string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.dirty[database] = true
}

// written wakes the sealer.
func (ls *Logs) written(database string) {
	ls.mark(database)
	select {
	case ls.wake <- struct{}{}:
	default: // it is awake
	}
}
