package traced

import (
	"context"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/tracing"
)

// New gives a store whose operations have spans; s itself if nothing is traced. What a database or a collection of s is besides (store.Replacer,
// store.ImageKeeper, store.TxCreator), it is here, too.
func New(s store.Store, t *tracing.Tracer) store.Store {
	if t == nil {
		return s
	}
	return &traced{s, t}
}

type traced struct {
	store.Store
	tracer *tracing.Tracer
}

func (s *traced) Database(name string) store.Database {
	db := &database{s.Store.Database(name), scope{tracer: s.tracer, kind: s.Name(), database: name}}
	if all, ok := db.Database.(store.Replacer); ok {
		return &replacing{db, all}
	}
	return db
}

// scope is what an operation is on.
type scope struct {
	tracer     *tracing.Tracer
	kind       string // of the store
	database   string
	collection string // "": all
}

// begin begins the span of an operation.
func (s *scope) begin(ctx context.Context, operation string, more ...tracing.Attribute) (context.Context, tracing.Span) {
	if !tracing.Records(ctx) {
		return ctx, tracing.Span{}
	}
	name, about := operation, append(more, tracing.Store(s.kind), tracing.Database(s.database), tracing.Operation(operation))
	if s.collection != "" {
		name, about = name+" "+s.collection, append(about, tracing.Stored(s.collection))
	}
	return s.tracer.Asking(ctx, name, about...)
}

// in is the scope of a collection.
func (s scope) in(collection string) scope {
	s.collection = collection
	return s
}

type database struct {
	store.Database
	scope
}

// replacing is a database that is a store.Replacer, too.
type replacing struct {
	*database
	store.Replacer
}

func (d *database) Collection(name string) store.Collection {
	own := d.Database.Collection(name)
	c := &collection{readerWriter{reader{own, d.in(name)}, own}, own, own}
	if keeper, ok := own.(store.ImageKeeper); ok {
		return &keeping{c, keeper}
	}
	return c
}

func (d *database) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	ctx, span := d.begin(ctx, "transaction")
	var callers error // what it is given up with; what failed inside has a span of its own
	err := d.Database.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		callers = fn(ctx, &transaction{tx, d.scope})
		return callers
	})
	span.End(unless(err, callers))
	return err
}

func (d *database) View(ctx context.Context) (store.View, error) {
	v, err := d.Database.View(ctx)
	if err != nil {
		return nil, err
	}
	return &view{v, d.scope}, nil
}

type transaction struct {
	store.Tx
	scope
}

func (t *transaction) Collection(name string) store.TxCollection {
	own := t.Tx.Collection(name)
	c := &readerWriter{reader{own, t.in(name)}, own}
	if creator, ok := own.(store.TxCreator); ok {
		return &creating{c, creator}
	}
	return c
}

// creating is a collection of a transaction that is a store.TxCreator, too.
type creating struct {
	*readerWriter
	store.TxCreator
}

type view struct {
	store.View
	scope
}

func (v *view) Collection(name string) store.Reader {
	return &reader{v.View.Collection(name), v.in(name)}
}
