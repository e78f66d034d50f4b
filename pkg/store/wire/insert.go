package wire

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// insertion is a document that is to be inserted, and its place in the command.
type insertion struct {
	index int
	op    store.Op
}

func runInsert(k *call) (bson.D, error) {
	to, w, err := k.startWrite()
	if err != nil {
		return nil, err
	}
	docs, err := k.statements("documents")
	if err != nil {
		return nil, err
	}
	if err := checkText(docs...); err != nil {
		return nil, err
	}
	var chunk []insertion
	size := 0
	for i, doc := range docs {
		if o, known := k.write.known(i); known {
			w.done(i, o)
			continue
		}
		chunk = append(chunk, insertion{i, store.Op{Kind: store.Insert, Doc: withID(doc)}})
		size += len(doc)
		if len(chunk) < chunkOps && size < chunkBytes && i < len(docs)-1 {
			continue
		}
		goOn, err := w.insert(to, chunk)
		if err != nil {
			return nil, err
		}
		if !goOn {
			return w.reply(false), nil
		}
		chunk, size = chunk[:0], 0
	}
	if _, err := w.insert(to, chunk); err != nil {
		return nil, err
	}
	return w.reply(false), nil
}

// insert writes a chunk, as a statement of a write that may be sent again.
func (w *written) insert(to store.Writer, chunk []insertion) (goOn bool, err error) {
	if len(chunk) == 0 {
		return true, nil
	}
	err = w.k.statement(func() (err error) {
		goOn, err = w.insertChunk(to, chunk)
		return err
	})
	return goOn, err
}

// insertChunk writes a chunk. In order, nothing behind a document that fails may be written: all of them or none are, and if
// none, those before the first that failed.
func (w *written) insertChunk(to store.Writer, chunk []insertion) (goOn bool, err error) {
	if !w.ordered || w.k.tx != nil {
		return w.insertEach(to, chunk)
	}
	n := len(chunk)
	var failed error
	for n > 0 {
		results, err := to.Write(w.k.ctx, opsOf(chunk[:n]), true)
		if err != nil {
			return false, err
		}
		bad := slices.IndexFunc(results, func(r store.Result) bool { return r.Err != nil && !isAborted(r.Err) })
		if bad < 0 {
			break
		}
		n, failed = bad, results[bad].Err
	}
	for _, in := range chunk[:n] {
		w.inserted(in)
	}
	if failed == nil {
		return true, nil
	}
	return w.failed(chunk[n].index, w.explained(failed, chunk[n].op.Doc))
}

// insertEach writes each document by itself: in a transaction one after the other, since the first that fails ends it.
func (w *written) insertEach(to store.Writer, chunk []insertion) (goOn bool, err error) {
	step := max(len(chunk), 1)
	if w.k.tx != nil {
		step = 1
	}
	for part := range slices.Chunk(chunk, step) {
		results, err := to.Write(w.k.ctx, opsOf(part), false)
		if err != nil {
			return false, err
		}
		for i, r := range results {
			if r.Err == nil {
				w.inserted(part[i])
				continue
			}
			if goOn, err := w.failed(part[i].index, w.explained(r.Err, part[i].op.Doc)); err != nil || !goOn {
				return false, err
			}
		}
	}
	return true, nil
}

func (w *written) inserted(in insertion) {
	w.n++
	w.k.write.keep(in.index, outcome{matched: 1})
}

func opsOf(chunk []insertion) []store.Op {
	ops := make([]store.Op, len(chunk))
	for i := range chunk {
		ops[i] = chunk[i].op
	}
	return ops
}

// withID gives a document as it is stored: with an _id, in front.
func withID(doc bson.Raw) bson.Raw {
	if _, has := document.Field(doc, "_id"); has {
		return document.IDFirst(doc)
	}
	id := bson.NewObjectID()
	return document.WithID(doc, bson.RawValue{Type: bson.TypeObjectID, Value: id[:]})
}
