package records_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

var secretive = collections(`
name: items
meta: {i18n: {languages: [en, de, fr]}}
fields:
  - {name: n, type: number, index: [single]}
  - {name: name, type: string}
  - {name: on, type: boolean}
  - {name: tags, type: "string[]"}
  - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number, hidden: true}]}
  - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: number}]}
  - {name: data, type: any}
  - {name: secret, type: string, hidden: true, index: [single]}
  - {name: rank, type: any, index: [single], hidden: {eval: "!ctx.user || !ctx.user.isAdmin"}}
  - {name: mood, type: any, index: [single], hidden: {eval: "ctx.doc.name !== 'a'"}, readonly: {eval: "!ctx.doc.on"}}
  - {name: ref, type: string, meta: {foreign: {collection: items}}}
  - {name: who, type: "string[]", meta: {foreign: {collection: people, key: code}}}
  - {name: pin, type: string, meta: {foreign: {collection: people, key: secret}}}
hiddenFields: [data.k]
indexes: [{name: german, key: [_i18n.de.secret]}, {name: both, key: [on, -n]}, {name: cost, key: [parts.cost]}]
projections: {card: {select: {name: 1, secret: 1}}, rest: {select: {parts: 0}}}
queryLimits: {allowAggregate: true, maxTime: 1m}
permissions:
  public:
    methods: {get: {aggregate: true, lookup: true}}
    filter: {type: javascript, file: public.js}
    hiddenFields: [parts.cost, updatedBy]
  user:
    methods: {get: {aggregate: true, lookup: true}, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}
    filter: {$or: [{on: true}, {createdBy: {$var: user.id}}]}
    hiddenFields: [parts.cost]
`, `
name: people
fields:
  - {name: code, type: string, index: [single]}
  - {name: name, type: string}
  - {name: on, type: boolean}
  - {name: secret, type: any, hidden: true}
  - {name: mood, type: any, hidden: {eval: "ctx.doc.name !== 'a'"}}
  - {name: friend, type: string, meta: {foreign: {collection: people, key: code}}}
permissions:
  public: {methods: {get: true}, filter: {on: true}}
  user: {methods: {get: true}, filter: {on: true}}
`)

// scriptFiles are the scripts of configs that name them.
var scriptFiles = map[string]string{"public.js": "module.exports = (ctx) => ({on: ctx.method === 'GET'})"}

// twin is a pair of worlds that look alike to those who may not see everything.
type twin struct {
	worlds [2]*world
	ids    []string
}

// populate fills both worlds with the same visible records, but with other values in hidden fields, and with other
// records beyond the callers' reach.
func (w *twin) populate(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	for i := range 40 {
		id := bson.ObjectID{0: 1, 10: byte(rnd.IntN(256)), 11: byte(i)}
		w.ids = append(w.ids, id.Hex())
		visible := func() (int, string, int, bool) {
			return rnd.IntN(8), string(rune('a' + rnd.IntN(5))), rnd.IntN(4), rnd.IntN(5) == 0
		}
		n, name, parts, own := visible()
		ref, who := bson.ObjectID{0: 1, 10: byte(rnd.IntN(256)), 11: byte(rnd.IntN(120))}, bson.A{codes[rnd.IntN(len(codes))], codes[rnd.IntN(len(codes))]}
		if i > 0 && rnd.IntN(2) == 0 {
			ref, _ = bson.ObjectIDFromHex(w.ids[rnd.IntN(i)])
		}
		for _, world := range w.worlds {
			d := bson.D{{Key: "_id", Value: id}}
			if n > 0 {
				d = append(d, bson.E{Key: "n", Value: int64(n)})
			}
			by := bob.Hex()
			if own {
				by = alice.Hex()
			}
			d = append(d, bson.E{Key: "name", Value: name}, bson.E{Key: "on", Value: !own}, bson.E{Key: "tags", Value: bson.A{name, "t"}},
				bson.E{Key: "seo", Value: secretMember(rnd, "score", bson.D{{Key: "title", Value: name}})})
			var list bson.A
			for p := range parts {
				list = append(list, secretMember(rnd, "cost", bson.D{{Key: "sku", Value: string(rune('a' + p))}}))
			}
			d = append(d, bson.E{Key: "parts", Value: list}, bson.E{Key: "data", Value: secretMember(rnd, "k", bson.D{{Key: "x", Value: int64(parts)}})})
			d = secretMember(rnd, "rank", secretMember(rnd, "secret", d))
			if name == "a" { // only then it is seen
				d = append(d, bson.E{Key: "mood", Value: int64(parts)})
			} else {
				d = secretMember(rnd, "mood", d)
			}
			d = append(d, bson.E{Key: "ref", Value: ref}, bson.E{Key: "who", Value: who}, bson.E{Key: "pin", Value: name})
			d = append(d, translations(rnd, name, parts)...)
			d = append(d, bson.E{Key: "createdBy", Value: by}, bson.E{Key: "updatedBy", Value: by}, bson.E{Key: "_rev", Value: int64(1)})
			world.putDoc(d)
		}
	}
	w.populatePeople(rnd)
	for i, world := range w.worlds {
		for j := range 5 + 20*i {
			world.putDoc(bson.D{
				{Key: "_id", Value: bson.ObjectID{0: 1, 9: byte(i), 10: byte(rnd.IntN(256)), 11: byte(100 + j)}},
				{Key: "n", Value: int64(rnd.IntN(8))},
				{Key: "on", Value: false},
				{Key: "name", Value: "unseen"},
				{Key: "parts", Value: bson.A{bson.A{int64(1)}}},
				{Key: "createdBy", Value: bob.Hex()},
				{Key: "_rev", Value: int64(9)},
			})
		}
	}
}

