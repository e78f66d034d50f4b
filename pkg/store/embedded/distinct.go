package embedded

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

const (
	maxDistinct = 16 << 20 // bytes of the values that Distinct gives, as in MongoDB
	// maxLone is how many entries may be read for nothing, or tell a value that no other has, before an index is no
	// longer searched from value to value.
	maxLone = 1000
)

// Distinct gives the different values that path has in the matches.
func (c *Collection) Distinct(ctx context.Context, path string, filter *mql.Filter) (_ []bson.RawValue, err error) {
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	st, err := c.state()
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, st.close)
	return st.distinct(ctx, path, filter)
}

func (st *state) distinct(ctx context.Context, path string, filter *mql.Filter) ([]bson.RawValue, error) {
	if err := store.CheckPath(path); err != nil || st.coll == nil {
		return nil, err
	}
	if values, ok := plan.ByValues(path, filter, st.planned()); ok {
		if d, ok, err := st.skim(ctx, values, path, filter); ok || err != nil {
			return d.sorted(err)
		}
	}
	d := newDistinct(path)
	_, err := st.find(ctx, store.Query{Filter: filter}, d.add)
	return d.sorted(err)
}

// distinct is a set of values.
type distinct struct {
	path   string
	seen   *keySet
	values []bson.RawValue
	size   int
	key    []byte
	each   func(v bson.RawValue) error // value
}

func newDistinct(path string) *distinct {
	d := &distinct{path: path, seen: newKeySet()}
	d.each = d.value
	return d
}

// sorted gives the values, if there was no error.
func (d *distinct) sorted(err error) ([]bson.RawValue, error) {
	if err != nil {
		return nil, err
	}
	slices.SortFunc(d.values, document.Compare)
	return d.values, nil
}

// add takes up the values of a document.
func (d *distinct) add(doc bson.Raw) error { return mql.EachValue(doc, d.path, d.each) }

func (d *distinct) value(v bson.RawValue) error {
	d.key = document.AppendKey(d.key[:0], v, false)
	if added, err := d.seen.add(d.key); err != nil || !added {
		return err
	}
	if d.size += len(v.Value); d.size > maxDistinct {
		return store.ErrDistinctSize
	}
	d.values = append(d.values, bson.RawValue{Type: v.Type, Value: bytes.Clone(v.Value)})
	return nil
}

// skim reads one document for each value, and seeks the next value. ok is false if that is not worth while.
func (st *state) skim(ctx context.Context, values plan.Values, path string, filter *mql.Filter) (_ *distinct, ok bool, err error) {
	d := newDistinct(path)
	r := st.newRead(ctx, store.Query{Filter: filter})
	defer closeInto(&err, r.close)
	if err := r.start(&plan.Plan{Scans: []*plan.Scan{values.Scan}}); err != nil {
		return d, false, err
	}
	w, group := &r.walks[0], values.Before
	lone := 0
	more, err := r.advance(w)
	for more && err == nil {
		doc, matches, loadErr := r.load(w, nil)
		if loadErr != nil {
			return d, false, loadErr
		}
		v, found := document.Lookup(doc, path)
		if !matches || !found {
			lone++
			more, err = r.advance(w)
		} else {
			if err := d.add(doc); err != nil {
				return d, false, err
			}
			group = document.AppendKey(group[:len(values.Before)], v, values.Desc)
			if more, err = r.advance(w); more && err == nil && bytes.HasPrefix(w.it.Key(), group) {
				more, err = w.seek(document.KeyAfter(group))
			} else {
				lone++
			}
		}
		if lone > maxLone {
			return d, false, nil
		}
	}
	return d, err == nil, err
}
