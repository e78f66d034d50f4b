package wire

import (
	"context"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// maxBuffered is what a find in a transaction may give: its result is taken at once, for a transaction does one thing
// at a time.
const maxBuffered = 100 << 20

// findQuery is what a find asks for.
type findQuery struct {
	store.Query
	batchSize int64 // -1: not said
	single    bool
}

// parseFind reads the fields of a find, which are those of an explained one, too.
func parseFind(a *args) (q findQuery, err error) {
	filter, sort, project := a.document("filter"), a.document("sort"), a.document("projection")
	if q, err = parseCursor(a); err != nil {
		return q, err
	}
	if q.Filter, err = compileFilter(filter); err != nil {
		return q, err
	}
	if q.Sort, err = compileSort(sort); err != nil {
		return q, err
	}
	q.Project, err = compileProjection(project)
	return q, err
}

// parseComputed is parseFind for a find whose filter and order are those of a pipeline.
func parseComputed(a *args) (q findQuery, err error) {
	project := a.document("projection")
	if q, err = parseCursor(a); err != nil || computesFields(project) {
		return q, err
	}
	q.Project, err = compileProjection(project)
	return q, err
}

// parseCursor reads what says how much of it a find gives.
func parseCursor(a *args) (q findQuery, err error) {
	limit := a.integer("limit", 0)
	q.Skip, q.batchSize, q.single = a.integer("skip", 0), a.integer("batchSize", -1), a.boolean("singleBatch", false)
	switch tailable := a.boolean("tailable", false); {
	case a.err != nil:
		return q, a.err
	case tailable:
		return q, fail(codeBadValue, "error processing query: tailable cursor requested on non capped collection")
	case a.boolean("returnKey", false), a.boolean("showRecordId", false):
		return q, notImplemented("'find.returnKey' and 'find.showRecordId'")
	case q.Skip < 0:
		return q, fail(codeNegative, "BSON field 'skip' value must be >= 0, actual value '%d'", q.Skip)
	case a.value("batchSize").Type != 0 && q.batchSize < 0:
		return q, fail(codeNegative, "BSON field 'batchSize' value must be >= 0, actual value '%d'", q.batchSize)
	case limit < 0:
		return q, fail(codeNegative, "BSON field 'limit' value must be >= 0, actual value '%d'", limit)
	}
	q.Limit = limit
	return q, nil
}

func runFind(k *call) (bson.D, error) {
	db, name, err := k.readable()
	if err != nil {
		return nil, err
	}
	p, err := k.asPipeline()
	if err != nil {
		return nil, err
	}
	var q findQuery
	if p == nil {
		q, err = parseFind(&k.args)
	} else {
		q, err = parseComputed(&k.args)
	}
	if err != nil {
		return nil, err
	}
	if db == nil {
		return k.firstReply(k.namespace(name), &listed{}, -1, true)
	}
	if err := k.checkHint(db, name, k.args.value("hint")); err != nil {
		return nil, err
	}
	if p != nil {
		return k.findComputed(db, name, p, q)
	}
	read, extra, err := k.snapshotOf(db, name)
	if err != nil {
		return nil, err
	}
	src, err := k.found(read, q.Query)
	if err != nil {
		return nil, err
	}
	reply, err := k.firstReply(k.namespace(name), src, q.batchSize, q.single)
	return withCursorFields(reply, extra), err
}

// readable is collection for reads. Those of a MongoDB server's own databases find nothing: the database is nil then.
func (k *call) readable() (store.Database, string, error) {
	if isSystem(k.db) {
		name, ok := k.msg.body.Lookup(k.name).StringValueOK()
		if !ok {
			return nil, "", k.errCollectionType()
		}
		return nil, name, nil
	}
	return k.collection()
}

// found is the source of what a query finds.
func (k *call) found(read store.Reader, q store.Query) (source, error) {
	if k.tx != nil {
		return k.held(0, func(ctx context.Context, _ store.AggregateOptions, fn func(bson.Raw) error) error {
			return read.Find(ctx, q, fn)
		})
	}
	return newFinding(k.server.life, q.Limit, func(ctx context.Context, fn func(bson.Raw) error) error {
		return read.Find(ctx, q, fn)
	}), nil
}

// buffered takes all that a read gives.
func buffered(ctx context.Context, read func(ctx context.Context, fn func(bson.Raw) error) error) (source, error) {
	l, size := &listed{}, 0
	err := read(ctx, func(doc bson.Raw) error {
		if size += len(doc); size > maxBuffered {
			return fail(codeExceededMemory, "a read in a transaction gives 100 MiB at most: narrow the filter, or give a limit")
		}
		l.docs = append(l.docs, slices.Clone(doc))
		return nil
	})
	return l, err
}

// checkHint refuses an index that is not there. One that is there changes nothing: the planner looks for itself, and no
// index changes an answer.
func (k *call) checkHint(db store.Database, coll string, hint bson.RawValue) error {
	if isNothing(hint) {
		return nil
	}
	indexes, err := db.Collection(coll).Indexes(k.ctx)
	if err != nil {
		return err
	}
	name, byName := hint.StringValueOK()
	pattern, byKeys := hint.DocumentOK()
	switch {
	case byName && (name == primaryIndex || slices.ContainsFunc(indexes, func(i store.Index) bool { return i.Name == name })):
		return nil
	case byKeys:
		keys, err := indexKeys(pattern)
		if _, natural := document.Field(pattern, "$natural"); natural {
			return nil
		}
		if err == nil && (isPrimary(keys) || slices.ContainsFunc(indexes, func(i store.Index) bool { return slices.Equal(i.Keys, keys) })) {
			return nil
		}
	case !byName:
		return fail(codeFailedToParse, "Hint must be a string or an object")
	}
	return fail(codeBadValue, "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index")
}

func runCount(k *call) (bson.D, error) {
	db, name, err := k.readable()
	if err != nil {
		return nil, err
	}
	query, limit, skip := k.args.document("query"), k.args.integer("limit", 0), k.args.integer("skip", 0)
	if k.args.err != nil {
		return nil, k.args.err
	}
	if skip < 0 || limit == math.MinInt64 {
		return nil, fail(codeNegative, "BSON field 'skip' value must be >= 0, actual value '%d'", skip)
	}
	if limit < 0 {
		limit = -limit
	}
	if db != nil && usesExpr(query) {
		n, err := k.countComputed(k.reader(db, name), query, skip, limit)
		return bson.D{{Key: "n", Value: number(n)}}, err
	}
	filter, err := compileFilter(query)
	if err != nil || db == nil {
		return bson.D{{Key: "n", Value: int32(0)}}, err
	}
	if err := k.checkHint(db, name, k.args.value("hint")); err != nil {
		return nil, err
	}
	n, err := countBetween(k.ctx, k.reader(db, name), filter, skip, limit)
	return bson.D{{Key: "n", Value: number(n)}}, err
}

// countBetween counts the matches behind the first skip ones, up to limit (0: all).
func countBetween(ctx context.Context, r store.Reader, filter *mql.Filter, skip, limit int64) (int64, error) {
	most := limit
	if limit > 0 && skip > 0 {
		most = limit + min(skip, math.MaxInt64-limit)
	}
	n, err := r.Count(ctx, filter, most)
	return max(n-skip, 0), err
}

// number is the smallest type that a count fits in, as the server has it.
func number(n int64) any {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return int32(n)
	}
	return n
}

