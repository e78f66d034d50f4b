package mongo

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

type database struct {
	store *Store
	name  string
	db    *mongo.Database
}

// Collection gives a handle.
func (d *database) Collection(name string) store.Collection {
	return d.collection(name, d.store.inSession)
}

func (d *database) collection(name string, in scope) *collection {
	return &collection{
		database: d,
		name:     name,
		in:       in,
		coll:     d.db.Collection(name),
		local:    d.db.Collection(name, options.Collection().SetReadConcern(readconcern.Local())),
		snapshot: d.db.Collection(name, options.Collection().SetReadConcern(readconcern.Snapshot())),
	}
}

// CollectionNames lists the collections that exist, sorted.
func (d *database) CollectionNames(ctx context.Context) (names []string, err error) {
	err = d.run(ctx, func(ctx context.Context) error {
		all, err := d.list(ctx)
		names = visible(all)
		return err
	})
	return names, err
}

// list gives all collections but the server's own, with what tells a collection from another one of its name.
func (d *database) list(ctx context.Context) (map[string]string, error) {
	var specs []mongo.CollectionSpecification
	err := d.store.again(ctx, func() (err error) {
		specs, err = d.db.ListCollectionSpecifications(ctx, bson.D{{Key: "type", Value: "collection"}})
		return err
	}, isPassing)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(specs))
	for _, spec := range specs {
		if strings.HasPrefix(spec.Name, "system.") {
			continue
		}
		all[spec.Name] = "exists"
		if spec.UUID != nil {
			all[spec.Name] = string(spec.UUID.Data)
		}
	}
	return all, nil
}

// visible gives the names that are not for bookkeeping, sorted.
func visible(all map[string]string) []string {
	var names []string
	for name := range all {
		if !store.IsBookkeeping(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// DropCollection removes documents and indexes.
func (d *database) DropCollection(ctx context.Context, name string) error {
	return d.run(ctx, func(ctx context.Context) error {
		if err := store.CheckCollectionName(name); err != nil {
			return err
		}
		return d.store.again(ctx, func() error { return d.db.Collection(name).Drop(ctx) }, isPassing)
	})
}

// RenameCollection gives a collection another name.
func (d *database) RenameCollection(ctx context.Context, from, to string, replace bool) error {
	return d.run(ctx, func(ctx context.Context) error {
		for _, name := range []string{from, to} {
			if err := store.CheckCollectionName(name); err != nil {
				return err
			}
		}
		if from == to {
			return d.renameToItself(ctx, from, replace)
		}
		err := d.rename(ctx, from, to, replace)
		switch {
		case hasCode(err, codeNamespaceNotFound):
			return errs.ErrNotFound.With(d.store.secret.clean(err))
		case hasCode(err, codeNamespaceExists):
			return store.ErrCollectionExists
		}
		return err
	})
}

// rename waits while an index of the collection is built, which the server does not.
func (d *database) rename(ctx context.Context, from, to string, replace bool) error {
	giveUp := time.Now().Add(transactionPatience)
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := d.store.client.Database("admin").RunCommand(ctx, bson.D{
			{Key: "renameCollection", Value: d.name + "." + from},
			{Key: "to", Value: d.name + "." + to},
			{Key: "dropTarget", Value: replace},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}},
		}).Err()
		if !hasCode(err, codeIndexBuilding) || time.Now().After(giveUp) {
			return err
		}
		if err := wait(ctx, backoff); err != nil {
			return err
		}
	}
}

// renameToItself is what the server refuses: nothing to do for a collection that is there and may be replaced.
func (d *database) renameToItself(ctx context.Context, name string, replace bool) error {
	all, err := d.list(ctx)
	switch _, exists := all[name]; {
	case err != nil:
		return err
	case !exists:
		return errs.ErrNotFound
	case !replace:
		return store.ErrCollectionExists
	}
	return nil
}

// run is inSession for operations on this database.
func (d *database) run(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.store.inSession(ctx, func(ctx context.Context) error {
		if err := store.CheckDatabaseName(d.name); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// collection has one handle for each level of reading. Writes go through coll.
type collection struct {
	database *database
	name     string
	in       scope
	tx       *transaction      // that all of it belongs to; nil: none
	view     *view             // that it is part of; nil: none
	coll     *mongo.Collection // sees what a majority has
	local    *mongo.Collection // sees what the primary has, as writes do
	snapshot *mongo.Collection // sees one state for the life of a cursor
}

// run runs an operation on this collection in its scope.
func (c *collection) run(ctx context.Context, fn func(ctx context.Context) error) error {
	return c.in(ctx, func(ctx context.Context) error {
		if err := store.CheckDatabaseName(c.database.name); err != nil {
			return err
		}
		if err := store.CheckCollectionName(c.name); err != nil {
			return err
		}
		return fn(ctx)
	})
}
