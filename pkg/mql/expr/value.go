package expr

import (
	"cmp"
	"encoding/binary"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

//nolint:gochecknoglobals // constants
var (
	missing    = bson.RawValue{}
	null       = bson.RawValue{Type: bson.TypeNull, Value: []byte{}}
	falseValue = bson.RawValue{Type: bson.TypeBoolean, Value: []byte{0}}
	trueValue  = bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}
)

func boolean(b bool) bson.RawValue {
	if b {
		return trueValue
	}
	return falseValue
}

// value is what was written to the arena since start.
func (env *Env) value(t bson.Type, start int) bson.RawValue {
	return bson.RawValue{Type: t, Value: env.arena[start:len(env.arena):len(env.arena)]}
}

func (env *Env) int32(n int32) bson.RawValue {
	start := len(env.arena)
	env.arena = binary.LittleEndian.AppendUint32(env.arena, uint32(n)) //nolint:gosec // the same bits
	return env.value(bson.TypeInt32, start)
}

func (env *Env) eight(t bson.Type, n int64) bson.RawValue {
	start := len(env.arena)
	env.arena = binary.LittleEndian.AppendUint64(env.arena, uint64(n)) //nolint:gosec // the same bits
	return env.value(t, start)
}

func (env *Env) int64(n int64) bson.RawValue { return env.eight(bson.TypeInt64, n) }

func (env *Env) date(ms int64) bson.RawValue { return env.eight(bson.TypeDateTime, ms) }

// integer is an int32 if n fits, else an int64.
func (env *Env) integer(n int64) bson.RawValue {
	if n == int64(int32(n)) { //nolint:gosec // the check
		return env.int32(int32(n)) //nolint:gosec // checked
	}
	return env.int64(n)
}

func (env *Env) double(f float64) bson.RawValue {
	return env.eight(bson.TypeDouble, int64(math.Float64bits(f))) //nolint:gosec // the same bits
}

// text writes a string.
func text[S ~string | ~[]byte](env *Env, s S) bson.RawValue {
	start := env.openText()
	env.arena = append(env.arena, s...)
	return env.closeText(start)
}

// openText begins a string, whose bytes are to be appended to the arena.
func (env *Env) openText() (start int) {
	start = len(env.arena)
	env.arena = append(env.arena, 0, 0, 0, 0)
	return start
}

func (env *Env) closeText(start int) bson.RawValue {
	env.arena = append(env.arena, 0)
	binary.LittleEndian.PutUint32(env.arena[start:], uint32(len(env.arena)-start-4)) //nolint:gosec // bounded by room
	return env.value(bson.TypeString, start)
}

// open begins an object or a list, whose elements are to be appended to the arena.
func (env *Env) open() (start int) {
	start = len(env.arena)
	env.arena = append(env.arena, 0, 0, 0, 0)
	return start
}

func (env *Env) close(t bson.Type, start int) bson.RawValue {
	env.arena = document.Close(env.arena, start)
	return env.value(t, start)
}

// item appends an element of a list; what is missing becomes null.
func (env *Env) item(index int, v bson.RawValue) {
	if v.Type == 0 {
		v = null
	}
	env.arena = append(env.arena, byte(v.Type))
	env.arena = append(strconv.AppendInt(env.arena, int64(index), 10), 0)
	env.arena = append(env.arena, v.Value...)
}

// list makes a list of values that don't alias what is not yet in the arena.
func (env *Env) list(items []bson.RawValue) (bson.RawValue, error) {
	n := 5
	for _, v := range items {
		n += len(v.Value) + 9
	}
	if err := env.room(n); err != nil {
		return missing, err
	}
	start := env.open()
	for i, v := range items {
		env.item(i, v)
	}
	return env.close(bson.TypeArray, start), nil
}

// push and popped keep items of a list on the stack while others are computed:
//
//	mark := len(env.stack)
//	env.push(…)
//	v, err := env.popped(mark)
func (env *Env) push(v bson.RawValue) { env.stack = append(env.stack, v) }

// pushAll pushes the items of a list.
func (env *Env) pushAll(v bson.RawValue) error {
	for it := items(v); it.Next(); {
		env.push(it.Value())
		if err := env.step(); err != nil {
			return err
		}
	}
	return nil
}

// popped makes a list of what was pushed since mark, and takes it off the stack.
func (env *Env) popped(mark int) (bson.RawValue, error) {
	v, err := env.list(env.stack[mark:])
	env.stack = env.stack[:mark]
	return v, err
}

func isNumber(t bson.Type) bool {
	return t == bson.TypeInt32 || t == bson.TypeDouble || t == bson.TypeInt64 || t == bson.TypeDecimal128
}

// isNull is true of null, undefined and what is missing.
func isNull(t bson.Type) bool { return t == bson.TypeNull || t == 0 || t == bson.TypeUndefined }

func int32Of(v bson.RawValue) int32 {
	return int32(binary.LittleEndian.Uint32(v.Value)) //nolint:gosec // the same bits
}

func int64Of(v bson.RawValue) int64 {
	return int64(binary.LittleEndian.Uint64(v.Value)) //nolint:gosec // the same bits
}

func doubleOf(v bson.RawValue) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(v.Value))
}

// integerOf reads an int32 or an int64.
func integerOf(v bson.RawValue) int64 {
	if v.Type == bson.TypeInt32 {
		return int64(int32Of(v))
	}
	return int64Of(v)
}

// bytesOf is the text of a string.
func bytesOf(v bson.RawValue) []byte { return v.Value[4 : len(v.Value)-1] }

// Truth is a value as a condition: false are false, 0, null, undefined and what is missing.
func Truth(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeBoolean:
		return v.Value[0] != 0
	case 0, bson.TypeNull, bson.TypeUndefined:
		return false
	case bson.TypeInt32:
		return int32Of(v) != 0
	case bson.TypeInt64:
		return int64Of(v) != 0
	case bson.TypeDouble:
		return doubleOf(v) != 0
	case bson.TypeDecimal128:
		return !decimalOf(v).IsZero()
	default:
		return true
	}
}

// compare orders values as expressions do: what is missing comes before null, beside undefined.
func compare(a, b bson.RawValue) int {
	if a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 {
		return cmp.Compare(int32Of(a), int32Of(b))
	}
	if a.Type == 0 {
		a.Type = bson.TypeUndefined
	}
	if b.Type == 0 {
		b.Type = bson.TypeUndefined
	}
	return document.Compare(a, b)
}

// items walks a list.
func items(v bson.RawValue) document.Iter { return document.NewIter(v.Value) }

func count(v bson.RawValue) int {
	n := 0
	for it := items(v); it.Next(); {
		n++
	}
	return n
}

func int64Value(b []byte, n int64) bson.RawValue {
	binary.LittleEndian.PutUint64(b, uint64(n)) //nolint:gosec // the same bits
	return bson.RawValue{Type: bson.TypeInt64, Value: b}
}

func appendDouble(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}
