package document

import (
	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Decimal reads a number of any type for arithmetic; a double counts with 15 significant digits, as on a MongoDB server.
func Decimal(v bson.RawValue) *apd.Decimal { return decimalOf(v) }

// AppendDecimal appends a result of DecimalContext as a Decimal128.
func AppendDecimal(dst []byte, d *apd.Decimal) []byte { return appendDecimal(dst, d) }

// DecimalContext is the arithmetic of Decimal128: 34 digits, rounded half to even. It has no traps, so nothing done in
// it gives an error.
func DecimalContext() *apd.Context {
	c := decimalContext()
	return &c
}
