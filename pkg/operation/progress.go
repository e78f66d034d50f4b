package operation

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ProgressOf reads what a script gave to ctx.progress: a message, or an object with members of Progress. What is of
// another type, or negative, counts as unknown.
func ProgressOf(v any) Progress {
	var p Progress
	switch v := v.(type) {
	case string:
		p.Message = v
	case bson.D:
		for _, e := range v {
			p.set(e.Key, e.Value)
		}
	}
	return p
}

func (p *Progress) set(name string, v any) {
	switch name {
	case "phase":
		p.Phase, _ = v.(string)
	case "collection":
		p.Collection, _ = v.(string)
	case "message":
		p.Message, _ = v.(string)
	case "done":
		p.Done = whole(v)
	case "total":
		p.Total = whole(v)
	case "bytesDone":
		p.BytesDone = whole(v)
	case "bytesTotal":
		p.BytesTotal = whole(v)
	}
}

func whole(v any) int64 {
	switch v := v.(type) {
	case int32:
		return max(0, int64(v))
	case int64:
		return max(0, v)
	case float64:
		if v >= 0 && v < math.MaxInt64 { // not NaN
			return int64(v)
		}
	}
	return 0
}
