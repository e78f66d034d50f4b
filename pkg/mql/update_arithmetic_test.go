package mql_test

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestArithmeticAsServer compares $inc and $mul of random numbers with a MongoDB.
func TestArithmeticAsServer(t *testing.T) {
	server := mongotest.Dial(t)
	seed := *updateSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-updates=%d -updateseed=%d", *updateCases, seed)
	r := rand.New(rand.NewPCG(seed, 2))
	const db, batch = "mql_arithmetic", 1000
	for done := 0; done < *updateCases && !t.Failed(); done += batch {
		server.Run(t, db, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}}})
		var docs, statements bson.A
		var updates []bson.D
		for id := range int32(batch) {
			a, b := randomNumber(r), randomNumber(r)
			if isNaN(a) && isNaN(b) { // which of two it is then is the processor's choice
				b = int32(1)
			}
			docs = append(docs, raw(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: a}}))
			u := bson.D{{Key: []string{"$inc", "$mul"}[r.IntN(2)], Value: bson.D{{Key: "a", Value: b}}}}
			updates = append(updates, u)
			statements = append(statements, bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: id}}}, {Key: "u", Value: u}})
		}
		server.Run(t, db, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
		reply := server.Run(t, db, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: statements}, {Key: "ordered", Value: false}})
		failures := writeErrors(t, reply)
		got := byID(t, server.Run(t, db, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: batch + 1}}), batch)
		for i, doc := range docs {
			u, err := mql.CompileUpdate(updates[i], nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := u.Apply(doc.(bson.Raw), mql.Applying{})
			if message, failed := failures[int32(i)]; failed != (err != nil) {
				t.Errorf("%v %v: server %q, here %v", doc, updates[i], message, err)
			} else if err == nil && !bytes.Equal(want, got[i]) {
				t.Errorf("%v %v: server %v, here %v (%x %x)", doc, updates[i], got[i], want, []byte(got[i]), []byte(want))
			}
		}
	}
}

func isNaN(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v)
	case bson.Decimal128:
		return v.IsNaN()
	default:
		return false
	}
}

func randomNumber(r *rand.Rand) any {
	edges := []int64{0, 1, -1, 2, -2, 3, 10, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, 1 << 53, 1<<53 + 1, 1 << 31, 1 << 62}
	n := edges[r.IntN(len(edges))]
	if r.IntN(2) == 0 {
		n = r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2))
	}
	switch r.IntN(8) {
	case 0:
		return int32(n)
	case 1, 2:
		return n
	case 3:
		if r.IntN(8) == 0 {
			return math.Float64frombits(r.Uint64() | 0x7ff<<52)
		}
		return math.Float64frombits(r.Uint64())
	case 4:
		return []float64{float64(n), float64(n) / 1000, 0.1, 1e-5, math.Copysign(0, -1), 1e-310, 1e22, math.NaN(), math.Inf(1), math.Inf(-1), 2.5, 1e15 + 0.5}[r.IntN(12)]
	default:
		return randomDecimal(r)
	}
}

func randomDecimal(r *rand.Rand) bson.Decimal128 {
	coef := new(big.Int).SetUint64(r.Uint64() >> r.IntN(64))
	if r.IntN(2) == 0 {
		coef.Mul(coef, new(big.Int).SetUint64(r.Uint64()>>r.IntN(14)))
	}
	if r.IntN(6) == 0 {
		coef.Exp(big.NewInt(10), big.NewInt(r.Int64N(34)), nil)
	}
	limit, _ := new(big.Int).SetString("9999999999999999999999999999999999", 10)
	coef.Mod(coef, limit)
	if r.IntN(3) == 0 {
		coef.Neg(coef)
	}
	exp := r.IntN(40) - 20
	switch r.IntN(8) {
	case 0:
		exp = bson.MinDecimal128Exp + r.IntN(40)
	case 1:
		exp = bson.MaxDecimal128Exp - r.IntN(40)
	case 2:
		exp = r.IntN(12000) - 6000
	}
	d, ok := bson.ParseDecimal128FromBigInt(coef, exp)
	if !ok || r.IntN(40) == 0 {
		d, _ = bson.ParseDecimal128([]string{"NaN", "Infinity", "-Infinity", "-0", "0E-6176", "0E+6111", "-0E+3"}[r.IntN(7)])
	}
	return d
}
