package wire

import (
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// databaseSize is the sum of a database's collections.
type databaseSize struct {
	store.Stats
	collections int
	indexes     int
	indexBytes  int64
}

func (k *call) databaseStats(name string) (sum databaseSize, err error) {
	db, err := k.server.database(name)
	if err != nil {
		return sum, err
	}
	names, err := db.CollectionNames(k.ctx)
	if err != nil {
		return sum, err
	}
	for _, coll := range names {
		stats, err := db.Collection(coll).Stats(k.ctx)
		if err != nil {
			return sum, err
		}
		sum.collections++
		sum.Documents += stats.Documents
		sum.Bytes += stats.Bytes
		sum.DiskBytes += stats.DiskBytes
		sum.indexes += len(stats.IndexBytes)
		for _, n := range stats.IndexBytes {
			sum.indexBytes += n
		}
	}
	return sum, nil
}

// scale is what sizes are divided by.
func (k *call) scale() (int64, error) {
	n := k.args.integer("scale", 1)
	if k.args.err == nil && n < 1 {
		return 0, fail(codeNegative, "BSON field 'scale' value must be >= 1, actual value '%d'", n)
	}
	return n, k.args.err
}

func average(bytes, documents int64) float64 {
	if documents == 0 {
		return 0
	}
	return float64(bytes) / float64(documents)
}

func runDBStats(k *call) (bson.D, error) {
	scale, err := k.scale()
	if err != nil {
		return nil, err
	}
	var sum databaseSize
	if !isSystem(k.db) {
		if sum, err = k.databaseStats(k.db); err != nil {
			return nil, err
		}
	}
	return bson.D{
		{Key: "db", Value: k.db},
		{Key: "collections", Value: number(int64(sum.collections))},
		{Key: "views", Value: int32(0)},
		{Key: "objects", Value: number(sum.Documents)},
		{Key: "avgObjSize", Value: average(sum.Bytes, sum.Documents)},
		{Key: "dataSize", Value: float64(sum.Bytes / scale)},
		{Key: "storageSize", Value: float64(sum.DiskBytes / scale)},
		{Key: "indexes", Value: number(int64(sum.indexes))},
		{Key: "indexSize", Value: float64(sum.indexBytes / scale)},
		{Key: "totalSize", Value: float64((sum.DiskBytes + sum.indexBytes) / scale)},
		{Key: "scaleFactor", Value: float64(scale)},
	}, nil
}

// storageStats is what collStats and the stage $collStats say.
func (k *call) storageStats(db store.Database, name string, scale int64) (bson.D, error) {
	stats, err := db.Collection(name).Stats(k.ctx)
	if err != nil {
		return nil, err
	}
	sizes, total := bson.D{}, int64(0)
	if found, err := k.exists(db, name); err != nil {
		return nil, err
	} else if found { // documents are kept in the order of their _id: its index takes nothing
		sizes = append(sizes, bson.E{Key: primaryIndex, Value: int32(0)})
	}
	for _, index := range slices.Sorted(maps.Keys(stats.IndexBytes)) {
		sizes = append(sizes, bson.E{Key: index, Value: number(stats.IndexBytes[index] / scale)})
		total += stats.IndexBytes[index]
	}
	return bson.D{
		{Key: "size", Value: number(stats.Bytes / scale)},
		{Key: "count", Value: number(stats.Documents)},
		{Key: "avgObjSize", Value: number(int64(average(stats.Bytes, stats.Documents)))},
		{Key: "storageSize", Value: number(stats.DiskBytes / scale)},
		{Key: "freeStorageSize", Value: int32(0)},
		{Key: "capped", Value: false},
		{Key: "nindexes", Value: int32(len(sizes))}, //nolint:gosec // at most 64
		{Key: "indexBuilds", Value: bson.A{}},
		{Key: "totalIndexSize", Value: number(total / scale)},
		{Key: "indexSizes", Value: sizes},
		{Key: "totalSize", Value: number((stats.DiskBytes + total) / scale)},
		{Key: "scaleFactor", Value: number(scale)},
	}, nil
}

// collStatsOptions reads the stage $collStats, which stands at the beginning if it is there. nil: it is not.
func collStatsOptions(stages []bson.Raw) (options bson.Raw, scale int64, err error) {
	for i, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil || e.Key() != "$collStats" {
			continue
		}
		if i > 0 {
			return nil, 0, fail(code(40602), "$collStats is only valid as the first stage in a pipeline")
		}
		var ok bool
		if options, ok = e.Value().DocumentOK(); !ok {
			return nil, 0, fail(code(5447000), "$collStats must take a nested object but found: %s", e.Value().Type)
		}
	}
	of, _ := options.Lookup("storageStats").DocumentOK()
	a := args{body: of}
	if scale = a.integer("scale", 1); a.err != nil {
		return nil, 0, fail(codeTypeMismatch, "BSON field '$collStats.storageStats.scale' is the wrong type")
	}
	if scale < 1 {
		return nil, 0, fail(codeNegative, "BSON field 'scale' value must be >= 1, actual value '%d'", scale)
	}
	return options, scale, nil
}

