package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// filtersOn are all requests whose filter says something of a path.
func filtersOn(path string) (out []probe) {
	for _, c := range conditions(path) {
		out = append(out, filterDoors(c)...)
	}
	for _, op := range []string{"", "[gte]", "[exists]", "[regex]", "[in]", "[ne]"} {
		out = append(out, shortDoors("filter["+path+"]"+op, "1")...)
	}
	return out
}

// S1: to name a hidden field is like naming one that isn't there, whatever asks.
func TestS1FilterOracle(t *testing.T) {
	onAsked(t, func(_ *testing.T, a *asked) {
		id := a.ids["one"]
		a.alike("secret", "secrex", append(filtersOn("secret"), pathDoors("secret", id)...), append(filtersOn("secrex"), pathDoors("secrex", id)...))
		a.untouched("filters on a hidden field")
	})
}

// S3: what is hidden is so with all that is in it, by whatever path, in reads and in writes.
func TestS3PathsBelow(t *testing.T) {
	naming := func(path, id string) []probe {
		out := append(filterDoors(`{`+quoted(path)+`: "x"}`), filterDoors(`{`+quoted(path)+`: {"$exists": true}}`)...)
		return append(append(out, shortDoors("filter["+path+"][gte]", "1")...), pathDoors(path, id)...)
	}
	onAsked(t, func(_ *testing.T, a *asked) {
		for _, p := range []struct{ path, hidden, absent string }{
			{"plan.b.c", "plan", "plax"},
			{"plan.0.b", "plan", "plax"},
			{"plan.$[].b", "plan", "plax"},
			{"seo.score", "score", "scorx"},
			{"seo.0.score", "score", "scorx"},
			{"seo.score.x", "score", "scorx"},
			{"parts.cost", "cost", "cosx"},
			{"parts.0.cost", "cost", "cosx"},
			{"parts.$[].cost", "cost", "cosx"},
			{"secret.0", "secret", "secrex"},
			{"_i18n.de.secret", "secret", "secrex"},
			{"_i18n.de.seo.score", "score", "scorx"},
			{"_i18n.de.parts.0.cost", "cost", "cosx"},
		} {
			id := a.ids["one"]
			a.alike(p.hidden, p.absent, naming(p.path, id), naming(strings.Replace(p.path, p.hidden, p.absent, 1), id))
		}
		for _, p := range []struct{ hidden, absent string }{{"/secret", "/secrex"}, {"/plan/b/c", "/plax/b/c"}, {"/plan/b", "/plax/b"}, {"/seo/score", "/seo/scorx"}, {"/parts/0/cost", "/parts/0/cosx"}} {
			first, second := patches(askedItems+"/"+a.ids["one"], p.hidden), patches(askedItems+"/"+a.ids["one"], p.absent)
			for i := range first {
				got, want := a.send(first[i]), a.send(second[i])
				hidden, absent := strings.Split(p.hidden, "/"), strings.Split(p.absent, "/")
				expected := whole(want)
				for j := range hidden[1:] {
					expected = strings.ReplaceAll(expected, absent[j+1], hidden[j+1])
				}
				if whole(got) != expected || got.status != http.StatusBadRequest && got.status != http.StatusConflict && !strings.Contains(got.body, `"succeeded":0`) {
					a.t.Errorf("%s\nhidden %s\nabsent %s", first[i], whole(got), expected)
				}
			}
		}
		a.untouched("naming what is hidden")
	})
}

