package embedded

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded/plan"
)

// collectionName is the full name of a collection.
type collectionName struct{ database, collection string }

func (n collectionName) check() error {
	if err := store.CheckDatabaseName(n.database); err != nil {
		return err
	}
	return store.CheckCollectionName(n.collection)
}

func (n collectionName) compare(o collectionName) int {
	if c := strings.Compare(n.database, o.database); c != 0 {
		return c
	}
	return strings.Compare(n.collection, o.collection)
}

// collection is one that exists. Its number is never used again after it is dropped.
type collection struct {
	name collectionName
	id   uint32
	// indexes is replaced, under the commit mutex, whenever an index comes, becomes ready or goes. Readers take
	// it, then a snapshot, and start over if it is another one by then: so the indexes they use are complete in
	// the snapshot they read.
	indexes *atomic.Pointer[indexSet]

	// Guarded by the commit mutex.
	counts  counts      // with all commits that are applied
	images  bool        // the feed keeps what documents were and became
	renamed *collection // what it is now
	chases  []*chase    // that are under way
	tallies tallies
}

func newCollection(name collectionName, id uint32, indexes *indexSet) *collection {
	c := &collection{name: name, id: id, indexes: &atomic.Pointer[indexSet]{}}
	c.indexes.Store(indexes)
	return c
}

// indexSet is the indexes of a collection. It is immutable, but for the plans that queries on it remember.
type indexSet struct {
	all   []*index // by age; writers keep all of them up to date
	ready []*index // by name; readers use these
	plans plan.Cache
}

func newIndexSet(all []*index, ready []*index) *indexSet {
	slices.SortFunc(all, func(a, b *index) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(ready, func(a, b *index) int { return strings.Compare(a.def.Name, b.def.Name) })
	return &indexSet{all: all, ready: ready}
}

func (s *indexSet) find(name string) *index {
	for _, x := range s.all {
		if x.def.Name == name {
			return x
		}
	}
	return nil
}

// with gives the set with x in it, ready or not; without gives it without x.
func (s *indexSet) with(x *index, ready bool) *indexSet {
	out := s.without(x)
	if ready {
		out.ready = append(out.ready, x)
	}
	return newIndexSet(append(out.all, x), out.ready)
}

func (s *indexSet) without(x *index) *indexSet {
	is := func(o *index) bool { return o == x }
	return newIndexSet(slices.DeleteFunc(slices.Clone(s.all), is), slices.DeleteFunc(slices.Clone(s.ready), is))
}

// index is one secondary index.
type index struct {
	id  uint32
	def store.Index
	// paths are the key paths, cut at the dots; positional is set if one of them has a number for a name. Such a
	// path may mean a list position or a field, so the planner leaves the index alone.
	paths      [][]string
	positional bool
	// multikey has a bit for each key that led through or to a list in some document. Bits are never cleared. A
	// writer sets them before its batch is visible, readers look after they took their snapshot.
	multikey atomic.Uint32

	// Guarded by the commit mutex.
	build   *build              // while it is being built
	changed map[string]struct{} // keys of the _ids of documents written to since the build's snapshot; nil: none runs
}

func newIndex(id uint32, def store.Index) *index {
	x := &index{id: id, def: def}
	x.def.Keys = slices.Clone(def.Keys)
	for _, k := range def.Keys {
		segments := strings.Split(k.Path, ".")
		x.paths = append(x.paths, segments)
		x.positional = x.positional || slices.ContainsFunc(segments, isPosition)
	}
	return x
}

func isPosition(segment string) bool {
	for _, r := range segment {
		if r < '0' || r > '9' {
			return false
		}
	}
	return segment != ""
}

// collectionSpec and indexSpec are what the catalog stores.
type collectionSpec struct {
	ID      int64       `bson:"id"`
	Images  bool        `bson:"images,omitempty"`
	Indexes []indexSpec `bson:"indexes"`
}

type indexSpec struct {
	ID          int64     `bson:"id"`
	Name        string    `bson:"name"`
	Keys        []keySpec `bson:"keys"`
	Unique      bool      `bson:"unique"`
	Sparse      bool      `bson:"sparse"`
	Partial     bson.D    `bson:"partial,omitempty"`
	ExpireAfter int64     `bson:"expireAfter,omitempty"` // seconds
	Ready       bool      `bson:"ready"`
	Multikey    int64     `bson:"multikey"`
}

type keySpec struct {
	Path string `bson:"path"`
	Desc bool   `bson:"desc"`
}

// put adds the catalog's entry of c, with the indexes of set, to b.
func (c *collection) put(b *pebble.Batch, set *indexSet) error {
	spec := collectionSpec{ID: int64(c.id), Images: c.images, Indexes: []indexSpec{}}
	for _, x := range set.all {
		s := indexSpec{
			ID: int64(x.id), Name: x.def.Name, Unique: x.def.Unique, Sparse: x.def.Sparse,
			Ready: slices.Contains(set.ready, x), Multikey: int64(x.multikey.Load()),
			ExpireAfter: int64(x.def.ExpireAfter / time.Second),
		}
		if x.def.Partial != nil {
			if err := bson.Unmarshal(x.def.Partial.Raw(), &s.Partial); err != nil {
				return internal(err, "encode the catalog")
			}
		}
		for _, k := range x.def.Keys {
			s.Keys = append(s.Keys, keySpec{Path: k.Path, Desc: k.Desc})
		}
		spec.Indexes = append(spec.Indexes, s)
	}
	value, err := bson.Marshal(spec)
	if err != nil {
		return internal(err, "encode the catalog")
	}
	return b.Set(catalogKey(c.name.database, c.name.collection), value, nil)
}

func (s *collectionSpec) collection(name collectionName) (*collection, error) {
	var all, ready []*index
	for _, spec := range s.Indexes {
		def := store.Index{
			Name: spec.Name, Unique: spec.Unique, Sparse: spec.Sparse, ExpireAfter: time.Duration(spec.ExpireAfter) * time.Second,
		}
		for _, k := range spec.Keys {
			def.Keys = append(def.Keys, store.IndexKey{Path: k.Path, Desc: k.Desc})
		}
		if spec.Partial != nil {
			var err error
			if def.Partial, err = mql.Compile(spec.Partial); err != nil {
				return nil, fmt.Errorf("the filter of index %s: %w", spec.Name, err)
			}
		}
		x := newIndex(uint32(spec.ID), def)     //nolint:gosec // written from a uint32
		x.multikey.Store(uint32(spec.Multikey)) //nolint:gosec // written from a uint32
		all = append(all, x)
		if spec.Ready {
			ready = append(ready, x)
		}
	}
	c := newCollection(name, uint32(s.ID), newIndexSet(all, ready)) //nolint:gosec // written from a uint32
	c.images = s.Images
	return c, nil
}

// catalog is the collections that exist, in memory. Changes happen under the commit mutex.
type catalog struct {
	mu          sync.RWMutex
	collections map[collectionName]*collection
	databases   map[string]*members // the same
	nextID      uint32              // guarded by the commit mutex
}

func newCatalog() *catalog {
	return &catalog{collections: map[collectionName]*collection{}, databases: map[string]*members{}, nextID: 1}
}

func (c *catalog) get(name collectionName) *collection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.collections[name]
}

