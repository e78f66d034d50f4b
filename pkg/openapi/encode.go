package openapi

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// AppendJSON appends a document as JSON, without the detour through BSON that values of a config would take: a document of 100 collections is
// megabytes of small objects.
func AppendJSON(dst []byte, doc bson.D) ([]byte, error) { return appendValue(dst, doc) }

func appendValue(dst []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case bson.D:
		dst = append(dst, '{')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, e.Key), ':')
			if dst, err = appendValue(dst, e.Value); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case bson.A:
		return appendList(dst, v)
	case []bson.D:
		return appendList(dst, v)
	case []string:
		return appendList(dst, v)
	case string:
		return appendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case nil:
		return append(dst, "null"...), nil
	}
	t, raw, err := bson.MarshalValue(v) // of a config: an example, a default
	if err != nil {
		return dst, errs.Wrap(err, "encode the OpenAPI document")
	}
	return document.AppendJSONValue(dst, bson.RawValue{Type: t, Value: raw}, nil), nil
}

func appendList[T any](dst []byte, list []T) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendString(dst []byte, s string) []byte {
	return append(document.AppendJSONText(append(dst, '"'), []byte(s)), '"')
}
