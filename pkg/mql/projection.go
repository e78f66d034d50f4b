package mql

import "go.mongodb.org/mongo-driver/v2/bson"

// Projection is a compiled choice of the parts of documents. It is immutable and safe for concurrent use.
type Projection struct{}

// CompileProjection checks a projection and makes it runnable. It takes inclusion or exclusion of paths, $slice,
// $elemMatch, and the position path.$, whose element is what the query's filter matched. Expressions, literals and
// $meta are errs.Invalid with code "bad_projection" and a message that names operator and path.
func CompileProjection(doc bson.D) (*Projection, error) {
	panic("not yet") // TODO(contracts): helper "mql-projection"
}

// Apply appends to dst what p leaves of doc, which f has matched, and gives the extended slice. It fails with
// errs.Invalid, code "projection_failed", where the position $ has no element. It does not allocate if dst has room,
// but for $elemMatch and $.
func (p *Projection) Apply(dst []byte, doc bson.Raw, f *Filter) ([]byte, error) {
	panic("not yet") // TODO(contracts): helper "mql-projection"
}

// Raw is the projection as a MongoDB server is sent it, made of what CompileProjection understood. The caller must not
// change it.
func (p *Projection) Raw() bson.Raw { panic("not yet") }
