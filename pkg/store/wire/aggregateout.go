package wire

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/mql/pipeline"
	"github.com/svcctl/svc/pkg/store"
)

// output is $out or $merge, the last stage of a pipeline that writes what it gives.
type output struct {
	stage      string
	collection string
	on         []string // $merge
	matched    string
	change     bson.RawValue // a pipeline, in place of matched
	unmatched  string
}

// splitOutput takes the stage that writes off a pipeline. nil: there is none.
func (k *call) splitOutput(stages []bson.Raw) ([]bson.Raw, *output, error) {
	for i, stage := range stages {
		e, err := stage.IndexErr(0)
		if err != nil || e.Key() != "$out" && e.Key() != "$merge" {
			continue
		}
		if i < len(stages)-1 {
			return nil, nil, fail(code(40601), "%s can only be the final stage in the pipeline", e.Key())
		}
		if k.server.opts.ReadOnly {
			return nil, nil, errReadOnly()
		}
		if k.tx != nil {
			return nil, nil, fail(codeNotInTransaction, "%s can not be used in a transaction", e.Key())
		}
		if k.readLevel() == "linearizable" {
			return nil, nil, fail(codeInvalidOptions, "%s cannot be used with a 'linearizable' read concern level", e.Key())
		}
		o, err := k.parseOutput(e.Key(), e.Value())
		return stages[:i], o, err
	}
	return stages, nil, nil
}

func (k *call) parseOutput(stage string, v bson.RawValue) (*output, error) {
	o := &output{stage: stage, on: []string{"_id"}, matched: "merge", unmatched: "insert"}
	a := args{}
	target := v
	if d, ok := v.DocumentOK(); ok {
		a.body = d
		if stage == "$merge" {
			if err := onlyFields(stage, d, "into on let whenMatched whenNotMatched", ""); err != nil {
				return nil, err
			}
			target = a.value("into")
		}
	}
	if d, ok := target.DocumentOK(); ok {
		sub := args{body: d}
		if err := onlyFields(stage, d, "db coll", "timeseries"); err != nil {
			return nil, err
		}
		if db := sub.text("db"); db != "" && db != k.db {
			return nil, notImplemented("writing what a pipeline gives to another database")
		}
		if o.collection = sub.text("coll"); sub.err != nil {
			return nil, sub.err
		}
	} else if o.collection, ok = target.StringValueOK(); !ok {
		return nil, fail(codeTypeMismatch, "%s needs the name of a collection", stage)
	}
	if err := k.server.checkCollection(o.collection); err != nil {
		return nil, err
	}
	if err := o.parseMerge(&a); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *output) parseMerge(a *args) error {
	if o.stage != "$merge" || a.body == nil {
		return nil
	}
	if on := a.value("on"); on.Type == bson.TypeArray {
		o.on = texts(on)
	} else if on.Type != 0 {
		o.on = []string{a.text("on")}
	}
	if o.change = a.value("whenMatched"); o.change.Type != bson.TypeArray {
		o.change = bson.RawValue{}
		if a.value("whenMatched").Type != 0 {
			o.matched = a.text("whenMatched")
		}
	}
	if a.value("whenNotMatched").Type != 0 {
		o.unmatched = a.text("whenNotMatched")
	}
	if let := a.document("let"); let != nil {
		return notImplemented("'$merge.let'")
	}
	switch {
	case a.err != nil:
		return a.err
	case len(o.on) == 0 || slices.Contains(o.on, ""):
		return fail(code(51187), "$merge needs the fields that documents are matched by")
	case !slices.Contains([]string{"replace", "keepExisting", "merge", "fail"}, o.matched):
		return fail(codeBadValue, "$merge does not know whenMatched: %s", clip(o.matched))
	case !slices.Contains([]string{"insert", "discard", "fail"}, o.unmatched):
		return fail(codeBadValue, "$merge does not know whenNotMatched: %s", clip(o.unmatched))
	}
	return nil
}

// write runs a pipeline and writes what it gives. The pipeline has ended before the first write, so that it may read what is written to.
func (o *output) write(k *call, db store.Database, read store.Reader, p *pipeline.Pipeline) error {
	src, err := buffered(k.ctx, func(ctx context.Context, fn func(bson.Raw) error) error {
		return k.aggregate(ctx, read, p, fn)
	})
	if err != nil {
		return err
	}
	return o.writeAll(k, db, src)
}

func (o *output) writeAll(k *call, db store.Database, src source) error {
	if err := k.mayWrite(); err != nil {
		return err
	}
	l, _ := src.(*listed) // buffered gives no other
	if o.stage == "$out" {
		return o.replace(k, db, l.docs)
	}
	for _, doc := range l.docs {
		if err := o.merge(k, db, doc); err != nil {
			return err
		}
	}
	return nil
}

