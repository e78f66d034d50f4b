package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// uuidKind is the subtype of a UUID in BSON.
const uuidKind = 4

func newUUID() bson.Binary {
	id := make([]byte, 16)
	rand.Read(id) // it never fails
	return asUUID(id)
}

func asUUID(id []byte) bson.Binary {
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return bson.Binary{Subtype: uuidKind, Data: id}
}

// uuidOf is the same for the same name in every run: the port has none of its own.
func uuidOf(ns string) bson.Binary {
	sum := sha256.Sum256([]byte(ns))
	return asUUID(sum[:16])
}

func (k *call) exists(db store.Database, name string) (bool, error) {
	names, err := db.CollectionNames(k.ctx)
	return slices.Contains(names, name) || store.IsBookkeeping(name), err
}

func (k *call) mustExist(db store.Database, name string) error {
	found, err := k.exists(db, name)
	if err == nil && !found {
		return fail(codeNamespaceNotFound, "ns does not exist: %s", k.namespace(name))
	}
	return err
}

// createEmpty makes a collection without a document. In the port it comes into being with its first document or
// index; an index that comes and goes leaves it.
func (k *call) createEmpty(db store.Database, name string) error {
	coll, index := db.Collection(name), store.Index{Name: "svc_create", Keys: []store.IndexKey{{Path: "svc_create"}}}
	if err := coll.CreateIndex(k.ctx, index); err != nil {
		return err
	}
	return coll.DropIndex(k.ctx, index.Name)
}

func runCreate(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	images, _, err := k.wantsImages()
	if err != nil {
		return nil, err
	}
	if k.tx != nil {
		if images {
			return nil, notImplemented("'create.changeStreamPreAndPostImages' in a transaction")
		}
		return bson.D{}, k.createWithin(name)
	}
	found, err := k.exists(db, name)
	if err != nil {
		return nil, err
	}
	if found {
		return nil, k.errExists(name)
	}
	if err := k.createEmpty(db, name); err != nil || !images {
		return bson.D{}, err
	}
	return bson.D{}, k.keepImages(db, name, true)
}

func (k *call) errExists(name string) *failure {
	return fail(codeNamespaceExists, "Collection %s already exists.", k.namespace(name))
}

// createWithin makes a collection that is there with the commit of the command's transaction.
func (k *call) createWithin(name string) error {
	to, err := k.creator(name)
	if err != nil {
		return err
	}
	err = to.Create(k.ctx)
	if errors.Is(err, store.ErrCollectionExists) {
		return k.errExists(name)
	}
	return err
}

// creator gives a collection within the transaction as one that can be made there.
func (k *call) creator(name string) (store.TxCreator, error) {
	to, ok := k.tx.collection(name).(store.TxCreator)
	if !ok {
		return nil, fail(codeNotInTransaction, "Cannot run '%s' in a multi-document transaction.", k.name)
	}
	return to, nil
}

func runDrop(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	found, err := k.exists(db, name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fail(codeNamespaceNotFound, "ns not found")
	}
	indexes, err := db.Collection(name).Indexes(k.ctx)
	if err != nil {
		return nil, err
	}
	if err := db.DropCollection(k.ctx, name); err != nil {
		return nil, err
	}
	return bson.D{{Key: "nIndexesWas", Value: int32(len(indexes) + 1)}, {Key: "ns", Value: k.namespace(name)}}, nil //nolint:gosec // at most 64
}

func runDropDatabase(k *call) (bson.D, error) {
	db, err := k.server.database(k.db)
	if err != nil {
		return nil, err
	}
	names, err := db.CollectionNames(k.ctx)
	if err != nil {
		return nil, err
	}
	if err := k.dropAll(db, names); err != nil || len(names) == 0 {
		return bson.D{}, err
	}
	return bson.D{{Key: "dropped", Value: k.db}}, nil
}

