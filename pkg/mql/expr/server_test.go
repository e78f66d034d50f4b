package expr_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql/expr"
	"github.com/svcctl/svc/pkg/mql/mqltest"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

var (
	cases  = flag.Int("expressions", 3000, "random expressions to compare with MongoDB")
	seed   = flag.Uint64("expressionseed", 1, "their seed; 0 takes one from the clock")
	family = flag.String("family", "", "only operators of this family, in place of all")
	most   = flag.Int("differences", 20, "how many differences to report")
)

const docsPerCase = 3

// TestExpressionsAsServer compares random expressions with a MongoDB: their values to the byte, or the code of the error.
func TestExpressionsAsServer(t *testing.T) {
	server := mongotest.Dial(t)
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-expressions=%d -expressionseed=%d", *cases, s)
	r := rand.New(rand.NewPCG(s, 1))
	names := mqltest.Operators(*family)
	const batch = 300
	total := outcomes{meant: map[string]int{}}
	for done := 0; done < *cases && total.different < *most; done += batch {
		if done%(100*batch) == 0 {
			t.Logf("%d of %d", done, *cases)
		}
		runBatch(t, server, r, names, min(batch, *cases-done), &total)
	}
	t.Logf("%d agree: %d values, %d errors; %d nearly (the last digit of a function), %d differ", total.values+total.failures+total.near,
		total.values, total.failures, total.near, total.different)
	for _, why := range slices.Sorted(maps.Keys(total.meant)) {
		t.Logf("%d are meant to differ: %s", total.meant[why], why)
	}
	if *cases >= 3000 && (total.values < *cases/4 || total.failures < *cases/100) {
		t.Error("too few of the expressions have a value, or an error")
	}
}

type outcomes struct {
	values, failures, near, different int
	meant                             map[string]int // why
}

// expression is a case, with what came of it here.
type expression struct {
	expr any
	docs []bson.D
	outcome
}

// outcome is the values of some documents, or the code of the first error.
type outcome struct {
	values []bson.RawValue
	code   int
	text   string
}

func (o outcome) String() string {
	if o.code != 0 {
		return fmt.Sprintf("error %d (%s)", o.code, o.text)
	}
	return fmt.Sprint(o.values)
}

func runBatch(t *testing.T, server *mongotest.Conn, r *rand.Rand, names []string, n int, total *outcomes) {
	t.Helper()
	batch := make([]expression, n)
	cmds := make([]bson.D, n)
	for i := range batch {
		c := &batch[i]
		c.expr = mqltest.Expression(r, names)
		for id := range docsPerCase {
			c.docs = append(c.docs, mqltest.ExpressionDoc(r, int32(id)))
		}
		var raw any
		c.outcome, raw = here(t, c.expr, c.docs)
		cmds[i] = aggregate(raw, c.docs)
	}
	for i, reply := range server.RunAll(t, "expressions", cmds) {
		c := &batch[i]
		got := there(t, reply)
		switch agree(got, c.outcome, isInexact(c.expr)) {
		case same:
			if got.code != 0 {
				total.failures++
			} else {
				total.values++
			}
		case nearly:
			total.near++
		default:
			if why := deliberate(c, got); why != "" {
				total.meant[why]++
				continue
			}
			total.different++
			t.Errorf("%s\n  server: %s\n  here:   %s", describe(c, got), got, c.outcome)
		}
	}
}

// here gives what an expression comes to in this package, and what a server is sent for it.
func here(t *testing.T, e any, docs []bson.D) (outcome, any) {
	t.Helper()
	compiled, err := expr.Compile(e)
	if err != nil {
		return failure(t, err), e
	}
	var out outcome
	var env expr.Env
	for _, d := range docs {
		doc, err := document.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		env.Reset(doc)
		v, err := compiled.Eval(&env)
		if err != nil {
			return failure(t, err), compiled.Raw()
		}
		if v.Type != 0 && !document.WellFormed(v) {
			t.Errorf("%v: a damaged value %v", e, v)
		}
		v.Value = bytes.Clone(v.Value)
		out.values = append(out.values, v)
	}
	return out, compiled.Raw()
}

