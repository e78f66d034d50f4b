package wire

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxTime is how many milliseconds the command may take; 0: it does not say.
func (k *call) maxTime() (int64, error) {
	v := k.args.value("maxTimeMS")
	switch v.Type { // no others are numbers
	case 0:
		return 0, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
	default:
		if k.name != "aggregate" || v.Type == bson.TypeNull { // which alone is strict about it
			return 0, fail(codeBadValue, "maxTimeMS must be a number")
		}
		return 0, fail(codeTypeMismatch, "BSON field '%s.maxTimeMS' is the wrong type '%s', expected types '[long, int, decimal, double']", k.name, v.Type)
	}
	ms := k.args.integer("maxTimeMS", 0)
	f, _ := v.DoubleOK()
	switch {
	case k.args.err != nil:
		return 0, k.args.err
	case ms < 0 && k.name == "aggregate":
		return 0, fail(codeNegative, "BSON field 'maxTimeMS' value must be >= 0, actual value '%d'", ms)
	case ms < 0, ms > math.MaxInt32:
		return 0, fail(codeBadValue, "%d value for maxTimeMS is out of range [0, 2147483647]", ms)
	case f != math.Trunc(f):
		return 0, fail(codeBadValue, "maxTimeMS has non-integral value")
	}
	return ms, nil
}

// timeLimit is how long the command may take, where ms is its maxTimeMS, which of a getMore is how long it waits; 0: as long as
// it takes.
func (k *call) timeLimit(ms int64) time.Duration {
	switch {
	case ms > 0 && k.name != "getMore":
		return time.Duration(ms) * time.Millisecond
	case k.command.writes, k.command.global, k.watches():
		return 0
	default:
		return k.server.opts.MaxTime
	}
}

// wantsMore says whether a write is to be on more servers than there are.
func (k *call) wantsMore() bool {
	w, ok := whole(k.args.document("writeConcern").Lookup("w"))
	return ok && w > 1 && (k.command.writes && k.tx == nil || k.endsTransaction())
}

// checkConcern refuses what no server of this version does in the way that is asked for.
func (k *call) checkConcern() error {
	level := k.readLevel()
	outside := k.args.value("autocommit").Type == 0
	switch {
	case level == "snapshot" && outside && k.name != "find" && k.name != "aggregate" && k.name != "distinct" && k.name != "getMore":
		return fail(codeInvalidOptions, "the read concern snapshot is not supported by the command %s", k.name)
	case k.args.boolean("apiStrict", false) && k.command.unstable:
		return fail(code(323), "Provided apiStrict:true, but the command %s is not in API Version 1", k.name)
	}
	return k.args.err
}

// readLevel is the read concern; "": the command does not say.
func (k *call) readLevel() string {
	level, _ := k.args.document("readConcern").Lookup("level").StringValueOK()
	return level
}
