package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Place is an entry's place in the chain: its number and its hash. The zero Place is before the first entry.
type Place struct {
	Seq  int64
	Hash string
}

// ends are the two ends of a chain, the one document of the collection headName.
type ends struct {
	ID string `bson:"_id"`
	// the newest entry
	Seq  int64  `bson:"seq"`
	Hash string `bson:"hash"`
	// the entry before the oldest that is kept
	AnchorSeq  int64  `bson:"anchorSeq"`
	AnchorHash string `bson:"anchorHash"`
}

const endsID = "chain"

// readEnds reads the ends; those of a log that was never sealed are zero.
func readEnds(ctx context.Context, from store.Reader) (ends, error) {
	e := ends{ID: endsID}
	doc, err := from.Get(ctx, store.Name(endsID))
	if errors.Is(err, errs.ErrNotFound) {
		return e, nil
	}
	if err == nil {
		err = bson.Unmarshal(doc, &e)
	}
	return e, err
}

// writeOp is the write of the ends.
func (e ends) writeOp() (store.Op, error) {
	doc, err := bson.Marshal(e)
	return store.Op{Kind: store.Replace, Doc: doc, ID: store.Name(endsID), Upsert: true}, err
}

// sealed gives an entry its place behind prev. The hash covers every byte of the entry as it is stored, but for the hash
// itself.
func sealed(doc bson.Raw, prev Place) (bson.Raw, Place, error) {
	body, err := without(doc, "seq", "prev", "hash")
	if err != nil {
		return nil, Place{}, err
	}
	place, err := bson.Marshal(bson.D{{Key: "seq", Value: prev.Seq + 1}, {Key: "prev", Value: prev.Hash}})
	if err != nil {
		return nil, Place{}, errs.Wrap(err, "encode a place in the chain")
	}
	body = append(body, place[4:len(place)-1]...)
	next := Place{Seq: prev.Seq + 1, Hash: digest(body)}
	hash, err := bson.Marshal(bson.D{{Key: "hash", Value: next.Hash}})
	if err != nil {
		return nil, Place{}, errs.Wrap(err, "encode a hash")
	}
	return framed(append(body, hash[4:len(hash)-1]...)), next, nil
}

// maxEntry is more than an entry of ours has, in bytes: two states and who did it.
const maxEntry = 2*maxState + 1<<20

// sealable says whether an unsealed entry has the form that Write gives it, to the byte. Others were put there by other
// hands: the chain does without them, whatever they would do to it, and Verify names them.
func sealable(doc bson.Raw) bool {
	var e Entry
	if len(doc) > maxEntry || bson.Unmarshal(doc, &e) != nil || e.Seq != 0 || e.Prev != "" || e.Hash != "" {
		return false
	}
	again, err := bson.Marshal(e)
	return err == nil && bytes.Equal(again, doc)
}

// follows says whether a sealed entry is as it was sealed, behind a place; one without a hash is any.
func follows(doc bson.Raw, prev Place) bool {
	sum, err := hashOf(doc)
	return err == nil && sum == text(doc, "hash") && (prev.Hash == "" || text(doc, "prev") == prev.Hash)
}

// hashOf computes what the hash of a sealed entry has to be.
func hashOf(doc bson.Raw) (string, error) {
	body, err := without(doc, "hash")
	return digest(body), err
}

func digest(body []byte) string {
	sum := sha256.Sum256(framed(body))
	return hex.EncodeToString(sum[:])
}

// without gives the members of a document but for some, as bytes.
func without(doc bson.Raw, names ...string) ([]byte, error) {
	elements, err := doc.Elements()
	if err != nil {
		return nil, errs.Wrap(err, "read an entry of the audit log")
	}
	body := make([]byte, 0, len(doc)+256)
next:
	for _, e := range elements {
		for _, name := range names {
			if e.Key() == name {
				continue next
			}
		}
		body = append(body, e...)
	}
	return body, nil
}

// framed makes a document of its members' bytes.
func framed(body []byte) bson.Raw {
	out := make([]byte, 0, len(body)+5)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)+5)) //nolint:gosec // below 16 MiB
	return append(append(out, body...), 0)
}