func failure(t *testing.T, err error) outcome {
	t.Helper()
	code := document.ServerCodeOf(err)
	if code == 0 {
		t.Errorf("an error without a server's code: %v", err)
	}
	return outcome{code: int(code), text: err.Error()}
}

func aggregate(e any, docs []bson.D) bson.D {
	list := bson.A{}
	for _, d := range docs {
		list = append(list, bson.D{{Key: "$literal", Value: d}})
	}
	return bson.D{
		{Key: "aggregate", Value: 1},
		{Key: "pipeline", Value: bson.A{
			bson.D{{Key: "$documents", Value: list}},
			bson.D{{Key: "$replaceWith", Value: bson.D{{Key: "v", Value: e}}}},
		}},
		{Key: "cursor", Value: bson.D{}},
	}
}

func there(t *testing.T, reply bson.Raw) outcome {
	t.Helper()
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok != 1 {
		code, _ := reply.Lookup("code").AsInt64OK()
		text, _ := reply.Lookup("errmsg").StringValueOK()
		return outcome{code: int(code), text: text}
	}
	values, err := reply.Lookup("cursor", "firstBatch").Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	var out outcome
	for _, v := range values {
		got, _ := document.Field(v.Value, "v")
		out.values = append(out.values, got)
	}
	return out
}

type agreement int

const (
	different agreement = iota
	nearly
	same
)

func agree(server, here outcome, inexact bool) agreement {
	if server.code != here.code || len(server.values) != len(here.values) {
		return different
	}
	worst := same
	for i, want := range server.values {
		got := here.values[i]
		if want.Type != got.Type {
			return different
		}
		if !equalButNaN(want, got) {
			if !inexact || !near(want, got) {
				return different
			}
			worst = nearly
		}
	}
	return worst
}

// isInexact says whether there is a function in an expression whose last digits depend on who computes it.
func isInexact(e any) bool {
	text := fmt.Sprint(e)
	return slices.ContainsFunc(inexact(), func(name string) bool { return strings.Contains(text, name) })
}

var inexact = sync.OnceValue(func() []string { return append(mqltest.Operators("transcendental"), "$pow") })

// equalButNaN compares values byte for byte, but for NaNs, at any depth: the bits of one tell how it came about.
func equalButNaN(a, b bson.RawValue) bool {
	if a.Type != b.Type || len(a.Value) != len(b.Value) {
		return false
	}
	if bytes.Equal(a.Value, b.Value) || isNaN(a) && isNaN(b) {
		return true
	}
	if a.Type != bson.TypeArray && a.Type != bson.TypeEmbeddedDocument {
		return false
	}
	as, errA := bson.Raw(a.Value).Elements()
	bs, errB := bson.Raw(b.Value).Elements()
	return errA == nil && errB == nil && slices.EqualFunc(as, bs, func(x, y bson.RawElement) bool {
		return x.Key() == y.Key() && equalButNaN(x.Value(), y.Value())
	})
}

func isNaN(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		return math.IsNaN(v.Double())
	case bson.TypeDecimal128:
		return v.Decimal128().IsNaN()
	default:
		return false
	}
}

const leastExponent = -6176 // of a decimal

// near allows for the last digits of transcendental functions, whose small values are those of large operands.
func near(a, b bson.RawValue) bool {
	switch a.Type {
	case bson.TypeDouble:
		x, y := a.Double(), b.Double()
		return math.Abs(x-y) <= 1e-14*max(math.Abs(x), 0.01) || math.IsNaN(x) && math.IsNaN(y)
	case bson.TypeDecimal128:
		c := apd.Context{Precision: 40, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent}
		x, y, d := document.Decimal(a), document.Decimal(b), new(apd.Decimal)
		if x.Form != apd.Finite || y.Form != apd.Finite {
			return x.Form == y.Form && x.Negative == y.Negative
		}
		_, _ = c.Sub(d, x, y)
		if x.Exponent == leastExponent && d.Exponent == leastExponent { // there are no more digits than these
			return d.NumDigits() == 1
		}
		return d.Coeff.Sign() == 0 || x.Coeff.Sign() != 0 && d.NumDigits()+int64(d.Exponent) < x.NumDigits()+int64(x.Exponent)-31
	default:
		return false
	}
}

