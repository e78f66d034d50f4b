package mql

import (
	"encoding/binary"
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// truncated is the integer part of a number; ok is false for other values, for NaN and for what int64 can't hold.
func truncated(v bson.RawValue) (n int64, ok bool) {
	switch {
	case v.Type == bson.TypeInt32 && len(v.Value) == 4:
		return int64(int32(binary.LittleEndian.Uint32(v.Value))), true //nolint:gosec // two's complement
	case v.Type == bson.TypeInt64 && len(v.Value) == 8:
		return int64(binary.LittleEndian.Uint64(v.Value)), true //nolint:gosec // two's complement
	case v.Type == bson.TypeDouble && len(v.Value) == 8:
		f := math.Trunc(math.Float64frombits(binary.LittleEndian.Uint64(v.Value)))
		if f >= -(1<<63) && f < 1<<63 { // false for NaN
			return int64(f), true
		}
	case v.Type == bson.TypeDecimal128 && len(v.Value) == 16:
		return truncatedDecimal(v)
	}
	return 0, false
}

func truncatedDecimal(v bson.RawValue) (int64, bool) {
	d, ok := v.Decimal128OK()
	if !ok {
		return 0, false
	}
	coef, exp, err := d.BigInt()
	if err != nil { // NaN and infinities
		return 0, false
	}
	if coef.Sign() == 0 || exp < -40 {
		return 0, true
	}
	if exp > 20 {
		return 0, false
	}
	pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
	if exp >= 0 {
		coef.Mul(coef, pow)
	} else {
		coef.Quo(coef, pow)
	}
	return coef.Int64(), coef.IsInt64()
}