func runDistinct(k *call) (bson.D, error) {
	db, name, err := k.readable()
	if err != nil {
		return nil, err
	}
	key, query := k.args.text("key"), k.args.document("query")
	if k.args.err != nil {
		return nil, k.args.err
	}
	switch {
	case key == "":
		return nil, fail(codeEmptyPath, "FieldPath cannot be constructed with empty string")
	case strings.Contains("."+key+".", ".."):
		return nil, fail(codeEmptyInPath, "FieldPath field names may not be empty strings.")
	case strings.HasPrefix(key, "$"):
		return nil, fail(codeBadFieldPath, "FieldPath field names may not start with '$': %s", clip(key))
	}
	computes := usesExpr(query)
	var filter *mql.Filter
	if !computes {
		filter, err = compileFilter(query)
	}
	if err != nil || db == nil {
		return bson.D{{Key: "values", Value: bson.A{}}}, err
	}
	read, extra, err := k.snapshotOf(db, name)
	if err != nil {
		return nil, err
	}
	var values []bson.RawValue
	if computes {
		values, err = k.distinctComputed(read, key, query)
	} else {
		values, err = read.Distinct(k.ctx, key, filter)
	}
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = []bson.RawValue{}
	}
	return append(bson.D{{Key: "values", Value: values}}, extra...), nil
}