// deliberate says why a difference is meant.
func deliberate(c *expression, server outcome) string {
	text := fmt.Sprint(c.expr)
	arithmetic := strings.Contains(text, "$dateAdd") || strings.Contains(text, "$dateSubtract")
	reading := strings.Contains(text, "$dateFromString") || strings.Contains(text, "$toDate") || strings.Contains(text, "$convert")
	switch {
	case strings.Contains(text, "$pow") && isInexact(c.expr) && server.code == c.code:
		return "the last digits of functions, computed on with"
	case strings.Contains(text, "$round") && server.code == 0 && c.code == 0:
		return "a server rounds integers of 32 bits to what does not fit"
	case c.code == 51108 && strings.Contains(text, "$regex"):
		return "a server takes the option x of regular expressions"
	case reading && c.code == 241 && server.code != 241:
		return "a server reads more forms of dates"
	case arithmetic && aSecondApart(server, c.outcome):
		return "a server loses a second of a date before 1970 with a fraction of a second"
	case arithmetic && (hasOldFraction(c.expr, c.docs, c.values) || strings.Contains(text, "$dateFromParts")):
		return "a server loses a second of a date before 1970 with a fraction of a second"
	case strings.Contains(text, "$sortArray") && server.code == 0 && (equalElements(server, c.outcome) || anyOrder(server, c.outcome, 17)):
		return "which of equal elements comes first"
	case strings.Contains(text, "$zip") && strings.Contains(text, "defaults") && server.code == 0 && anyOrder(server, c.outcome, 2):
		return "a server sorts by the hole in a list where a default of $zip is missing"
	case strings.Contains(text, "$replaceAll"):
		return "a server replaces an empty text between the bytes of a character, too"
	case strings.Count(text, "etField") > 1 && strings.Contains(text, "$setField") && server.code == 0 && sortedNames(server, c.outcome):
		return "a server remembers where a field was that it has removed before"
	}
	return ""
}

// aSecondApart says whether values are dates that differ by a second, or equal.
func aSecondApart(a, b outcome) bool {
	return slices.EqualFunc(a.values, b.values, func(x, y bson.RawValue) bool {
		return x.Equal(y) || x.Type == bson.TypeDateTime && y.Type == bson.TypeDateTime && x.DateTime()-y.DateTime() == -1000
	})
}

// equalElements says whether values are equal, with equal elements in their places.
func equalElements(a, b outcome) bool {
	return slices.EqualFunc(a.values, b.values, func(x, y bson.RawValue) bool { return document.Compare(x, y) == 0 })
}

// anyOrder says whether values are equal but for the order of lists of so many elements: a server does not keep that of
// equal ones where there are more than 16.
func anyOrder(a, b outcome, least int) bool {
	return slices.EqualFunc(a.values, b.values, func(x, y bson.RawValue) bool {
		return x.Type == y.Type && bytes.Equal(canonical(x, least), canonical(y, least))
	})
}

// sortedNames says whether values are equal but for the order of fields.
func sortedNames(a, b outcome) bool {
	return slices.EqualFunc(a.values, b.values, func(x, y bson.RawValue) bool {
		return x.Type == y.Type && bytes.Equal(canonical(x, 0), canonical(y, 0))
	})
}

// canonical writes a value with its lists of at least so many elements in an order of their own; 0: with its fields.
func canonical(v bson.RawValue, least int) []byte {
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return append([]byte{byte(v.Type)}, v.Value...)
	}
	var parts [][]byte
	for it := document.NewIter(v.Value); it.Next(); {
		part := canonical(it.Value(), least)
		if v.Type == bson.TypeEmbeddedDocument {
			part = append(append(slices.Clone(it.Key()), 0), part...)
		}
		parts = append(parts, part)
	}
	if least > 0 && v.Type == bson.TypeArray && len(parts) >= least || least == 0 && v.Type == bson.TypeEmbeddedDocument {
		slices.SortFunc(parts, bytes.Compare)
	}
	return append([]byte{byte(v.Type)}, bytes.Join(parts, []byte{0})...)
}

