package embedded

import (
	"bytes"
	"container/heap"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// maxSortMemory bounds the documents held to sort them, as MongoDB does.
const maxSortMemory = 100 << 20

// sortItem is a document with what it is ordered by, as bytes.
type sortItem struct {
	key []byte
	doc bson.Raw
}

// sortHeap has the last item in order on top.
type sortHeap []sortItem

func (h sortHeap) Len() int           { return len(h) }
func (h sortHeap) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) > 0 }
func (h sortHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sortHeap) Push(x any)        { *h = append(*h, x.(sortItem)) } //nolint:errcheck,forcetypeassert // ours
func (h *sortHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// sortAll holds the matches, or with a limit only the first of them, and passes them on in order.
func (r *read) sortAll(fn func(doc bson.Raw) error) error {
	keep := int64(0) // all
	if r.query.Limit > 0 {
		keep = r.skip + r.query.Limit
	}
	items, err := r.collect(keep)
	if err != nil {
		return err
	}
	slices.SortFunc(items, func(a, b sortItem) int { return bytes.Compare(a.key, b.key) })
	for i, item := range items[min(r.skip, int64(len(items))):] {
		if i%checkEvery == checkEvery-1 && r.ctx.Err() != nil {
			return contextError(r.ctx)
		}
		if err := fn(item.doc); err != nil {
			return err
		}
	}
	return nil
}

// collect gives the first keep matches in order (0: all), themselves in no order.
func (r *read) collect(keep int64) ([]sortItem, error) {
	var items sortHeap
	var size int
	var key []byte
	position := r.sortKey(nil, r.query.After)
	err := r.documents(func(doc bson.Raw) error {
		key = r.sortKey(key[:0], r.query.Sort.Key(doc))
		if len(r.query.After) > 0 && bytes.Compare(key, position) <= 0 {
			return nil
		}
		full := keep > 0 && int64(len(items)) == keep
		if full && bytes.Compare(key, items[0].key) >= 0 {
			return nil
		}
		item := sortItem{key: bytes.Clone(key), doc: bytes.Clone(doc)}
		size += len(item.key) + len(item.doc)
		switch {
		case full:
			size -= len(items[0].key) + len(items[0].doc)
			items[0] = item
			heap.Fix(&items, 0)
		case keep > 0:
			heap.Push(&items, item)
		default:
			items = append(items, item)
		}
		if size > maxSortMemory {
			return errSortMemory
		}
		return nil
	})
	return items, err
}

// sortKey joins the values of a sort to bytes of the same order.
func (r *read) sortKey(dst []byte, values []bson.RawValue) []byte {
	for i, v := range values {
		dst = document.AppendKey(dst, v, r.query.Sort[i].Desc)
	}
	return dst
}
