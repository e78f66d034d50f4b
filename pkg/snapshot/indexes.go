package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// indexes is what is in the file of that name: what belongs to the collections beside their records, by name.
type indexes map[string]collectionSpec

type collectionSpec struct {
	Indexes []indexSpec `json:"indexes"`
}

type indexSpec struct {
	Name        string          `json:"name"`
	Keys        []keySpec       `json:"keys"`
	Unique      bool            `json:"unique,omitempty"`
	Sparse      bool            `json:"sparse,omitempty"`
	Partial     json.RawMessage `json:"partial,omitempty"`            // a filter in Extended JSON
	ExpireAfter int64           `json:"expireAfterSeconds,omitempty"` // 0: documents don't expire
}

type keySpec struct {
	Path string `json:"path"`
	Desc bool   `json:"desc,omitempty"`
}

// add notes what belongs to a collection.
func (x indexes) add(ctx context.Context, c store.Collection, name string) ([]indexSpec, error) {
	list, err := c.Indexes(ctx)
	if err != nil {
		return nil, err
	}
	spec := collectionSpec{Indexes: []indexSpec{}}
	for _, index := range list {
		one := indexSpec{Name: index.Name, Unique: index.Unique, Sparse: index.Sparse, ExpireAfter: int64(index.ExpireAfter / time.Second)}
		for _, k := range index.Keys {
			one.Keys = append(one.Keys, keySpec(k))
		}
		if index.Partial != nil {
			one.Partial = document.AppendExtended(nil, index.Partial.Raw())
		}
		spec.Indexes = append(spec.Indexes, one)
	}
	slices.SortFunc(spec.Indexes, func(a, b indexSpec) int { return strings.Compare(a.Name, b.Name) })
	x[name] = spec
	return spec.Indexes, nil
}

func (x indexes) encode() ([]byte, error) {
	text, err := json.MarshalIndent(x, "", "  ")
	return append(text, '\n'), err
}

func decodeIndexes(text []byte) (indexes, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var x indexes
	if err := d.Decode(&x); err != nil {
		return nil, err
	}
	for name, c := range x {
		if len(c.Indexes) > store.MaxIndexes {
			return nil, fmt.Errorf("%s has %d indexes, and a collection may have %d", name, len(c.Indexes), store.MaxIndexes)
		}
		names := map[string]bool{}
		for i := range c.Indexes {
			index, err := c.Indexes[i].index()
			if err == nil {
				err = index.Check()
			}
			if err == nil && names[index.Name] {
				err = errors.New("it is there twice")
			}
			names[index.Name] = true
			if err != nil {
				return nil, fmt.Errorf("the index %s of %s: %w", c.Indexes[i].Name, name, err)
			}
		}
	}
	return x, nil
}

// index is the index as a store takes it.
func (s *indexSpec) index() (store.Index, error) {
	out := store.Index{Name: s.Name, Unique: s.Unique, Sparse: s.Sparse, ExpireAfter: time.Duration(s.ExpireAfter) * time.Second}
	for _, k := range s.Keys {
		out.Keys = append(out.Keys, store.IndexKey(k))
	}
	if s.Partial == nil {
		return out, nil
	}
	raw, err := document.ParseExtended(s.Partial)
	if err != nil {
		return store.Index{}, err
	}
	filter, err := document.Unmarshal(raw)
	if err != nil {
		return store.Index{}, err
	}
	out.Partial, err = mql.Compile(filter)
	return out, err
}

// encodeMetadata gives what mongodump writes beside the records of a collection.
func encodeMetadata(name string, list []indexSpec) ([]byte, error) {
	one := bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "name", Value: "_id_"}}
	all := bson.A{one}
	for i := range list {
		s := &list[i]
		keys := bson.D{}
		for _, k := range s.Keys {
			direction := int32(1)
			if k.Desc {
				direction = -1
			}
			keys = append(keys, bson.E{Key: k.Path, Value: direction})
		}
		one := bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: keys}, {Key: "name", Value: s.Name}}
		if s.Unique {
			one = append(one, bson.E{Key: "unique", Value: true})
		}
		if s.Sparse {
			one = append(one, bson.E{Key: "sparse", Value: true})
		}
		if s.ExpireAfter > 0 {
			one = append(one, bson.E{Key: "expireAfterSeconds", Value: s.ExpireAfter})
		}
		if s.Partial != nil {
			partial, err := document.ParseExtended(s.Partial)
			if err != nil {
				return nil, err
			}
			one = append(one, bson.E{Key: "partialFilterExpression", Value: partial})
		}
		all = append(all, one)
	}
	raw, err := bson.Marshal(bson.D{
		{Key: "options", Value: bson.D{}}, {Key: "indexes", Value: all}, {Key: "collectionName", Value: name}, {Key: "type", Value: "collection"},
	})
	if err != nil {
		return nil, err
	}
	return append(document.AppendExtended(nil, raw), '\n'), nil
}
