package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// The names of a namespace's collections are one document in its database, so that they go wherever the records go.
const (
	namesCollection = "svc.names"
	namesID         = "collections"
)

// storedNames is that document.
type storedNames struct {
	ID    string       `bson:"_id"`
	Rev   int64        `bson:"rev"`
	Names []storedName `bson:"names"`
}

type storedName struct {
	Name string `bson:"name"`
	In   string `bson:"in"`
	From string `bson:"from"`
}

// name tells the collections of p where their records are. With keep, what is new of that is stored: from then on it holds for
// every instance, and for every config to come. Nothing is served before that.
func (d Deps) name(ctx context.Context, p, served *project.Project, keep bool) error {
	db := d.Store.Database(project.DatabaseName(p.Namespace))
	collections := sync.OnceValues(func() ([]string, error) { return db.CollectionNames(ctx) })
	there := func(collection, field string) (bool, error) {
		if field != "" {
			return hasField(ctx, db.Collection(collection), field)
		}
		all, err := collections()
		return slices.Contains(all, collection), err
	}
	for range maxMoves {
		names, rev, err := loadNames(ctx, db)
		if err != nil {
			return err
		}
		next, err := names.Resolve(p, served, there)
		if err != nil || !keep || maps.Equal(names, next) {
			return err
		}
		if err = saveNames(ctx, db, next, rev); !isMoved(err) {
			return err
		}
	}
	return errs.New(errs.Unavailable, "busy", "the names of the collections change all the time: try again")
}

// hasField says whether any record has something at a path.
func hasField(ctx context.Context, c store.Collection, path string) (bool, error) {
	has, err := mql.Compile(bson.D{{Key: path, Value: bson.D{{Key: "$exists", Value: true}}}})
	if err != nil {
		return false, err
	}
	n, err := c.Count(ctx, has, 1)
	return n > 0, err
}

// records is the database of a project as its records are read.
func (d Deps) records(p *project.Project) store.Database {
	return fieldnames.Wrap(d.Store.Database(project.DatabaseName(p.Namespace)), p.FieldNames)
}

func loadNames(ctx context.Context, db store.Database) (project.Names, int64, error) {
	raw, err := db.Collection(namesCollection).Get(ctx, store.Name(namesID))
	if errors.Is(err, errs.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var doc storedNames
	if err := bson.Unmarshal(raw, &doc); err != nil {
		return nil, 0, errs.Wrap(err, "load the names of collections")
	}
	out := project.Names{}
	for _, n := range doc.Names {
		out[n.Name] = project.StoredName{In: n.In, From: n.From}
	}
	return out, doc.Rev, nil
}

// saveNames stores the names, unless somebody else has stored others than those of rev.
func saveNames(ctx context.Context, db store.Database, names project.Names, rev int64) error {
	doc := storedNames{ID: namesID, Rev: rev + 1}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		doc.Names = append(doc.Names, storedName{Name: name, In: names[name].In, From: names[name].From})
	}
	raw, err := bson.Marshal(doc)
	if err != nil {
		return errs.Wrap(err, "save the names of collections")
	}
	op := store.Op{Kind: store.Insert, Doc: raw}
	if rev > 0 {
		same, err := mql.Compile(bson.D{{Key: "rev", Value: rev}})
		if err != nil {
			return err
		}
		op = store.Op{Kind: store.Replace, Doc: raw, ID: store.Name(namesID), If: same}
	}
	return store.WriteAll(ctx, db.Collection(namesCollection), op)
}

// isMoved says that another instance has stored names meanwhile.
func isMoved(err error) bool {
	return errors.Is(err, store.ErrStale) || errors.As(err, new(*store.DuplicateKeyError))
}
