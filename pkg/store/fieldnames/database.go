package fieldnames

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// Wrap gives a database whose collections have fields that are stored by other names. names are by the names of collections
// in the store. Where there are none it gives db itself.
func Wrap(db store.Database, names map[string]*document.Names) store.Database {
	if len(names) == 0 {
		return db
	}
	return &database{db, names}
}

// WrapTx is Wrap for a transaction.
func WrapTx(t store.Tx, names map[string]*document.Names) store.Tx {
	if len(names) == 0 {
		return t
	}
	return &tx{t, names}
}

// set is the names of collections.
type set map[string]*document.Names

func (s set) of(collection string) *document.Names { return s[collection] }

type database struct {
	store.Database
	set set
}

func (d *database) Collection(name string) store.Collection {
	c := d.Database.Collection(name)
	return &collection{
		Collection: c, reader: reader{c, d.set[name], d.set}, writer: writer{c, d.set[name]}, names: d.set[name],
	}
}

func (d *database) Transact(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	return d.Database.Transact(ctx, func(ctx context.Context, t store.Tx) error { return fn(ctx, WrapTx(t, d.set)) })
}

type tx struct {
	store.Tx
	set set
}

func (t *tx) Collection(name string) store.TxCollection {
	c := t.Tx.Collection(name)
	return &txCollection{reader{c, t.set[name], t.set}, writer{c, t.set[name]}}
}

type txCollection struct {
	reader
	writer
}

func (d *database) View(ctx context.Context) (store.View, error) {
	v, err := d.Database.View(ctx)
	if err != nil {
		return nil, err
	}
	return &view{v, d.set}, nil
}

type view struct {
	store.View
	set set
}

func (v *view) Collection(name string) store.Reader {
	return reader{v.View.Collection(name), v.set[name], v.set}
}

func (d *database) Watch(ctx context.Context, w store.Watch, fn func(store.Event) error) error {
	for _, name := range w.Fields {
		for _, names := range d.set {
			if stored := names.Path(name); !slices.Contains(w.Fields, stored) {
				w.Fields = append(slices.Clip(w.Fields), stored)
			}
		}
	}
	return d.Database.Watch(ctx, w, func(e store.Event) error {
		if back := d.set[e.Collection].Inverse(); back != nil {
			e.Doc, e.Before, e.After = back.Document(e.Doc), back.Document(e.Before), back.Document(e.After)
			e.Fields, e.Update = back.Document(e.Fields), changes(back, e.Update)
		}
		return fn(e)
	})
}

// changes gives what an update has changed with the names of records.
func changes(back *document.Names, update bson.Raw) bson.Raw {
	if update == nil {
		return nil
	}
	out := make([]byte, 4, len(update)+32)
	for it := document.NewIter(update); it.Next(); {
		v := it.Value()
		switch string(it.Key()) {
		case "updatedFields":
			v = rebuilt(v, func(path string, v bson.RawValue) (string, bson.RawValue) {
				return back.Path(path), back.At(path).Value(v)
			})
		case "removedFields":
			v = rebuilt(v, func(place string, v bson.RawValue) (string, bson.RawValue) { return place, pathIn(back, v) })
		case "truncatedArrays":
			v = rebuilt(v, func(place string, v bson.RawValue) (string, bson.RawValue) {
				return place, rebuilt(v, func(name string, v bson.RawValue) (string, bson.RawValue) {
					if name == "field" {
						v = pathIn(back, v)
					}
					return name, v
				})
			})
		}
		out = document.AppendElement(out, it.Key(), v)
	}
	return document.Close(out, 0)
}

// pathIn translates a value that is a path.
func pathIn(back *document.Names, v bson.RawValue) bson.RawValue {
	path, ok := v.StringValueOK()
	if !ok {
		return v
	}
	return store.Name(back.Path(path))
}

// rebuilt is an object or a list with other members.
func rebuilt(v bson.RawValue, member func(name string, v bson.RawValue) (string, bson.RawValue)) bson.RawValue {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return v
	}
	out := make([]byte, 4, len(v.Value)+32)
	for it := document.NewIter(v.Value); it.Next(); {
		name, value := member(string(it.Key()), it.Value())
		out = document.AppendElement(out, name, value)
	}
	return bson.RawValue{Type: v.Type, Value: document.Close(out, 0)}
}
