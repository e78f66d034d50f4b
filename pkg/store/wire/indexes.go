package wire

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// primaryIndex is the server's name of the index on _id, which the port does not list.
const primaryIndex = "_id_"

// indexKeys reads {path: 1 or -1, …}.
func indexKeys(pattern bson.Raw) ([]store.IndexKey, error) {
	var keys []store.IndexKey
	for it := document.NewIter(pattern); it.Next(); {
		path := string(it.Key())
		if kind, ok := it.Value().StringValueOK(); ok {
			return nil, fail(codeCannotCreateIndex, "an index of the kind '%s' is not supported by this endpoint: only 1 and -1 are", clip(kind))
		}
		n, ok := it.Value().AsInt64OK()
		if !ok || n == 0 {
			return nil, fail(codeCannotCreateIndex, "Values in v:2 index key pattern cannot be of type %s or 0. Only numbers > 0, numbers < 0 are allowed", it.Value().Type)
		}
		if strings.Contains(path, "$**") {
			return nil, fail(codeCannotCreateIndex, "wildcard indexes are not supported by this endpoint")
		}
		if slices.ContainsFunc(keys, func(k store.IndexKey) bool { return k.Path == path }) {
			return nil, fail(codeBadValue, "The field '%s' appears multiple times in the index key pattern", clip(path))
		}
		keys = append(keys, store.IndexKey{Path: path, Desc: n < 0})
	}
	if len(keys) == 0 {
		return nil, fail(codeCannotCreateIndex, "Index keys cannot be empty.")
	}
	return keys, nil
}

func isPrimary(keys []store.IndexKey) bool { return len(keys) == 1 && keys[0].Path == "_id" }

// parseIndex reads one definition; ok is false for the one on _id, which is always there.
func parseIndex(raw bson.Raw) (index store.Index, ok bool, err error) {
	err = onlyFields("createIndexes.indexes", raw, "key name unique sparse background v partialFilterExpression expireAfterSeconds ns",
		"collation hidden weights default_language language_override textIndexVersion 2dsphereIndexVersion bits min max wildcardProjection storageEngine bucketSize prepareUnique clustered dropDups")
	if f, ok := errors.AsType[*failure](err); ok && f.code == codeUnknownField {
		f.code = codeInvalidIndexOption
	}
	if err != nil {
		return index, false, err
	}
	a := args{body: raw}
	pattern, partial := a.document("key"), a.document("partialFilterExpression")
	index.Name, index.Unique, index.Sparse = a.text("name"), a.boolean("unique", false), a.boolean("sparse", false)
	seconds := a.integer("expireAfterSeconds", -1)
	if a.err != nil {
		return index, false, a.err
	}
	switch {
	case a.value("name").Type == 0 || pattern == nil:
		return index, false, fail(codeFailedToParse, "an index has a 'key' and a 'name'")
	case index.Name == "":
		return index, false, fail(codeCannotCreateIndex, "the name of an index cannot be empty")
	}
	if index.Keys, err = indexKeys(pattern); err != nil {
		return index, false, err
	}
	switch {
	case isPrimary(index.Keys) && index.Keys[0].Desc:
		return index, false, fail(codeBadValue, "The field 'key' for an _id index must be {_id: 1}, but got {_id: -1}")
	case isPrimary(index.Keys) && index.Unique:
		return index, false, fail(codeInvalidIndexOption, "The field 'unique' is not valid for an _id index specification")
	case isPrimary(index.Keys):
		return index, false, nil
	case index.Name == "*", index.Name == primaryIndex:
		return index, false, fail(codeBadValue, "The index name '%s' is not valid.", index.Name)
	case a.value("expireAfterSeconds").Type != 0 && (seconds < 0 || seconds > 1<<31-1):
		return index, false, fail(codeCannotCreateIndex, "TTL index 'expireAfterSeconds' option must be within an acceptable range, from 0 to 2147483647")
	case seconds == 0: // the port has no index of which documents expire at once; the sweep is once a minute, so nobody can tell
		seconds = 1
	}
	if seconds > 0 {
		index.ExpireAfter = time.Duration(seconds) * time.Second
	}
	if partial != nil {
		if index.Partial, err = filterOf(partial); err != nil {
			return index, false, err
		}
	}
	if err := index.Check(); err != nil {
		f := failureOf(err)
		f.code = codeCannotCreateIndex
		return index, false, f
	}
	return index, true, nil
}

