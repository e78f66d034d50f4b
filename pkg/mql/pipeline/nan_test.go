package pipeline_test

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql/pipeline"
)

// Which NaN comes of a NaN is as on a MongoDB 6.0.5: Extended JSON can't tell, so the recorded cases do not.
func TestBitsOfNaN(t *testing.T) {
	const quiet, own = 0x7ff8000000000000, 0x7ff8000000000001
	one, err := bson.ParseDecimal128("1")
	if err != nil {
		t.Fatal(err)
	}
	src := memory{"c": {
		marshal(t, bson.D{{Key: "_id", Value: 0}, {Key: "x", Value: 1.0}}),
		marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: 2.0}}),
		marshal(t, bson.D{{Key: "_id", Value: 2}, {Key: "x", Value: math.Float64frombits(own)}}),
	}, "d": {
		marshal(t, bson.D{{Key: "_id", Value: 0}, {Key: "x", Value: math.Float64frombits(own)}}),
		marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: one}}),
	}}
	window := func(function string, bounds string) string {
		return `[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"v": {` + function + bounds + `}}}}, {"$sort": {"_id": -1}}, {"$limit": 1}]`
	}
	const all, near = `, "window": {"documents": ["unbounded", "current"]}`, `, "window": {"documents": [-2, 0]}`
	for text, want := range map[string]uint64{
		window(`"$sum": "$x"`, near):                       quiet,
		window(`"$avg": "$x"`, near):                       quiet,
		window(`"$sum": "$x"`, all):                        own,
		window(`"$avg": "$x"`, all):                        own,
		window(`"$integral": {"input": "$x"}`, near):       quiet,
		window(`"$integral": {"input": "$x"}`, all):        quiet,
		window(`"$covariancePop": ["$x", "$_id"]`, all):    quiet,
		`[{"$group": {"_id": null, "v": {"$sum": "$x"}}}]`: own,
	} {
		src[""] = src["c"]
		docs, err := run(t.Context(), t, src, text, pipeline.Budget{})
		if err != nil || len(docs) != 1 {
			t.Errorf("%s: %v, %v", text, docs, err)
			continue
		}
		if got := math.Float64bits(docs[0].Lookup("v").Double()); got != want {
			t.Errorf("%s: %#x, want %#x", text, got, want)
		}
	}
	src[""] = src["d"]
	docs, err := run(t.Context(), t, src, `[{"$group": {"_id": null, "v": {"$sum": "$x"}}}]`, pipeline.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	if high, low := docs[0].Lookup("v").Decimal128().GetBytes(); high != 0x7c00000000000000 || low != 0x0800000000000000 {
		t.Errorf("as a decimal it is %#x %#x", high, low)
	}
}
