package mql

import (
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// Extended replaces the Extended JSON wrappers $oid, $date, $numberInt, $numberLong, $numberDouble and $numberDecimal
// in a tree of bson.D and bson.A by their values, and refuses the other wrappers. Everything else stays as it is. The
// tree is not changed; the error is errs.Invalid with code "bad_filter".
func Extended(v any) (any, error) { return extended(v, 0) }

func extended(v any, depth int) (any, error) {
	if depth > 2*maxNesting {
		return nil, bad("filter: nested deeper than %d levels", 2*maxNesting)
	}
	switch v := v.(type) {
	case bson.A:
		out := make(bson.A, len(v))
		for i, item := range v {
			var err error
			if out[i], err = extended(item, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case bson.D:
		return extendedObject(v, depth)
	default:
		return v, nil
	}
}

func extendedObject(d bson.D, depth int) (any, error) {
	for _, e := range d {
		known, refused := wrapper(e.Key)
		switch {
		case refused:
			return nil, bad("filter: Extended JSON %s is not supported", e.Key)
		case known && len(d) > 1:
			return nil, bad("filter: Extended JSON %s has to be alone in its object", e.Key)
		case known:
			return unwrap(e)
		}
	}
	out := make(bson.D, len(d))
	for i, e := range d {
		v, err := extended(e.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = bson.E{Key: e.Key, Value: v}
	}
	return out, nil
}

func wrapper(name string) (known, refused bool) {
	switch name {
	case "$oid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal":
		return true, false
	case "$binary", "$uuid", "$timestamp", "$symbol", "$code", "$scope", "$regularExpression", "$dbPointer", "$minKey",
		"$maxKey", "$undefined":
		return false, true
	default:
		return false, false
	}
}

func unwrap(e bson.E) (any, error) {
	if e.Key == "$date" {
		return unwrapDate(e.Value)
	}
	s, ok := e.Value.(string)
	if !ok {
		return nil, bad("filter: Extended JSON %s needs text", e.Key)
	}
	var v any
	var err error
	switch e.Key {
	case "$oid":
		v, err = bson.ObjectIDFromHex(s)
	case "$numberInt":
		var n int64
		n, err = strconv.ParseInt(s, 10, 32)
		v = int32(n)
	case "$numberLong":
		v, err = strconv.ParseInt(s, 10, 64)
	case "$numberDouble":
		v, err = parseDouble(s)
	default:
		v, err = bson.ParseDecimal128(s)
	}
	if err != nil {
		return nil, bad("filter: Extended JSON %s: the value is not valid", e.Key)
	}
	return v, nil
}

// parseDouble takes decimal numbers and the three names that JSON has no literals for.
func parseDouble(s string) (float64, error) {
	switch s {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	if strings.Trim(s, "+-0123456789.eE") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// unwrapDate takes RFC 3339 text, or milliseconds since 1970 as a number or as a $numberLong.
func unwrapDate(v any) (any, error) {
	switch v := v.(type) {
	case string:
		t, err := document.ParseTime(v)
		if err != nil {
			return nil, bad("filter: Extended JSON $date: %s", errs.From(err).Message)
		}
		return bson.NewDateTimeFromTime(t), nil
	case int64:
		return bson.DateTime(v), nil
	case bson.D:
		if len(v) == 1 && v[0].Key == "$numberLong" {
			n, err := unwrap(v[0])
			if ms, ok := n.(int64); ok {
				return bson.DateTime(ms), nil
			}
			return nil, err
		}
	}
	return nil, bad("filter: Extended JSON $date needs RFC 3339 text or milliseconds")
}