func (k *call) collStatsStage(db store.Database, name string, options bson.Raw, scale int64) (bson.D, error) {
	if err := k.mustExist(db, name); err != nil {
		return nil, err
	}
	stats, err := k.storageStats(db, name, scale)
	if err != nil {
		return nil, err
	}
	d := bson.D{
		{Key: "ns", Value: k.namespace(name)}, {Key: "host", Value: k.conn.nc.LocalAddr().String()}, {Key: "localTime", Value: k.server.opts.Now()},
	}
	if _, asked := document.Field(options, "storageStats"); asked {
		d = append(d, bson.E{Key: "storageStats", Value: stats})
	}
	if _, asked := document.Field(options, "count"); asked {
		d = append(d, stats[1])
	}
	return d, nil
}

func runCollStats(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	scale, err := k.scale()
	if err != nil {
		return nil, err
	}
	stats, err := k.storageStats(db, name, scale)
	return append(bson.D{{Key: "ns", Value: k.namespace(name)}}, stats...), err
}

func runDataSize(k *call) (bson.D, error) {
	ns := k.args.text(k.name)
	if k.args.err != nil {
		return nil, k.args.err
	}
	dbName, name, ok := splitNamespace(ns)
	if !ok {
		return nil, fail(codeInvalidNamespace, "Invalid namespace specified '%s'", clip(ns))
	}
	db, err := k.server.database(dbName)
	if err != nil {
		return nil, err
	}
	if err := k.server.checkCollection(name); err != nil {
		return nil, err
	}
	stats, err := db.Collection(name).Stats(k.ctx)
	return bson.D{{Key: "size", Value: stats.Bytes}, {Key: "numObjects", Value: stats.Documents}, {Key: "millis", Value: int32(0)}}, err
}

// runValidate checks the whole database, as the port does, and tells what it finds of one collection.
func runValidate(k *call) (bson.D, error) {
	db, name, err := k.collection()
	if err != nil {
		return nil, err
	}
	if err := k.mustExist(db, name); err != nil {
		return nil, err
	}
	coll := db.Collection(name)
	stats, err := coll.Stats(k.ctx)
	if err != nil {
		return nil, err
	}
	indexes, err := coll.Indexes(k.ctx)
	if err != nil {
		return nil, err
	}
	found, bad := bson.A{}, map[string]bool{}
	err = db.Validate(k.ctx, func(p store.Problem) {
		if p.Collection == name || p.Collection == "" {
			found, bad[p.Index] = append(found, p.Text), true
		}
	})
	if err != nil {
		return nil, err
	}
	keys := bson.D{{Key: primaryIndex, Value: stats.Documents}}
	details := bson.D{{Key: primaryIndex, Value: bson.D{{Key: "valid", Value: !bad["_id"]}}}}
	for _, i := range indexes {
		details = append(details, bson.E{Key: i.Name, Value: bson.D{{Key: "valid", Value: !bad[i.Name]}}})
	}
	return bson.D{
		{Key: "ns", Value: k.namespace(name)},
		{Key: "nInvalidDocuments", Value: int32(0)},
		{Key: "nrecords", Value: number(stats.Documents)},
		{Key: "nIndexes", Value: int32(len(indexes) + 1)}, //nolint:gosec // at most 64
		{Key: "keysPerIndex", Value: keys},
		{Key: "indexDetails", Value: details},
		{Key: "valid", Value: len(found) == 0},
		{Key: "repaired", Value: false},
		{Key: "warnings", Value: bson.A{}},
		{Key: "errors", Value: found},
		{Key: "extraIndexEntries", Value: bson.A{}},
		{Key: "missingIndexEntries", Value: bson.A{}},
		{Key: "corruptRecords", Value: bson.A{}},
	}, nil
}
