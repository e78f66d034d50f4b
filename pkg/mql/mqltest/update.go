package mqltest

import (
	"math/rand/v2"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
)

// Update makes an update and its array filters, in the form that mql.CompileUpdate takes. Many can't be applied to
// many documents of Doc, and a few don't compile.
func Update(r *rand.Rand) (doc bson.D, arrayFilters []bson.D) {
	for {
		doc, arrayFilters = update(r)
		if movesElement(doc) {
			continue
		}
		if _, err := mql.CompileUpdate(doc, arrayFilters); err == nil || r.IntN(8) == 0 {
			return doc, arrayFilters
		}
	}
}

// movesElement says whether there is a $rename of an element beside other changes: a MongoDB server sees the nulls that
// those may have put there.
func movesElement(doc bson.D) bool {
	for _, e := range doc {
		fields, _ := e.Value.(bson.D)
		for _, f := range fields {
			if e.Key == "$rename" && strings.ContainsAny(f.Key, "0123456789") && len(doc)+len(fields) > 2 {
				return true
			}
		}
	}
	return false
}

func update(r *rand.Rand) (doc bson.D, arrayFilters []bson.D) {
	g := updates{Rand: r}
	for range 1 + r.IntN(2)*r.IntN(3) {
		g.add(pick(r, operatorNames()))
	}
	for _, name := range []string{"x", "y"} {
		if g.used[name[0]] {
			arrayFilters = append(arrayFilters, arrayFilter(r, name))
		}
	}
	return g.doc, arrayFilters
}

func operatorNames() []string {
	return []string{
		"$set", "$set", "$set", "$unset", "$setOnInsert", "$inc", "$inc", "$mul", "$min", "$max", "$rename", "$currentDate", "$bit",
		"$push", "$push", "$push", "$addToSet", "$addToSet", "$pull", "$pull", "$pullAll", "$pop",
	}
}

// updates collects the operators of one update.
type updates struct {
	*rand.Rand
	doc  bson.D
	used [128]bool // names of array filters
}

// add gives an operator one or two paths, beside those that it has.
func (g *updates) add(name string) {
	fields := bson.D{}
	at := len(g.doc)
	for i, e := range g.doc {
		if e.Key == name {
			fields, at = e.Value.(bson.D), i //nolint:errcheck // made below
		}
	}
	if at == len(g.doc) {
		g.doc = append(g.doc, bson.E{Key: name})
	}
	for range 1 + g.IntN(2) {
		path := g.path()
		if name == "$rename" {
			path = fieldPath(g.Rand)
		}
		if !hasKey(fields, path) {
			fields = append(fields, bson.E{Key: path, Value: g.operand(name)})
		}
	}
	g.doc[at].Value = fields
}

func hasKey(d bson.D, key string) bool {
	for _, e := range d {
		if e.Key == key {
			return true
		}
	}
	return false
}

// path is mostly that of a field from Doc, sometimes of a new one or with positions.
func (g *updates) path() string {
	switch g.IntN(8) {
	case 0:
		return pick(g.Rand, []string{"d", "e", "f.9", "f.10", "f.b", "f.1", "a.d", "a.2", "a.3", "b.4.c", "_id", "_id.x", "a.10", "a.9"})
	case 1:
		path := pick(g.Rand, []string{"a.$[]", "a.$[x]", "a.$[x].b", "a.$[y].c", "a.$[].c", "b.$[x]", "a.b.$[]", "a.$[x].$[y]", "c.$[].b.$[y]", "a.$[y]"})
		for _, name := range []string{"x", "y"} {
			if strings.Contains(path, "["+name+"]") {
				g.used[name[0]] = true
			}
		}
		return path
	case 2:
		return pick(g.Rand, []string{"a.$", "a.$.b", "b.$", "a.b.$", "d.$", "a.$.c.0"})
	default:
		return fieldPath(g.Rand)
	}
}

func fieldPath(r *rand.Rand) string {
	for {
		if path := Path(r); path != "a.00" { // beside a.0 it does not compile
			return path
		}
	}
}

