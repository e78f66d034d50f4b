package app_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// S11: what a config takes away is gone with the reload for all doors; what comes back under the old name has the rights that it has
// now, whatever was seen, asked or kept before.
func TestS11StaleFieldRights(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		reload := func(config string) {
			t.Helper()
			a.configure("shop", config)
			a.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		}
		_, ann := a.user("ann", map[string]any{"scopes": []string{"project.read", "audit.read"}})
		const declared = "      - {name: tags, type: \"string[]\"}\n"
		id := a.ids["one"]
		kept := []option{header("Idempotency-Key", "kept"), text(`{"n": 5, "tags": ["y"], "title": "five"}`)}
		a.do("POST", askedItems, kept...).want(t, http.StatusCreated)
		next := a.do("GET", askedItems+"?sort=-tags&limit=1").field("next")
		page := func() string { return a.do("GET", askedItems+"?sort=-tags&limit=1&after="+next).String() }
		if page() != "200" || !strings.Contains(a.seen(), `"tags"`) {
			t.Fatal(page(), a.seen())
		}
		f := a.follow(askedItems+"/_changes?filter[n][gte]=0", noop)
		by := a.follow(askedItems+"/_changes?filter[tags]=y", noop)
		for _, step := range []struct{ name, config string }{
			{"the field is gone", strings.Replace(askedConfig, declared, "", 1)},
			{"it comes back, hidden", strings.Replace(askedConfig, declared, "      - {name: tags, type: \"string[]\", hidden: true}\n", 1)},
			{"it comes back, hidden from the public", strings.Replace(askedConfig, "hiddenFields: [seo.score]\n        filter", "hiddenFields: [seo.score, tags]\n        filter", 1)},
			{"it is hidden by the set and gone", strings.Replace(strings.Replace(askedConfig, declared, "", 1), "fields:\n      - {name: title", "fields:\n      - {name: tagx, type: string}\n      - {name: title", 1)},
		} {
			reload(step.config)
			for _, p := range append(append(filterDoors(`{"tags": "y"}`), shortDoors("filter[tags]", "y")...), pathDoors("tags", id)...) {
				if got := a.send(p); !strings.HasPrefix(got.String(), "400 unknown_field: unknown field: tags") {
					t.Errorf("%s: %s: %s %.200s", step.name, p, got, got.body)
				}
			}
			for _, p := range patches(askedItems+"/"+id, "/tags") {
				if got := a.send(p); got.status < 400 && !strings.Contains(got.body, `"succeeded":0`) {
					t.Errorf("%s: %s: %s", step.name, p, got)
				}
			}
			if got := page(); !strings.HasPrefix(got, "400 ") {
				t.Errorf("%s: the next page of an order by it: %s", step.name, got)
			}
			for what, got := range map[string]answer{
				"the list": a.do("GET", askedItems), "a record": a.do("GET", askedItems+"/"+id), "a description": a.do("GET", "/api/v1/_/shop/_/collections/items"), "an answer given again": a.do("POST", askedItems, kept...),
				"an aggregation": a.do("GET", with(askedItems, "aggregate", `[{"$replaceWith": {"all": {"$objectToArray": "$$ROOT"}}}]`)), "a lookup": a.do("GET", with(askedItems, "lookup", `{"from": "items", "localField": "id", "foreignField": "id", "as": "me"}`)),
				"a write": a.do("PUT", askedItems+"/"+id, text(`{"n": 1}`)),
			} {
				if strings.Contains(got.body, `tags"`) || got.status >= 300 {
					t.Errorf("%s: %s has it: %d %s", step.name, what, got.status, got.body)
				}
			}
			if got := f.next(); !strings.HasPrefix(got, `update {"id":"`+id+`"`) || strings.Contains(got, "tags") {
				t.Errorf("%s: the feed tells %s", step.name, got)
			}
			if strings.Contains(step.name, "public") {
				continue
			}
			log := a.do("GET", "/api/v1/_/shop/_/audit?limit=200", session(ann))
			log.want(t, http.StatusOK)
			if strings.Contains(step.name, "gone") && strings.Contains(log.body, `"tags"`) || strings.Contains(log.body, `"tags":["`) {
				t.Errorf("%s: the log has it: %s", step.name, log.body)
			}
		}
		if got := by.next(); got != "" { // its filter names what is gone
			t.Errorf("the feed of a filter by it goes on: %s", got)
		}
		reload(askedConfig)
		if got := a.seen(); !strings.Contains(got, `"tags":["x","y"]`) {
			t.Errorf("declared again: %s", got)
		}
	})
}

