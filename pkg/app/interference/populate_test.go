package interference_test

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/system"
)

// face is what decides who may see an item, and what they see of it.
type face struct {
	on               bool
	by, org, state   string
	n, parts         int
	name, slug, note string
	ref              bson.ObjectID
	who              bson.A
	boss             string
	nested           bool // there is a list in the list of parts, which no rule lets through
}

// codes are what items call people by. Some are of people in one service only, whom nobody can read.
var codes = []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"}

func any1[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

func letter(rnd *rand.Rand, n int) string { return string(rune('a' + rnd.IntN(n))) }

func newFace(rnd *rand.Rand) face {
	return face{
		on: rnd.IntN(3) > 0, by: any1(rnd, alice, eve, ed, ada, bob, bob).Hex(), org: any1(rnd, "", "", homeOrg, farOrg),
		state: any1(rnd, "open", "locked", "locked"), n: rnd.IntN(8), parts: rnd.IntN(4), name: letter(rnd, 5), note: letter(rnd, 3),
		ref: bson.ObjectID{0: 1, 1: byte(rnd.IntN(256)), 11: byte(rnd.IntN(120))}, who: bson.A{any1(rnd, codes...), any1(rnd, codes...)},
		boss: any1(rnd, codes...),
	}
}

// item is a record with a face, and with anything in what is hidden from a caller.
func (c *caller) item(rnd *rand.Rand, id bson.ObjectID, f face) bson.D {
	d := bson.D{{Key: "_id", Value: id}}
	if f.n > 0 {
		d = append(d, bson.E{Key: "n", Value: int64(f.n)})
	}
	d = append(d, bson.E{Key: "name", Value: f.name}, bson.E{Key: "on", Value: f.on}, bson.E{Key: "state", Value: f.state})
	if f.org != "" {
		d = append(d, bson.E{Key: "org", Value: f.org})
	}
	if f.slug != "" {
		d = append(d, bson.E{Key: "slug", Value: f.slug})
	}
	d = c.member(d, "tags", bson.A{f.name, "t"}, any1[any](rnd, nil, bson.A{}, bson.A{"s"}))
	d = append(d, bson.E{Key: "seo", Value: secretMember(rnd, "score", bson.D{{Key: "title", Value: f.name}})})
	list := bson.A{}
	for p := range f.parts {
		list = append(list, c.part(rnd, string(rune('a'+p)), p))
	}
	if f.nested {
		list = append(list, bson.A{int64(1)})
	}
	d = append(d, bson.E{Key: "parts", Value: list}, bson.E{Key: "data", Value: secretMember(rnd, "k", bson.D{{Key: "x", Value: int64(f.parts)}})})
	d = c.member(d, "note", f.note, any1[any](rnd, nil, "s", "t"))
	d = append(d, bson.E{Key: "floor", Value: int64(rnd.IntN(5))}, bson.E{Key: "top", Value: int64(f.n)}, bson.E{Key: "level", Value: int64(7)})
	d = secretMember(rnd, "rank", secretMember(rnd, "secret", d))
	if f.name == "a" { // only then it is seen
		d = append(d, bson.E{Key: "mood", Value: int64(f.parts)})
	} else {
		d = secretMember(rnd, "mood", d)
	}
	d = append(d, bson.E{Key: "ref", Value: f.ref}, bson.E{Key: "who", Value: f.who}, bson.E{Key: "boss", Value: f.boss}, bson.E{Key: "peer", Value: f.ref}, bson.E{Key: "pin", Value: f.name})
	d = append(d, c.translations(rnd, f.name, f.parts)...)
	d = append(d, bson.E{Key: "createdBy", Value: f.by})
	d = c.member(d, "updatedBy", f.by, any1[any](rnd, alice.Hex(), bob.Hex()))
	return append(d, bson.E{Key: "_rev", Value: int64(1)})
}

// member adds a field, with another value if it is hidden from the caller.
func (c *caller) member(d bson.D, name string, seen, other any) bson.D {
	if slices.Contains(c.hidden, name) {
		seen = other
	}
	return append(d, bson.E{Key: name, Value: seen})
}

func (c *caller) part(rnd *rand.Rand, sku string, cost int) bson.D {
	d := bson.D{{Key: "sku", Value: sku}}
	if slices.Contains(c.hidden, "parts.cost") {
		return secretMember(rnd, "cost", d)
	}
	return append(d, bson.E{Key: "cost", Value: int64(cost)})
}

// translations are those of a record: the same to look at, with other secrets, which may be all that there is.
func (c *caller) translations(rnd *rand.Rand, name string, parts int) bson.D {
	all := bson.D{}
	for i, lang := range []string{"de", "fr"} {
		own := secretMember(rnd, "rank", secretMember(rnd, "secret", bson.D{}))
		if (parts+i)%2 == 0 {
			own = append(own, bson.E{Key: "name", Value: lang + name}, bson.E{Key: "parts", Value: bson.A{c.part(rnd, name, i)}})
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
	if rnd.IntN(4) == 0 {
		return d
	}
	return append(d, bson.E{Key: name, Value: any1[any](rnd, int64(rnd.IntN(3)), "s", nil, bson.A{int64(1), "x"}, bson.D{{Key: "y", Value: int64(1)}}, true)})
}

// How many items there are at first, of those that are the same in both services.
const faces = 16

// Values of the unique field: the first few are of items that the caller sees, then of those that they don't see in either
// service, and last of one that is in a single service.
const (
	seenSlug, unseenSlug, oneSidedSlug = "v", "u", "w"
)

// populate fills both services with the same visible records, but with other values in what is hidden, and with other
// records beyond the caller's reach. It gives ids to ask for.
func (p *pair) populate(rnd *rand.Rand) (at ids) {
	c := p.caller
	for i := range faces {
		f := newFace(rnd)
		id := bson.ObjectID{0: 1, 1: byte(rnd.IntN(256)), 11: byte(i)}
		seen := c.sees(f) || i == 0
		if i == 0 {
			f = newSeen(rnd, c)
		} else if rnd.IntN(2) == 0 {
			f.ref, _ = bson.ObjectIDFromHex(any1(rnd, slices.Concat(at.seen, at.unseen)...))
		}
		if i%4 == 0 {
			f.slug = map[bool]string{true: seenSlug, false: unseenSlug}[seen] + string(rune('0'+i/4))
		}
		if seen {
			at.seen = append(at.seen, id.Hex())
		} else {
			at.unseen = append(at.unseen, id.Hex())
		}
		for side, w := range p.worlds {
			if !seen { // the same id and slug, and all else is any other that is not seen
				f = p.unseen(rnd, f.slug)
				if f.slug == "" && rnd.IntN(3) == 0 {
					continue
				}
			}
			w.putItem(c, rnd, id, f)
			for j := range rnd.IntN(2) {
				more := bson.ObjectID{0: 1, 1: byte(rnd.IntN(256)), 9: byte(side + 1), 10: byte(j), 11: byte(i)}
				w.putItem(c, rnd, more, p.unseen(rnd, ""))
				at.unseen = append(at.unseen, more.Hex())
			}
		}
	}
	p.worlds[rnd.IntN(2)].putItem(c, rnd, bson.ObjectID{0: 1, 8: 1}, p.unseen(rnd, oneSidedSlug))
	p.populatePeople(rnd)
	p.populateSystem(rnd)
	for _, w := range p.worlds {
		for j := range rnd.IntN(3) {
			w.put("vault", bson.D{{Key: "_id", Value: bson.ObjectID{0: 4, 1: byte(rnd.IntN(256)), 2: byte(rnd.IntN(256)), 3: byte(j)}}, {Key: "name", Value: letter(rnd, 3)}})
		}
		w.put("settings", secretMember(rnd, "key", bson.D{{Key: "_id", Value: bson.ObjectID{0: 5}}, {Key: "title", Value: "A"}, {Key: "_rev", Value: int64(1)}}))
	}
	at.missing = []string{bson.ObjectID{0: 1, 11: 200}.Hex(), "zz"}
	return at
}

func newSeen(rnd *rand.Rand, c *caller) face {
	for {
		if f := newFace(rnd); c.sees(f) {
			return f
		}
	}
}

// unseen is a face that the caller does not see.
func (p *pair) unseen(rnd *rand.Rand, slug string) face {
	for {
		if f := newFace(rnd); !p.caller.sees(f) {
			f.slug, f.nested = slug, rnd.IntN(8) == 0
			return f
		}
	}
}

func (p *pair) populatePeople(rnd *rand.Rand) {
	for i, code := range codes[:6] {
		name, friend := letter(rnd, 3), any1(rnd, codes...)
		for _, w := range p.worlds {
			d := secretMember(rnd, "secret", bson.D{{Key: "_id", Value: bson.ObjectID{0: 2, 11: byte(i)}}, {Key: "code", Value: code}, {Key: "name", Value: name}})
			if name == "a" {
				d = append(d, bson.E{Key: "mood", Value: int64(i)})
			} else {
				d = secretMember(rnd, "mood", d)
			}
			w.put("people", append(d, bson.E{Key: "on", Value: true}, bson.E{Key: "friend", Value: friend}, bson.E{Key: "_rev", Value: int64(1)}))
		}
	}
	for _, w := range p.worlds {
		for i, code := range codes[6:] {
			if rnd.IntN(2) == 0 {
				d := bson.D{{Key: "_id", Value: bson.ObjectID{0: 2, 10: byte(rnd.IntN(256)), 11: byte(10 + i)}}, {Key: "code", Value: code}, {Key: "name", Value: "a"}, {Key: "on", Value: false}}
				w.put("people", secretMember(rnd, "secret", d))
			}
		}
	}
}

// populateSystem fills the system models: what belongs to an organization that the caller is in is the same, and all else
// is not. Callers without such a limit see all of them: for them they are the same, but for what nobody sees.
func (p *pair) populateSystem(rnd *rand.Rand) {
	seed := rnd.Uint64()
	for side, w := range p.worlds {
		hidden, same := rand.New(rand.NewPCG(seed, uint64(side))), rand.New(rand.NewPCG(seed, 7))
		foreign := same
		if p.caller.who.Limited {
			foreign = hidden
		}
		w.putOrg(homeOrg, "home", 3, same, hidden)
		if foreign.IntN(4) > 0 {
			w.putOrg(farOrg, "far"+letter(foreign, 9), foreign.IntN(5), foreign, hidden)
		}
		if id, err := bson.ObjectIDFromHex(p.caller.who.ID); err == nil {
			who := p.caller.who
			w.putSystem("users", system.User{ID: id, Rev: 1, Username: who.Name, Active: true, PasswordHash: letter(hidden, 9), OrgIDs: who.OrgIDs, Scopes: who.Scopes, TeamIDs: who.TeamIDs})
		}
	}
}

// putOrg stores an organization with a project, and with some teams and users.
func (w *world) putOrg(hex, name string, members int, seen, hidden *rand.Rand) {
	at, err := bson.ObjectIDFromHex(hex)
	if err != nil {
		w.t.Fatal(err)
	}
	within := func(last int) bson.ObjectID {
		other := at
		other[11] = byte(last)
		return other
	}
	w.putSystem("orgs", system.Org{ID: at, Rev: 1, Name: name, Slug: name, Active: true})
	w.putSystem("projects", system.Project{ID: within(1), Rev: 1, Namespace: name, Name: name, OrgID: hex})
	for i := range members {
		who := name + string(rune('a'+i))
		w.putSystem("teams", system.Team{ID: within(10 + i), Rev: 1, Name: letter(seen, 3), Slug: who, OrgID: hex, Scopes: []string{}})
		w.putSystem("users", system.User{
			ID: within(50 + i), Rev: 1, Username: who, Name: letter(seen, 3), Active: true, PasswordHash: letter(hidden, 9), OrgIDs: []string{hex}, Scopes: []string{}, TeamIDs: []string{},
		})
	}
}
