package snapshot

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
)

// withAddresses gives a document with other addresses of files. It is doc itself if they stay as they are.
func withAddresses(doc bson.Raw, change func(src string) string) bson.Raw {
	if !readdressed(doc, true, change) {
		return doc
	}
	return appendReaddressed(make([]byte, 0, len(doc)+64), doc, true, change)
}

// isAddress says that an element of an object may be an address.
func isAddress(it *document.Iter, object bool) bool {
	return object && it.Value().Type == bson.TypeString && string(it.Key()) == project.FileSrc
}

func isNested(t bson.Type) bool { return t == bson.TypeEmbeddedDocument || t == bson.TypeArray }

// readdressed says that some address changes.
func readdressed(doc []byte, object bool, change func(string) string) bool {
	for it := document.NewIter(doc); it.Next(); {
		v := it.Value()
		switch {
		case isNested(v.Type):
			if readdressed(v.Value, v.Type == bson.TypeEmbeddedDocument, change) {
				return true
			}
		case isAddress(&it, object):
			if src := v.StringValue(); change(src) != src {
				return true
			}
		}
	}
	return false
}

func appendReaddressed(dst, doc []byte, object bool, change func(string) string) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for it := document.NewIter(doc); it.Next(); {
		v := it.Value()
		switch {
		case isNested(v.Type):
			dst = append(append(append(dst, byte(v.Type)), it.Key()...), 0)
			dst = appendReaddressed(dst, v.Value, v.Type == bson.TypeEmbeddedDocument, change)
			continue
		case isAddress(&it, object):
			kind, data, err := bson.MarshalValue(change(v.StringValue()))
			if err == nil { // a text always encodes
				v = bson.RawValue{Type: kind, Value: data}
			}
		}
		dst = document.AppendElement(dst, it.Key(), v)
	}
	return document.Close(dst, start)
}
