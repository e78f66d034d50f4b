package interference_test

import (
	"crypto/sha256"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
)

// config is the project that both services of a pair serve. Its records are of every kind that rights know of.
const config = `
namespace: twins
collections:
  - name: items
    meta: {i18n: {languages: [en, de, fr]}, defaultSort: [-n]}
    audit: {enabled: true, excludeFields: [tags]}
    bulk: {maxItems: 20}
    fields:
      - {name: n, type: number, index: [single]}
      - {name: name, type: string, validator: {max: 20}}
      - {name: on, type: boolean}
      - {name: state, type: string}
      - {name: org, type: string}
      - {name: slug, type: string, index: [unique, sparse]}
      - {name: tags, type: "string[]"}
      - {name: seo, type: object, subFields: [{name: title, type: string}, {name: score, type: number, hidden: true}]}
      - {name: parts, type: "object[]", subFields: [{name: sku, type: string}, {name: cost, type: number}]}
      - {name: data, type: any}
      - {name: note, type: string}
      - {name: secret, type: string, hidden: true, index: [single]}
      - {name: rank, type: any, index: [single], hidden: {eval: "!ctx.user || !ctx.user.isAdmin"}}
      - {name: mood, type: any, index: [single], hidden: {eval: "ctx.doc.name !== 'a'"}, readonly: {eval: "!ctx.doc.on"}}
      - {name: floor, type: number, hidden: true}
      - {name: top, type: number, validator: {gte: {field: floor}}}
      - {name: level, type: number, validator: {ne: {field: mood}}}
      - {name: ref, type: string, meta: {foreign: {collection: items}}}
      - {name: who, type: "string[]", meta: {foreign: {collection: people, key: code}}}
      - {name: boss, type: string, meta: {foreign: {collection: people, key: code}}, validator: {exists: true}}
      - {name: peer, type: string, meta: {foreign: {collection: items}}, validator: {exists: true}}
      - {name: pin, type: string, meta: {foreign: {collection: people, key: secret}}, validator: {exists: true}}
      - {name: vibe, type: string, meta: {foreign: {collection: people, key: mood}}, validator: {exists: true}}
      - {name: pic, type: file}
      - {name: shot, type: file, hidden: {eval: "ctx.doc.name !== 'a'"}}
      - {name: proof, type: file, hidden: true}
    imageFilter: {thumb: [{width: 2, outputType: jpg}]}
    hiddenFields: [data.k]
    indexes: [{name: german, key: [_i18n.de.secret]}, {name: both, key: [on, -n]}, {name: cost, key: [parts.cost]}]
    search:
      - {name: words, mode: text, fields: [name, note, tags, secret, data, seo.title, parts.sku, rank, mood], score: {weights: {name: 2}}}
      - {name: grams, mode: ngram, ngram: {min: 1, max: 2}, fields: [name, note, secret]}
      - {name: both, mode: rrf, rrf: {sources: [words, grams], topK: 6}}
      - {name: near, mode: vector, vector: {group: texts, fields: [name, note, rank]}, score: {minScore: 0.1}}
      - {name: deep, mode: vector, vector: {group: texts, fields: [name, secret]}}
      - {name: mixed, mode: rrf, rrf: {sources: [words, deep, near], topK: 4}}
      - {name: like, mode: regex, fields: [name, note, secret]}
      - {name: inner, mode: text, fields: [secret]}
      - {name: said, mode: text, fields: [name, n, seo.title, tags], eval: "[ctx.doc.name || '', ...(ctx.doc.tags || []), String(ctx.doc.n), JSON.stringify(ctx.doc.seo || null), ctx.lang]"}
      - {name: told, mode: ngram, ngram: {min: 1, max: 2}, fields: [name, note, mood, secret], eval: "JSON.stringify(ctx.doc).slice(0, 200)"}
      - {name: all, mode: rrf, rrf: {sources: [said, told, words]}}
    projections: {card: {select: {name: 1, secret: 1}}, rest: {select: {parts: 0}}}
    queryLimits: {allowAggregate: true, maxTime: 1m}
    permissions:
      public:
        methods: {get: {aggregate: true, lookup: true}}
        filter: {type: javascript, file: public.js}
        hiddenFields: [parts.cost, updatedBy]
      user:
        methods: {get: {aggregate: true, lookup: true}, post: {bulk: true}, put: {bulk: true}, delete: {bulk: true}}
        filter: {$or: [{on: true}, {createdBy: {$var: user.id}}, {org: {$in: {$var: user.orgIds}}}]}
        hiddenFields: [parts.cost]
      team:editors:
        methods: {get: {aggregate: true}, put: {bulk: true}, delete: true}
        filter: {state: {$ne: locked}}
        hiddenFields: [note]
        readonlyFields: [n]
      token:narrow:
        methods: {get: {count: true, facet: false}, put: true}
        filter: {on: true, n: {$lt: 6}}
        validProjections: [card]
        hiddenFields: [tags]
  - name: people
    meta: {defaultSort: [secret, -code]}
    fields:
      - {name: code, type: string, index: [single]}
      - {name: name, type: string}
      - {name: on, type: boolean}
      - {name: secret, type: any, hidden: true}
      - {name: mood, type: any, hidden: {eval: "ctx.doc.name !== 'a'"}}
      - {name: friend, type: string, meta: {foreign: {collection: people, key: code}}}
    queryLimits: {maxTime: 1m}
    permissions:
      public: {methods: {get: true}, filter: {on: true}}
      user: {methods: {get: {lookup: true}}, filter: {on: true}}
  - name: vault
    fields: [{name: name, type: string}]
    permissions: {public: {methods: {}}, user: {methods: {post: true}}}
  - name: settings
    meta: {singleton: true}
    fields: [{name: title, type: string}, {name: key, type: string, hidden: true}]
    permissions: {public: {methods: {get: true}}, user: {methods: {get: true, put: true}}, "token:narrow": {methods: {get: true}}}
`

