package mongo

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

const (
	primaryIndex  = "_id_" // the server's own, which the port does not list
	maxViolations = 5
)

// Indexes lists the indexes that are ready. Kinds that the port does not have (text, collation, …), which somebody made
// by other means, are not listed.
func (c *collection) Indexes(ctx context.Context) (indexes []store.Index, err error) {
	err = c.run(ctx, func(ctx context.Context) error {
		specs, err := c.indexSpecs(ctx)
		for _, spec := range specs {
			if index, ok := readIndex(spec); ok {
				indexes = append(indexes, index)
			}
		}
		return err
	})
	slices.SortFunc(indexes, func(a, b store.Index) int { return strings.Compare(a.Name, b.Name) })
	return indexes, err
}

// indexSpecs gives what the server says of each index. One that is being built comes as {spec: …, buildUUID: …}.
func (c *collection) indexSpecs(ctx context.Context) (specs []bson.Raw, err error) {
	err = c.database.store.again(ctx, func() error {
		specs = nil
		cursor, err := c.database.db.RunCommandCursor(ctx, bson.D{{Key: "listIndexes", Value: c.name}, {Key: "includeBuildUUIDs", Value: true}})
		if hasCode(err, codeNamespaceNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer closeCursor(ctx, cursor)
		for cursor.Next(ctx) {
			specs = append(specs, slices.Clone(cursor.Current))
		}
		return cursor.Err()
	}, isPassing)
	return specs, err
}

// readIndex reads the server's description of an index; ok is false for those that the port does not know.
func readIndex(spec bson.Raw) (index store.Index, ok bool) {
	elements, err := spec.Elements()
	if err != nil {
		return index, false
	}
	for _, e := range elements {
		switch value := e.Value(); e.Key() {
		case "name":
			index.Name, _ = value.StringValueOK()
		case "unique":
			index.Unique, _ = value.BooleanOK()
		case "sparse":
			index.Sparse, _ = value.BooleanOK()
		case "key":
			keys, _ := value.DocumentOK()
			paths, _ := keys.Elements()
			for _, p := range paths {
				sign, number := p.Value().AsInt64OK()
				if !number || strings.Contains(p.Key(), "$") { // other kinds, and all fields
					return index, false
				}
				index.Keys = append(index.Keys, store.IndexKey{Path: p.Key(), Desc: sign < 0})
			}
		case "expireAfterSeconds":
			seconds, number := value.AsInt64OK()
			if !number {
				return index, false
			}
			index.ExpireAfter = time.Duration(seconds) * time.Second
		case "partialFilterExpression":
			if index.Partial = readPartial(value); index.Partial == nil {
				return index, false
			}
		case "v", "ns", "background":
		default:
			return index, false
		}
	}
	if n := len(index.Keys); n > 1 && index.Keys[n-1] == (store.IndexKey{Path: "_id", Desc: index.Keys[n-2].Desc}) {
		short := index
		if short.Keys = index.Keys[:n-1]; endsInID(short) {
			index.Keys = short.Keys
		}
	}
	return index, index.Name != primaryIndex && len(index.Keys) > 0
}

// readPartial gives nil for a filter that package mql does not know.
func readPartial(value bson.RawValue) *mql.Filter {
	var d bson.D
	if value.Unmarshal(&d) != nil {
		return nil
	}
	f, err := mql.Compile(d)
	if err != nil {
		return nil
	}
	return f
}

// CreateIndex builds an index and returns when a majority serves it.
func (c *collection) CreateIndex(ctx context.Context, index store.Index) error {
	return c.run(ctx, func(ctx context.Context) error {
		if err := index.Check(); err != nil {
			return err
		}
		known, err := c.hasIndex(ctx, index.Name)
		if err != nil {
			return err
		}
		err = c.database.store.again(ctx, func() error {
			_, err := c.coll.Indexes().CreateOne(ctx, indexModel(index))
			return err
		}, isPassing)
		if err != nil && (ctx.Err() != nil || hasCode(err, codeMaxTimeExpired)) && !known {
			c.giveUpIndex(ctx, index.Name)
		}
		if dup, key := duplicateKey(err); dup != nil {
			return c.violation(ctx, index, key)
		}
		switch {
		case hasCode(err, codeIndexOptionsConflict), hasCode(err, codeIndexKeySpecConflict):
			return store.ErrIndexExists.With(err)
		case hasCode(err, codeCannotCreateIndex), hasCode(err, codeInvalidIndexSpec), hasCode(err, codeInvalidIndexOptions):
			return store.ErrBadIndex.With(err)
		}
		return err
	})
}

func indexModel(index store.Index) mongo.IndexModel {
	opts := options.Index().SetName(index.Name)
	if index.Unique {
		opts.SetUnique(true)
	}
	if index.Sparse {
		opts.SetSparse(true)
	}
	if index.Partial != nil {
		opts.SetPartialFilterExpression(index.Partial.Raw())
	}
	if index.ExpireAfter > 0 {
		opts.SetExpireAfterSeconds(int32(index.ExpireAfter / time.Second)) //nolint:gosec // Check has looked
	}
	return mongo.IndexModel{Keys: serverKeys(index), Options: opts}
}

// hasIndex says whether there is an index of this name, or one is being built.
func (c *collection) hasIndex(ctx context.Context, name string) (has bool, err error) {
	specs, err := c.indexSpecs(ctx)
	for _, spec := range specs {
		if inner, building := spec.Lookup("spec").DocumentOK(); building {
			spec = inner
		}
		if n, _ := spec.Lookup("name").StringValueOK(); n == name {
			has = true
		}
	}
	return has, err
}

// giveUpIndex lets the build of an index end that nobody waits for any more; the server would go on with it.
func (c *collection) giveUpIndex(ctx context.Context, name string) {
	ctx = mongo.NewSessionContext(context.WithoutCancel(ctx), nil) // its session ends meanwhile
	c.database.store.running.Go(func() {                           // the caller is in running itself: Close waits for this, too
		ctx, cancel := context.WithTimeout(ctx, abortTimeout)
		defer cancel()
		_ = c.coll.Indexes().DropOne(ctx, name) // it may not have come to be
	})
}

// serverKeys gives the keys that the server gets. An index that may hold a key twice ends in the id, as in the embedded
// store: only so it gives the order of a sort that the id makes total, without sorting.
func serverKeys(index store.Index) bson.D {
	keys := make(bson.D, 0, len(index.Keys)+1)
	for _, k := range index.Keys {
		keys = append(keys, bson.E{Key: k.Path, Value: direction(k.Desc)})
	}
	if endsInID(index) && len(keys) < store.MaxIndexKeys {
		keys = append(keys, bson.E{Key: "_id", Value: direction(index.Keys[len(index.Keys)-1].Desc)})
	}
	return keys
}

// endsInID says whether the server's index has the id behind the keys that the port knows. In a sparse one it would
// bring in the documents that have no other key, and one that documents expire by has one key.
func endsInID(index store.Index) bool {
	return !index.Unique && !index.Sparse && index.ExpireAfter == 0 && !slices.ContainsFunc(index.Keys, func(k store.IndexKey) bool {
		return k.Path == "_id" || strings.HasPrefix(k.Path, "_id.")
	})
}

// violation finds documents that hold key, the first key that a unique index could not take twice.
func (c *collection) violation(ctx context.Context, index store.Index, key bson.Raw) error {
	violation := &store.ViolationError{Index: index.Name}
	opts := options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(maxViolations)
	cursor, err := c.local.Find(ctx, holding(index, key), opts)
	if err != nil {
		return err
	}
	defer closeCursor(ctx, cursor)
	for cursor.Next(ctx) {
		id := cursor.Current.Lookup("_id")
		id.Value = slices.Clone(id.Value)
		violation.IDs = append(violation.IDs, id)
	}
	if err := cursor.Err(); err != nil {
		return err
	}
	return violation
}

// holding is the filter for documents that an index has under key.
func holding(index store.Index, key bson.Raw) bson.D {
	var conds, exist bson.A
	elements, _ := key.Elements()
	for _, e := range elements {
		exist = append(exist, bson.D{{Key: e.Key(), Value: bson.D{{Key: "$exists", Value: true}}}})
		if e.Value().Type == bson.TypeUndefined {
			conds = append(conds, emptyList(e.Key()))
		} else {
			conds = append(conds, bson.D{{Key: e.Key(), Value: bson.D{{Key: "$eq", Value: e.Value()}}}})
		}
	}
	if index.Sparse {
		conds = append(conds, bson.D{{Key: "$or", Value: exist}})
	}
	if index.Partial != nil {
		conds = append(conds, index.Partial.Raw())
	}
	return bson.D{{Key: "$and", Value: conds}}
}

// emptyList is the filter for documents that have an empty list at path or on the way to it.
func emptyList(path string) bson.D {
	var lists bson.A
	for {
		lists = append(lists, bson.D{{Key: path, Value: bson.D{{Key: "$eq", Value: bson.A{}}}}})
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return bson.D{{Key: "$or", Value: lists}}
		}
		path = path[:dot]
	}
}

// DropIndex removes an index. Names that mean something else to the server name none here.
func (c *collection) DropIndex(ctx context.Context, name string) error {
	return c.run(ctx, func(ctx context.Context) error {
		if name == "" || name == "*" || name == primaryIndex {
			return nil
		}
		err := c.database.store.again(ctx, func() error { return c.coll.Indexes().DropOne(ctx, name) }, isPassing)
		if hasCode(err, codeIndexNotFound) || hasCode(err, codeNamespaceNotFound) {
			return nil
		}
		return err
	})
}
