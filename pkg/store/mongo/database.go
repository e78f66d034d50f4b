package mongo

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

const maxCollectionName = 150 // bytes; the server allows 255 for database and collection together

var databaseNames = regexp.MustCompile(`^[a-z0-9_-]{1,60}$`)

// checkDatabaseName refuses what the port does not allow, and the server's own databases.
func checkDatabaseName(name string) error {
	if !databaseNames.MatchString(name) || name == "admin" || name == "local" || name == "config" {
		return errs.New(errs.Invalid, "bad_name", "%q can't be the name of a database", name)
	}
	return nil
}

func checkCollectionName(name string) error {
	if name == "" || len(name) > maxCollectionName || strings.ContainsAny(name, "$ \x00") ||
		strings.HasPrefix(name, "system.") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return errs.New(errs.Invalid, "bad_name", "%q can't be the name of a collection", name)
	}
	return nil
}

type database struct {
	store *Store
	name  string
	db    *mongo.Database
}

// Collection gives a handle.
func (d *database) Collection(name string) store.Collection {
	return &collection{
		database: d,
		name:     name,
		coll:     d.db.Collection(name),
		local:    d.db.Collection(name, options.Collection().SetReadConcern(readconcern.Local())),
		snapshot: d.db.Collection(name, options.Collection().SetReadConcern(readconcern.Snapshot())),
	}
}

// CollectionNames lists the collections that exist, sorted.
func (d *database) CollectionNames(ctx context.Context) (names []string, err error) {
	err = d.run(ctx, func(ctx context.Context) error {
		names, err = d.db.ListCollectionNames(ctx, bson.D{{Key: "type", Value: "collection"}})
		return err
	})
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "system.") })
	slices.Sort(names)
	return names, err
}

// DropCollection removes documents and indexes.
func (d *database) DropCollection(ctx context.Context, name string) error {
	return d.run(ctx, func(ctx context.Context) error {
		if err := checkCollectionName(name); err != nil {
			return err
		}
		return d.db.Collection(name).Drop(ctx)
	})
}

// run is inSession for operations on this database.
func (d *database) run(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.store.inSession(ctx, func(ctx context.Context) error {
		if err := checkDatabaseName(d.name); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// collection has one handle for each level of reading. Writes go through coll.
type collection struct {
	database *database
	name     string
	coll     *mongo.Collection // sees what a majority has
	local    *mongo.Collection // sees what the primary has, as writes do
	snapshot *mongo.Collection // sees one state for the life of a cursor
}

// run is inSession for operations on this collection.
func (c *collection) run(ctx context.Context, fn func(ctx context.Context) error) error {
	return c.database.run(ctx, func(ctx context.Context) error {
		if err := checkCollectionName(c.name); err != nil {
			return err
		}
		return fn(ctx)
	})
}
