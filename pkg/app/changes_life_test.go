package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// Feeds end when their reader may not read them any more, whichever way, though nothing changes.
func TestChangesEndWithTheRight(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { changesEnd(t, run(t, nil)) })
	t.Run("mongodb", func(t *testing.T) {
		uri := emptyMongo(t, "svc_shop")
		changesEnd(t, run(t, func(c *app.Config) { c.StoreURI = uri }))
	})
}

func changesEnd(t *testing.T, s *service) {
	t.Helper()
	const path, project = "/api/v1/_/shop/items/_changes", "/api/v1/project/"
	id := s.register("shop", shopConfig)
	org := s.do("POST", "/api/v1/org", admin, text(`{"name": "acme"}`)).field("id")
	other := s.do("POST", "/api/v1/org", admin, text(`{"name": "beta"}`)).field("id")
	s.do("PUT", project+id, admin, json1(map[string]any{"orgId": org})).want(t, http.StatusOK)
	member := map[string]any{"orgIds": []string{org}}
	gone, goneToken := s.user("gone", member)
	moved, movedToken := s.user("moved", member)
	_, leaver := s.user("leaver", member)
	_, owner := s.user("owner", map[string]any{"orgIds": []string{org}, "scopes": []string{"namespace.shop"}})
	pat := s.do("POST", "/api/v1/token", session(owner), text(`{"name": "p", "scopes": ["namespace.shop"]}`))
	pat.want(t, http.StatusCreated)
	streams := map[string]<-chan error{
		"a deactivated user": s.follow(path, session(goneToken)), "a user of another org": s.follow(path, session(movedToken)),
		"a session that ended": s.follow(path, session(leaver)), "a revoked token": s.follow(path, session(pat.field("token"))),
	}
	byToken, public, rest := s.follow(path, token(readToken)), s.follow(path, noop), s.follow(path, admin)
	s.do("PUT", "/api/v1/user/"+gone, admin, text(`{"active": false}`)).want(t, http.StatusOK)
	s.do("PUT", "/api/v1/user/"+moved, admin, json1(map[string]any{"orgIds": []string{other}})).want(t, http.StatusOK)
	s.do("POST", "/api/v1/logout", session(leaver)).want(t, http.StatusNoContent)
	s.do("DELETE", "/api/v1/token/"+pat.field("id"), session(owner)).want(t, http.StatusOK)
	for name, ended := range streams {
		over(t, name, ended)
	}
	s.configure("shop", strings.Replace(shopConfig, `"token:`+readToken+`": {methods: {get: true}}`, "", 1))
	s.do("POST", "/api/v1/_/shop/_/admin/reload?wait=true", admin).want(t, http.StatusOK)
	over(t, "a token that the config has no more", byToken)
	select {
	case <-public:
		t.Error("the feed of everybody ended, too")
	case <-rest:
		t.Error("the feed of the administrator ended, too")
	default:
	}
	s.do("PUT", project+id, admin, text(`{"enabled": false}`)).want(t, http.StatusOK)
	over(t, "everybody, of a project that is switched off", public)
	over(t, "the administrator, of a project that is switched off", rest)
}

const ownConfig = `
namespace: blog
collections:
  - name: articles
    fields:
      - {name: title, type: string}
      - {name: n, type: number}
      - {name: owner, type: string}
      - {name: secret, type: string, hidden: true}
      - {name: pay, type: number, hidden: {eval: "ctx.doc && ctx.doc.n > 1"}}
      - {name: author, type: string, meta: {foreign: {collection: articles}}}
    meta: {i18n: {languages: [en, de], default: en}}
    bulk: {maxItems: 10000}
    permissions:
      public: {methods: {}}
      user: {methods: {get: {allow: true, lookup: true}}, filter: {owner: {$var: user.id}}}
`

// Who may read their own records is told of those alone: when one comes to them, changes, and goes to somebody else, without what
// is hidden.
func TestChangesOfOwnRecords(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		edit(t, cfg, ownConfig)
		i := start(t, cfg)
		i.register(t)
		s, p := &service{t: t, url: "http://" + i.addr}, pen{t, i.addr}
		ann, annToken := s.user("ann", nil)
		bob, bobToken := s.user("bob", nil)
		put := func(id, body string) { t.Helper(); p.do("PUT", "/"+id, body) }
		create := func(owner string) string {
			t.Helper()
			return p.do("POST", "", fmt.Sprintf(`{"owner": %q, "n": 1, "title": "T", "pay": 7, "secret": "canary", "_i18n": {"de": {"title": "D"}}}`, owner)).field("id")
		}
		hers, his := connect(t, i.addr, "", "", session(annToken)), connect(t, i.addr, "?lang=de&select=title", "", session(bobToken))
		a := create(ann)
		hers.want("create", a, `"pay":7`)
		put(a, `{"n": 2, "secret": "canary-2"}`)
		if got := hers.next(); !strings.HasPrefix(got, "update ") || strings.Contains(got, "pay") || strings.Contains(got, "canary") {
			t.Errorf("a field that is hidden by now: %s", got)
		}
		put(a, fmt.Sprintf(`{"owner": %q}`, bob))
		hers.want("delete", a, `{"id":"`+a+`"}`)
		his.want("create", a, `"item":{"id":"`+a+`","title":"D"}`)
		put(a, `{"n": 1}`)
		his.want("update", a, `"title":"D"`)
		p.remove(a)
		his.want("delete", a, "")
		unseen := create("nobody")
		put(unseen, `{"n": 5}`)
		p.remove(unseen)
		hers.want("create", create(ann), "") // and nothing of all that was bob's or nobody's
		his.want("create", create(bob), "")
		for _, tt := range []struct{ query, want string }{
			{"?filter[author.title]=T", "400 unknown_field: unknown field: author.title"}, // a relation's records change without this one
			{"?select=pay", "400 unknown_field: unknown field: pay"},
			{"?filter[pay]=7", "400 unknown_field: unknown field: pay"},
			{"?lang=fr", "400 unknown_language: unknown language: fr; articles has en, de"},
			{"?lookup=author", "400 unknown_parameter: unknown query parameter: lookup"},
		} {
			if got := connect(t, i.addr, tt.query, "", session(annToken)).status.String(); got != tt.want {
				t.Errorf("%s: %s", tt.query, got)
			}
		}
	})
}

