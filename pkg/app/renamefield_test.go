package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// cards is a project of two collections with the same fields: those of old are called as names say, the beginning of a pair, or with
// renamed the end of it; those of new have been called so from the start.
func cards(renamed bool) string {
	const fields = `
    meta: {i18n: {languages: [en, de]}}
    audit: {enabled: true}
    queryLimits: {allowAggregate: true}
    hiddenFields: [<secret|hush>]
    fields:
      - {name: <title|heading>, type: string, index: [single]}
      - {name: <code|sku>, type: string, index: [unique, sparse], meta: {i18n: false}}
      - {name: <n|amount>, type: number, index: [single], meta: {i18n: false}}
      - {name: <secret|hush>, type: string, meta: {i18n: false}}
      - {name: <cover|picture>, type: file, meta: {i18n: false}}
      - name: <author|writer>
        type: object
        subFields: [{name: <full|fullname>, type: string}, {name: age, type: number}]
        meta: {i18n: false}
      - name: parts
        type: "object[]"
        subFields: [{name: <x|left>, type: number}, {name: y, type: string}]
        meta: {i18n: false}
    permissions:
      public: {methods: {get: true, post: true}, filter: {<n|amount>: {$gte: 0}}, readonlyFields: [<secret|hush>]}
      user: {methods: {get: {aggregate: true}, post: true, put: {bulk: true}, delete: true}}
`
	text := fields
	pair := regexp.MustCompile(`<(\w+)\|(\w+)>`)
	old := pair.ReplaceAllString(text, "$1")
	if renamed {
		old = regexp.MustCompile(`name: <(\w+)\|(\w+)>`).ReplaceAllString(text, "name: $2\n        renamedFrom: $1")
		old = strings.NewReplacer("{name: heading\n        renamedFrom: title", "{name: heading, renamedFrom: title").Replace(old)
		old = regexp.MustCompile(`\{name: (\w+)\n\s*renamedFrom: (\w+)`).ReplaceAllString(old, "{name: $1, renamedFrom: $2")
		old = pair.ReplaceAllString(old, "$2")
	}
	return "namespace: mag\ncollections:\n  - name: old" + old + "  - name: new" + pair.ReplaceAllString(text, "$2") + `
  - name: comments
    fields:
      - {name: on, type: string, meta: {foreign: {collection: old, key: ` + map[bool]string{false: "title", true: "heading"}[renamed] + `}}}
    permissions: {public: {methods: {get: {lookup: true, aggregate: true}, post: true}}, user: {methods: {}}}
    queryLimits: {allowAggregate: true}
`
}