// S20: what a caller may not set stays as it is by every write there is: hidden, readonly and system members, with a value, with null,
// by a dotted key, an operator, another case, in bulk, as a translation, and in a dry run.
func TestS20Records(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		id := a.ids["one"]
		const settings = "/api/v1/_/shop/settings"
		a.do("PUT", settings, admin, text(`{"title": "s", "secret": "canary-set"}`)).want(t, http.StatusCreated)
		a.before = a.stored()
		bodies := []string{
			`{"secret": "x"}`, `{"secret": null}`, `{"SECRET": "x"}`, `{"Secret": "x"}`, `{"secret.x": "x"}`, `{"secret": {"$set": "x"}}`, `{"$set": {"secret": "x"}}`, `{"$unset": {"secret": 1}}`,
			`{"fixed": "x"}`, `{"FIXED": "x"}`, `{"fixed": ["x"]}`, `{"fixed.x": 1}`, `{"$push": {"fixed": 1}}`,
			`{"id": "650102030405060708090a0b"}`, `{"_id": "650102030405060708090a0b"}`, `{"ID": "x"}`, `{"createdBy": "x"}`, `{"createdBy": null}`, `{"createdAt": "2000-01-01T00:00:00Z"}`, `{"createdat": 1}`,
			`{"updatedAt": null}`, `{"updatedBy": "x"}`, `{"__proto__": {"secret": 1}}`, `{"constructor": 1}`, `{"title": "x", "title": "y"}`, `{"secret\u0000": "x"}`, `{"": 1}`, `{"_audit": 1}`,
		}
		items := append(append([]string(nil), bodies...),
			`{"plan": {"b": {"c": "x"}}}`, `{"plan": null}`, `{"plan": {}}`, `{"plan.b": 1}`, `{"seo": {"score": 1}}`, `{"seo": {"score": null}}`, `{"seo": {"Score": 1}}`, `{"seo.score": 1}`, `{"parts": [{"cost": 1}]}`, `{"parts": {"0": {"cost": 1}}}`, `{"parts.0.cost": 1}`, `{"parts.$[].cost": 1}`,
			`{"_i18n": {"de": {"secret": "x"}}}`, `{"_i18n": {"de": {"secret": null}}}`, `{"_i18n": {"de": {"fixed": "x"}}}`, `{"_i18n": {"de": {"seo": {"score": 1}}}}`, `{"_i18n": {"de": {"parts": [{"cost": 1}]}}}`, `{"_i18n": {"it": {"title": "x"}}}`, `{"_i18n.de.secret": "x"}`,
		)
		for _, body := range items {
			refused := func(p probe, who option) {
				t.Helper()
				got := a.send(p, who)
				if got.status != http.StatusBadRequest && !strings.Contains(got.body, `"succeeded":0`) {
					t.Errorf("%s: %s %s", p, got, got.body)
				}
			}
			for _, q := range []string{"", "?dryRun=true", "?lang=de", "?replace=true", "?replace=true&lang=de"} {
				refused(probe{method: "PUT", path: askedItems + "/" + id + q, body: body}, noop)
			}
			refused(probe{"PATCH", askedItems + "/" + id, "application/merge-patch+json", body}, noop)
			refused(probe{"PATCH", askedItems + "/" + id + "?lang=de", "application/json", body}, noop)
			for _, q := range []string{"", "?dryRun=true", "?lang=de"} {
				refused(probe{method: "POST", path: askedItems + q, body: body}, noop)
			}
			refused(probe{method: "POST", path: askedItems, body: body}, header("Idempotency-Key", "k-"+strconv.Itoa(len(body))+body[2:3]))
			refused(probe{method: "POST", path: askedItems, body: `{"items": [` + body + `]}`}, noop)
			refused(probe{method: "POST", path: askedItems + "?bulk=true&dryRun=true", body: `{"items": [` + body + `]}`}, noop)
			refused(probe{method: "PUT", path: with(askedItems, "filter", `{}`), body: body}, noop)
			refused(probe{method: "PUT", path: with(askedItems, "filter", `{}`, "dryRun", "true"), body: body}, noop)
			refused(probe{method: "PUT", path: with(askedItems, "filter", `{}`, "lang", "de"), body: body}, noop)
		}
		for _, body := range bodies {
			for _, q := range []string{"", "?replace=true", "?dryRun=true"} {
				if got := a.send(probe{method: "PUT", path: settings + q, body: body}); got.status != http.StatusBadRequest {
					t.Errorf("PUT %s%s %s: %s", settings, q, body, got)
				}
			}
		}
		for _, path := range []string{"/secret", "/plan", "/plan/b", "/plan/b/c", "/seo/score", "/parts/0/cost", "/fixed", "/id", "/createdBy", "/createdAt", "/_id", "/_i18n/de/secret", "/__proto__", "/constructor/prototype", "/SECRET"} {
			for _, op := range []string{`"op": "add", "value": "x"`, `"op": "replace", "value": "x"`, `"op": "remove"`, `"op": "copy", "from": "/title"`, `"op": "move", "from": "/title"`} {
				if system := path == "/id" || strings.HasPrefix(path, "/created"); system && strings.Contains(op, "remove") {
					continue // a body without them is one that keeps them
				}
				p := probe{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{` + op + `, "path": "` + path + `"}]`}
				if got := a.send(p); got.status != http.StatusBadRequest && got.status != http.StatusConflict {
					t.Errorf("%s: %s %s", p, got, got.body)
				}
			}
		}
		a.untouched("mass assignment")
		// What comes of a write that is allowed keeps all that its caller can't see, or can't write.
		for _, p := range []probe{
			{method: "PUT", path: askedItems + "/" + id + "?replace=true", body: `{"n": 1, "title": "new", "seo": {"title": "t"}, "parts": [{"sku": "a"}]}`},
			{method: "PUT", path: askedItems + "/" + id, body: `{"seo": null}`},
			{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{"op": "add", "path": "/seo/title", "value": "z"}, {"op": "replace", "path": "/title", "value": "newer"}]`},
			{method: "PUT", path: with(askedItems, "filter", `{"n": 1}`), body: `{"tags": []}`},
		} {
			a.send(p).want(t, http.StatusOK)
			if got := a.do("GET", askedItems+"/"+id, admin).body; !strings.Contains(got, `"secret":"canary-one"`) || !strings.Contains(got, `"score":40962`) || !strings.Contains(got, `"cost":40961`) || !strings.Contains(got, `"c":"canary"`) {
				t.Errorf("%s leaves %s", p, got)
			}
		}
		a.send(probe{method: "PUT", path: settings + "?replace=true", body: `{"title": "x"}`}).want(t, http.StatusOK)
		if got := a.do("GET", settings, admin).body; !strings.Contains(got, "canary-set") {
			t.Errorf("a replaced singleton is %s", got)
		}
	})
}

