package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/status"
)

// searched is the config of a blog whose posts are searched.
func searched(how string) string {
	return "namespace: blog\ncollections:\n  - name: posts\n    fields: [{name: title, type: string}, {name: body, type: string}]\n" + how +
		"    permissions: {public: {methods: {}}, user: {methods: {}}}\n"
}

// TestSearchReady tells how the indexes of searches stand.
func TestSearchReady(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		w := newWorld(t, s, t.TempDir(), nil)
		_, id := w.serve(searched("    search: [{name: main, mode: text, fields: [title]}]\n"))
		w.wantConditions(id, map[string]string{status.SearchReady: "True Indexed", status.Ready: "True Serving"})
		w.serveAnew(id, searched("    search: [{name: main, mode: text, fields: [body]}]\n"))
		w.wantConditions(id, map[string]string{status.SearchReady: "False Stale", status.Ready: "True Serving"})
		w.serveAnew(id, searched("    search: [{name: main, mode: text, fields: [body], autoRegenerate: true}]\n"))
		w.wantConditions(id, map[string]string{status.SearchReady: "True Indexed", status.Ready: "True Serving"})
		w.serveAnew(id, searched("    search: [{name: main, mode: text, fields: [body], eval: ctx.doc.body, autoRegenerate: true}]\n")) // which nothing runs here
		insert(t, s.Database("svc_blog").Collection("posts"), bson.D{{Key: "body", Value: "x"}})
		eventually(t, func() string {
			if err := w.reconcile("search", id); err != nil {
				return err.Error()
			}
			shown, _ := w.Board.Get(id)
			c, _ := shown.Condition(status.SearchReady)
			return cmp.Diff("1 search; the eval of posts/main fails for 1 record", c.Message)
		})
		w.serveAnew(id, searched(""))
		eventually(t, func() string { return w.condition(id, status.SearchReady) })
	})
}
