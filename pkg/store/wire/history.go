package wire

import (
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// maxHistory is how many times of each database are remembered.
const maxHistory = 4096

// history says where in the feed of a database a time stands that a client was told: a change stream may begin there.
type history struct {
	mu  sync.Mutex
	all map[string][]told
}

type told struct {
	time bson.Timestamp
	at   store.Position
}

// note looks where the feed stands before the command.
func (k *call) note() {
	if k.command.global || isSystem(k.db) {
		return
	}
	name := k.server.storeName(k.db)
	if !k.server.reachable(name) {
		return
	}
	if p, err := k.server.opts.Store.Database(name).Position(k.ctx); err == nil {
		k.position = p
	}
}

// record remembers what note saw under the time that the answer has.
func (k *call) record(now bson.Timestamp) {
	if k.position == nil {
		return
	}
	h := &k.server.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string][]told{}
	}
	list := h.all[k.db]
	if n := len(list); n > 0 && string(list[n-1].at) == string(k.position) {
		return
	}
	if len(list) >= maxHistory {
		list = slices.Clone(list[maxHistory/2:])
	}
	h.all[k.db] = append(list, told{time: now, at: k.position})
}

// find gives the last place that is known to be before a time.
func (h *history) find(db string, t bson.Timestamp) (store.Position, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.all[db]
	n, found := slices.BinarySearchFunc(list, t, func(e told, t bson.Timestamp) int { return e.time.Compare(t) })
	if found {
		n++
	}
	if n == 0 {
		return nil, fail(codeHistoryLost, "this time is not known here any more: a change stream begins now, or behind a resume token")
	}
	return list[n-1].at, nil
}
