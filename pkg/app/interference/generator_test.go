package interference_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// generator makes random requests of a caller.
type generator struct {
	*rand.Rand
	t      *testing.T
	caller *caller
	ids    ids
	fresh  int // how many records the caller has made
	keys   int // how many Idempotency-Keys they have sent

	logged bool // changes are
	bold   bool // the request may name what is not there for the caller
	people bool // paths are of people
}

// ids are those that requests name: of records that the caller sees, that they don't see, and that are not there.
type ids struct{ seen, unseen, missing []string }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// one says yes one time in n.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

var (
	plainPaths = []string{
		"n", "name", "on", "state", "org", "slug", "seo.title", "parts.sku", "top", "level", "pic.path", "pic.size", "pic.src", "ref", "who", "boss", "peer", "data.x", "_i18n.de.name", "_i18n.fr.parts.sku", "id", "createdBy", "_rev", "createdAt", "updatedAt",
	}
	relationPaths = []string{"ref.name", "ref.n", "ref.seo.title", "ref.ref.n", "ref.who.name", "who.name", "who.code", "who.friend.name", "boss.name", "peer.n", "ref._i18n.de.name"}
	// riskyPaths are hidden from some or all callers, or from some on some records; or have such inside, or are no fields.
	riskyPaths = []string{
		"tags", "tags.1", "note", "updatedBy", "seo", "seo.score", "parts", "parts.cost", "parts.0.cost", "parts.0", "data", "data.k", "data.k.y", "secret", "secret.0", "floor", "rank", "mood", "mood.y",
		"ref.secret", "ref.seo.score", "ref.parts.cost", "ref.mood", "ref.note", "ref.tags", "who.0.name", "who.secret", "who.mood", "who.friend.secret", "pin", "pin.name", "vibe", "vibe.name", "boss.secret", "friend",
		"_i18n", "_i18n.de", "_i18n.de.secret", "_i18n.de.parts.cost", "_i18n.de.seo", "_i18n.fr.seo.score", "_i18n.fr.rank", "_i18n.de.nope", "_i18n.it.name",
		"ref._i18n", "ref._i18n.de", "ref._i18n.de.secret", "ref._i18n.fr.rank", "pic", "pic.hash", "shot", "shot.path", "proof", "proof.hash", "proof.src", "ref.proof.hash", "nope", "password", "orgId", "createdBy.name",
	}
	peoplePaths      = []string{"code", "name", "on", "id", "friend", "friend.name"}
	riskyPeoplePaths = []string{"secret", "secret.y", "mood", "friend.secret", "friend.mood", "nope"}
)

// path is a path of a field; through relations only where they can be followed.
func (g *generator) path() string { return g.somePath(!g.caller.mute) }

// field is a path that stays in the collection.
func (g *generator) field() string { return g.somePath(false) }

func (g *generator) somePath(through bool) string {
	plain, risky := plainPaths, riskyPaths
	if g.people {
		plain, risky = peoplePaths, riskyPeoplePaths
	}
	switch {
	case g.bold && g.one(2):
		return pick(g, risky...)
	case through && !g.people && g.one(4):
		return pick(g, relationPaths...)
	}
	for {
		p := pick(g, plain...)
		if !g.people && g.one(6) {
			p = pick(g, "tags", "note", "parts.cost", "updatedBy", "slug")
		}
		if !slices.Contains(g.caller.hidden, p) && (through || p != "friend.name") {
			return p
		}
	}
}

func (g *generator) value() any {
	return pick[any](g, 0, 1, 3, 5, "a", "b", "s", "t", nil, true, false, bson.A{}, bson.A{1, "x"}, bson.D{{Key: "title", Value: "a"}},
		bson.D{{Key: "y", Value: 1}}, g.id(), alice.Hex(), homeOrg, farOrg, 1.5, "u0", "v0", oneSidedSlug, pick(g, codes...), began.Add(time.Minute).Format(time.RFC3339))
}

// id names a record, or none.
func (g *generator) id() string {
	switch {
	case g.fresh > 0 && g.one(6):
		return fresh(g.IntN(g.fresh))
	case g.one(5) && len(g.ids.unseen) > 0:
		return pick(g, g.ids.unseen...)
	case g.one(20):
		return pick(g, g.ids.missing...)
	}
	return pick(g, g.ids.seen...)
}