// dropAll drops what clients can see of a database. What the service keeps beside it, such as the audit log, stays.
func (k *call) dropAll(db store.Database, names []string) error {
	if k.server.bookkeeping {
		return k.server.opts.Store.DropDatabase(k.ctx, k.db)
	}
	for _, name := range names {
		if err := db.DropCollection(k.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func runRename(k *call) (bson.D, error) {
	from, to := k.args.text(k.name), k.args.text("to")
	replace := k.args.boolean("dropTarget", false)
	if k.args.err != nil {
		return nil, k.args.err
	}
	fromDB, fromName, ok1 := splitNamespace(from)
	toDB, toName, ok2 := splitNamespace(to)
	switch {
	case !ok1 || !ok2:
		return nil, fail(codeInvalidNamespace, "Invalid namespace specified '%s' or '%s'", clip(from), clip(to))
	case from == to:
		return nil, fail(codeIllegalOperation, "Can't rename a collection to itself")
	case fromDB != toDB:
		return nil, notImplemented("renaming a collection into another database")
	}
	db, err := k.server.database(fromDB)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{fromName, toName} {
		if err := k.server.checkCollection(name); err != nil {
			return nil, err
		}
	}
	switch err := db.RenameCollection(k.ctx, fromName, toName, replace); {
	case errors.Is(err, errs.ErrNotFound):
		return nil, fail(codeNamespaceNotFound, "Source collection %s does not exist", from)
	case errors.Is(err, store.ErrCollectionExists):
		return nil, fail(codeNamespaceExists, "target namespace exists")
	default:
		return bson.D{}, err
	}
}

func runListCollections(k *call) (bson.D, error) {
	raw, nameOnly := k.args.document("filter"), k.args.boolean("nameOnly", false)
	size := k.cursorOptions()
	if k.args.err != nil {
		return nil, k.args.err
	}
	var names []string
	var db store.Database
	if !isSystem(k.db) {
		var err error
		if db, err = k.server.database(k.db); err != nil {
			return nil, err
		}
		if names, err = db.CollectionNames(k.ctx); err != nil {
			return nil, err
		}
	}
	list := make([]bson.D, 0, len(names))
	for _, name := range names {
		d := bson.D{{Key: "name", Value: name}, {Key: "type", Value: "collection"}}
		if !nameOnly {
			options, err := k.collectionOptions(db, name)
			if err != nil {
				return nil, err
			}
			d = append(d,
				bson.E{Key: "options", Value: options},
				bson.E{Key: "info", Value: bson.D{{Key: "readOnly", Value: k.server.opts.ReadOnly}, {Key: "uuid", Value: uuidOf(k.namespace(name))}}},
				bson.E{Key: "idIndex", Value: primarySpec()})
		}
		list = append(list, d)
	}
	list, err := matching(list, raw)
	if err != nil {
		return nil, err
	}
	return k.listReply(k.db+".$cmd.listCollections", list, size)
}

// matching leaves what a filter of the client's matches.
func matching(list []bson.D, raw bson.Raw) ([]bson.D, error) {
	filter, err := compileFilter(raw)
	if err != nil {
		return nil, err
	}
	var bad error
	list = slices.DeleteFunc(list, func(d bson.D) bool {
		doc, err := bson.Marshal(d)
		if err != nil {
			bad = err
			return false
		}
		return !filter.Match(doc)
	})
	return list, bad
}

func runListDatabases(k *call) (bson.D, error) {
	raw, nameOnly := k.args.document("filter"), k.args.boolean("nameOnly", false)
	if k.args.err != nil {
		return nil, k.args.err
	}
	names, err := k.server.databases(k.ctx)
	if err != nil {
		return nil, err
	}
	list, total := []bson.D{}, int64(0)
	for _, name := range names {
		d := bson.D{{Key: "name", Value: name}}
		if !nameOnly {
			stats, err := k.databaseStats(name)
			if err != nil {
				return nil, err
			}
			total += stats.DiskBytes
			d = append(d, bson.E{Key: "sizeOnDisk", Value: stats.DiskBytes}, bson.E{Key: "empty", Value: stats.Documents == 0})
		}
		list = append(list, d)
	}
	if list, err = matching(list, raw); err != nil {
		return nil, err
	}
	reply := bson.D{{Key: "databases", Value: list}}
	if !nameOnly {
		reply = append(reply, bson.E{Key: "totalSize", Value: total}, bson.E{Key: "totalSizeMb", Value: total >> 20})
	}
	return reply, nil
}
