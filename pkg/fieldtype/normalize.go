package fieldtype

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// normalize turns what a config decoder or a caller may give into the value model: bson.D, bson.A, int64 and float64.
// Every container is copied, so the result shares nothing with v.
func normalize(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case uint64:
		if v <= 1<<63-1 {
			return int64(v)
		}
		return float64(v)
	case bson.A:
		return normalizeList(v)
	case []any:
		return normalizeList(v)
	case []string:
		list := make(bson.A, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case bson.D:
		doc := make(bson.D, len(v))
		for i, e := range v {
			doc[i] = bson.E{Key: e.Key, Value: normalize(e.Value)}
		}
		return doc
	case map[string]any:
		doc := make(bson.D, 0, len(v))
		for key, value := range v {
			doc = append(doc, bson.E{Key: key, Value: normalize(value)})
		}
		slices.SortFunc(doc, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
		return doc
	}
	return v
}

func normalizeList(v []any) bson.A {
	list := make(bson.A, len(v))
	for i, item := range v {
		list[i] = normalize(item)
	}
	return list
}
