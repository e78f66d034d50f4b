package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// The vectors of texts are kept in the project's database, so that each is computed once, whichever instance needs it and whatever
// becomes of indexes and configs. They are found by what they are of: the reference of the group that gave them, and the text.

// vectorsCollection has a document for each text:
//
//	{_id: vectorKey, vector: binary | tokens: [text], weights: binary | refused: text, at: date}
//
// Numbers are 32 bits each, the least byte first. refused is why the group gives no vector for the text.
const vectorsCollection = "svc.vectors"

// vectorKey tells texts and references apart.
type vectorKey string

func newVectorKey(reference, text string) vectorKey {
	sum := sha256.Sum256([]byte(text))
	return vectorKey(printOf(reference) + "." + hex.EncodeToString(sum[:16]))
}

// printOf is a reference, shorter.
func printOf(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return hex.EncodeToString(sum[:8])
}

// known is what is kept of a text: its vector, or that it was refused.
type known struct {
	vector  embedding.Vector
	refused bool
}

// vectorsAtOnce is how many vectors are read at once.
const vectorsAtOnce = 512

// vectorsOf gives what is kept of texts.
func (t *tenant) vectorsOf(ctx context.Context, keys []vectorKey) (map[vectorKey]known, error) {
	out := make(map[vectorKey]known, len(keys))
	for part := range slices.Chunk(keys, vectorsAtOnce) {
		ids := make([]bson.RawValue, len(part))
		for i, k := range part {
			ids[i] = store.Name(string(k))
		}
		err := t.db.Collection(vectorsCollection).Find(ctx, store.Query{Filter: mql.OneOf("_id", ids)}, func(doc bson.Raw) error {
			if id, one, ok := readVector(doc); ok { // else it is computed anew
				out[id] = one
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the vectors of records: %w", err)
		}
	}
	return out, nil
}

// vectorDoc is a document of vectorsCollection.
type vectorDoc struct {
	ID      vectorKey `bson:"_id"`
	Vector  []byte    `bson:"vector,omitempty"`
	Tokens  []string  `bson:"tokens,omitempty"`
	Weights []byte    `bson:"weights,omitempty"`
	Refused string    `bson:"refused,omitempty"`
	At      time.Time `bson:"at"`
}

func readVector(raw bson.Raw) (_ vectorKey, _ known, ok bool) {
	var doc vectorDoc
	if bson.Unmarshal(raw, &doc) != nil {
		return "", known{}, false
	}
	switch {
	case doc.Refused != "":
		return doc.ID, known{refused: true}, true
	case doc.Weights == nil:
		dense := readNumbers(doc.Vector)
		return doc.ID, known{vector: embedding.Vector{Dense: dense}}, len(dense) > 0
	}
	weights := readNumbers(doc.Weights)
	if len(weights) != len(doc.Tokens) {
		return "", known{}, false
	}
	sparse := make(map[string]float32, len(weights))
	for i, token := range doc.Tokens {
		sparse[token] = weights[i]
	}
	return doc.ID, known{vector: embedding.Vector{Sparse: sparse}}, true
}

// keep writes what has become of texts.
func (t *tenant) keep(ctx context.Context, all map[vectorKey]known) error {
	ops := make([]store.Op, 0, len(all))
	for key, one := range all {
		doc := vectorDoc{ID: key, At: t.e.o.Now(), Vector: writeNumbers(one.vector.Dense)}
		switch {
		case one.refused:
			doc.Refused = "the embedding group refuses the text"
		case one.vector.Sparse != nil:
			doc.Weights = []byte{}
			for token, weight := range one.vector.Sparse {
				doc.Tokens, doc.Weights = append(doc.Tokens, token), binary.LittleEndian.AppendUint32(doc.Weights, math.Float32bits(weight))
			}
		}
		raw, err := bson.Marshal(doc)
		if err != nil {
			return errs.Wrap(err, "keep a vector")
		}
		ops = append(ops, store.Op{Kind: store.Replace, Doc: raw, Upsert: true})
	}
	return store.WriteAll(ctx, t.db.Collection(vectorsCollection), ops...)
}

func readNumbers(b []byte) []float32 {
	out := make([]float32, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return out
}

func writeNumbers(v []float32) []byte {
	var out []byte
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// forgive forgets which texts were refused, so that the group is asked for them again.
func (t *tenant) forgive(ctx context.Context) error {
	filter := mql.MustCompile(bson.D{{Key: "refused", Value: bson.D{{Key: "$exists", Value: true}}}})
	return store.WriteAll(ctx, t.db.Collection(vectorsCollection), store.Op{Kind: store.Delete, Filter: filter, Many: true})
}
