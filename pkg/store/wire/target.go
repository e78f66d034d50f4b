package wire

import (
	"github.com/svcctl/svc/pkg/store"
)

// collection gives the collection that the command's first field names.
func (k *call) collection() (store.Database, string, error) {
	name, ok := k.msg.body.Lookup(k.name).StringValueOK()
	if !ok {
		return nil, "", k.errCollectionType()
	}
	db, err := k.server.database(k.db)
	if err != nil {
		return nil, "", err
	}
	return db, name, k.server.checkCollection(name)
}

func (k *call) errCollectionType() error {
	c := codeBadValue
	if k.name == "count" || k.name == "distinct" {
		c = codeInvalidNamespace
	}
	return fail(c, "collection name has invalid type %s", k.msg.body.Lookup(k.name).Type)
}

// checkCollection refuses what can't be the name of a collection, and those that hold what the service needs for itself.
func (s *Server) checkCollection(name string) error {
	if store.IsBookkeeping(name) && !s.bookkeeping {
		return fail(codeUnauthorized, "collections that begin with svc. belong to the service itself and can't be reached here")
	}
	if store.CheckCollectionName(name) != nil {
		return fail(codeInvalidNamespace, "Invalid namespace specified: '%s' can't be the name of a collection", clip(name))
	}
	return nil
}

// namespace is the full name of a collection in the command's database.
func (k *call) namespace(coll string) string { return k.db + "." + coll }

// reader gives what a read goes to: the collection, or the collection in the command's transaction.
func (k *call) reader(db store.Database, coll string) store.Reader {
	if k.tx != nil {
		return k.tx.collection(coll)
	}
	return db.Collection(coll)
}

// writer is reader for writes.
func (k *call) writer(db store.Database, coll string) store.Writer {
	if k.tx != nil {
		return k.tx.collection(coll)
	}
	return db.Collection(coll)
}
