package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/search/index"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// moving is a filter that compares records with the time of now: each moment has one of its own, but most let the same records
// through. The set of one is that of all times up to the next at which a record may come or go.
type moving struct {
	shape *mql.Filter // the filter at noTime
	paths []string    // that are compared with the time

	mu     sync.Mutex
	at     int64       // in milliseconds: when it was last asked
	filter *mql.Filter // at that time
	until  int64       // from then on, it is not known who is in
}

// noTime stands for the time of now in a shape.
const noTime = math.MinInt64 + 16

// movingOf finds a time in a filter; nil if it is not in there, or where it can't be told what becomes of it as time goes by.
func movingOf(f *mql.Filter, now time.Time) *moving {
	m := &moving{at: now.UnixMilli(), filter: f, until: math.MaxInt64}
	m.shape = replaceTime(f, m.at, noTime, func(path string) { m.paths = append(m.paths, path) })
	var left [8]byte
	binary.LittleEndian.PutUint64(left[:], uint64(m.at)) //nolint:gosec // as it is stored
	if len(m.paths) == 0 || bytes.Contains(m.shape.Raw(), left[:]) {
		return nil
	}
	return m
}

// replaceTime gives a filter with another time in comparisons with one. each, which may be nil, is told their paths.
func replaceTime(f *mql.Filter, from, to int64, each func(path string)) *mql.Filter {
	was := dateValue(from)
	out, err := f.Replace(func(around, path string, p mql.Pred) (*mql.Filter, error) {
		c, ok := p.(*mql.Cmp)
		if !ok || c.Value.Type != was.Type || !bytes.Equal(c.Value.Value, was.Value) {
			return nil, nil //nolint:nilnil // it stays
		}
		if each != nil {
			each(strings.TrimPrefix(around+"."+path, "."))
		}
		return mql.On(path, &mql.Cmp{Op: c.Op, Value: dateValue(to)}), nil
	})
	if err != nil { // none is returned above
		panic(err)
	}
	return out
}

func dateValue(ms int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDateTime, Value: binary.LittleEndian.AppendUint64(nil, uint64(ms))} //nolint:gosec // as it is stored
}

// has says whether a record that is written is let through now, and notes when that may change.
func (m *moving) has(doc bson.Raw, now time.Time) bool {
	m.mu.Lock()
	if ms := now.UnixMilli(); ms > m.at {
		m.at, m.filter = ms, replaceTime(m.shape, noTime, ms, nil)
	}
	at, filter := m.at, m.filter
	m.mu.Unlock()
	m.note(doc, at)
	return filter.Match(doc)
}

// note notes when it may change whether a record is let through, which is so at a time, or was.
func (m *moving) note(doc bson.Raw, at int64) {
	next := int64(math.MaxInt64)
	for _, path := range m.paths {
		top, _, _ := strings.Cut(path, ".")
		v, _ := document.Field(doc, top)
		eachDate(v, func(ms int64) {
			switch {
			case ms > at:
				next = min(next, ms)
			case ms == at: // less than the time in a moment
				next = min(next, ms+1)
			}
		})
	}
	m.mu.Lock()
	m.until = min(m.until, next)
	m.mu.Unlock()
}

// toCome asks for the records that may come or go after a time.
func (m *moving) toCome(at int64) store.Query {
	var later []*mql.Filter
	var tops bson.D
	for _, path := range m.paths {
		later = append(later, mql.On(path, &mql.Cmp{Op: mql.Gte, Value: dateValue(at)}))
		top, _, _ := strings.Cut(path, ".")
		if !slices.ContainsFunc(tops, func(e bson.E) bool { return e.Key == top }) {
			tops = append(tops, bson.E{Key: top, Value: 1})
		}
	}
	q := store.Query{Filter: mql.Or(later...)}
	if only, err := mql.CompileProjection(tops); err == nil { // else they come whole
		q.Project = only
	}
	return q
}

// eachDate calls fn for all dates in a value, wherever they are: one too many does no harm.
func eachDate(v bson.RawValue, fn func(ms int64)) {
	switch v.Type {
	case bson.TypeDateTime:
		fn(int64(binary.LittleEndian.Uint64(v.Value))) //nolint:gosec // as it is stored
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		for it := document.NewIter(v.Value); it.Next(); {
			eachDate(it.Value(), fn)
		}
	default:
	}
}

// lasts says whether the set is that of a time, or of one a little later.
func (m *moving) lasts(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.UnixMilli() < m.until
}

// viewMoving gives the records that a query's filter lets through at a time that it has in it.
func (b *built) viewMoving(ctx context.Context, q Query, m *moving) (*index.View, error) {
	for {
		v, err := b.ix.ViewSet(ctx, setName(m.shape), m, b.fill(q, m))
		if err != nil {
			return nil, err
		}
		if seen, ok := v.Set().Data.(*moving); ok && seen.lasts(q.Now) {
			return v, nil
		}
		v.Forget() // it has been overtaken by time
		if err := v.Close(); err != nil {
			return nil, err
		}
		m = movingOf(q.Filter, q.Now)
	}
}

// fill gives who is in the set of a query's filter. m, unless it is nil, learns until when.
func (b *built) fill(q Query, m *moving) index.Fill {
	only := mql.MustCompileProjection(bson.D{{Key: "_rev", Value: 1}, {Key: "updatedAt", Value: 1}})
	var at int64
	if m != nil {
		at = m.at
	}
	records := fieldnames.Wrap(b.s.t.db, q.Project.FieldNames).Collection(b.s.stored)
	return func(ctx context.Context, add func(id []byte, rev int64) error) error {
		err := records.Find(ctx, store.Query{Filter: q.Filter, Project: only}, func(doc bson.Raw) error {
			id := idOf(doc)
			return add(id[:], versionOf(doc))
		})
		if err == nil && m != nil {
			err = records.Find(ctx, m.toCome(at), func(doc bson.Raw) error {
				m.note(doc, at)
				return nil
			})
		}
		if err == nil && !b.bound.Load().isOf(q) { // what changes from now on would be held against a filter that means other fields
			err = ErrBuilding
		}
		return err
	}
}