// ambiguous are JSON texts that parsers read in more than one way, or not at all.
var ambiguous = []string{
	`{"n": 1, "n": 2}`, `{"n": 1, "\u006e": 2}`, `{"seo": {"title": "a", "title": "b"}}`, `{"any": [{"a": 1, "a": 2}]}`, `{"parts": [{"sku": "a", "sku": "b"}]}`, `{"n": 1} {"n": 2}`, `{"n": 1},`, `{"n": 1,}`, `{n: 1}`, `{'n': 1}`,
	`{"n": 01}`, `{"n": +1}`, `{"n": .5}`, `{"n": 1.}`, `{"n": NaN}`, `{"n": Infinity}`, `{"n": -Infinity}`, `{"n": 1e309}`, `{"n": -1e309}`, `{"n": 0x10}`, `{"n": undefined}`, `{"n": 1} // x`, `{/* x */"n": 1}`,
	"{\"title\": \"\xff\"}", "{\"\xff\": 1}", "{\"title\": \"a\x00\"}", "{\"title\": \"a\nb\"}", `{"title": "\ud800"}`, `{"title": "\x41"}`, `{"title": "\u12"}`, "\xef\xbb\xbf{\"n\": 1}", "{\"n\": 1}\x00", `{"n": {"$numberLong": "1", "$numberLong": "2"}}`,
}