// file is one that a body brings: mostly a good one, now and then by the name of one that is there.
func (g *generator) file(field string) bson.D {
	src := dataURL(g.IntN(pictures))
	if g.bold && g.one(3) {
		at := "/api/v1" + base + "items/" + g.id() + "/" + pick(g, "pic", "shot", "proof") + "/"
		src = pick(g, "data:,", "data:text/plain;base64,YQ==", at+"pic.png", at+"shot.png", at+"proof.png")
	}
	d := bson.D{{Key: "src", Value: src}, {Key: "path", Value: pick(g, field+".png", field+".png", "b.png", "c", "../d.png")}}
	if g.one(3) {
		d = append(d, bson.E{Key: "alt", Value: letter(g.Rand, 3)})
	}
	return d
}

func (g *generator) condition(depth int) any {
	switch g.IntN(9) {
	case 0:
		return g.value()
	case 1:
		return bson.D{{Key: pick(g, "$in", "$nin", "$all"), Value: bson.A{g.value(), g.value()}}}
	case 2:
		return bson.D{{Key: "$exists", Value: g.one(2)}}
	case 3:
		return bson.D{{Key: "$not", Value: bson.D{{Key: pick(g, "$gt", "$eq"), Value: g.value()}}}}
	case 4:
		return bson.D{{Key: pick(g, "$size", "$type"), Value: 1 + g.IntN(4)}}
	case 5:
		if depth > 0 && g.bold {
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
		if depth > 0 && g.one(4) {
			d = append(d, bson.E{Key: pick(g, "$and", "$or", "$nor"), Value: bson.A{g.filter(depth - 1), g.filter(depth - 1)}})
			continue
		}
		d = append(d, bson.E{Key: g.path(), Value: g.condition(depth)})
	}
	return unique(d)
}

// unique leaves out members that come again: an object has a name once.
func unique(d bson.D) bson.D {
	seen := map[string]bool{}
	return slices.DeleteFunc(d, func(e bson.E) bool {
		again := seen[e.Key]
		seen[e.Key] = true
		return again
	})
}

func (g *generator) sort() string {
	var out []string
	for range g.IntN(3) {
		if p := g.field(); g.bold || !strings.HasPrefix(p, "parts") {
			out = append(out, pick(g, "", "-")+p)
		}
	}
	return strings.Join(out, ",")
}

func (g *generator) selection() string {
	var out []string
	sign := pick(g, "", "", "-")
	for range g.IntN(4) {
		if p := g.field(); g.bold || p != "id" || sign == "" {
			out = append(out, sign+p)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// lookup gives a lookup in one of its forms.
func (g *generator) lookup() string {
	if g.one(2) {
		if g.bold {
			return pick(g, "pin", "secret", "nope", "ref.secret", "name", "ref,ref.who", "seo.score")
		}
		return pick(g, "ref", "who", "ref,who", "ref.who", "ref.ref", "who.friend")
	}
	items := g.one(2)
	d := bson.D{{Key: "localField", Value: pick(g, "ref", "who", "name", "n", "id", g.field())}}
	if items {
		d = append(d, bson.E{Key: "from", Value: "items"}, bson.E{Key: "foreignField", Value: pick(g, "id", "ref", "who", "n", "name", g.field())})
	} else {
		d = append(d, bson.E{Key: "from", Value: "people"}, bson.E{Key: "foreignField", Value: pick(g, "id", "code", "name", "friend")})
	}
	d = append(d, bson.E{Key: "as", Value: "x"})
	if g.bold {
		d = append(d, bson.E{Key: "localField", Value: g.path()}, bson.E{Key: "from", Value: pick(g, "items", "people", "vault", "users", "nope")},
			bson.E{Key: "foreignField", Value: g.path()}, bson.E{Key: "as", Value: pick(g, "x", "secret", "ref", "nope", "rank", "_i18n")})
		slices.Reverse(d)
		d = unique(d)
	}
	in := *g
	in.people = !items
	if g.one(2) {
		d = append(d, bson.E{Key: "filter", Value: in.filter(1)})
	}
	if g.one(3) {
		d = append(d, bson.E{Key: "sort", Value: pick(g, "", "-") + in.field()})
	}
	if g.one(3) {
		d = append(d, bson.E{Key: "select", Value: in.field()})
	}
	if g.one(3) {
		d = append(d, bson.E{Key: "limit", Value: 1 + g.IntN(3)})
	}
	if g.one(4) {
		d = append(d, bson.E{Key: "lookup", Value: map[bool]string{true: pick(g, "ref", "who"), false: "friend"}[items]})
	}
	return g.json(d)
}

func (g *generator) json(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(raw)
}

// body is what a record is to be, or to become.
func (g *generator) body() string {
	d := bson.D{}
	for range 1 + g.IntN(2) {
		switch g.IntN(12) {
		case 11:
			d = append(d, bson.E{Key: "pic", Value: pick[any](g, g.file("pic"), g.file("pic"), g.file("pic"), nil, bson.D{{Key: "alt", Value: "x"}})})
		case 10: // must be there, for the caller's eyes
			d = append(d, pick(g, bson.E{Key: "boss", Value: pick(g, codes...)}, bson.E{Key: "peer", Value: g.id()}))
		case 9: // held against a field that is hidden, always or on some records
			d = append(d, bson.E{Key: pick(g, "top", "top", "level"), Value: g.IntN(4)})
		case 0:
			d = append(d, bson.E{Key: "name", Value: pick(g, "b", "c", "z")}) // not "a": it opens the mood
		case 1:
			d = append(d, bson.E{Key: "state", Value: pick(g, "open", "locked")})
		case 2:
			d = append(d, bson.E{Key: "seo", Value: pick[any](g, bson.D{{Key: "title", Value: "q"}}, nil)})
		case 3:
			d = append(d, bson.E{Key: "parts", Value: pick[any](g, bson.A{}, nil, bson.A{bson.D{{Key: "sku", Value: "b"}}, bson.D{{Key: "sku", Value: "a"}}})})
		case 4:
			d = append(d, bson.E{Key: "data", Value: pick[any](g, bson.D{{Key: "x", Value: 5}}, 3, nil)})
		case 5:
			d = append(d, bson.E{Key: "_i18n", Value: pick[any](g, nil, bson.D{{Key: "de", Value: nil}}, bson.D{{Key: "de", Value: bson.D{{Key: "name", Value: "x"}}}}, bson.D{{Key: "fr", Value: bson.D{{Key: "parts", Value: bson.A{}}}}})})
		case 6:
			d = append(d, bson.E{Key: "ref", Value: pick[any](g, g.id(), nil)})
		case 7:
			d = append(d, bson.E{Key: "on", Value: true})
		default:
			d = append(d, bson.E{Key: "who", Value: bson.A{pick(g, codes...)}})
		}
	}
	if g.bold {
		d = append(d, pick(g, bson.E{Key: "secret", Value: "x"}, bson.E{Key: "seo", Value: bson.D{{Key: "score", Value: 1}}}, bson.E{Key: "parts", Value: bson.A{bson.D{{Key: "cost", Value: 1}}}},
			bson.E{Key: "data", Value: bson.D{{Key: "k", Value: 1}}}, bson.E{Key: "on", Value: pick[any](g, false, "x")}, bson.E{Key: "mood", Value: 3}, bson.E{Key: "rank", Value: nil}, bson.E{Key: "n", Value: g.IntN(8)},
			bson.E{Key: "tags", Value: bson.A{"s"}}, bson.E{Key: "note", Value: "s"}, bson.E{Key: "_rev", Value: pick(g, 1, 2, 7)}, bson.E{Key: "createdBy", Value: alice.Hex()}, bson.E{Key: pick(g, "pin", "vibe"), Value: "s"},
			bson.E{Key: "_i18n", Value: bson.D{{Key: "de", Value: bson.D{{Key: "secret", Value: "x"}}}}}, bson.E{Key: "nope", Value: 1},
			bson.E{Key: "proof", Value: pick[any](g, g.file("proof"), nil, bson.D{{Key: "alt", Value: "x"}})}, bson.E{Key: "shot", Value: pick[any](g, g.file("shot"), g.file("shot"), nil, bson.D{{Key: "alt", Value: "x"}})}))
	}
	if g.one(12) {
		d = append(d, bson.E{Key: "slug", Value: pick(g, "v0", "v2", "u0", "u1", "u3", "x"+letter(g.Rand, 26))})
	}
	return g.json(unique(d))
}
