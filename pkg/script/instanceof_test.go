package script_test

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/script"
)

// Ids and decimals are instances of their classes, wherever they come from: ctx, db, what the script makes, and what it got
// from elsewhere in a list or an object. In this process and in a worker.
func TestInstancesOfClasses(t *testing.T) {
	t.Parallel()
	decimal, err := bson.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	doc := bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "price", Value: decimal}, {Key: "refs", Value: bson.A{bson.D{{Key: "to", Value: bson.NewObjectID()}}}}}
	raw, err := document.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	h := host{
		"db.findOne": func(context.Context, bson.A) (any, error) { return raw, nil },
		"db.insert":  func(_ context.Context, args bson.A) (any, error) { return args[1], nil },
	}
	p := compile(t, `module.exports = async (ctx) => {
  const bad = []
  const check = (name, v, c) => { if (!(v instanceof c)) bad.push(name); if (v.constructor !== c) bad.push(name + '.constructor') }
  const all = (name, d) => {
    check(name + '._id', d._id, ObjectId)
    check(name + '.price', d.price, Decimal128)
    check(name + '.refs', d.refs[0].to, ObjectId)
    if (d._id instanceof Decimal128 || d.price instanceof ObjectId || d instanceof ObjectId) bad.push(name + ' is of both')
  }
  all('ctx.doc', ctx.doc)
  all('ctx.raw', ctx.raw)
  all('copy', {...ctx.doc})
  all('found', await db.collection('c').findOne('x'))
  all('inserted', await db.collection('c').insert({_id: new ObjectId(), price: new Decimal128('2'), refs: [{to: ctx.doc._id}]}))
  check('new', new ObjectId('650102030405060708090a0b'), ObjectId)
  check('new decimal', new Decimal128('3'), Decimal128)
  if ('x' instanceof ObjectId || {} instanceof ObjectId || ctx.doc.price instanceof Date) bad.push('everything is one')
  try { ObjectId.prototype = {} } catch (e) {}
  check('later', ctx.doc._id, ObjectId)
  return bad
}`)
	for name, e := range map[string]*script.Engine{"in process": engine(t), "in a worker": workerEngine(t)} {
		result, err := e.Run(t.Context(), script.Call{
			Project: "p", Program: p, Isolate: name == "in a worker", Host: h,
			Ctx: []script.Member{{Name: "doc", Value: doc, Out: true}, {Name: "raw", Value: raw}},
		})
		if err != nil || fmt.Sprint(result.Value) != "[]" {
			t.Errorf("%s: %v, %v", name, result.Value, err)
		}
	}
	// A program that does not name the classes has its ids, too.
	result, err := engine(t).Run(t.Context(), script.Call{
		Project: "p", Program: compile(t, `module.exports = (ctx) => ctx.doc._id.toHexString().length`), Ctx: []script.Member{{Name: "doc", Value: doc}},
	})
	if err != nil || fmt.Sprint(result.Value) != "24" {
		t.Errorf("%v, %v", result.Value, err)
	}
}