// Fields that have other names have the values, indexes, translations and files that they had, and all that can be asked for is the same as
// where they were called so from the start.
func TestRenamedFields(t *testing.T) {
	onInstances(t, func(t *testing.T, all []*service) {
		s := all[0]
		s.register("mag", cards(false))
		s.caughtUp(all)
		bodies := []string{
			`{"<title|heading>": "one", "<code|sku>": "A", "<n|amount>": 1, "<secret|hush>": "s1", "<author|writer>": {"<full|fullname>": "Ann", "age": 30},
			  "parts": [{"<x|left>": 1, "y": "a"}, {"<x|left>": 2}], "<cover|picture>": {"src": "data:text/plain;base64,b25l", "path": "one.txt"}, "_i18n": {"de": {"<title|heading>": "eins"}}}`,
			`{"<title|heading>": "two", "<n|amount>": 2, "<author|writer>": {"<full|fullname>": "Bob"}, "parts": [{"<x|left>": 5, "y": "b"}]}`,
			`{"<title|heading>": "three", "<n|amount>": 3, "<secret|hush>": "s3"}`,
			`{"<title|heading>": "minus", "<n|amount>": -1}`,
		}
		pair := regexp.MustCompile(`<(\w+)\|(\w+)>`)
		ids := map[string][]string{}
		for _, body := range bodies {
			for name, as := range map[string]string{"old": "$1", "new": "$2"} {
				res := s.do("POST", mag+name, admin, text(pair.ReplaceAllString(body, as)))
				res.want(t, http.StatusCreated)
				ids[name] = append(ids[name], res.field("id"))
			}
		}
		s.do("POST", mag+"comments", admin, text(`{"on": "one"}`)).want(t, http.StatusCreated)
		old := mag + "old/" + ids["old"][0]

		s.configure("mag", cards(true))
		p := s.planOf()
		for _, it := range p.Items {
			if it.Action == "delete" || it.Kind == "index" && it.Action != "rename" || it.Risk == "destructive" {
				t.Errorf("the plan: %+v", it)
			}
		}
		s.do("POST", mag+"_/admin/reload?plan="+p.Hash+"&allow=breaking", admin).want(t, http.StatusOK)
		s.caughtUp(all)

		_, session1 := s.user("reader", nil)
		user := session(session1)
		ever := regexp.MustCompile(`"(createdAt|updatedAt)":"[^"]*",?|"etag":"[^"]*",?`)
		plain := func(body, name string) string {
			for i, id := range ids[name] {
				body = strings.ReplaceAll(body, id, "id"+string(rune('0'+i)))
			}
			body = strings.ReplaceAll(body, "/mag/"+name+"/", "/mag/x/")
			body = strings.ReplaceAll(body, "/id0/cover/", "/id0/picture/") // addresses that were given out stay
			return ever.ReplaceAllString(body, "")
		}
		members := regexp.MustCompile(`"(?:[^"\\]|\\.)*":`)
		// same asks for the same of both collections. Members come in the order in which they are stored: names decide on new ones.
		same := func(on *service, method, path, body string, as ...option) answer {
			t.Helper()
			var got [2]answer
			for i, name := range []string{"old", "new"} {
				options := as
				ask, send := path, body
				for k, id := range ids[name] {
					mark := "id" + string(rune('0'+k))
					ask, send = strings.ReplaceAll(ask, mark, id), strings.ReplaceAll(send, mark, id)
				}
				if body != "" {
					options = append(append([]option{}, as...), text(strings.ReplaceAll(send, "COLLECTION", name)))
				}
				got[i] = on.do(method, mag+name+strings.ReplaceAll(ask, "COLLECTION", name), options...)
			}
			a, b := plain(got[0].body, "old"), plain(got[1].body, "new")
			if got[0].status != got[1].status || a != b && !sameMembers(members, a, b) {
				t.Errorf("%s %s %s\nwas renamed: %s\nwas not:     %s", method, path, body, got[0].String()+" "+a, got[1].String()+" "+b)
			}
			return got[0]
		}
		queries := []string{
			"", "?sort=heading", "?sort=-amount,heading", "?filter[heading]=one", "?filter[title]=one", "?select=heading,writer.fullname", "?select=title", "?sort=title",
			"?filter=" + url.QueryEscape(`{"writer.fullname": {"$in": ["Ann", "Bob"]}}`),
			"?filter=" + url.QueryEscape(`{"parts": {"$elemMatch": {"left": {"$gt": 1}, "y": "b"}}}`),
			"?filter=" + url.QueryEscape(`{"parts.left": 2}`), "?filter=" + url.QueryEscape(`{"parts.0.left": 1}`),
			"?filter=" + url.QueryEscape(`{"writer": {"fullname": "Bob"}}`),
			"?filter=" + url.QueryEscape(`{"heading": {"$regex": "^t"}, "$or": [{"amount": 2}, {"amount": {"$exists": false}}]}`),
			"?filter=" + url.QueryEscape(`{"hush": "s1"}`), "?filter=" + url.QueryEscape(`{"secret": "s1"}`),
			"?limit=2&sort=amount&count=true", "/_count", "?facet=heading", "?facet=parts.left", "/_facet?fields=amount,writer.fullname", "/_facet?fields=title",
			"/id0", "/id0?lang=de", "?lang=de&sort=heading", "/id0/picture/one.txt", "/id0/title/one.txt",
			"?aggregate=" + url.QueryEscape(`[{"$match": {"amount": {"$gte": 1}}}, {"$sort": {"heading": 1}}, {"$project": {"heading": 1, "writer.fullname": 1}}]`),
			"?aggregate=" + url.QueryEscape(`[{"$group": {"_id": "$writer.fullname", "sum": {"$sum": "$amount"}}}, {"$sort": {"_id": 1}}]`),
			"?aggregate=" + url.QueryEscape(`[{"$unwind": "$parts"}, {"$group": {"_id": "$parts.left"}}, {"$sort": {"_id": 1}}]`),
			"?aggregate=" + url.QueryEscape(`[{"$sortByCount": "$heading"}, {"$sort": {"_id": 1}}]`),
			"?aggregate=" + url.QueryEscape(`[{"$match": {"hush": "s1"}}]`), "?aggregate=" + url.QueryEscape(`[{"$group": {"_id": "$secret"}}]`),
			"?aggregate=" + url.QueryEscape(`[{"$unionWith": {"coll": "COLLECTION"}}, {"$sort": {"amount": 1, "_id": 1}}]`),
			"?aggregate=" + url.QueryEscape(`[{"$lookup": {"from": "COLLECTION", "localField": "amount", "foreignField": "amount", "as": "same"}}, {"$sort": {"amount": 1}}]`),
		}
		for _, on := range all {
			if p := on.planOf(); !p.Empty {
				t.Errorf("afterwards: %+v", p.Items)
			}
			for _, query := range queries {
				same(on, "GET", query, "", admin)
				same(on, "GET", query, "", user)
				same(on, "GET", query, "")
			}
			if res := on.do("GET", mag+"comments?lookup=on", admin); !strings.Contains(res.body, `"on":{`) || !strings.Contains(res.body, `"heading":"one"`) {
				t.Errorf("the record that a comment is on: %s", res.body)
			}
			aggregate := url.QueryEscape(`[{"$lookup": {"from": "old", "localField": "on", "foreignField": "heading", "as": "all"}}]`)
			if res := on.do("GET", mag+"comments?aggregate="+aggregate, admin); !strings.Contains(res.body, `"heading":"one"`) {
				t.Errorf("looked up: %s", res.body)
			}
		}
		if res := s.do("GET", old+"/cover/one.txt"); res.body != "one" {
			t.Errorf("the file at its old address: %s", res)
		}

		on := all[len(all)-1]
		same(on, "POST", "", `{"sku": "A"}`, admin).want(t, http.StatusConflict)                                 // taken
		same(on, "POST", "", `{"heading": 5}`, admin).want(t, http.StatusBadRequest)                             // of the wrong type
		same(on, "PATCH", "/id0", `{"writer": {"age": 31}, "hush": "t"}`, admin).want(t, http.StatusOK)          // merged
		same(on, "PUT", "/id0", `{"heading": "uno", "parts": [{"left": 9}]}`, admin).want(t, http.StatusOK)      // with others as they are
		same(on, "PUT", "/id1?lang=de", `{"heading": "zwei"}`, admin).want(t, http.StatusOK)                     // a translation
		same(on, "PUT", "/id2?replace=true", `{"heading": "trois", "amount": 30}`, admin).want(t, http.StatusOK) // all of it
		same(on, "PUT", "/id1", `{"picture": {"src": "data:text/plain;base64,dHdv", "path": "two.txt"}}`, admin).want(t, http.StatusOK)
		same(on, "GET", "/id1/picture/two.txt", "", admin).want(t, http.StatusOK)
		same(on, "PUT", "/id0", `{"picture": {"src": "data:text/plain;base64,MQ==", "path": "1.txt"}}`, admin).want(t, http.StatusOK)
		same(on, "GET", "/id0/picture/one.txt", "", admin).want(t, http.StatusNotFound) // replaced
		same(on, "PUT", "?filter[heading]=uno", `{"amount": 20}`, admin).want(t, http.StatusOK)
		same(on, "PUT", "/id0", `{"title": "of no field"}`, admin).want(t, http.StatusOK)
		same(on, "DELETE", "/id3", "", admin).want(t, http.StatusOK)
		for _, on := range all {
			for _, query := range queries {
				same(on, "GET", query, "", admin)
				same(on, "GET", query, "")
			}
		}

		// Back, and forth again: what was written by one name is there by the other.
		s.do("POST", mag+"_/admin/rollback", admin, text(`{"generation": 1}`)).want(t, http.StatusOK)
		s.caughtUp(all)
		for _, on := range all {
			if res := on.do("GET", mag+"old/"+ids["old"][0], admin); res.field("title") != "uno" {
				t.Errorf("rolled back: %s", res.body)
			}
			if res := on.do("GET", old+"/cover/1.txt"); res.body != "1" {
				t.Errorf("rolled back, the file is %s", res)
			}
		}
		s.serve(strings.ReplaceAll(cards(true), "renamedFrom: title,", ""), all)
		for _, on := range all {
			if res := on.do("GET", mag+"old/"+ids["old"][0], admin); res.field("heading") != "uno" {
				t.Errorf("forth again: %s", res.body)
			}
		}
		taken := strings.Replace(cards(true), "      - {name: heading,", "      - {name: title, type: string}\n      - {name: heading,", 1)
		s.configure("mag", strings.ReplaceAll(taken, "renamedFrom: title,", ""))
		for _, path := range []string{"plan", "reload?wait=true"} {
			if res := s.do("POST", mag+"_/admin/"+path, admin); res.field("code") != "field_renamed" {
				t.Errorf("the old name for another: %s %s", path, res)
			}
		}
	})
}

