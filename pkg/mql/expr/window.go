package expr

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// CompileWindow is CompileAccumulator for a window of $setWindowFields: there an operand may be a list. sliding says that
// documents leave the window, too; see Remove.
func CompileWindow(
	name string, operand any, sliding bool, order func(sortBy bson.Raw) (SortKeys, error), vars ...string,
) (*Accumulator, error) {
	return compileAccumulator(&Accumulator{kind: accumulationOf(name), window: true, sliding: sliding}, name, operand, order, vars)
}

// Slides says whether Remove works: whether a sliding accumulator needs no new start when documents leave its window.
func (a *Accumulator) Slides() bool {
	switch a.kind {
	case accSum, accAvg, accCount, accStdDevPop, accStdDevSamp:
		return a.sliding
	default:
		return false
	}
}

// Remove takes the document that is env's Root away again.
func (a *Accumulator) Remove(s *State, env *Env) error {
	if a.input == nil {
		s.count--
		return nil
	}
	v, err := a.input.eval(env)
	if err == nil && isNumber(v.Type) {
		s.slide.update(a.kind, v, -1)
	}
	return err
}

// slide is the numbers of a window that documents enter and leave. It knows how many there are of each kind, so that
// an infinity leaves no trace behind.
type slide struct {
	count                   int64
	total                   exactSum
	deviation               exactSum // the sum of squared differences
	decimals, doubles       int64
	hadDecimal, hadDouble   bool  // among the finite ones so far
	nan, infinite, negative int64 // NaN, Infinity, -Infinity
}

// exactSum adds and subtracts finite numbers.
type exactSum struct{ sum }

// add adds a number by times, which is 1 or -1.
func (s *exactSum) add(v bson.RawValue, by int64) {
	switch v.Type {
	case bson.TypeDecimal128:
		if by < 0 {
			b := append(make([]byte, 0, len(v.Value)), v.Value...)
			b[len(b)-1] ^= 0x80
			v.Value = b
		}
		s.addDecimal(v)
	case bson.TypeDouble:
		s.addDouble(float64(by) * doubleOf(v))
	default:
		n := integerOf(v)
		if n == math.MinInt64 && by < 0 { // whose negative is no integer
			s.addInteger(math.MaxInt64)
			n = -1
		}
		s.addInteger(by * n)
	}
}

func (w *slide) update(kind accumulation, v bson.RawValue, by int64) {
	switch v.Type {
	case bson.TypeDecimal128:
		w.decimals += by
	case bson.TypeDouble:
		w.doubles += by
	default:
	}
	f := floatOf(v)
	deviates := kind == accStdDevPop || kind == accStdDevSamp
	switch {
	case math.IsNaN(f):
		w.nan += by
	case v.Type == bson.TypeDecimal128 && v.Value[15]&0x7c == 0x78, v.Type == bson.TypeDouble && math.IsInf(f, 0):
		if f > 0 {
			w.infinite += by
		} else {
			w.negative += by
		}
	case deviates:
		w.deviate(f, by)
		return
	default:
		w.total.add(v, by)
		w.hadDecimal = w.hadDecimal || v.Type == bson.TypeDecimal128
		w.hadDouble = w.hadDouble || v.Type == bson.TypeDouble
	}
	if !deviates {
		w.count += by
	}
}

// deviate keeps the sum of squared differences from the mean.
func (w *slide) deviate(f float64, by int64) {
	switch {
	case w.count == 0:
		w.count = 1
		w.total.addDouble(f)
		return
	case w.count+by == 0:
		w.count, w.total, w.deviation = 0, exactSum{}, exactSum{}
		return
	}
	x := float64(w.count)*f - w.total.double()
	w.count += by
	w.total.addDouble(float64(by) * f)
	w.deviation.addDouble(x * x * float64(by) / (float64(w.count) * float64(w.count-by)))
}

func (w *slide) value(kind accumulation, env *Env) bson.RawValue {
	switch kind {
	case accSum:
		return w.sum(env)
	case accAvg:
		if w.count == 0 {
			return null
		}
		total := w.sum(env)
		if total.Type == bson.TypeDecimal128 {
			var b [8]byte
			return env.decimals(total, int64Value(b[:], w.count), quotient)
		}
		return env.double(floatOf(total) / float64(w.count))
	default:
		return w.standardDeviation(kind, env)
	}
}

// sum gives the sum in the widest type there is in the window; integers in the narrowest that they fit.
func (w *slide) sum(env *Env) bson.RawValue {
	special := 0.0
	switch {
	case w.nan > 0 || w.infinite > 0 && w.negative > 0:
		special = math.Float64frombits(quietNaN)
	case w.infinite > 0:
		special = math.Inf(1)
	case w.negative > 0:
		special = math.Inf(-1)
	}
	switch {
	case w.decimals > 0:
		start := len(env.arena)
		if special != 0 {
			env.arena = appendExact(env.arena, special)
		} else {
			env.arena = w.total.appendDecimal(env.arena)
		}
		return env.value(bson.TypeDecimal128, start)
	case special != 0:
		return env.double(special)
	case w.doubles == 0 && w.hadDouble && !w.hadDecimal: // a server's sum stays one of doubles
		if f := w.total.double(); f >= math.MinInt64 && f < math.MaxInt64 {
			return env.integer(int64(math.Round(f)))
		}
		return env.double(w.total.double())
	case w.doubles == 0 && w.total.fitsLong():
		return env.integer(w.total.long())
	default:
		return env.double(w.total.double())
	}
}

func (w *slide) standardDeviation(kind accumulation, env *Env) bson.RawValue {
	n := w.count
	if kind == accStdDevSamp {
		n--
	}
	squares := w.deviation.double()
	switch {
	case w.nan+w.infinite+w.negative > 0 || n == 0:
		return null
	case n < 0: // as servers have it
		return env.double(math.Copysign(0, -1))
	case squares < 0 || w.count == 1:
		return env.int32(0)
	default:
		return env.double(math.Sqrt(squares / float64(n)))
	}
}