// S21: what a JSON text says is never a matter of who reads it: not twice a key, exact case, no NUL, nothing that is almost JSON; in
// bodies and in each parameter.
func TestS21AmbiguousJSON(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		one := askedItems + "/" + a.ids["one"]
		for _, j := range ambiguous {
			probes := []probe{
				{method: "POST", path: askedItems, body: j},
				{method: "PUT", path: one, body: j},
				{method: "PUT", path: one + "?replace=true", body: j},
				{"PATCH", one, "application/merge-patch+json", j},
				{"PATCH", one, "application/json", j},
				{method: "POST", path: askedItems, body: `{"items": [` + j + `]}`},
				{method: "PUT", path: with(askedItems, "filter", `{"n": 1}`), body: j},
				{method: "PUT", path: "/api/v1/_/shop/settings", body: j},
				{method: "POST", path: askedItems + "?dryRun=true", body: j},
				{"PATCH", one, "application/json-patch+json", `[{"op": "add", "path": "/any", "value": ` + j + `}]`},
				{method: "POST", path: "/api/v1/org", body: j},
				{method: "POST", path: "/api/v1/_/shop/_/admin/access/explain", body: j},
				{method: "POST", path: "/api/v1/login", body: j},
			}
			probes = append(probes, filterDoors(j)...)
			for _, name := range []string{"sort", "select", "lookup", "aggregate"} {
				value := j
				if name == "aggregate" {
					value = `[{"$match": ` + j + `}]`
				}
				probes = append(probes, probe{method: "GET", path: with(askedItems, name, value)})
			}
			for _, p := range probes {
				who := admin
				if strings.HasSuffix(p.path, "/login") {
					who = noop
				}
				if strings.HasSuffix(p.path, "?aggregate=%5B%5D") {
					continue
				}
				if got := a.send(p, who); got.status != http.StatusBadRequest || len(got.body) > 4000 {
					t.Errorf("%s: %s %.200s", p, got, got.body)
				}
			}
		}
		for _, p := range []probe{ // exact case
			{method: "POST", path: askedItems, body: `{"Title": "x"}`},
			{method: "POST", path: askedItems, body: `{"Items": [{"n": 1}]}`},
			{method: "POST", path: askedItems + "?bulk=true", body: `{"ITEMS": [{"n": 1}]}`},
			{method: "GET", path: with(askedItems, "filter", `{"N": 1}`)},
			{method: "GET", path: with(askedItems, "lookup", `{"From": "items", "localField": "n", "foreignField": "n"}`)},
			{method: "GET", path: with(askedItems, "aggregate", `[{"$Match": {}}]`)},
			{"PATCH", one, "application/json-patch+json", `[{"Op": "add", "path": "/n", "value": 1}]`},
			{"PATCH", one, "application/json-patch+json", `[{"op": "ADD", "path": "/n", "value": 1}]`},
			{"PATCH", one, "application/json-patch+json", `[{"op": "add", "path": "/n", "path": "/secret", "value": 1}]`},
			{method: "POST", path: "/api/v1/user", body: `{"username": "x", "Username": "y", "password": "` + password + `"}`},
			{method: "GET", path: with(askedItems, "Sort", "n")},
			{method: "GET", path: with(askedItems, "sort", "n", "Sort", "n")},
		} {
			if got := a.send(p, admin); got.status != http.StatusBadRequest {
				t.Errorf("%s: %s", p, got)
			}
		}
		a.untouched("ambiguous JSON")
	})
}

// S38: of many writers of one unique value exactly one has it, whatever writes there are: creates, in bulk, updates, patches, and
// dry runs, which have nothing.
func TestS38UniqueRaceOfAllWrites(t *testing.T) {
	rounds := 4
	if os.Getenv("SOAK") != "" {
		rounds = 200
	}
	onAsked(t, func(t *testing.T, a *asked) {
		var own []string
		for range 32 {
			own = append(own, a.create("items", `{"n": 100}`))
		}
		for round := range rounds {
			slug := fmt.Sprint("race", round)
			body := `{"n": 100, "slug": "` + slug + `"}`
			var probes []probe
			for i := range 16 {
				probes = append(
					probes, probe{method: "POST", path: askedItems, body: body}, probe{method: "POST", path: askedItems, body: `{"items": [` + body + `, ` + body + `]}`},
					probe{method: "PUT", path: askedItems + "/" + own[2*i], body: `{"slug": "` + slug + `"}`}, probe{method: "POST", path: askedItems + "?dryRun=true", body: body},
					probe{"PATCH", askedItems + "/" + own[2*i+1], "application/json-patch+json", `[{"op": "add", "path": "/slug", "value": "` + slug + `"}]`},
				)
			}
			var mu sync.Mutex
			won, lost := 0, 0
			var all sync.WaitGroup
			for _, p := range probes {
				all.Go(func() {
					got := a.send(p, admin)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case strings.Contains(p.path, "dryRun"):
					case strings.HasPrefix(p.body, `{"items"`) && strings.Contains(got.body, `"succeeded":1`), !strings.HasPrefix(p.body, `{"items"`) && got.status < 300:
						won++
					case got.status == http.StatusConflict, strings.Contains(got.body, `"succeeded":0`):
						lost++
					default:
						t.Errorf("%s: %s %s", p, got, got.body)
					}
				})
			}
			all.Wait()
			if won != 1 || won+lost != 64 {
				t.Errorf("round %d: %d have it, %d don't", round, won, lost)
			}
			filter := with(askedItems, "count", "true", "filter", `{"slug": "`+slug+`"}`)
			scan := with(askedItems, "count", "true", "filter", `{"slug": {"$regex": "`+slug+`$"}}`)
			for _, path := range []string{filter, scan} {
				if got := a.do("GET", path, admin).body; !strings.Contains(got, `"total":1`) {
					t.Errorf("round %d, %s: %s", round, path, got)
				}
			}
		}
	})
}