func (c *catalog) add(coll *collection) {
	c.replace(nil, coll)
}

// setIndexes gives a collection that is in the catalog other indexes.
func (c *catalog) setIndexes(coll *collection, set *indexSet) {
	coll.indexes.Store(set)
	c.add(coll)
}

// removeAll takes away all collections of a database.
func (c *catalog) removeAll(database string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.databases[database].all() {
		delete(c.collections, m.coll.name)
	}
	delete(c.databases, database)
}

// replace takes collections of a database away and adds others, in one step.
func (c *catalog) replace(gone []*collection, by ...*collection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, coll := range gone {
		delete(c.collections, coll.name)
		c.databases[coll.name.database] = c.databases[coll.name.database].with(coll.name.collection, member{})
	}
	for _, coll := range by {
		c.collections[coll.name] = coll
		c.databases[coll.name.database] = c.databases[coll.name.database].with(coll.name.collection, member{coll, coll.indexes.Load()})
	}
}

// sorted gives all collections by name.
func (c *catalog) sorted() []*collection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.collections), func(a, b *collection) int { return a.name.compare(b.name) })
}

// members gives the collections of a database as they are now.
func (c *catalog) members(database string) *members {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.databases[database]
}

// in gives the collections of a database by name.
func (c *catalog) in(database string) []*collection {
	var out []*collection
	for m := range c.members(database).all() {
		out = append(out, m.coll)
	}
	slices.SortFunc(out, func(a, b *collection) int { return a.name.compare(b.name) })
	return out
}

