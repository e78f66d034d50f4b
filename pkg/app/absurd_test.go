package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// repeated is a list of n values.
func repeated(n int, value func(i int) string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = value(i)
	}
	return strings.Join(out, ",")
}

// S19: every limit on what a query may ask for holds by every door, each with its own text.
func TestS19QueryComplexity(t *testing.T) {
	deep := strings.Repeat(`{"$and":[`, 8) + `{"n":1}` + strings.Repeat(`]}`, 8)
	relations := repeated(6, func(i int) string { return fmt.Sprintf(`{"author.name": "%d"}`, i) })
	join := func(more string) string {
		return `{"from": "items", "localField": "n", "foreignField": "n", "as": "x"` + more + `}`
	}
	onAsked(t, func(t *testing.T, a *asked) {
		limited := func(p probe, want string) {
			t.Helper()
			if got := a.send(p); got.status != http.StatusBadRequest || !strings.Contains(got.String(), want) {
				t.Errorf("%s: %s, want %s", p, got, want)
			}
		}
		for filter, want := range map[string]string{
			deep: "deep, the limit is", `{"$or": [` + repeated(101, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) }) + `]}`: "clauses, the limit is 100",
			`{"n": {"$in": [` + repeated(1001, strconv.Itoa) + `]}}`: "1001 values, the limit is 1000", `{"n": {"$nin": [` + repeated(1001, strconv.Itoa) + `]}}`: "1001 values, the limit is 1000",
			`{"title": {"$regex": "` + strings.Repeat("a", 300) + `"}}`: "regular expression",
		} {
			for _, p := range filterDoors(filter) {
				limited(p, want)
			}
		}
		for _, p := range filterDoors(`{"$or": [` + relations + `]}`) {
			if !strings.Contains(p.path, "aggregate=%5B%7B") && !strings.Contains(p.path, "_changes") { // which go through no relation
				limited(p, "read other collections more than 5 times")
			}
		}
		long := `{"title": "` + strings.Repeat("a", 8200) + `"}`
		for _, p := range filterDoors(long)[:12] {
			limited(p, "bytes long, the limit is 8192")
		}
		for _, p := range shortDoors("filter[title]", strings.Repeat("a", 8200)) {
			limited(p, "bytes long, the limit is 8192")
		}
		for _, p := range shortDoors("filter[n][in]", repeated(1001, strconv.Itoa)) {
			limited(p, "1001 values, the limit is 1000")
		}
		nine := "title,n,slug,fixed,author,shut,createdAt,updatedAt,_rev"
		directions := `{` + repeated(9, func(i int) string { return quoted(strings.Split(nine, ",")[i]) + ":1" }) + `}`
		for _, tt := range []struct{ name, value, want string }{
			{"sort", nine, "9 fields, the limit is 8"},
			{"sort", directions, "9 fields, the limit is 8"},
			{"aggregate", `[{"$sort": ` + directions + `}]`, "9 fields, the limit is 8"},
			{"lookup", join(`, "sort": "` + nine + `"`), "9 fields, the limit is 8"},
			{"limit", "1001", "the highest allowed is 1000"},
			{"offset", "10001", "the highest allowed is 10000"},
			{"lookup", join(`, "limit": 1001`), "the highest allowed in items is 1000"},
			{"lookup", `"` + strings.Repeat("x", 9000), "lookup is 9001 bytes long, the limit is 8192"},
			{"lookup", `[` + repeated(6, func(i int) string { return strings.Replace(join(""), `"x"`, fmt.Sprintf(`"x%d"`, i), 1) }) + `]`, "more than 5 times"},
			{"lookup", join(`, "lookup": ` + join(`, "lookup": `+join(`, "lookup": `+join(`, "lookup": `+join(""))))), "behind each other"},
			{"aggregate", `[` + repeated(21, func(int) string { return `{"$skip": 0}` }) + `]`, "stages"},
			{"aggregate", `[{"$facet": {"a": [` + repeated(11, func(int) string { return `{"$skip": 0}` }) + `], "b": [` + repeated(11, func(int) string { return `{"$skip": 0}` }) + `]}}]`, "stages"},
			{"aggregate", `[` + repeated(6, func(int) string {
				return `{"$lookup": {"from": "items", "localField": "n", "foreignField": "n", "as": "x"}}`
			}) + `]`, "more than 5 stages"},
			{"facet", repeated(17, func(i int) string { return "any.a" + strconv.Itoa(i) }), "17 fields"},
			{"after", strings.Repeat("A", 9000), "after must be"},
		} {
			limited(probe{method: "GET", path: with(askedItems, tt.name, tt.value)}, tt.want)
		}
		limited(probe{method: "GET", path: askedItems + "?" + strings.Repeat("x=1&", 1000)}, "more than 1000 query parameters")
		limited(probe{method: "GET", path: askedItems + "/_facet?fields=" + repeated(17, func(i int) string { return "any.a" + strconv.Itoa(i) })}, "17 fields")
		a.untouched("absurd queries")
	})
}