func arrayFilter(r *rand.Rand, name string) bson.D {
	path := name + pick(r, []string{"", "", ".b", ".c", ".0"})
	if r.IntN(6) == 0 {
		return bson.D{{Key: pick(r, []string{"$or", "$nor", "$and"}), Value: bson.A{
			bson.D{{Key: path, Value: operators(r, 1)}}, bson.D{{Key: name, Value: constant(r)}},
		}}}
	}
	if r.IntN(3) == 0 {
		return bson.D{{Key: path, Value: constant(r)}}
	}
	return bson.D{{Key: path, Value: operators(r, 1)}}
}

func (g *updates) operand(name string) any {
	r := g.Rand
	switch name {
	case "$inc", "$mul":
		return number(r)
	case "$rename":
		return pick(r, []string{"d", "e", "a", "b", "c", "a.b", "a.d", "b.c", "e.f", "_id", "a.0"})
	case "$currentDate":
		return pick(r, []any{true, bson.D{{Key: "$type", Value: "date"}}})
	case "$bit":
		return bson.D{{Key: pick(r, []string{"and", "or", "xor"}), Value: pick(r, []any{int32(1), int64(2), int32(-4)})}}
	case "$push":
		return push(r)
	case "$addToSet":
		if r.IntN(2) == 0 {
			return Value(r, 2)
		}
		return bson.D{{Key: "$each", Value: list(r)}}
	case "$pull":
		return pull(r)
	case "$pullAll":
		return list(r)
	case "$pop":
		return pick(r, []any{int32(1), int64(-1), 1.0})
	default:
		return Value(r, 2)
	}
}

func number(r *rand.Rand) any {
	for {
		switch v := Scalar(r).(type) {
		case int32, int64, float64, bson.Decimal128:
			return v
		}
	}
}

func list(r *rand.Rand) bson.A {
	values := make(bson.A, r.IntN(4))
	for i := range values {
		values[i] = Value(r, 2)
	}
	return values
}

func push(r *rand.Rand) any {
	if r.IntN(3) == 0 {
		return Value(r, 2)
	}
	d := bson.D{{Key: "$each", Value: list(r)}}
	if r.IntN(2) == 0 {
		d = append(d, bson.E{Key: "$position", Value: pick(r, []any{int32(0), int64(1), -1.0, int32(-2), int32(9), int32(-9)})})
	}
	if r.IntN(2) == 0 {
		d = append(d, bson.E{Key: "$slice", Value: pick(r, []any{int32(0), int64(1), -1.0, int32(-2), int32(2), int32(9)})})
	}
	if r.IntN(2) == 0 {
		d = append(d, bson.E{Key: "$sort", Value: pick(r, []any{
			int32(1), int64(-1), bson.D{{Key: "b", Value: 1.0}}, bson.D{{Key: "b", Value: int32(-1)}, {Key: "c.0", Value: int32(1)}},
		})})
	}
	r.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	return d
}

func pull(r *rand.Rand) any {
	switch r.IntN(4) {
	case 0:
		return Value(r, 2)
	case 1:
		return elemMatch(r, 1)
	case 2:
		return bson.Regex{Pattern: Pattern(r), Options: options(r)}
	default:
		return operators(r, 1)
	}
}

// Upsert makes a filter that mostly says what some fields are equal to.
func Upsert(r *rand.Rand) bson.D {
	doc := bson.D{}
	for range r.IntN(4) {
		e := bson.E{Key: Path(r), Value: constant(r)}
		switch r.IntN(8) {
		case 0:
			e.Value = bson.D{{Key: "$in", Value: values(r)}}
		case 1:
			e.Value = bson.D{{Key: "$all", Value: values(r)}}
		case 2:
			e = bson.E{Key: "$or", Value: bson.A{bson.D{e}}}
		case 3:
			e = bson.E{Key: "$and", Value: bson.A{bson.D{e}, filter(r, 1)}}
		case 4:
			e = condition(r, 1)
		case 5:
			e.Value = bson.D{{Key: "$eq", Value: e.Value}}
		}
		doc = append(doc, e)
	}
	return doc
}