// describe writes a case without what it does not use: the fields of the first document whose values differ.
func describe(c *expression, got outcome) string {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: c.expr}}, true, false)
	if err != nil {
		return fmt.Sprintf("%v %v", c.expr, c.docs)
	}
	docs := c.docs
	for i := range min(len(got.values), len(c.values)) {
		if !got.values[i].Equal(c.values[i]) {
			docs = c.docs[i : i+1]
			break
		}
	}
	used := bson.A{}
	for _, d := range docs {
		fields := bson.D{}
		for _, e := range d {
			if strings.Contains(string(text), "$"+e.Key) {
				fields = append(fields, e)
			}
		}
		used = append(used, fields)
	}
	data, err := bson.MarshalExtJSON(bson.D{{Key: "docs", Value: used}}, true, false)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text) + " @@ " + string(data)
}

// hasOldFraction says whether there is a date before 1970, which may come to have a fraction of a second.
func hasOldFraction(values ...any) bool {
	for _, v := range values {
		found := false
		switch v := v.(type) {
		case bson.DateTime:
			found = v < 0
		case bson.ObjectID:
			found = v[0] >= 0x80
		case bson.D:
			for _, e := range v {
				found = found || hasOldFraction(e.Value)
			}
		case bson.A:
			found = hasOldFraction([]any(v)...)
		case []bson.D:
			for _, d := range v {
				found = found || hasOldFraction(d)
			}
		case []bson.RawValue:
			for _, item := range v {
				found = found || item.Type == bson.TypeDateTime && item.DateTime() < 0
			}
		}
		if found {
			return true
		}
	}
	return false
}

// TestEdgesAsServer asks a server what random expressions seldom do.
func TestEdgesAsServer(t *testing.T) {
	t.Parallel()
	last, first := `{"$date":{"$numberLong":"9223372036854775807"}}`, `{"$date":{"$numberLong":"-9223372036854775808"}}`
	var all []string
	for _, s := range []string{"0X10", "-0X10", "+0X1p3", "-0x10", "0x10", "0X", "0X1.8", "0X.8P-1", "0Xp1", "0X1p", "0X1p5000", "0X1p-5000", "0XG", "0X1e5", "0X1_0", "1e400", "1e-400", "0e5", "0X0p9", "+-1", "--0X1", "+", "INF", "nan"} {
		for _, to := range []string{"$toDouble", "$toInt", "$toLong", "$toDecimal"} {
			all = append(all, fmt.Sprintf(`{%q:%q}`, to, s))
		}
	}
	for _, n := range []string{"0.25", "0.49", "0.5", "0.51", "1.0", "-0.5", "-0.75"} {
		all = append(all, fmt.Sprintf(`{"$add":[%s,%s]}`, last, n), fmt.Sprintf(`{"$add":[%s,%s]}`, n, last))
		if n != "-0.5" { // of which a server makes the last date
			all = append(all, fmt.Sprintf(`{"$add":[%s,%s]}`, first, n))
		}
	}
	for _, amount := range []string{"-9223372036854775808", "-9223372036854775807", "9223372036854775807"} {
		for _, date := range []string{first, `{"$date":{"$numberLong":"-1000"}}`, `{"$date":{"$numberLong":"1000"}}`, last} {
			for _, unit := range []string{"millisecond", "second", "day", "year"} {
				all = append(all, fmt.Sprintf(`{"$dateAdd":{"startDate":%s,"unit":%q,"amount":{"$numberLong":%q}}}`, date, unit, amount),
					fmt.Sprintf(`{"$dateSubtract":{"startDate":%s,"unit":%q,"amount":{"$numberLong":%q}}}`, date, unit, amount))
			}
		}
	}
	server, docs := mongotest.Dial(t), []bson.D{{}}
	for _, text := range all {
		got, raw := here(t, parse(t, text), docs)
		if want := there(t, server.RunAll(t, "expressions", []bson.D{aggregate(raw, docs)})[0]); agree(want, got, false) != same {
			t.Errorf("%s\n  server: %s\n  here:   %s", text, want, got)
		}
	}
}