// inherited are names that every object of JavaScript has, or that make others of it.
var inherited = []string{"__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"}

// S22: names that mean something to JavaScript are names like others: nothing is found by them, and nothing is made of them.
func TestS22PrototypeNames(t *testing.T) {
	onAsked(t, func(t *testing.T, a *asked) {
		id := a.ids["one"]
		for _, name := range inherited {
			for _, path := range []string{name, "any." + name, "seo." + name, name + "." + name, "author." + name, "_i18n." + name, "_i18n.de." + name} {
				probes := append(append(filterDoors(`{`+quoted(path)+`: "x"}`), shortDoors("filter["+path+"]", "x")...), pathDoors(path, id)...)
				for _, p := range probes {
					got := a.send(p)
					open := strings.HasPrefix(path, "any.") // any member may be in it
					if open && got.status == http.StatusOK && !strings.Contains(got.body, "native code") {
						continue
					}
					if open && strings.Contains(p.path, "_changes") { // a feed, with nothing in it
						continue
					}
					if got.status != http.StatusBadRequest {
						t.Errorf("%s: %s %.300s", p, got, got.body)
					}
				}
			}
			for _, p := range []probe{
				{method: "POST", path: askedItems, body: `{"` + name + `": {"n": 1}}`},
				{method: "PUT", path: askedItems + "/" + id, body: `{"` + name + `": {"n": 1}}`},
				{method: "PUT", path: askedItems + "/" + id, body: `{"seo": {"` + name + `": 1}}`},
				{method: "PUT", path: askedItems + "/" + id, body: `{"` + name + `": null}`},
				{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{"op": "add", "path": "/` + name + `", "value": 1}]`},
				{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{"op": "copy", "from": "/` + name + `", "path": "/title"}]`},
				{"PATCH", askedItems + "/" + id, "application/json-patch+json", `[{"op": "test", "path": "/` + name + `/name", "value": "Object"}]`},
				{method: "POST", path: "/api/v1/org", body: `{"name": "x", "` + name + `": 1}`},
				{method: "GET", path: with(askedItems, "projection", name)},
				{method: "GET", path: with(askedItems, "after", name)},
				{method: "GET", path: askedItems + "?" + name + "=1"},
				{method: "GET", path: askedItems + "?" + name + "[x]=1"},
				{method: "GET", path: with(askedItems, "lang", name)},
				{method: "GET", path: with(askedItems, "count", name)},
				{method: "GET", path: askedItems + "/" + name},
				{method: "GET", path: with(askedItems, "lookup", `{"`+name+`": "items"}`)},
				{method: "GET", path: with(askedItems, "aggregate", `[{"`+name+`": {}}]`)},
				{method: "GET", path: with(askedItems, "aggregate", `[{"$`+name+`": {}}]`)},
				{method: "GET", path: with(askedItems, "aggregate", `[{"$project": {"x": {"$`+name+`": 1}}}]`)},
				{method: "GET", path: with(askedItems, "filter", `{"n": {"$`+name+`": 1}}`)},
				{method: "GET", path: with(askedItems, "filter[n]["+name+"]", "1")},
				{method: "POST", path: "/api/v1/_/shop/_/admin/access/explain", body: `{"principal": {"kind": "` + name + `"}, "method": "get", "collection": "items"}`},
				{method: "POST", path: "/api/v1/_/shop/_/admin/access/explain", body: `{"principal": {"kind": "anonymous"}, "method": "` + name + `", "collection": "` + name + `"}`},
			} {
				if strings.Contains(p.path, "%24toString") {
					continue // is an operator
				}
				if got := a.send(p, admin); got.status < 400 || got.status >= 500 {
					t.Errorf("%s: %s %.300s", p, got, got.body)
				}
			}
			for _, path := range []string{"/_/shop/" + name, "/_/" + name + "/items", "/_/shop/_/collections/" + name, "/_/shop/_/actions/" + name, "/_/shop/_/actions/" + name + "/describe", "/_/shop/_/jobs/" + name, "/_/shop/_/jobs/" + name + "/runs", "/_meta/" + name, "/" + name} {
				if got := a.do("GET", "/api/v1"+path, admin); got.status != http.StatusNotFound {
					t.Errorf("%s: %s", path, got)
				}
			}
			for _, stages := range []string{ // names that the caller makes are members of documents, and no more
				`{"$project": {"` + name + `": "$n"}}`, `{"$group": {"_id": null, "` + name + `": {"$sum": "$n"}}}`, `{"$facet": {"` + name + `": []}}`, `{"$count": "` + name + `"}`, `{"$set": {"` + name + `": {"` + name + `": 1}}}`, `{"$unwind": {"path": "$tags", "includeArrayIndex": "` + name + `"}}`,
				`{"$lookup": {"from": "authors", "localField": "author", "foreignField": "_id", "as": "` + name + `"}}`, `{"$graphLookup": {"from": "authors", "startWith": "$author", "connectFromField": "_id", "connectToField": "_id", "as": "` + name + `", "depthField": "` + name + `"}}`,
				`{"$replaceWith": {"$arrayToObject": [[["` + name + `", 1]]]}}`, `{"$project": {"x": {"$setField": {"field": "` + name + `", "input": {}, "value": 1}}}}`, `{"$project": {"x": {"$getField": "` + name + `"}}}`, `{"$project": {"x": {"$let": {"vars": {"v": 1}, "in": "$$` + name + `"}}}}`,
			} {
				got := a.do("GET", with(askedItems, "aggregate", `[{"$limit": 1}, `+stages+`]`))
				if got.status != http.StatusOK && got.status != http.StatusBadRequest || strings.Contains(got.body, "native code") || strings.Contains(got.body, "canary") {
					t.Errorf("%s: %s %.300s", stages, got, got.body)
				}
			}
		}
		a.untouched("names of prototypes")
		if got := a.do("PUT", askedItems+"/"+id, text(`{"title": "__proto__", "tags": ["constructor"]}`)); got.status != http.StatusOK { // as values they are texts
			t.Error(got)
		}
		if got := a.do("GET", askedItems+"?facet=title,tags&filter[tags]=constructor").body; !strings.Contains(got, `"title":[{"value":"__proto__","count":1}]`) || !strings.Contains(got, `{"value":"constructor","count":1}`) {
			t.Error(got)
		}
		const choosy = "namespace: other\ncollections: [{name: items, fields: [{name: kind, type: string, meta: {choices: [__proto__, constructor, a], defaultValue: constructor}}], permissions: {public: {methods: {get: true, post: true}}, user: {methods: {}}}}]\n"
		a.register("other", choosy)
		for body, want := range map[string]string{`{}`: `"kind":"constructor"`, `{"kind": "__proto__"}`: `"kind":"__proto__"`, `{"kind": "toString"}`: "must be one of", `{"kind": "prototype"}`: "must be one of"} {
			if got := a.do("POST", "/api/v1/_/other/items", text(body)); !strings.Contains(got.body, want) {
				t.Errorf("%s: %s", body, got.body)
			}
		}
		for _, name := range inherited[:3] { // no record could have them
			a.configure("bad", strings.Replace(strings.Replace(choosy, "namespace: other", "namespace: bad", 1), "name: kind", "name: "+name, 1))
			if got := a.do("POST", "/api/v1/project", admin, text(`{"name": "bad", "configFile": "bad/project.yaml", "enabled": true}`)); got.status != http.StatusUnprocessableEntity {
				t.Errorf("a field of the name %s: %s", name, got)
			}
		}
	})
}