// A write of many records is told record by record, none is left out, and who breaks off in the middle goes on there.
func TestChangesOfABulkWrite(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		const many = 10_000
		edit(t, cfg, ownConfig)
		i := start(t, cfg)
		i.register(t)
		s := &service{t: t, url: "http://" + i.addr}
		ann, annToken := s.user("ann", nil)
		hers, all := connect(t, i.addr, "", "", session(annToken)), connect(t, i.addr, "", "", admin)
		var items strings.Builder
		for n := range many {
			if n > 0 {
				items.WriteByte(',')
			}
			fmt.Fprintf(&items, `{"n": %d, "owner": %q}`, n, ann)
		}
		created := s.do("POST", "/api/v1/_/blog/articles", admin, text(`{"items": [`+items.String()+`]}`), header("Prefer", "return=minimal"))
		created.want(t, http.StatusCreated)
		for who, f := range map[string]*feed{"all": all, "hers": hers} {
			seen, cut := map[string]bool{}, 0
			goOn := func() {
				f.close()
				*f = *connect(t, i.addr, "", f.last, map[string]option{"all": admin, "hers": session(annToken)}[who])
			}
			for n := 0; len(seen) < many; n++ {
				if n == many/2 {
					goOn()
				}
				got := f.next()
				if got == "" && cut < 5 { // as a reader who took nothing while others read, or while the machine did something else
					cut++
					goOn()
					continue
				}
				_, rest, ok := strings.Cut(got, `create {"id":"`)
				if !ok {
					t.Fatalf("%s, after %d records: %q", who, len(seen), got)
				}
				seen[rest[:24]] = true
			}
		}
	})
}

// What one instance writes is in the feeds of another, which is where a reader of the first can go on, too.
func TestChangesOnTwoInstances(t *testing.T) {
	cfg := onMongo(t)
	edit(t, cfg, feedConfig)
	one := start(t, cfg)
	one.register(t)
	two := start(t, cfg)
	eventually(t, func() string {
		if _, err := two.CountRecords(t.Context(), "blog", "articles", ""); err != nil {
			return err.Error()
		}
		return ""
	})
	p, q := pen{t, one.addr}, pen{t, two.addr}
	public := connect(t, two.addr, "", "", noop)
	a := p.create(1)
	public.want("create", a, `"n":1`)
	q.set(a, 2)
	public.want("update", a, `"n":2`)
	p.set(a, -1)
	public.want("delete", a, "")
	b := p.create(1)
	public.want("create", b, "")
	two.stop()
	p.remove(b)
	moved := connect(t, one.addr, "", public.last, noop)
	moved.want("delete", b, "")
	moved.want("create", p.create(3), `"n":3`)
}

// A reader who takes nothing keeps nobody waiting: neither other readers, nor the end of the service.
func TestChangesOfAReaderWhoTakesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, cfg app.Config) {
		edit(t, cfg, feedConfig)
		i := start(t, cfg)
		i.register(t)
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", i.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4096) //nolint:forcetypeassert // it is one
		if _, err := io.WriteString(conn, "GET /api/v1/_/blog/articles/_changes HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		quick, p := connect(t, i.addr, "?select=n", "", noop), pen{t, i.addr}
		large := strings.Repeat("x", 500_000)
		for range 24 { // more than buffers on the way hold
			id := p.do("POST", "", `{"n": 1, "title": "`+large+`"}`).field("id")
			quick.want("create", id, "")
		}
		i.stop()
		if got := quick.next(); !strings.HasPrefix(got, "stopping ") {
			t.Errorf("the feed ends with %q", got)
		}
	})
}

// A feed goes on when the database comes back, on its own or when its reader connects again, and nothing is missing.
func TestChangesWhenMongoDBIsKilled(t *testing.T) {
	mongotest.URI(t) // says loudly when there is none
	server, err := mongotest.Start(t.Context())
	if err != nil {
		t.Skipf("no MongoDB can be started here: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	cfg := newConfig(t)
	cfg.StoreURI = server.URI
	edit(t, cfg, feedConfig)
	i := start(t, cfg)
	i.register(t)
	p := pen{t, i.addr}
	all, public := connect(t, i.addr, "", "", admin), connect(t, i.addr, "", "", noop)
	before := p.create(1)
	all.want("create", before, "")
	public.want("create", before, "")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	s, after := &service{t: t, url: "http://" + i.addr}, ""
	eventually(t, func() string {
		res := s.do("POST", "/api/v1/_/blog/articles", admin, text(`{"n": 2}`))
		after = res.field("id")
		if res.status != http.StatusCreated {
			return res.String()
		}
		return ""
	})
	for who, f := range map[string]*feed{"all": all, "public": public} {
		for {
			got := f.next()
			if strings.HasPrefix(got, `create {"id":"`+after) {
				break
			}
			if got == "" {
				f = connect(t, i.addr, "", f.last, map[string]option{"all": admin, "public": noop}[who])
			}
		}
	}
}
