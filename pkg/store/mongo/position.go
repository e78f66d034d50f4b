package mongo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// The form of a store.Position: version, identity of the database, kind, and what that kind needs.
const (
	positionVersion = 1
	identitySize    = 8
	positionHeader  = 1 + identitySize + 1

	kindTime  = 't' // a time of the cluster, big-endian: goes on behind it
	kindToken = 'r' // a resume token of the server
)

// place is a decoded position.
type place struct {
	time  bson.Timestamp // the first that counts; the zero time is none
	token bson.Raw       // or this
}

// Position is the feed's end.
func (d *database) Position(ctx context.Context) (p store.Position, err error) {
	err = d.run(ctx, func(ctx context.Context) error {
		now, err := d.now(ctx)
		p = d.positionAt(now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// positionAt is the position behind everything that has happened up to t.
func (d *database) positionAt(t bson.Timestamp) store.Position {
	p := d.header(kindTime)
	p = binary.BigEndian.AppendUint32(p, t.T)
	return binary.BigEndian.AppendUint32(p, t.I)
}

func (d *database) positionOf(token bson.Raw) store.Position {
	return append(d.header(kindToken), token...)
}

func (d *database) header(kind byte) store.Position {
	p := store.Position{positionVersion}
	p = append(p, d.identity()...)
	return append(p, kind)
}

// identity tells databases apart, and the replica sets they are in.
func (d *database) identity() []byte {
	sum := sha256.Sum256([]byte(d.store.identity + "\x00" + d.name))
	return sum[:identitySize]
}

// place decodes a position. None is the zero place.
func (d *database) place(p store.Position) (place, error) {
	if p == nil {
		return place{}, nil
	}
	if len(p) < positionHeader || p[0] != positionVersion || !bytes.Equal(p[1:1+identitySize], d.identity()) {
		return place{}, store.ErrBadPosition
	}
	rest := []byte(p[positionHeader:])
	switch kind := p[positionHeader-1]; {
	case kind == kindTime && len(rest) == 8:
		// The increment counts operations of one second, so it does not overflow.
		return place{time: bson.Timestamp{T: binary.BigEndian.Uint32(rest), I: binary.BigEndian.Uint32(rest[4:]) + 1}}, nil
	case kind == kindToken && bson.Raw(rest).Validate() == nil && isToken(rest):
		return place{token: rest}, nil
	default:
		return place{}, store.ErrBadPosition
	}
}

// isToken says whether the server can have made a resume token: {_data: text in hex}.
func isToken(token bson.Raw) bool {
	data, _ := token.Lookup("_data").StringValueOK()
	_, err := hex.DecodeString(data)
	return data != "" && err == nil
}