// newID gives a number for a collection or an index, and adds to b that it is taken.
func (c *catalog) newID(b *pebble.Batch) (uint32, error) {
	id := c.nextID
	c.nextID++
	return id, b.Set(keyNextID(), binary.BigEndian.AppendUint32(nil, c.nextID), nil)
}

// create makes a collection and adds it to b; the caller adds it to the catalog once b is applied.
func (c *catalog) create(b *pebble.Batch, name collectionName) (*collection, error) {
	if err := name.check(); err != nil {
		return nil, err
	}
	id, err := c.newID(b)
	if err != nil {
		return nil, internal(err, "number a collection")
	}
	coll := newCollection(name, id, &indexSet{})
	if err := coll.put(b, coll.indexes.Load()); err != nil {
		return nil, err
	}
	return coll, nil
}

// loadCatalog reads the catalog. Counters that are damaged make no difference to documents: they are -1 then, until a
// repair counts anew.
func loadCatalog(db pebble.Reader) (_ *catalog, err error) {
	c := newCatalog()
	v, closer, err := db.Get(keyNextID())
	switch {
	case err == nil && len(v) == 4:
		c.nextID = binary.BigEndian.Uint32(v)
		err = closer.Close()
	case err == nil:
		err = errors.Join(errors.New("catalog: damaged counter"), closer.Close())
	case errors.Is(err, pebble.ErrNotFound):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	prefix := catalogPrefix()
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: document.KeyAfter(prefix)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		database, name, found := bytes.Cut(it.Key()[len(prefix):], []byte{0})
		var spec collectionSpec
		if err := bson.Unmarshal(it.Value(), &spec); err != nil || !found {
			return nil, fmt.Errorf("catalog: damaged entry %q: %w", it.Key(), err)
		}
		full := collectionName{database: string(database), collection: string(name)}
		coll, err := spec.collection(full)
		if err != nil {
			return nil, fmt.Errorf("catalog: %v: %w", full, err)
		}
		if coll.counts, err = readCounts(db, coll.id); err != nil {
			coll.counts = counts{docs: -1, bytes: -1}
		}
		c.collections[full] = coll
		if c.databases[full.database] == nil {
			c.databases[full.database] = &members{}
		}
		c.databases[full.database].set(full.collection, member{coll, coll.indexes.Load()})
	}
	return c, it.Error()
}

// dropCollections removes one collection, or all of one database, with everything in them, in one step. The caller holds
// the commit mutex.
func (s *Store) dropCollections(colls []*collection) error {
	if len(colls) == 0 {
		return nil
	}
	b := s.newCommit(false)
	for _, c := range colls {
		b.note(c.name.database, change{kind: store.Dropped, name: c.name.collection})
		if err := b.batch.Delete(catalogKey(c.name.database, c.name.collection), nil); err != nil {
			return errors.Join(internal(err, "drop a collection"), b.discard())
		}
	}
	if err := b.erase(colls); err != nil {
		return errors.Join(internal(err, "drop a collection"), b.discard())
	}
	if err := b.apply(); err != nil {
		return err
	}
	if len(colls) == 1 {
		s.cat.replace(colls)
	} else {
		s.cat.removeAll(colls[0].name.database)
	}
	return b.wait()
}

// erase adds that all goes which belongs to collections but for their names. Ranges of keys are dear, as the engine
// works out anew after each how they overlap: so there is one for all collections with numbers in a row, and none where
// there is nothing.
func (c *commit) erase(colls []*collection) error {
	colls = slices.SortedFunc(slices.Values(colls), func(a, b *collection) int { return cmp.Compare(a.id, b.id) })
	var err error
	for len(colls) > 0 && err == nil {
		n, indexed := 0, false
		for n < len(colls) && colls[n].id == colls[0].id+uint32(n) {
			indexed = indexed || len(colls[n].indexes.Load().all) > 0
			err = errors.Join(err, c.batch.Delete(countsKey(colls[n].id), nil))
			n++
		}
		first, last := colls[0].id, colls[n-1].id
		err = errors.Join(err, c.batch.DeleteRange(docPrefix(first), document.KeyAfter(docPrefix(last)), nil))
		if indexed {
			err = errors.Join(err,
				c.batch.DeleteRange(collIndexPrefix(first), document.KeyAfter(collIndexPrefix(last)), nil),
				c.batch.DeleteRange(collBuildPrefix(first), document.KeyAfter(collBuildPrefix(last)), nil),
			)
		}
		colls = colls[n:]
	}
	return err
}
