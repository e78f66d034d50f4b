package embedded

import (
	"context"

	"github.com/svcctl/svc/pkg/store"
)

// Database gives a handle on a database.
func (s *Store) Database(name string) store.Database { return database{s: s, name: name} }

// DropDatabase removes a database with everything in it.
func (s *Store) DropDatabase(ctx context.Context, name string) error {
	done, err := database{s: s, name: name}.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.expiring.Lock()
	defer s.expiring.Unlock()
	s.commit.Lock()
	defer s.commit.Unlock()
	return s.dropCollections(s.cat.in(name))
}

type database struct {
	s    *Store
	name string
}

// begin registers an operation on the database; done ends it.
func (d database) begin(ctx context.Context) (done func(), err error) {
	if err := store.CheckDatabaseName(d.name); err != nil {
		return nil, err
	}
	return d.s.begin(ctx)
}

// Collection gives a handle on a collection.
func (d database) Collection(name string) store.Collection {
	return &Collection{s: d.s, name: collectionName{database: d.name, collection: name}}
}

// CollectionNames lists the collections that exist, sorted.
func (d database) CollectionNames(ctx context.Context) ([]string, error) {
	done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return d.s.cat.members(d.name).names(), nil
}

// DropCollection removes documents and indexes.
func (d database) DropCollection(ctx context.Context, name string) error {
	if err := store.CheckCollectionName(name); err != nil {
		return err
	}
	done, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	d.s.expiring.Lock()
	defer d.s.expiring.Unlock()
	d.s.commit.Lock()
	defer d.s.commit.Unlock()
	c := d.s.cat.get(collectionName{database: d.name, collection: name})
	if c == nil {
		return nil
	}
	return d.s.dropCollections([]*collection{c})
}

// Collection is a handle on a collection, which need not exist.
type Collection struct {
	s    *Store
	name collectionName
}

var _ store.Collection = (*Collection)(nil)

// begin registers an operation on the collection; done ends it.
func (c *Collection) begin(ctx context.Context) (done func(), err error) {
	if err := c.name.check(); err != nil {
		return nil, err
	}
	return c.s.begin(ctx)
}
