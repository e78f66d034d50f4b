package document

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// AppendElement appends an element of a document or list to dst. name must not contain NUL.
func AppendElement[S ~string | ~[]byte](dst []byte, name S, v bson.RawValue) []byte {
	dst = append(dst, byte(v.Type))
	dst = append(dst, name...)
	dst = append(dst, 0)
	return append(dst, v.Value...)
}

// Close ends the document or list in dst that begins at start, with four bytes of any value for its length.
func Close(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start)) //nolint:gosec // what is built is far below 4 GB
	return dst
}

// WithID gives doc with id in front, in place of the _id that it may have.
func WithID(doc bson.Raw, id bson.RawValue) bson.Raw {
	out := make([]byte, 4, len(doc)+len(id.Value)+len("_id")+2)
	out = AppendElement(out, "_id", id)
	for it := NewIter(doc); it.Next(); {
		if string(it.key) != "_id" {
			out = AppendElement(out, it.key, it.val)
		}
	}
	return Close(out, 0)
}

// IDFirst gives doc as MongoDB keeps it, with the _id in front. It is doc itself if that is so, or if there is none.
func IDFirst(doc bson.Raw) bson.Raw {
	if it := NewIter(doc); it.Next() && string(it.key) == "_id" {
		return doc
	}
	id, found := Field(doc, "_id")
	if !found {
		return doc
	}
	return WithID(doc, id)
}