// While a field gets another name, each answer has the one or the other, as its generation says, with the value; and what is written
// through an instance that is behind is there by the new name.
func TestRenameFieldUnderCallers(t *testing.T) {
	onInstances(t, func(t *testing.T, all []*service) {
		s := all[0]
		s.register("mag", cards(false))
		s.caughtUp(all)
		first := s.do("POST", mag+"old", admin, text(`{"title": "x", "code": "0", "n": 1}`))
		first.want(t, http.StatusCreated)
		generation := first.header.Get(api.HeaderGeneration)
		names := func(res answer) (title, code, n string) {
			if res.header.Get(api.HeaderGeneration) == generation {
				return "title", "code", "n"
			}
			return "heading", "sku", "amount"
		}
		var callers sync.WaitGroup
		var wrote atomic.Int64
		stop := make(chan struct{})
		for k := range 8 {
			callers.Go(func() {
				on := all[k%len(all)]
				for i := 0; ; i++ {
					res := on.do("GET", mag+"old/"+first.field("id"), admin)
					title, code, n := names(res)
					if res.status != http.StatusOK || res.field(title) != "x" {
						t.Errorf("generation %s: %s %s", res.header.Get(api.HeaderGeneration), res, res.body)
					}
					body := fmt.Sprintf(`{%q: "x", %q: "%d-%d", %q: 2}`, title, code, k, i, n)
					res = on.do("POST", mag+"old", admin, text(body))
					if res.status != http.StatusCreated || res.field(title) != "x" {
						t.Errorf("%s: %s %s", body, res, res.body)
					}
					if as, _, _ := names(res); as == title { // else these are names of no fields by now
						wrote.Add(1)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		eventually(t, func() string {
			if n := wrote.Load(); n < 16 {
				return fmt.Sprintf("%d records were written", n)
			}
			return ""
		})
		s.configure("mag", cards(true))
		s.do("POST", mag+"_/admin/reload?wait=true", admin).want(t, http.StatusOK)
		s.caughtUp(all)
		close(stop)
		callers.Wait()
		for _, on := range all {
			var got struct{ Count int64 }
			res := on.do("GET", mag+"old/_count?filter="+url.QueryEscape(`{"heading": "x", "sku": {"$exists": true}, "amount": 2}`), admin)
			if err := json.Unmarshal([]byte(res.body), &got); err != nil || got.Count < wrote.Load() {
				t.Errorf("%d were written, and there are %s", wrote.Load(), res.body)
			}
		}
	})
}

// What a reader may not see is not in entries of the log either that were written before a field was renamed.
func TestAuditOfRenamedFields(t *testing.T) {
	onInstances(t, func(t *testing.T, all []*service) {
		s := all[0]
		config := func(title, secret, n string) string {
			field := func(name string) string {
				name, from, renamed := strings.Cut(name, "<")
				if renamed {
					name += ", renamedFrom: " + from
				}
				return "{name: " + name + ", type: any}"
			}
			now := func(name string) string { name, _, _ = strings.Cut(name, "<"); return name }
			return "namespace: mag\ncollections:\n  - name: comments\n    audit: {enabled: true}\n    fields: [" + field(title) + ", " + field(secret) + ", " + field(n) + "]\n" +
				"    permissions: {public: {methods: {}}, user: {methods: {get: true}, hiddenFields: [" + now(secret) + "], filter: {" + now(n) + ": {$ne: 5}}}}\n"
		}
		s.register("mag", config("title", "secret", "n"))
		s.caughtUp(all)
		ids := map[string]string{}
		for _, n := range []string{"1", "5"} {
			res := s.do("POST", mag+"comments", admin, text(`{"title": "t`+n+`", "secret": "canary", "n": `+n+`}`))
			res.want(t, http.StatusCreated)
			ids[n] = res.field("id")
		}
		s.do("PUT", mag+"comments/"+ids["1"], admin, text(`{"title": "t2"}`)).want(t, http.StatusOK)
		_, reader := s.user("reader", map[string]any{"scopes": []string{"audit.read"}})
		before := s.do("GET", mag+"_/audit", session(reader)).body
		for _, c := range []string{config("heading<title", "hush<secret", "amount<n"), config("headline<heading", "quiet<hush", "sum<amount")} {
			s.serve(c, all)
			for _, on := range all {
				res := on.do("GET", mag+"_/audit", session(reader))
				if res.status != http.StatusOK || strings.Contains(res.body, "canary") || strings.Contains(res.body, ids["5"]) {
					t.Errorf("the reader sees %s", res.body)
				}
				if strings.Count(res.body, `"recordId"`) != strings.Count(before, `"recordId"`) || !strings.Contains(res.body, `"t2"`) {
					t.Errorf("the reader sees %s, and before %s", res.body, before)
				}
				if res := on.do("GET", mag+"_/audit", admin); !strings.Contains(res.body, "canary") || !strings.Contains(res.body, ids["5"]) || strings.Contains(res.body, `"title"`) {
					t.Errorf("an administrator sees %s", res.body)
				}
				on.do("GET", "/api/v1/audit/verify?project=mag", admin).want(t, http.StatusOK)
			}
		}
		s.do("PUT", mag+"comments/"+ids["1"], admin, text(`{"headline": "t3", "quiet": "canary2"}`)).want(t, http.StatusOK)
		if res := s.do("GET", mag+"_/audit", session(reader)); !strings.Contains(res.body, `"headline":"t3"`) || strings.Contains(res.body, "canary") {
			t.Errorf("then the reader sees %s", res.body)
		}
	})
}

// sameMembers says that two texts have the same members, if in another order.
func sameMembers(members *regexp.Regexp, a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[string]int{}
	for _, m := range members.FindAllString(a, -1) {
		count[m]++
	}
	for _, m := range members.FindAllString(b, -1) {
		count[m]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
