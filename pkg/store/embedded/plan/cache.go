package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"sync"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	maxPlans = 500 // remembered for one set of indexes
	// A remembered plan is forgotten once it reads more than so many times the keys that it was expected to: those that
	// the first query read, or fewKeys if they were less.
	maxWorse = 10
	fewKeys  = 100
)

// Cache remembers which plan was best for queries of a shape. It belongs to one set of indexes. The zero value is ready,
// and methods are safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	plans map[string]cached
}

type cached struct {
	id   ID
	keys int64 // read by the first query that ran with it
}

// Get gives the plan that was best for a shape; ok is false if none is known.
func (c *Cache) Get(shape string) (id ID, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.plans[shape]
	return known.id, ok
}

// Learn takes up how many keys a query of a shape has read with the plan id.
func (c *Cache) Learn(shape string, id ID, keys int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.plans[shape]
	if ok && known.id == id {
		if keys > maxWorse*max(known.keys, fewKeys) {
			delete(c.plans, shape)
		}
		return
	}
	if len(c.plans) >= maxPlans {
		clear(c.plans) // rather than to keep account of their use
	}
	if c.plans == nil {
		c.plans = map[string]cached{}
	}
	c.plans[shape] = cached{id: id, keys: keys}
}

// Shape is a query without its constants: queries of one shape have the same plans to choose from. Sizes of lists and
// pages count by their magnitude.
func Shape(q *store.Query) string {
	w := shapeWriter{}
	w.node(q.Filter.Root())
	for _, f := range q.Sort {
		w.addf(",%q%t", f.Path, f.Desc)
	}
	w.addf(",%d,%t", bits.Len64(uint64(max(q.Limit, 0))), len(q.After) > 0)
	return string(w.out)
}

type shapeWriter struct{ out []byte }

func (w *shapeWriter) addf(format string, args ...any) { w.out = fmt.Appendf(w.out, format, args...) }

// group writes what an operator joins.
func group[T any](w *shapeWriter, name string, items []T, write func(item T)) {
	w.addf("%s(", name)
	for _, item := range items {
		write(item)
	}
	w.addf(")")
}

func (w *shapeWriter) node(n mql.Node) {
	switch n := n.(type) {
	case *mql.AndNode:
		group(w, "and", n.Nodes, w.node)
	case *mql.OrNode:
		group(w, "or", n.Nodes, w.node)
	case *mql.NorNode:
		group(w, "nor", n.Nodes, w.node)
	case *mql.Field:
		group(w, strconv.Quote(n.Path), n.Preds, w.pred)
	}
}

func (w *shapeWriter) pred(p mql.Pred) {
	switch p := p.(type) {
	case *mql.Cmp:
		w.addf("%s%d", p.Op, document.TypeOrder(p.Value.Type))
	case *mql.In:
		w.addf("$in%d,%d", bits.Len(uint(len(p.Values))), len(p.Regexes))
	case *mql.Not:
		group(w, "$not", p.Preds, w.pred)
	case *mql.All:
		group(w, "$all", p.Preds, w.pred)
	case *mql.ElemMatch:
		group(w, "$elemMatch", p.Preds, w.pred)
		if p.Node != nil {
			w.node(p.Node)
		}
	case *mql.Exists:
		w.addf("$exists%t", p.Want)
	default:
		w.addf("%T", p)
	}
}