// publicFilter is the script that makes the filter of the set public.
const publicFilter = "module.exports = (ctx) => ({on: ctx.method === 'GET'})"

// The users and organizations that records name.
var (
	alice, eve, ed, ada, bob = id(0xa1), id(0xe1), id(0xed), id(0xad), id(0xb0)
	homeOrg, farOrg          = id(0x0b).Hex(), id(0x0c).Hex()
)

func id(first byte) bson.ObjectID { return bson.ObjectID{0: 0x20, 1: first} }

// caller is a kind of caller: what they may not see is what the two services of a pair differ in.
type caller struct {
	name   string
	who    *access.Principal
	sees   func(f face) bool // which items
	hidden []string          // which fields of items, beside those that are hidden from everybody
	fewer  bool              // than anybody can, whose files they may read, too
	mute   bool              // they can read one collection, and join nothing
	models []string          // the system models that they may read
	shut   []string          // the doors that they have no right to: tried now and then
}

// callers are six kinds. Together they are decided about by each mechanism that there is: filters by a script, by
// ownership, by organization, and of a token; united sets; hidden and readonly fields of sets, of fields and by expressions; methods of their own; the
// scopes of a personal access token; and the limit to organizations.
func callers() []caller {
	user := func(name string, id bson.ObjectID, more access.Principal) *access.Principal {
		more.Kind, more.ID, more.Name = access.KindUser, id.Hex(), name
		return &more
	}
	owns := func(id bson.ObjectID, orgs ...string) func(face) bool {
		return func(f face) bool { return f.on || f.by == id.Hex() || slices.Contains(orgs, f.org) }
	}
	pat := user("ada", ada, access.Principal{Scopes: []string{"namespace.twins", "org.read", "user.read"}})
	pat.Kind, pat.TokenID = access.KindPAT, id(0xaa).Hex()
	pat.Cap = []string{"namespace.twins.items.read", "namespace.twins.items.update", "org.read"}
	writes := []string{"create", "bulk create", "update", "patch", "delete", "bulk update", "bulk delete", "repeated create"}
	system := []string{"explain", "audit", "system models"}
	return []caller{
		{name: "public", who: access.Anonymous(), sees: func(f face) bool { return f.on }, hidden: []string{"parts.cost", "updatedBy"}, shut: slices.Concat(writes, system, []string{"agent"})},
		{name: "alice", who: user("alice", alice, access.Principal{Scopes: []string{"audit.read", "project.read"}}), sees: owns(alice), hidden: []string{"parts.cost"}, models: []string{"project"}, shut: []string{"agent"}},
		{name: "eve of an organization", who: user("eve", eve, access.Principal{
			Limited: true, OrgIDs: []string{homeOrg}, Scopes: []string{"audit.read", "org.read", "project.read", "team.read", "user.create", "user.read", "user.update"},
		}), sees: owns(eve, homeOrg), hidden: []string{"parts.cost"}, models: []string{"user", "org", "team", "project"}, shut: []string{"agent"}},
		{
			name: "ed the editor", who: user("ed", ed, access.Principal{Teams: []string{"editors"}, TeamIDs: []string{id(0x7e).Hex()}, Scopes: []string{"audit.read"}}),
			sees: func(f face) bool { return owns(ed)(f) || f.state != "locked" }, hidden: []string{"parts.cost", "note"}, shut: []string{"explain", "system models", "agent"},
		},
		{
			name: "a personal access token", who: pat, sees: owns(ada), hidden: []string{"parts.cost"}, mute: true, models: []string{"org"},
			shut: []string{"create", "bulk create", "delete", "bulk delete", "repeated create", "singleton", "people", "explain", "audit"},
		},
		{
			name: "a collection token", who: &access.Principal{Kind: access.KindToken, TokenHash: sha256.Sum256([]byte("narrow"))},
			sees: func(f face) bool { return f.on && f.n > 0 && f.n < 6 }, hidden: []string{"tags"}, fewer: true, mute: true,
			shut: append([]string{"create", "bulk create", "delete", "bulk update", "bulk delete", "repeated create", "lookup", "facet", "aggregate", "people", "agent"}, system...),
		},
	}
}