// codes are what items call people by. Some are of people in one world only, whom the callers can't read.
var codes = []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}

// populatePeople fills both worlds with the same people that callers may read, and with others.
func (w *twin) populatePeople(rnd *rand.Rand) {
	for i, code := range codes[:6] {
		name, friend := string(rune('a'+rnd.IntN(3))), codes[rnd.IntN(len(codes))]
		for _, world := range w.worlds {
			d := secretMember(rnd, "secret", bson.D{{Key: "_id", Value: bson.ObjectID{0: 2, 11: byte(i)}}, {Key: "code", Value: code}, {Key: "name", Value: name}})
			if name == "a" {
				d = append(d, bson.E{Key: "mood", Value: int64(i)})
			} else {
				d = secretMember(rnd, "mood", d)
			}
			world.putPerson(append(d, bson.E{Key: "on", Value: true}, bson.E{Key: "friend", Value: friend}, bson.E{Key: "_rev", Value: int64(1)}))
		}
	}
	for _, world := range w.worlds {
		for i, code := range codes[6:] {
			if rnd.IntN(2) == 0 {
				d := bson.D{{Key: "_id", Value: bson.ObjectID{0: 2, 10: byte(rnd.IntN(256)), 11: byte(10 + i)}}, {Key: "code", Value: code}, {Key: "name", Value: "a"}, {Key: "on", Value: false}}
				world.putPerson(secretMember(rnd, "secret", d))
			}
		}
	}
}

func (w *world) putPerson(d bson.D) {
	w.t.Helper()
	raw, err := document.Marshal(d)
	if err != nil {
		w.t.Fatal(err)
	}
	w.insert("people", []store.Op{{Kind: store.Insert, Doc: raw}})
}

