package app_test

import (
	"net/http"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
)

// A run of an action that another instance has given up writes nothing more, from that moment on: whoever starts it anew
// is not disturbed by it.
func TestLostActionRunWritesNothing(t *testing.T) {
	uri := emptyMongo(t, "svc_press")
	s := run(t, func(c *app.Config) { c.StoreURI = uri })
	s.file("press", "print.js", `module.exports = async (ctx) => {
  const pages = db.collection('pages', {asUser: ctx.data.asUser})
  for (let n = 0; ; n++) {
    if (n % 3 === 0) await pages.insert({n})
    else if (n % 3 === 1) await pages.update({n: 0}, {again: n})
    else await db.transaction((tx) => tx.collection('pages', {asUser: ctx.data.asUser}).insert({n}))
  }
}`)
	s.register("press", `
namespace: press
actions:
  - name: print
    hooks: {handle: {type: javascript, file: print.js}}
    permissions: {public: {methods: {}}, user: {methods: {}}}
    meta: {methods: {post: {execution: {kind: async}}}}
collections:
  - name: pages
    fields: [{name: n, type: number}, {name: again, type: number}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
`)
	other, err := mongo.Open(t.Context(), mongo.Options{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const pages = "/api/v1/_/press/pages"
	for _, data := range []string{`{"asUser": true}`, `{"asUser": false}`} {
		started := s.do("POST", "/api/v1/_/press/_/actions/print", admin, text(data))
		started.want(t, http.StatusAccepted)
		before := s.do("GET", pages+"/count", admin).body
		eventually(t, func() string {
			if now := s.do("GET", pages+"/count", admin).body; now == before {
				return "the run writes nothing"
			}
			return ""
		})
		id, err := bson.Marshal(bson.D{{Key: "_id", Value: started.field("id")}})
		if err != nil {
			t.Fatal(err)
		}
		// As another instance does that has not heard of this one for long.
		results, err := other.Database("svc_press").Collection("svc.runs").Write(t.Context(), []store.Op{{
			Kind: store.Update, ID: bson.Raw(id).Lookup("_id"), Update: mql.MustCompileUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "status", Value: "lost"}}}}),
		}}, true)
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results)
		}
		left := s.do("GET", pages+"?limit=1000", admin).body
		if ended := s.ended(started.header.Get("Location"), admin); !strings.Contains(ended, `"status":"lost"`) {
			t.Error(ended)
		}
		if now := s.do("GET", pages+"?limit=1000", admin).body; now != left {
			t.Errorf("the run wrote on:\n%s\n%s", left, now)
		}
	}
}