// replace puts documents in the place of a collection, whose indexes stay. Nobody sees a part of them.
func (o *output) replace(k *call, db store.Database, docs []bson.Raw) error {
	var indexes []store.Index
	found, err := k.exists(db, o.collection)
	if err == nil && found {
		indexes, err = db.Collection(o.collection).Indexes(k.ctx)
	}
	if err != nil {
		return err
	}
	name := "svc_out_" + bson.NewObjectID().Hex()
	made := db.Collection(name)
	err = func() error {
		if err := k.createEmpty(db, name); err != nil {
			return err
		}
		for _, index := range indexes {
			if err := made.CreateIndex(k.ctx, index); err != nil {
				return err
			}
		}
		for chunk := range slices.Chunk(docs, chunkOps) {
			ops := make([]store.Op, len(chunk))
			for i, doc := range chunk {
				ops[i] = store.Op{Kind: store.Insert, Doc: withID(doc)}
			}
			if err := store.WriteAll(k.ctx, made, ops...); err != nil {
				return err
			}
		}
		return db.RenameCollection(k.ctx, name, o.collection, true)
	}()
	if err != nil {
		return errors.Join(o.explained(k, err), k.server.dropMade(context.WithoutCancel(k.ctx), db, name))
	}
	return nil
}

// dropPause is how long it takes until what could not be dropped is tried again.
const dropPause = time.Second

// dropMade drops a collection that was to take the place of another one. Where nothing can be written for a while, it is dropped behind that.
func (s *Server) dropMade(ctx context.Context, db store.Database, name string) error {
	err := db.DropCollection(ctx, name)
	if errs.KindOf(err) != errs.Unavailable {
		return err
	}
	s.running.Go(func() {
		for errs.KindOf(err) == errs.Unavailable && store.Wait(s.life, dropPause) {
			err = db.DropCollection(s.life, name)
		}
		if err != nil {
			s.opts.Logger.Warn("a collection that was made for $out stays: drop it", "collection", name, "error", err)
		}
	})
	return nil
}

func (o *output) explained(k *call, err error, docs ...bson.Raw) error {
	if dup := duplicateOf(err); dup != nil {
		return duplicate(k.namespace(o.collection), dup, docs...)
	}
	return err
}

// merge writes one document to the one that it matches.
func (o *output) merge(k *call, db store.Database, doc bson.Raw) error {
	doc = withID(doc)
	filter := bson.D{}
	for _, path := range o.on {
		v, ok := document.Field(doc, path)
		if !ok || v.Type == bson.TypeNull || v.Type == bson.TypeArray {
			return fail(code(51132), "$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", clip(path))
		}
		filter = append(filter, bson.E{Key: path, Value: bson.D{{Key: "$eq", Value: v}}})
	}
	raw, err := bson.Marshal(filter)
	if err != nil {
		return err
	}
	c := &computed{k: k, filter: raw, op: store.Op{Kind: store.Replace, Doc: doc}}
	matched, err := o.matches(k, db, filter)
	switch {
	case err != nil:
		return err
	case !matched && o.unmatched == "discard", matched && o.matched == "keepExisting" && o.change.Type == 0:
		return nil
	case !matched && o.unmatched == "fail":
		return fail(code(13113), "$merge could not find a matching document in the target collection for at least one document in the source collection")
	case !matched, o.matched == "fail" && o.change.Type == 0:
		err := store.WriteAll(k.ctx, db.Collection(o.collection), store.Op{Kind: store.Insert, Doc: doc})
		return o.explained(k, err, doc)
	case o.change.Type != 0:
		d, err := document.Unmarshal(doc)
		if err != nil {
			return err
		}
		c.change, err = changePipeline(o.change, bson.D{{Key: "new", Value: bson.D{{Key: "$literal", Value: d}}}})
		if err != nil {
			return err
		}
	case o.matched == "merge":
		d, err := document.Unmarshal(doc)
		if err != nil {
			return err
		}
		objects := bson.A{"$$ROOT", bson.D{{Key: "$literal", Value: d}}}
		c.change, err = compileStages(bson.A{bson.D{{Key: "$replaceWith", Value: bson.D{{Key: "$mergeObjects", Value: objects}}}}}, nil)
		if err != nil {
			return err
		}
	}
	r, err := c.run(db, o.collection)
	return o.explained(k, errors.Join(err, r.Err))
}

func (o *output) matches(k *call, db store.Database, filter bson.D) (bool, error) {
	f, err := mql.Compile(filter)
	if err != nil {
		return false, err
	}
	n, err := db.Collection(o.collection).Count(k.ctx, f, 1)
	if errors.Is(err, errs.ErrNotFound) {
		return false, nil
	}
	return n > 0, err
}
