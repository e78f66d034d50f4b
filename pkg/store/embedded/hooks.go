package embedded

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// TODO(feed): the bodies below come with the feed and the counters, and this file goes. All but durable run under the
// commit mutex. A commit that is given up is just never sealed: what it took up goes with it, so numbers of the feed
// and totals of counters may move on in applied only.

// log takes up a change of the document whose _id is id for the feed, in order. id is valid during the call only.
func (w *writer) log(store.EventKind, bson.RawValue) {}

// count takes up how many documents and bytes of them w's collection gains; negative if it loses some.
func (w *writer) count(docs, bytes int64) {}

// seal adds what log and count of all writers took up to the batch, just before it is applied.
func (c *commit) seal() error { return nil }

// applied tells that the batch is visible now.
func (c *commit) applied() {}

// durable tells that the batch is on disk, outside of the commit mutex, in any order of commits.
func (c *commit) durable() {}

// position is the end of a database's feed, everything that is visible now included.
func (s *Store) position(database string) store.Position { return nil }
