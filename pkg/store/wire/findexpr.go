package wire

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// asPipeline makes a find that has expressions in its filter or projection, which the port's have not, a pipeline. nil: it has none.
func (k *call) asPipeline() (*pipeline.Pipeline, error) {
	filter, projection := k.args.document("filter"), k.args.document("projection")
	computes := false
	if len(projection) > 5 {
		_, err := compileProjection(projection)
		computes = err != nil && computesFields(projection)
	}
	if k.args.err != nil || !computes && !usesExpr(filter) {
		return nil, k.args.err
	}
	sort, err := compileSort(k.args.document("sort"))
	if err != nil {
		return nil, err
	}
	stages, err := matchStages(filter)
	if err != nil {
		return nil, err
	}
	if len(sort) > 0 {
		stages = append(stages, bson.D{{Key: "$sort", Value: sortSpec(sort)}})
	}
	if n := k.args.integer("skip", 0); n > 0 {
		stages = append(stages, bson.D{{Key: "$skip", Value: n}})
	}
	if n := k.args.integer("limit", 0); n > 0 {
		stages = append(stages, bson.D{{Key: "$limit", Value: n}})
	}
	if computes {
		d, err := document.Unmarshal(projection)
		if err != nil {
			return nil, err
		}
		stages = append(stages, bson.D{{Key: "$project", Value: d}})
	}
	let, err := k.variables()
	if err != nil {
		return nil, err
	}
	return compileStages(stages, let)
}

func matchStages(filter bson.Raw) (bson.A, error) {
	if len(filter) <= 5 {
		return bson.A{}, nil
	}
	d, err := document.Unmarshal(filter)
	return bson.A{bson.D{{Key: "$match", Value: d}}}, err
}

// computesFields says whether a projection has values or expressions, and nothing that only a find's has.
func computesFields(projection bson.Raw) bool {
	computes := false
	for it := document.NewIter(projection); it.Next(); {
		v := it.Value()
		switch v.Type { // all others are literal values
		case bson.TypeBoolean, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		case bson.TypeEmbeddedDocument:
			if name := document.OperatorName(v); string(name) == "$slice" || string(name) == "$elemMatch" {
				return false
			}
			computes = true
		default:
			computes = true
		}
	}
	return computes
}

// findComputed runs a find as a pipeline. What a projection of its own may do, such as $slice, is done to each result.
func (k *call) findComputed(db store.Database, name string, p *pipeline.Pipeline, q findQuery) (bson.D, error) {
	read, extra, err := k.snapshotOf(db, name)
	if err != nil {
		return nil, err
	}
	src, err := k.held(0, func(ctx context.Context, o store.AggregateOptions, fn func(bson.Raw) error) error {
		var out []byte
		return read.Aggregate(ctx, p, o, func(doc bson.Raw) error {
			if q.Project == nil {
				return fn(doc)
			}
			var err error
			if out, err = q.Project.Apply(out[:0], doc, nil); err != nil {
				return err
			}
			return fn(out)
		})
	})
	if err != nil {
		return nil, err
	}
	reply, err := k.firstReply(k.namespace(name), src, q.batchSize, q.single)
	return withCursorFields(reply, extra), err
}

// countComputed counts what a filter with expressions matches.
func (k *call) countComputed(r store.Reader, filter bson.Raw, skip, limit int64) (n int64, err error) {
	stages, err := matchStages(filter)
	if err != nil {
		return 0, err
	}
	if skip > 0 {
		stages = append(stages, bson.D{{Key: "$skip", Value: skip}})
	}
	if limit > 0 {
		stages = append(stages, bson.D{{Key: "$limit", Value: limit}})
	}
	p, err := compileStages(append(stages, bson.D{{Key: "$count", Value: "n"}}), nil)
	if err != nil {
		return 0, err
	}
	err = k.aggregate(k.ctx, r, p, func(doc bson.Raw) error {
		n, _ = doc.Lookup("n").AsInt64OK()
		return nil
	})
	return n, err
}

// distinctComputed gives the values of a path in what a filter with expressions matches.
func (k *call) distinctComputed(r store.Reader, path string, filter bson.Raw) ([]bson.RawValue, error) {
	stages, err := matchStages(filter)
	if err != nil {
		return nil, err
	}
	p, err := compileStages(stages, nil)
	if err != nil {
		return nil, err
	}
	var values []bson.RawValue
	seen, size := map[string]bool{}, 0
	err = k.aggregate(k.ctx, r, p, func(doc bson.Raw) error {
		return mql.EachValue(doc, path, func(v bson.RawValue) error {
			key := string(document.AppendKey(nil, v, false))
			if seen[key] {
				return nil
			}
			if size += len(v.Value); size > maxBatch {
				return store.ErrDistinctSize
			}
			seen[key] = true
			values = append(values, bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)})
			return nil
		})
	})
	slices.SortFunc(values, document.Compare)
	return values, err
}
