package mql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Update is a compiled change to documents: update operators with their array filters. It is immutable and safe for
// concurrent use.
type Update struct {
	root    *updateNode
	filters []bson.Raw
	raw     bson.Raw
	paths   *document.PathSet
	renames [][]string // both ends of each $rename

	source        bson.D // what it was compiled from
	sourceFilters []bson.D
}

// CompileUpdate checks an update and makes it runnable. Only these operators are taken:
//
//	$set $unset $setOnInsert $inc $mul $min $max $rename $currentDate $bit
//	$push ($each $position $slice $sort) $addToSet ($each) $pull $pullAll $pop
//
// with the positions $, $[] and $[name], the latter with an element of arrayFilters. Everything else, a replacement
// document and a pipeline among it, is errs.Invalid with code "bad_update" and a message that names operator and path.
//
// Refused though a MongoDB server takes it: a name in a path that begins with "$" and is no position, one list element
// named in two ways (a.0 and a.00), two conditions of one kind in a $pull, more than 32 paths in a $sort, and what would put a value deeper than 100
// levels. Otherwise than on a server, $sort in a $push keeps equal elements in their order, however many there are.
//
// The update keeps doc and arrayFilters, which must not be changed any more.
func CompileUpdate(doc bson.D, arrayFilters []bson.D) (*Update, error) {
	return compileUpdate(doc, arrayFilters, nil)
}

// compileUpdate is CompileUpdate for documents whose fields are stored by names.
func compileUpdate(doc bson.D, arrayFilters []bson.D, names *document.Names) (*Update, error) {
	elements, err := ofElements(doc, names)
	if err != nil {
		return nil, err
	}
	c := updateCompiler{root: &updateNode{}, names: names, elements: elements}
	for _, f := range arrayFilters {
		if err := c.addFilter(f); err != nil {
			return nil, err
		}
	}
	if len(doc) == 0 {
		return nil, badUpdate("update: there is no operator in it, such as $set")
	}
	for i, e := range doc {
		if slices.ContainsFunc(doc[:i], func(o bson.E) bool { return o.Key == e.Key }) {
			return nil, badUpdate("update: %s is given twice: put all its fields into one", e.Key)
		}
		if err := c.addOperator(e); err != nil {
			return nil, err
		}
	}
	for _, f := range c.filters {
		if !f.used {
			return nil, badUpdate("update: the array filter %q is not used in any path: take it out", f.name)
		}
	}
	u := c.finish()
	u.source, u.sourceFilters = doc, arrayFilters
	return u, nil
}

// Applying is what an update is applied with.
type Applying struct {
	// Filter is what chose the document: $ is the element that matched it. Of several conditions that an element of a
	// list satisfies, the last decides, in this order whatever that of the filter: $elemMatch on objects, $elemMatch
	// on values, $size, $eq, $lte, $lt, $gt, $gte, $regex, $mod, $exists, $in, $type; of the same kind by path; two
	// $elemMatch on one path by what is in them, in the same way; and then as they stand in Filter.Raw, where several
	// that an $all, or an object in an $and, holds together come behind single ones. Conditions joined by $or or under
	// $not, $ne, $nin and $nor never decide, but for an $or that stands for an $in. This is what a MongoDB server does,
	// whatever its plan; an update that depends on it is better written with an array filter.
	Filter *Filter
	Now    time.Time // for $currentDate
	Insert bool      // the document is being inserted: $setOnInsert counts
}

// Apply gives the document that u makes of doc. Where nothing changes it gives doc itself (the same bytes). It fails
// with errs.Invalid, code "update_failed", where u can't be applied to doc (a $inc of text, say), and with
// errs.TooLarge where the document would be larger than document.MaxSize. The result never shares memory with u.
//
// The _id can't be changed, nor a field in it. With Insert, a document without one may be given one, which then is its
// first field. The old path of a $rename is read in doc; a MongoDB server sees there the nulls that another operator of
// the same update may have put into a list.
func (u *Update) Apply(doc bson.Raw, a Applying) (bson.Raw, error) {
	if len(doc) < 5 || int(binary.LittleEndian.Uint32(doc)) != len(doc) {
		return nil, errs.Wrap(errors.New("the document is damaged"), "update")
	}
	s := updating{doc: doc, Applying: a, renames: u.renames, out: make([]byte, 0, len(doc)+len(u.raw)+16)}
	if err := s.object(u.root, doc); err != nil {
		return nil, err
	}
	if len(s.out) > document.MaxSize {
		return nil, tooLarge(len(s.out))
	}
	if !s.changed || bytes.Equal(s.out, doc) {
		return doc, nil
	}
	if !u.Touches("_id") {
		return s.out, nil
	}
	return s.checkID()
}

// Raw and ArrayFilters are the update as a MongoDB server is sent it, made of what CompileUpdate understood. The caller
// must not change them.
func (u *Update) Raw() bson.Raw { return u.raw }

// ArrayFilters belongs to Raw; none gives nil.
func (u *Update) ArrayFilters() []bson.Raw { return u.filters }

// Touches says whether u may change what path leads to. It may say true where it doesn't.
func (u *Update) Touches(path string) bool { return u.paths.Touches(path) }

// badUpdate makes the error of what does not compile.
func badUpdate(format string, args ...any) error {
	return refusal("bad_update", format, args)
}

// failed makes the error of what can't be applied.
func failed(format string, args ...any) error {
	return refusal("update_failed", format, args)
}

func tooLarge(n int) error {
	return errs.New(errs.TooLarge, "document_too_large", "the update makes the record larger than the limit: %d bytes of at most %d",
		n, document.MaxSize)
}

// checkID compares the _id before and after, and puts a new one first.
func (s *updating) checkID() (bson.Raw, error) {
	before, _ := document.Field(s.doc, idField)
	after, _ := document.Field(s.out, idField)
	if before.Type != 0 {
		if s.changedID || before.Type != after.Type || !bytes.Equal(before.Value, after.Value) {
			return nil, coded(codeImmutableField, failed("update: the _id of a document can't be changed: leave it out of the update"))
		}
		return s.out, nil
	}
	if after.Type == 0 {
		return s.out, nil
	}
	if err := checkID(after); err != nil {
		return nil, err
	}
	return document.IDFirst(s.out), nil
}

func checkID(id bson.RawValue) error {
	switch id.Type { //nolint:exhaustive // all others can
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return coded(codeInvalidID, failed("update: _id can't be of type %s", id.Type))
	}
	if name := document.OperatorName(id); name != nil {
		return coded(codeDollarPrefixed, failed("update: the _id has a field %q: names in it can't begin with $", name))
	}
	return nil
}
