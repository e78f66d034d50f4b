package query

import (
	"bytes"
	"encoding/base64"
	"hash/fnv"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// cursor is the opaque position behind a record: its sort key, bound to the sort it was made for. It holds only
// values of fields that the caller sorts by, which are visible to them.
type cursor struct {
	Sort uint32          `bson:"s"`
	Key  []bson.RawValue `bson:"k"`
}

// maxCursor is how long a cursor may be, so that an address with it and a filter fits into what servers and proxies
// take.
const maxCursor = 2 << 10

// EncodeCursor gives the cursor of the page behind a record.
func EncodeCursor(sort mql.Sort, doc bson.Raw) (string, error) {
	key := sort.Key(doc)
	raw, err := bson.Marshal(cursor{Sort: fingerprint(sort), Key: key})
	if err != nil {
		return "", errs.Wrap(err, "encode cursor")
	}
	if base64.RawURLEncoding.EncodedLen(len(raw)) > maxCursor {
		longest := 0
		for i := range key {
			if len(key[i].Value) > len(key[longest].Value) {
				longest = i
			}
		}
		return "", errs.New(errs.Invalid, "sort_value_too_long",
			"there is a next page, but a value of %s is too long to page by: sort by something shorter", sort[longest].Path)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

var errBadCursor = errs.New(errs.Invalid, "bad_cursor", "after must be the next cursor of a page of the same sort")

func decodeCursor(sort mql.Sort, text string) ([]bson.RawValue, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxCursor || bson.Raw(raw).Validate() != nil {
		return nil, errBadCursor
	}
	var c cursor
	if err := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw))).Decode(&c); err != nil {
		return nil, errBadCursor.With(err)
	}
	if c.Sort != fingerprint(sort) || len(c.Key) != len(sort) || slices.ContainsFunc(c.Key, noSortKey) {
		return nil, errBadCursor
	}
	return c.Key, nil
}

// noSortKey says that a value can't be of a cursor that was given out: of a type that no sort key has, or deeper than
// a record. A store would fail on it, or take it for something else.
func noSortKey(v bson.RawValue) bool { return !sortable(v, document.MaxDepth) }

func sortable(v bson.RawValue, levels int) bool {
	switch v.Type {
	case bson.TypeNull, bson.TypeBoolean, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeString,
		bson.TypeObjectID, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeBinary,
		bson.TypeUndefined: // the key of an empty list
		return true
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		elements, err := bson.Raw(v.Value).Elements()
		return err == nil && levels > 0 && !slices.ContainsFunc(elements, func(e bson.RawElement) bool {
			return !sortable(e.Value(), levels-1)
		})
	default:
		return false
	}
}

// fingerprint tells sorts apart, so that a cursor is not used with another sort by mistake.
func fingerprint(sort mql.Sort) uint32 {
	h := fnv.New32a()
	for _, f := range sort {
		dir := "+"
		if f.Desc {
			dir = "-"
		}
		h.Write([]byte(dir + f.Path + "\x00")) //nolint:gosec // a hash never fails
	}
	return h.Sum32()
}
