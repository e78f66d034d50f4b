package wire

import (
	"context"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// duplicate is the error for a key that is taken. docs are those that have it, as far as they are known.
func duplicate(ns string, dup *store.DuplicateKeyError, docs ...bson.Raw) *failure {
	index := dup.Index
	if index == "_id" {
		index = primaryIndex
	}
	pattern, value := bson.D{}, bson.D{}
	var shown []string
	for _, path := range dup.Paths {
		pattern = append(pattern, bson.E{Key: path, Value: int32(1)})
		if len(docs) > 0 {
			v := sharedKey(path, docs)
			value = append(value, bson.E{Key: path, Value: v})
			shown = append(shown, path+": "+shortly(v))
		}
	}
	return &failure{
		code:  codeDuplicateKey,
		text:  fmt.Sprintf("E11000 duplicate key error collection: %s index: %s dup key: { %s }", ns, index, strings.Join(shown, ", ")),
		extra: bson.D{{Key: "keyPattern", Value: pattern}, {Key: "keyValue", Value: value}},
	}
}

// shortly is a value as messages show it.
func shortly(v bson.RawValue) string {
	const longest = 200
	text := string(document.AppendJSONValue(nil, v, nil))
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// sharedKey gives the key that all of docs have at a path: of lists, an element that is in all of them.
func sharedKey(path string, docs []bson.Raw) bson.RawValue {
	candidates := keysAt(docs[0], path)
	for _, v := range candidates {
		shared := true
		for _, doc := range docs[1:] {
			found := false
			for _, o := range keysAt(doc, path) {
				found = found || document.Compare(v, o) == 0
			}
			shared = shared && found
		}
		if shared {
			return v
		}
	}
	return candidates[0]
}

// keysAt gives what an index has for a document at a path: null where there is nothing, undefined for an empty list.
func keysAt(doc bson.Raw, path string) (keys []bson.RawValue) {
	_ = mql.EachValue(doc, path, func(v bson.RawValue) error { // which fails only where this does
		keys = append(keys, v)
		return nil
	})
	if len(keys) > 0 {
		return keys
	}
	for at := path; at != ""; {
		if v, ok := document.Lookup(doc, at); ok && v.Type == bson.TypeArray {
			return []bson.RawValue{{Type: bson.TypeUndefined}}
		}
		dot := strings.LastIndexByte(at, '.')
		if dot < 0 {
			break
		}
		at = at[:dot]
	}
	return []bson.RawValue{{Type: bson.TypeNull}}
}

// violation is the error for an index that documents keep from being built. It is told with the key that two of them have.
func violation(ctx context.Context, ns string, coll store.Reader, v *store.ViolationError, index store.Index) error {
	dup := &store.DuplicateKeyError{Index: index.Name}
	for _, k := range index.Keys {
		dup.Paths = append(dup.Paths, k.Path)
	}
	var docs []bson.Raw
	for _, id := range v.IDs[:min(len(v.IDs), 2)] {
		if doc, err := coll.Get(ctx, id); err == nil { // else it is gone by now
			docs = append(docs, doc)
		}
	}
	return duplicate(ns, dup, docs...)
}