// absurd are values that nobody means well with.
func absurd() map[string]string {
	return map[string]string{
		"a filter 100 deep":            strings.Repeat(`{"$and":[`, 100) + `{"n":1}` + strings.Repeat(`]}`, 100),
		"100 times not":                `{"n": ` + strings.Repeat(`{"$not":`, 100) + `{"$eq":1}` + strings.Repeat(`}`, 100) + `}`,
		"an object 1000 deep":          strings.Repeat(`{"any":`, 1000) + `1` + strings.Repeat(`}`, 1000),
		"brackets":                     strings.Repeat(`[`, 20_000),
		"braces":                       strings.Repeat(`{"a":`, 10_000),
		"10,000 values":                `{"n": {"$in": [` + strings.Repeat("1,", 9_999) + `1]}}`,
		"10,000 members":               `{` + repeated(5_000, func(i int) string { return fmt.Sprintf(`"f%d":1`, i) }) + `}`,
		"$where below":                 `{"$or": [{"$nor": [{"any": {"$not": {"$where": "while(1);"}}}]}]}`,
		"a pattern that explodes":      `{"title": {"$regex": "((a{100}){100}){100}"}}`,
		"a pattern with a look around": `{"title": {"$regex": "(?=(a+)+)b\\1"}}`,
		"a key twice":                  `{"n": 1, "n": 1}`,
		"a key twice, below":           `{"any": {"a": [{"b": 1, "b": 1}]}}`,
		"NaN":                          `{"n": NaN}`,
		"Infinity":                     `{"n": Infinity}`,
		"1e309":                        `{"n": 1e309}`,
		"a number of 10,000 digits":    `{"n": ` + strings.Repeat("9", 10_000) + `}`,
		"an exponent of 9 digits":      `{"n": 1e999999999}`,
		"a number that is a decimal":   `{"n": {"$numberDecimal": "1e999999"}}`,
		"no UTF-8":                     "{\"title\": \"\xff\xfe\"}",
		"half a surrogate":             `{"title": "\ud800"}`,
		"NUL in a name":                `{"a\u0000b": 1}`,
		"an endless name":              `{"` + strings.Repeat("n", 5_000) + `": 1}`,
		"an endless path":              `{"` + strings.Repeat("a.", 3_000) + `a": 1}`,
		"an over-long id":              `{"id": "` + strings.Repeat("a", 3_000) + `"}`,
		"a date that is none":          `9999999-99-99T99:99:99Z`,
		"a date out of range":          `{"createdAt": {"$date": {"$numberLong": "99999999999999999999"}}}`,
		"a prototype":                  `{"__proto__": {"n": 1}, "n": 1}`,
		"an empty name":                `{"": 1}`,
		"no object":                    `"x"`,
		"half a text":                  `{"title": "`,
	}
}

