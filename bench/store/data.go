package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const kinds = 500 // different values of kind: 200 documents each at 100,000

// article is a document of about half a kilobyte. Its indexes are (kind, seq), (seq), whose order is that of the
// _ids, and (rnd), whose order is another. score and status have none.
type article struct {
	ID     bson.ObjectID `bson:"_id"`
	Kind   string        `bson:"kind"`
	Seq    int64         `bson:"seq"`
	Rnd    int64         `bson:"rnd"`
	Score  float64       `bson:"score"`
	Status string        `bson:"status"`
	Title  string        `bson:"title"`
	At     time.Time     `bson:"createdAt"`
	Tags   []string      `bson:"tags"`
	Ref    bson.ObjectID `bson:"ref"` // another article
	Body   string        `bson:"body"`

	raw bson.Raw
}

// articles makes n documents, the same ones each time, with sequence numbers from first on.
func articles(first, n int) []article {
	r := rand.New(rand.NewPCG(1, uint64(first))) //nolint:gosec // test data
	out := make([]article, n)
	for i := range out {
		seq := first + i
		a := article{
			ID: objectID(seq), Kind: fmt.Sprintf("kind-%03d", r.IntN(kinds)), Seq: int64(seq), Rnd: r.Int64N(1 << 40),
			Score: r.Float64(), Status: []string{"draft", "published", "archived"}[r.IntN(3)],
			Title: fmt.Sprintf("Article number %d of the collection", seq), At: time.UnixMilli(1_700_000_000_000 + int64(seq)).UTC(),
			Ref:  objectID(r.IntN(seq + 1)),
			Tags: []string{fmt.Sprintf("tag-%d", r.IntN(50)), fmt.Sprintf("tag-%d", r.IntN(50))}, Body: text(r, 215),
		}
		var err error
		if a.raw, err = bson.Marshal(a); err != nil {
			panic(err)
		}
		out[i] = a
	}
	return out
}

// text is words that compress about as text does.
func text(r *rand.Rand, size int) string {
	out := make([]byte, 0, size)
	for len(out) < size {
		out = append(out, words[r.IntN(len(words))]...)
		out = append(out, ' ')
	}
	return string(out[:size])
}

var words = [...]string{
	"content", "store", "field", "the", "of", "a", "and", "value", "index", "record", "page", "site", "editor", "draft", "image",
	"library", "product", "price", "author", "reader", "morning", "window", "river", "stone", "paper", "light", "house", "road",
}

// objectID counts up, as those of one process do.
func objectID(n int) (id bson.ObjectID) {
	binary.BigEndian.PutUint32(id[:], 1_700_000_000)
	binary.BigEndian.PutUint64(id[4:], uint64(n))
	return id
}
