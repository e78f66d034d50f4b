package mql

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Update is a compiled change to documents: update operators with their array filters. It is immutable and safe for
// concurrent use.
type Update struct{}

// CompileUpdate checks an update and makes it runnable. Only these operators are taken:
//
//	$set $unset $setOnInsert $inc $mul $min $max $rename $currentDate $bit
//	$push ($each $position $slice $sort) $addToSet ($each) $pull $pullAll $pop
//
// with the positions $, $[] and $[name], the latter with an element of arrayFilters. Everything else, a replacement
// document and a pipeline among it, is errs.Invalid with code "bad_update" and a message that names operator and path.
func CompileUpdate(doc bson.D, arrayFilters []bson.D) (*Update, error) {
	panic("not yet") // TODO(contracts): helper "mql-update"
}

// Applying is what an update is applied with.
type Applying struct {
	Filter *Filter   // what chose the document: $ is the element that matched it
	Now    time.Time // for $currentDate
	Insert bool      // the document is being inserted: $setOnInsert counts
}

// Apply gives the document that u makes of doc. Where nothing changes it gives doc itself (the same bytes). It fails
// with errs.Invalid, code "update_failed", where u can't be applied to doc (a $inc of text, say), and with
// errs.TooLarge where the document would be larger than document.MaxSize. The result never shares memory with u.
func (u *Update) Apply(doc bson.Raw, a Applying) (bson.Raw, error) {
	panic("not yet") // TODO(contracts): helper "mql-update"
}

// Raw and ArrayFilters are the update as a MongoDB server is sent it, made of what CompileUpdate understood. The caller
// must not change them.
func (u *Update) Raw() bson.Raw { panic("not yet") }

// ArrayFilters belongs to Raw; none gives nil.
func (u *Update) ArrayFilters() []bson.Raw { panic("not yet") }

// Touches says whether u may change what path leads to. It may say true where it doesn't.
func (u *Update) Touches(path string) bool { panic("not yet") }

// UpsertBase gives the document that an upsert with filter f starts from: the fields that f says are equal to one
// value, with _id first if it is among them. It fails with errs.Invalid where f says so twice of one path.
func UpsertBase(f *Filter) (bson.Raw, error) {
	panic("not yet") // TODO(contracts): helper "mql-update"
}