func runCreateIndexes(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	wanted, err := k.wantedIndexes()
	if err != nil {
		return nil, err
	}
	if k.tx != nil {
		return k.createIndexesWithin(name, wanted)
	}
	existed, err := k.exists(db, name)
	if err != nil {
		return nil, err
	}
	if !existed && len(wanted) == 0 {
		if err := k.createEmpty(db, name); err != nil {
			return nil, err
		}
	}
	coll := db.Collection(name)
	before, err := coll.Indexes(k.ctx)
	if err != nil {
		return nil, err
	}
	for _, index := range wanted {
		if other := sameIndex(before, index); other != "" {
			return nil, fail(codeIndexOptionsConflict, "Index already exists with a different name: %s", other)
		}
		if err := coll.CreateIndex(k.ctx, index); err != nil {
			return nil, k.indexFailure(err, index, before, coll)
		}
	}
	after, err := coll.Indexes(k.ctx)
	if err != nil {
		return nil, err
	}
	reply := bson.D{
		{Key: "numIndexesBefore", Value: int32(len(before) + 1)}, //nolint:gosec // at most 64
		{Key: "numIndexesAfter", Value: int32(len(after) + 1)},   //nolint:gosec // at most 64
		{Key: "createdCollectionAutomatically", Value: !existed},
	}
	if len(after) == len(before) {
		reply = append(reply, bson.E{Key: "note", Value: "all indexes already exist"})
	}
	return reply, nil
}

// wantedIndexes reads the definitions of a createIndexes, without that of the index on _id.
func (k *call) wantedIndexes() (wanted []store.Index, err error) {
	if k.args.value("indexes").Type == bson.TypeNull {
		return nil, fail(code(10065), "invalid parameter: expected an object (indexes)")
	}
	list := k.args.documents("indexes")
	if k.args.err != nil {
		return nil, k.args.err
	}
	if len(list) == 0 {
		return nil, fail(codeBadValue, "Must specify at least one index to create")
	}
	for _, raw := range list {
		index, ok, err := parseIndex(raw)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for _, other := range wanted {
			if other.Equal(index) {
				return nil, fail(code(68), "Identical index already exists: %s", index.Name)
			}
			if other.Name == index.Name {
				return nil, errIndexName(index.Name)
			}
		}
		if other := sameIndex(wanted, index); other != "" {
			return nil, fail(codeIndexOptionsConflict, "Index already exists with a different name: %s", other)
		}
		wanted = append(wanted, index)
	}
	return wanted, nil
}

func errIndexName(name string) *failure {
	return fail(codeIndexKeySpecsConflict, "An existing index has the same name as the requested index, %s, and another definition", name)
}

// createIndexesWithin makes indexes that are there with the commit of the command's transaction, in a collection that it makes.
func (k *call) createIndexesWithin(name string, wanted []store.Index) (bson.D, error) {
	to, err := k.creator(name)
	if err != nil {
		return nil, err
	}
	made := false
	if err := to.Create(k.ctx); err == nil {
		made = true
	} else if !errors.Is(err, store.ErrCollectionExists) {
		return nil, err
	}
	for _, index := range wanted {
		switch err := to.CreateIndex(k.ctx, index); {
		case errors.Is(err, store.ErrCollectionExists):
			return nil, fail(codeNotInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", k.namespace(name))
		case errors.Is(err, store.ErrIndexExists):
			return nil, k.indexFailure(err, index, []store.Index{index}, nil)
		case err != nil:
			return nil, err
		}
	}
	return bson.D{{Key: "createdCollectionAutomatically", Value: made}}, nil
}

// sameIndex gives the name of an index that is another one by its name only.
func sameIndex(there []store.Index, index store.Index) string {
	for _, other := range there {
		renamed := other
		if renamed.Name = index.Name; other.Name != index.Name && renamed.Equal(index) {
			return other.Name
		}
	}
	return ""
}

// indexFailure tells what an index is in the way of.
func (k *call) indexFailure(err error, index store.Index, there []store.Index, coll store.Collection) error {
	if v, ok := errors.AsType[*store.ViolationError](err); ok {
		_, name, err := k.collection()
		if err != nil {
			return err
		}
		return violation(k.ctx, k.namespace(name), coll, v, index)
	}
	if e := errs.From(err); e.Code != store.ErrIndexExists.Code {
		return err
	}
	for _, other := range there {
		if other.Name == index.Name {
			return errIndexName(index.Name)
		}
		if slices.Equal(other.Keys, index.Keys) {
			return fail(codeIndexOptionsConflict, "Index already exists with a different name: %s", other.Name)
		}
	}
	return fail(codeIndexOptionsConflict, "%s", store.ErrIndexExists.Message)
}

// indexSpec is an index as the server lists it.
func indexSpec(index store.Index) bson.D {
	keys := bson.D{}
	for _, key := range index.Keys {
		keys = append(keys, bson.E{Key: key.Path, Value: direction(key.Desc)})
	}
	d := bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: keys}, {Key: "name", Value: index.Name}}
	if index.Unique {
		d = append(d, bson.E{Key: "unique", Value: true})
	}
	if index.Sparse {
		d = append(d, bson.E{Key: "sparse", Value: true})
	}
	if index.Partial != nil {
		d = append(d, bson.E{Key: "partialFilterExpression", Value: index.Partial.Raw()})
	}
	if index.ExpireAfter > 0 {
		d = append(d, bson.E{Key: "expireAfterSeconds", Value: int32(index.ExpireAfter / time.Second)}) //nolint:gosec // Check has looked
	}
	return d
}

