package operation_test

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/operation"
)

func TestProgressOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		given any
		want  operation.Progress
	}{
		"a text": {"half", operation.Progress{Message: "half"}},
		"all members": {
			bson.D{
				{Key: "phase", Value: "p"},
				{Key: "collection", Value: "c"},
				{Key: "message", Value: "m"},
				{Key: "done", Value: int32(1)},
				{Key: "total", Value: int64(2)},
				{Key: "bytesDone", Value: 3.7},
				{Key: "bytesTotal", Value: int64(4)},
				{Key: "else", Value: true},
			},
			operation.Progress{Phase: "p", Collection: "c", Message: "m", Done: 1, Total: 2, BytesDone: 3, BytesTotal: 4},
		},
		"what has no meaning": {
			bson.D{{Key: "done", Value: math.NaN()}, {Key: "total", Value: -1.0}, {Key: "bytesDone", Value: math.Inf(1)}, {Key: "bytesTotal", Value: "1"}, {Key: "message", Value: 1.0}},
			operation.Progress{},
		},
		"a number": {5.0, operation.Progress{}},
		"nothing":  {nil, operation.Progress{}},
	} {
		if got := operation.ProgressOf(tt.given); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
