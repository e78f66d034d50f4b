package mql

import "go.mongodb.org/mongo-driver/v2/bson"

func (f *Filter) position(doc bson.Raw) string { return "" }

// UpsertBase gives the document that an upsert with filter f starts from: the fields that f says are equal to one
// value, with _id first if it is among them. It fails with errs.Invalid where f says so twice of one path.
func UpsertBase(f *Filter) (bson.Raw, error) {
	panic("not yet") // TODO(contracts): helper "mql-update"
}