// allowance is what the service may allocate for one request that it refuses, in bytes.
const allowance = 24 << 20

// TestAbsurdInput: whatever is absurd is a 4xx with a clear text by each parameter that takes JSON or paths, and on each write route;
// it costs little, is not repeated at length, and leaves nothing behind.
func TestAbsurdInput(t *testing.T) {
	fine := map[string]bool{"a number that is a decimal": true, "an over-long id": true} // in filters, where nothing is equal to them
	onAsked(t, func(t *testing.T, a *asked) {
		one := askedItems + "/" + a.ids["one"]
		values := absurd()
		for _, name := range slices.Sorted(maps.Keys(values)) {
			v := values[name]
			probes := filterDoors(v)
			for _, parameter := range []string{"sort", "select", "lookup", "aggregate", "facet", "after", "projection", "lang", "limit", "offset", "count"} {
				probes = append(probes, probe{method: "GET", path: with(askedItems, parameter, v)})
			}
			probes = append(probes, probe{method: "GET", path: with(one, "select", v)}, probe{method: "GET", path: with(one, "lookup", v)}, probe{method: "GET", path: with(askedItems+"/_facet", "fields", v)}, probe{method: "GET", path: with(askedItems+"/_changes", "select", v)},
				probe{method: "GET", path: with(askedItems, "aggregate", `[{"$project": {"x": `+v+`}}, {"$match": {"$where": 1}}]`)}, probe{method: "GET", path: with(askedItems, "aggregate", `[`+v+`]`)},
				probe{method: "GET", path: with(askedItems, "filter["+v+"]", "1")}, probe{method: "GET", path: with(askedItems, "filter[n]["+v+"]", "1")}, probe{method: "GET", path: with(askedItems, "filter[n][in]", v)}, probe{method: "DELETE", path: with(askedItems, "filter[createdAt]", v)},
				probe{method: "GET", path: with("/api/v1/user", "filter", v)}, probe{method: "GET", path: with("/api/v1/_/shop/_/audit", "filter", v)}, probe{method: "GET", path: with("/api/v1/org", "sort", v)},
			)
			for _, body := range []string{v, `{"any": ` + v + `, "title": 5}`} {
				for _, p := range []probe{
					{method: "POST", path: askedItems},
					{method: "POST", path: askedItems + "?dryRun=true"},
					{method: "PUT", path: one},
					{method: "PUT", path: one + "?replace=true"},
					{method: "PUT", path: one + "?lang=de"},
					{"PATCH", one, "application/merge-patch+json", ""},
					{"PATCH", one, "application/json-patch+json", ""},
					{method: "PUT", path: with(askedItems, "filter", `{"n": 1}`)},
					{method: "PUT", path: "/api/v1/_/shop/settings"},
					{method: "POST", path: "/api/v1/org"},
					{method: "POST", path: "/api/v1/team"},
					{method: "POST", path: "/api/v1/project"},
					{method: "POST", path: "/api/v1/user"},
					{method: "POST", path: "/api/v1/_/shop/_/admin/access/explain"},
				} {
					p.body = body
					probes = append(probes, p)
				}
			}
			probes = append(probes, probe{"PATCH", one, "application/json-patch+json", `[{"op": "add", "path": "/nope", "value": ` + v + `}]`}, probe{"PATCH", one, "application/json-patch+json", `[{"op": "test", "path": ` + quoted("/"+v) + `, "value": 1}]`}, probe{method: "POST", path: askedItems, body: `{"items": [` + v + `]}`})
			for _, p := range probes {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got := a.send(p, admin)
				runtime.ReadMemStats(&after)
				show := name + ": " + fmt.Sprintf("%.200s", p)
				if used := after.TotalAlloc - before.TotalAlloc; used > allowance {
					t.Errorf("%s: took %d bytes", show, used)
				}
				if len(got.body) > 16<<10 {
					t.Errorf("%s: %d bytes of an answer", show, len(got.body))
				}
				partly := strings.Contains(got.body, `"succeeded":0`)
				if fine[name] && got.status == http.StatusOK && (p.method == "GET" || strings.Contains(p.path, "filter=")) {
					continue
				}
				if !partly && (got.status < 400 || got.status >= 500 || got.status != http.StatusRequestURITooLong && got.status != 431 && (got.field("code") == "" || len(got.field("detail")) < 5)) {
					t.Errorf("%s: %s %.300s", show, got, got.body)
				}
			}
		}
		a.untouched("absurd input")
	})
}
