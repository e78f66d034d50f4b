package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// checkText refuses documents that hold what nobody could read again: text that is not UTF-8, and values of old types that
// are not what they say. Bytes come by this door alone: everywhere else documents are made of values.
func checkText(docs ...bson.Raw) error {
	for i, doc := range docs {
		if !readableValue(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}) {
			return fail(codeBadValue, "document %d holds text that is not UTF-8, or a value that is not what it says", i)
		}
	}
	return nil
}

func readableValue(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		it := document.NewIter(v.Value)
		for it.Next() {
			if !utf8.Valid(it.Key()) || !readableValue(it.Value()) {
				return false
			}
		}
		return it.Valid()
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return len(v.Value) >= 5 && utf8.Valid(v.Value[4:len(v.Value)-1])
	case bson.TypeRegex:
		return utf8.Valid(v.Value)
	case bson.TypeDBPointer: // a text, then an id
		const id = 12
		return len(v.Value) >= 5+id && utf8.Valid(v.Value[4:len(v.Value)-id-1])
	case bson.TypeCodeWithScope:
		code, scope, ok := v.CodeWithScopeOK()
		return ok && utf8.ValidString(code) && readableValue(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: scope})
	case bson.TypeBinary: // the old subtype says its length twice
		const old, head = 2, 5
		if len(v.Value) < head || v.Value[4] != old {
			return true
		}
		data := v.Value[head:]
		return len(data) >= 4 && int64(binary.LittleEndian.Uint32(data)) == int64(len(data)-4)
	default:
		return true
	}
}