// patches are changes of a record that name a path.
func patches(record, path string) []probe {
	jsonPatch := func(op string) probe {
		return probe{"PATCH", record, "application/json-patch+json", `[` + strings.ReplaceAll(op, "P", path) + `]`}
	}
	names := strings.Split(path[1:], "/")
	body := `"x"`
	for _, name := range slices.Backward(names) {
		if name == "0" {
			body = `[` + body + `]`
		} else {
			body = `{"` + name + `": ` + body + `}`
		}
	}
	out := []probe{
		jsonPatch(`{"op": "test", "path": "P", "value": "canary-one"}`), jsonPatch(`{"op": "test", "path": "P", "value": 1}`),
		jsonPatch(`{"op": "add", "path": "P", "value": 1}`), jsonPatch(`{"op": "replace", "path": "P", "value": 1}`), jsonPatch(`{"op": "remove", "path": "P"}`),
		jsonPatch(`{"op": "copy", "from": "P", "path": "/title"}`), jsonPatch(`{"op": "move", "from": "P", "path": "/title"}`),
		jsonPatch(`{"op": "copy", "from": "/title", "path": "P"}`), jsonPatch(`{"op": "add", "path": "P/x", "value": 1}`), jsonPatch(`{"op": "test", "path": "P/x", "value": 1}`),
	}
	for _, b := range []string{body, strings.ReplaceAll(body, `"x"`, `null`), joined(strings.ReplaceAll(body, `"x"`, `null`), `"n": "x"`), joined(body, `"zzz": 1`), joined(body, `"zzz": null`), joined(body, `"n": "x", "at": 1`), joined(body, `"fixed": "x"`), joined(body, `"createdBy": "x", "a.b": 1`), joined(body, `"_i18n": {"de": {"zzz": 1}}`)} {
		for _, q := range []string{"", "?replace=true", "?dryRun=true", "?lang=de"} {
			out = append(out, probe{"PUT", record + q, "", b})
		}
		out = append(
			out, probe{"PATCH", record, "application/merge-patch+json", b}, probe{"PUT", with(askedItems, "filter", `{"n": 1}`), "", b},
			probe{"POST", askedItems, "", b}, probe{"POST", askedItems + "?lang=de", "", b}, probe{"POST", askedItems, "", `{"items": [` + b + `]}`}, probe{"POST", askedItems + "?dryRun=true", "", b},
		)
	}
	return out
}

// joined adds members to a body.
func joined(body, members string) string { return strings.TrimSuffix(body, "}") + ", " + members + "}" }

// S4: a filter is looked through on all its levels.
func TestS4LogicalNesting(t *testing.T) {
	naming := func(path string) (out []probe) {
		for _, c := range []string{`{` + quoted(path) + `: "x"}`, `{` + quoted(path) + `: {"$not": {"$exists": true}}}`} {
			for _, f := range nested(c) {
				out = append(out, filterDoors(f)...)
			}
		}
		return out
	}
	onAsked(t, func(_ *testing.T, a *asked) {
		a.alike("secret", "secrex", naming("secret"), naming("secrex"))
		a.alike("score", "scorx", naming("seo.score"), naming("seo.scorx"))
		inside := func(name string) (out []probe) {
			for _, f := range []string{
				`{"parts": {"$elemMatch": {"` + name + `": 1}}}`, `{"parts": {"$elemMatch": {"$or": [{"sku": "a"}, {"$nor": [{"` + name + `": {"$gt": 1}}]}]}}}`,
				`{"parts": {"$not": {"$elemMatch": {"` + name + `": 1}}}}`, `{"parts": {"$all": [{"$elemMatch": {"` + name + `": 1}}]}}`,
			} {
				out = append(out, filterDoors(f)...)
			}
			return out
		}
		a.alike("cost", "cosx", inside("cost"), inside("cosx"))
		for _, f := range []string{`{"$expr": {"$eq": ["$secret", 1]}}`, `{"$and": [{"$nor": [{"$expr": {"$eq": ["$absent", 1]}}]}]}`, `{"$comment": "x"}`, `{"$jsonSchema": {}}`, `{"$text": {"$search": "x"}}`} {
			for _, p := range filterDoors(f) {
				if got := a.send(p); got.status != http.StatusBadRequest || !strings.Contains(got.body, "is not supported") && !strings.Contains(got.body, "is for scripts only") {
					a.t.Errorf("%s: %s", p, got)
				}
			}
		}
		a.untouched("nested filters")
	})
}
