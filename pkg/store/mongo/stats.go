package mongo

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/svcctl/svc/pkg/store"
)

// Stats tells how large the collection is, over all shards.
func (c *collection) Stats(ctx context.Context) (stats store.Stats, err error) {
	err = c.run(ctx, func(ctx context.Context) error {
		// Collection statistics are of the server that answers: no read concern makes them any older.
		var cursor *mongo.Cursor
		err := c.database.store.again(ctx, func() (err error) {
			cursor, err = c.local.Aggregate(ctx, bson.A{bson.D{{Key: "$collStats", Value: bson.D{{Key: "storageStats", Value: bson.D{}}}}}})
			return err
		}, isPassing)
		if hasCode(err, codeNamespaceNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer closeCursor(ctx, cursor)
		for cursor.Next(ctx) {
			addStats(&stats, cursor.Current)
		}
		return cursor.Err()
	})
	return stats, err
}

func addStats(stats *store.Stats, shard bson.Raw) {
	figure := func(name string) int64 {
		n, _ := shard.Lookup("storageStats", name).AsInt64OK()
		return n
	}
	stats.Documents += figure("count")
	stats.Bytes += figure("size")
	stats.DiskBytes += figure("storageSize")
	sizes, _ := shard.Lookup("storageStats", "indexSizes").DocumentOK()
	indexes, _ := sizes.Elements()
	for _, e := range indexes {
		if stats.IndexBytes == nil {
			stats.IndexBytes = map[string]int64{}
		}
		name := e.Key()
		if name == primaryIndex {
			name = "_id"
		}
		size, _ := e.Value().AsInt64OK()
		stats.IndexBytes[name] += size
	}
}

// Validate lets the server check each collection against its indexes, without stopping writes.
func (d *database) Validate(ctx context.Context, report func(store.Problem)) error {
	return d.run(ctx, func(ctx context.Context) error {
		all, err := d.list(ctx)
		if err != nil {
			return err
		}
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			var reply bson.Raw
			err := d.store.again(ctx, func() (err error) {
				reply, err = d.db.RunCommand(ctx, bson.D{{Key: "validate", Value: name}, {Key: "background", Value: true}}).Raw()
				return err
			}, isPassing)
			if hasCode(err, codeNamespaceNotFound) {
				continue // dropped meanwhile
			}
			if err != nil {
				return err
			}
			reportProblems(name, reply, report)
		}
		return nil
	})
}

// reportProblems reads the server's answer to validate. A router has one of each shard in raw.
func reportProblems(collection string, reply bson.Raw, report func(store.Problem)) {
	if shards, ok := reply.Lookup("raw").DocumentOK(); ok {
		answers, _ := shards.Values()
		for _, answer := range answers {
			if answer, ok := answer.DocumentOK(); ok {
				reportProblems(collection, answer, report)
			}
		}
		return
	}
	if valid, ok := reply.Lookup("valid").BooleanOK(); !ok || valid {
		return
	}
	corrupt := len(items(reply.Lookup("corruptRecords")))
	missing, extra := len(items(reply.Lookup("missingIndexEntries"))), len(items(reply.Lookup("extraIndexEntries")))
	for _, text := range items(reply.Lookup("errors")) {
		report(store.Problem{Collection: collection, Text: said(text), Repairable: corrupt == 0 && missing+extra > 0})
	}
	details, _ := reply.Lookup("indexDetails").DocumentOK()
	indexes, _ := details.Elements()
	for _, e := range indexes {
		detail, _ := e.Value().DocumentOK()
		if valid, _ := detail.Lookup("valid").BooleanOK(); valid {
			continue
		}
		p := store.Problem{Collection: collection, Index: e.Key(), Text: "the index is not valid", Repairable: corrupt == 0}
		for _, text := range items(detail.Lookup("errors")) {
			p.Text += ": " + said(text)
		}
		report(p)
	}
	if corrupt+missing+extra > 0 {
		report(store.Problem{
			Collection: collection, Repairable: corrupt == 0,
			Text: fmt.Sprintf("%d damaged records, %d missing and %d stray index entries", corrupt, missing, extra),
		})
	}
}

func items(list bson.RawValue) []bson.RawValue {
	array, _ := list.ArrayOK()
	values, _ := array.Values()
	return values
}

func said(v bson.RawValue) string {
	s, _ := v.StringValueOK()
	return s
}
