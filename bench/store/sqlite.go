package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/svcctl/svc/pkg/document"
)

// sqliteEngine keeps each document as a blob beside columns of the fields that are asked for, WAL with
// synchronous=FULL. Writers share transactions: SQLite has one writer, so a goroutine collects what waits and commits it
// together, as Pebble does by itself.
type sqliteEngine struct {
	db      *sql.DB
	dir     string
	queue   chan sqliteWrite
	drained chan struct{}
}

type sqliteWrite struct {
	query string
	args  []any
	feed  []byte
	done  chan error
}

func openSQLite(ctx context.Context, dir string) (*sqliteEngine, error) {
	dsn := "file:" + filepath.Join(dir, "bench.db") +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-65536)&_pragma=busy_timeout(10000)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	for _, q := range []string{
		`CREATE TABLE IF NOT EXISTS docs (id BLOB PRIMARY KEY, kind TEXT, seq INTEGER, rnd INTEGER, score REAL, status TEXT, doc BLOB) WITHOUT ROWID`,
		`CREATE INDEX IF NOT EXISTS by_kind ON docs (kind, seq)`,
		`CREATE INDEX IF NOT EXISTS by_seq ON docs (seq)`,
		`CREATE INDEX IF NOT EXISTS by_rnd ON docs (rnd)`,
		`CREATE TABLE IF NOT EXISTS feed (seq INTEGER PRIMARY KEY, id BLOB)`,
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	e := &sqliteEngine{db: db, dir: dir, queue: make(chan sqliteWrite, 256), drained: make(chan struct{})}
	go e.write(ctx)
	return e, nil
}

const sqliteInsert = `INSERT INTO docs (id, kind, seq, rnd, score, status, doc) VALUES (?, ?, ?, ?, ?, ?, ?)`

func (a article) columns() []any {
	return []any{a.ID[:], a.Kind, a.Seq, a.Rnd, a.Score, a.Status, []byte(a.raw)}
}

// write commits what waits, together.
func (e *sqliteEngine) write(ctx context.Context) {
	defer close(e.drained)
	for w := range e.queue {
		group := []sqliteWrite{w}
		for more := true; more && len(group) < 256; {
			select {
			case next, ok := <-e.queue:
				if more = ok; ok {
					group = append(group, next)
				}
			default:
				more = false
			}
		}
		err := e.commit(ctx, group)
		for _, w := range group {
			w.done <- err
		}
	}
}

func (e *sqliteEngine) commit(ctx context.Context, group []sqliteWrite) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, w := range group {
		_, err1 := tx.ExecContext(ctx, w.query, w.args...)
		_, err2 := tx.ExecContext(ctx, `INSERT INTO feed (id) VALUES (?)`, w.feed)
		if err := errors.Join(err1, err2); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (e *sqliteEngine) apply(id bson.ObjectID, query string, args ...any) error {
	w := sqliteWrite{query: query, args: args, feed: id[:], done: make(chan error, 1)}
	e.queue <- w
	return <-w.done
}

func (e *sqliteEngine) load(ctx context.Context, docs []article) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if _, err := tx.ExecContext(ctx, sqliteInsert, d.columns()...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// each calls fn with the documents of a query, in memory that is valid during the call.
func (e *sqliteEngine) each(ctx context.Context, fn func(doc bson.Raw), query string, args ...any) (n int, err error) {
	rows, err := e.db.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close() //nolint:errcheck // its error comes from Err
	var doc sql.RawBytes
	for ; rows.Next(); n++ {
		if err := rows.Scan(&doc); err != nil {
			return n, err
		}
		fn(bson.Raw(doc))
	}
	return n, rows.Err()
}

func (e *sqliteEngine) get(ctx context.Context, id bson.ObjectID) error {
	var doc []byte
	return e.db.QueryRowContext(ctx, `SELECT doc FROM docs WHERE id = ?`, id[:]).Scan(&doc)
}

func (e *sqliteEngine) page(ctx context.Context, kind string, dst []byte) ([]byte, error) {
	_, err := e.each(ctx, func(doc bson.Raw) { dst = document.AppendJSON(dst, doc, nil) },
		`SELECT doc FROM docs WHERE kind = ? ORDER BY seq DESC LIMIT 50`, kind)
	return dst, err
}

func nothing(bson.Raw) {}

func (e *sqliteEngine) fetch(ctx context.Context, field string, lo, hi int64, limit int) (int, error) {
	return e.each(ctx, nothing, fmt.Sprintf(`SELECT doc FROM docs WHERE %[1]s >= ? AND %[1]s < ? ORDER BY %[1]s LIMIT ?`, field), lo, hi, limit)
}

func (e *sqliteEngine) scan(ctx context.Context, status string, score float64) (int, error) {
	return e.each(ctx, nothing, `SELECT doc FROM docs WHERE status = ? AND score >= ?`, status, score)
}

func (e *sqliteEngine) count(ctx context.Context, lo, hi int64) (n int, err error) {
	err = e.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM docs WHERE seq >= ? AND seq < ?`, lo, hi).Scan(&n)
	return n, err
}

func (e *sqliteEngine) top(ctx context.Context) (int, error) {
	return e.each(ctx, nothing, `SELECT doc FROM docs ORDER BY score DESC LIMIT 20`)
}

func (e *sqliteEngine) insert(_ context.Context, a article) error {
	return e.apply(a.ID, sqliteInsert, a.columns()...)
}

func (e *sqliteEngine) update(_ context.Context, id bson.ObjectID, rnd int64) error {
	// The blob is left as it is: changing a byte of it in SQL would cost SQLite more.
	return e.apply(id, `UPDATE docs SET rnd = ? WHERE id = ?`, rnd, id[:])
}

func (e *sqliteEngine) build(ctx context.Context, done func()) error {
	if _, err := e.db.ExecContext(ctx, `CREATE INDEX by_score ON docs (score)`); err != nil {
		return err
	}
	done()
	_, err := e.db.ExecContext(ctx, `DROP INDEX by_score`)
	return err
}

func (e *sqliteEngine) backup(ctx context.Context, dir string) error {
	_, err := e.db.ExecContext(ctx, `VACUUM INTO ?`, dir)
	return err
}

func (e *sqliteEngine) close() error {
	close(e.queue)
	select {
	case <-e.drained:
	case <-time.After(10 * time.Second):
	}
	return e.db.Close()
}