// translations are those of a record: the same to look at, with other secrets, which may be all that there is.
func translations(rnd *rand.Rand, name string, parts int) bson.D {
	all := bson.D{}
	for i, lang := range []string{"de", "fr"} {
		own := secretMember(rnd, "rank", secretMember(rnd, "secret", bson.D{}))
		if (parts+i)%2 == 0 {
			own = append(own, bson.E{Key: "name", Value: lang + name},
				bson.E{Key: "parts", Value: bson.A{secretMember(rnd, "cost", bson.D{{Key: "sku", Value: name}})}})
		}
		if (parts+i)%4 == 0 {
			own = append(own, bson.E{Key: "seo", Value: secretMember(rnd, "score", bson.D{{Key: "title", Value: lang}})})
		}
		if name != "a" { // where it is seen
			own = secretMember(rnd, "mood", own)
		}
		if len(own) > 0 {
			all = append(all, bson.E{Key: lang, Value: own})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return bson.D{{Key: "_i18n", Value: all}}
}

// secretMember puts a member into d, now and then, with any value.
func secretMember(rnd *rand.Rand, name string, d bson.D) bson.D {
	values := []any{int64(rnd.IntN(3)), "s", nil, bson.A{int64(1), "x"}, bson.D{{Key: "y", Value: int64(1)}}, true}
	if rnd.IntN(4) == 0 {
		return d
	}
	return append(d, bson.E{Key: name, Value: values[rnd.IntN(len(values))]})
}

func (w *world) putDoc(d bson.D) {
	w.t.Helper()
	raw, err := document.Marshal(d)
	if err != nil {
		w.t.Fatal(err)
	}
	w.putRaw(raw)
}

// request is one call that callers could make: it gives all that they are told.
type request func(w *world, c *records.Call) string

// generator makes random requests.
type generator struct {
	*rand.Rand
	t   *testing.T
	ids []string

	last bson.D // the filter of the last request, for messages
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) path() string {
	return pick(g, "n", "name", "on", "tags", "seo", "seo.title", "seo.score", "parts", "parts.sku", "parts.cost", "parts.0.cost",
		"ref", "ref.name", "ref.n", "ref.secret", "ref.seo.score", "ref.parts.cost", "ref.mood", "ref.ref.n", "ref.who.name", "who", "who.name", "who.0.name",
		"who.secret", "who.mood", "who.friend.name", "who.friend.secret", "pin", "pin.name", "friend",
		"_i18n", "_i18n.de", "_i18n.de.name", "_i18n.de.secret", "_i18n.de.parts.cost", "_i18n.de.seo", "_i18n.fr.seo.score", "_i18n.fr.rank", "_i18n.de.nope", "_i18n.it.name",
		"ref._i18n", "ref._i18n.de", "ref._i18n.de.name", "ref._i18n.de.secret", "ref._i18n.fr.rank",
		"parts.0", "data", "data.x", "data.k", "data.k.y", "secret", "secret.0", "rank", "mood", "mood.y", "nope", "id", "createdBy", "updatedBy", "_rev", "updatedAt", "tags.1")
}

func (g *generator) value() any {
	return pick[any](g, int64(0), int64(1), int64(3), "a", "s", "t", nil, true, false, bson.A{}, bson.A{int64(1), "x"},
		bson.D{{Key: "title", Value: "a"}}, bson.D{{Key: "title", Value: "a"}, {Key: "score", Value: int64(1)}}, g.ids[0], alice.Hex(), 1.5)
}

func (g *generator) condition(depth int) any {
	switch g.IntN(8) {
	case 0:
		return g.value()
	case 1:
		return bson.D{{Key: pick(g, "$in", "$nin", "$all"), Value: bson.A{g.value(), g.value()}}}
	case 2:
		return bson.D{{Key: "$exists", Value: g.IntN(2) == 0}}
	case 3:
		return bson.D{{Key: "$not", Value: bson.D{{Key: "$gt", Value: g.value()}}}}
	case 4:
		return bson.D{{Key: pick(g, "$size", "$type"), Value: int64(g.IntN(5))}}
	case 5:
		if depth > 0 {
			return bson.D{{Key: "$elemMatch", Value: pick(g, g.filter(depth-1), bson.D{{Key: pick(g, "cost", "sku"), Value: g.value()}})}}
		}
		return bson.D{{Key: "$regex", Value: "^" + pick(g, "a", "s", "t")}}
	default:
		return bson.D{{Key: pick(g, "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"), Value: g.value()}}
	}
}

func (g *generator) filter(depth int) bson.D {
	d := bson.D{}
	for range g.IntN(3) {
		if depth > 0 && g.IntN(4) == 0 {
			d = append(d, bson.E{Key: pick(g, "$and", "$or", "$nor"), Value: bson.A{g.filter(depth - 1), g.filter(depth - 1)}})
			continue
		}
		path := g.path()
		if _, ok := member(d, path); !ok {
			d = append(d, bson.E{Key: path, Value: g.condition(depth)})
		}
	}
	return d
}

func member(d bson.D, name string) (any, bool) {
	for _, e := range d {
		if e.Key == name {
			return e.Value, true
		}
	}
	return nil, false
}

func (g *generator) paths(sign string) string {
	var out []string
	for range g.IntN(3) {
		out = append(out, pick(g, "", sign)+g.path())
	}
	return strings.Join(out, ",")
}

// lookup gives a lookup in one of its forms.
func (g *generator) lookup() string {
	switch g.IntN(6) {
	case 0, 1:
		return ""
	case 2, 3:
		return pick(g, "ref", "who", "ref,who", "ref.who", "ref.ref", "who.friend", "pin", "secret", "nope", "ref.secret", "name", "ref,ref.who")
	}
	d := bson.D{
		{Key: "localField", Value: pick(g, "ref", "who", "name", "n", "id", "secret", "mood", "seo", "parts.sku", "pin", g.path())},
		{Key: "from", Value: pick(g, "items", "people", "nope")},
		{Key: "foreignField", Value: pick(g, "id", "code", "ref", "who", "n", "name", "secret", "mood", "seo", g.path())},
		{Key: "as", Value: pick(g, "x", "secret", "ref", "nope", "rank")},
	}
	if g.IntN(2) == 0 {
		d = append(d, bson.E{Key: "filter", Value: g.filter(1)})
	}
	if g.IntN(3) == 0 {
		d = append(d, bson.E{Key: "sort", Value: pick(g, "", "-") + g.path()})
	}
	if g.IntN(3) == 0 {
		d = append(d, bson.E{Key: "select", Value: g.path()})
	}
	if g.IntN(3) == 0 {
		d = append(d, bson.E{Key: "limit", Value: int64(1 + g.IntN(3))})
	}
	if g.IntN(4) == 0 {
		d = append(d, bson.E{Key: "lookup", Value: pick(g, "ref", "who", "friend", "secret")})
	}
	raw, err := document.Marshal(d)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(document.AppendJSON(nil, raw, nil))
}

func (g *generator) request() request {
	where := query.Where{Filter: g.filter(2)}
	g.last = where.Filter
	id := pick(g, g.ids...)
	body := pick(g, `{"name": "z"}`, `{"n": 3}`, `{"secret": "x"}`, `{"seo": null}`, `{"seo": {"title": "q"}}`, `{"parts": []}`,
		`{"parts": [{"sku": "b"}, {"sku": "a"}]}`, `{"parts": [{"cost": 1}]}`, `{"data": {"k": 1}}`, `{"data": {"x": 5}}`, `{"on": false}`, `{"on": "x"}`, `{"mood": 3}`, `{"rank": null}`,
		`{"_i18n": null}`, `{"_i18n": {"de": null}}`, `{"_i18n": {"de": {"name": "x"}}}`, `{"_i18n": {"de": {"secret": "x"}}}`, `{"_i18n": {"fr": {"parts": [{"sku": "a"}]}}}`, `{"name": "z", "seo": {"title": "a"}}`)
	switch g.IntN(16) {
	case 12, 13, 14:
		return g.aggregateRequest(where)
	case 0:
		sel, join := g.paths("-"), g.lookup()
		return func(w *world, c *records.Call) string {
			rec, err := w.service.Get(g.t.Context(), c, id, records.GetParams{Select: sel, Lookup: join})
			return answer(&rec, err)
		}
	case 1:
		return func(w *world, c *records.Call) string {
			n, err := w.service.Count(g.t.Context(), c, where)
			return fmt.Sprint(n, show(err))
		}
	case 2:
		ch := records.Change{Mode: pick(g, records.Merge, records.Overwrite), Body: doc(g.t, body), IfRev: pick(g, nil, []int64{1}, []int64{7, 2})}
		if g.IntN(3) == 0 {
			ch = records.Change{Mode: records.JSONPatch, Patch: []byte(fmt.Sprintf(`[{"op": %q, "path": "/%s", "value": %s}]`,
				pick(g, "test", "add", "replace"), strings.ReplaceAll(g.path(), ".", "/"), pick(g, `"s"`, `1`, `{"x": 1}`)))}
		}
		return func(w *world, c *records.Call) string {
			res, err := w.service.Update(g.t.Context(), c, id, ch)
			return answer(res.Record, err)
		}
	case 3:
		if g.IntN(10) > 0 { // few records are lost
			where.Filter = append(where.Filter, bson.E{Key: "_rev", Value: bson.D{{Key: "$gt", Value: int64(3)}}})
		}
		return func(w *world, c *records.Call) string {
			res, err := w.service.BulkDelete(g.t.Context(), c, where)
			return bulkAnswer(res, err)
		}
	case 4:
		return func(w *world, c *records.Call) string {
			res, err := w.service.BulkUpdate(g.t.Context(), c, where, doc(g.t, body))
			return bulkAnswer(res, err)
		}
	default:
		limit := int64(pick(g, 0, 1, 3, 10, 100))
		p := query.Params{
			Where: where, Sort: g.paths("-"), Select: g.paths(""), Lookup: g.lookup(), Count: g.IntN(2) == 0, Limit: &limit, Offset: int64(pick(g, 0, 0, 5)),
		}
		if g.IntN(4) == 0 {
			p.Select, p.Projection = "", pick(g, "card", "rest", "none")
		}
		return func(w *world, c *records.Call) string { return pages(w, c, p) }
	}
}

// pages is a list and the page that follows it.
func pages(w *world, c *records.Call, p query.Params) string {
	var out strings.Builder
	for range 2 {
		page, err := w.service.List(w.t.Context(), c, p)
		if err != nil {
			return out.String() + show(err)
		}
		fmt.Fprintln(&out, page.Limit, page.Offset, page.HasMore, page.Next, page.Total)
		for i := range page.Items {
			fmt.Fprintln(&out, answer(&page.Items[i], nil))
		}
		if p.After = page.Next; p.After == "" {
			break
		}
	}
	return out.String()
}

func answer(rec *records.Record, err error) string {
	switch {
	case err != nil:
		fields, _ := json.Marshal(errsFields(err)) //nolint:errchkjson // strings only
		return show(err) + string(fields)
	case rec == nil:
		return "not readable"
	}
	return fmt.Sprintf("%s %d", rec.AppendJSON(nil), rec.Rev())
}

func bulkAnswer(res records.BulkResult, err error) string {
	if err != nil {
		return answer(nil, err)
	}
	var out strings.Builder
	fmt.Fprint(&out, res.Matched)
	for _, it := range res.Items {
		out.WriteString(" " + it.ID + " " + show(it.Err))
	}
	return out.String()
}

// effort is how many requests to try, and with which random ones. Who runs a test sets both.
func effort() (n int, seed uint64) {
	n, seed = 2000, uint64(time.Now().UnixNano())
	if v, err := strconv.Atoi(os.Getenv("SOAK")); err == nil {
		n = 500 * v
	}
	if v, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = v
	}
	return n, seed
}

// What callers may not see makes no difference to any answer.
func TestNonInterference(t *testing.T) {
	n, seed := effort()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		if s.Name() == "mongodb" {
			n = max(n/10, 200)
		}
		t.Logf("%d requests, SEED=%d", n, seed)
		rnd := rand.New(rand.NewPCG(seed, 1))
		g := &generator{Rand: rnd, t: t}
		var pair *twin
		compared, refused := 0, 0
		for i := range n {
			if i%500 == 0 { // what writes have used up comes back
				pair = &twin{worlds: [2]*world{newWorld(t, s, secretive), newWorld(t, s, secretive)}}
				pair.populate(t, rnd)
				g.ids = slices.Concat(pair.ids, []string{bson.ObjectID{0: 1, 11: 200}.Hex(), "zz"})
			}
			ask, who, lang := g.request(), pick(g, "public", "alice"), pick(g, "", "", "en", "de", "fr", "it")
			var answers [2]string
			for i, w := range pair.worlds {
				c := w.call(who)
				c.Lang = lang
				answers[i] = ask(w, c)
			}
			a, b := answers[0], answers[1]
			if a != b {
				t.Fatalf("SEED=%d, request %d as %s, lang=%s:\n%s\n\n%s\nfilter %v", seed, i, who, lang, a, b, g.last)
			}
			if compared++; strings.Contains(a, "unknown_field") || strings.Contains(a, "not_comparable") {
				refused++
			}
			if strings.Contains(a, "internal error") {
				t.Fatalf("SEED=%d, request %d as %s: %s\nfilter %v", seed, i, who, a, g.last)
			}
		}
		if refused == 0 || refused > compared*9/10 {
			t.Errorf("of %d requests %d named what is hidden: the generator is of no use", compared, refused)
		}
	})
}