func primarySpec() bson.D {
	return indexSpec(store.Index{Name: primaryIndex, Keys: []store.IndexKey{{Path: "_id"}}})
}

func runListIndexes(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	size := k.cursorOptions()
	if k.args.err != nil {
		return nil, k.args.err
	}
	if err := k.mustExist(db, name); err != nil {
		return nil, err
	}
	indexes, err := db.Collection(name).Indexes(k.ctx)
	if err != nil {
		return nil, err
	}
	specs := []bson.D{primarySpec()}
	for _, index := range indexes {
		specs = append(specs, indexSpec(index))
	}
	return k.listReply(k.namespace(name), specs, size)
}

// listReply answers with documents that are all there.
func (k *call) listReply(ns string, list []bson.D, size int64) (bson.D, error) {
	l := &listed{}
	for _, d := range list {
		raw, err := bson.Marshal(d)
		if err != nil {
			return nil, err
		}
		l.docs = append(l.docs, raw)
	}
	return k.firstReply(ns, l, size, false)
}

func runDropIndexes(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	if err := k.mustExist(db, name); err != nil {
		return nil, err
	}
	coll := db.Collection(name)
	indexes, err := coll.Indexes(k.ctx)
	if err != nil {
		return nil, err
	}
	gone, err := chooseIndexes(indexes, k.args.value("index"))
	if err != nil {
		return nil, err
	}
	for _, n := range gone {
		if err := coll.DropIndex(k.ctx, n); err != nil {
			return nil, err
		}
	}
	reply := bson.D{{Key: "nIndexesWas", Value: int32(len(indexes) + 1)}} //nolint:gosec // at most 64
	if name, all := k.args.value("index").StringValueOK(); all && name == "*" {
		reply = append(reply, bson.E{Key: "msg", Value: "non-_id indexes dropped for collection"})
	}
	return reply, nil
}

// chooseIndexes gives the names of those that a dropIndexes means: by name, by keys, several, or "*".
func chooseIndexes(indexes []store.Index, which bson.RawValue) (names []string, err error) {
	if pattern, ok := which.DocumentOK(); ok {
		keys, err := indexKeys(pattern) // there is no index whose keys can't be read
		if isPrimary(keys) && !keys[0].Desc && err == nil {
			return nil, errPrimaryIndex()
		}
		for _, i := range indexes {
			if err == nil && slices.Equal(i.Keys, keys) {
				names = append(names, i.Name)
			}
		}
		if len(names) == 0 {
			return nil, fail(codeIndexNotFound, "can't find index with key: %s", clip(pattern.String()))
		}
		return names, nil
	}
	asked, err := indexNames(which)
	if err != nil {
		return nil, err
	}
	for _, name := range asked {
		switch {
		case name == "*" && len(asked) == 1:
			for _, i := range indexes {
				names = append(names, i.Name)
			}
		case name == primaryIndex:
			return nil, errPrimaryIndex()
		case slices.ContainsFunc(indexes, func(i store.Index) bool { return i.Name == name }):
			names = append(names, name)
		default:
			return nil, fail(codeIndexNotFound, "index not found with name [%s]", clip(name))
		}
	}
	return names, nil
}

// indexNames reads a name, or a list of names.
func indexNames(which bson.RawValue) (names []string, err error) {
	if name, ok := which.StringValueOK(); ok {
		return []string{name}, nil
	}
	if which.Type != bson.TypeArray {
		return nil, fail(codeTypeMismatch, "BSON field 'dropIndexes.index' is the name of an index, its keys, or a list of names")
	}
	for it := document.NewIter(which.Value); it.Next(); {
		name, ok := it.Value().StringValueOK()
		if !ok {
			return nil, fail(codeTypeMismatch, "BSON field 'dropIndexes.index' is a list of names")
		}
		names = append(names, name)
	}
	return names, nil
}

func errPrimaryIndex() *failure { return fail(codeInvalidOptions, "cannot drop _id index") }
