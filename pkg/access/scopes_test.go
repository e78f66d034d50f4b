package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
)

// TestEveryScopeOfTheInterface goes through the scopes that the interface names: each can be given to a user and by them to a
// token, has an effect, and is nothing but itself; namespace.<ns> is all that is in the project.
func TestEveryScopeOfTheInterface(t *testing.T) {
	scopes := []string{
		"namespace.blog", "namespace.blog.articles.read", "namespace.blog.articles.create", "namespace.blog.articles.update",
		"namespace.blog.articles.delete", "namespace.blog._actions.publish.read", "namespace.blog._actions.publish.create",
		"project.read", "project.reload", "project.regenerate-search", "project.backup", "project.snapshot", "user.read", "user.create",
		"user.update", "user.delete", "org.read", "team.read", "audit.read", "llm.chat", "server.shutdown",
	}
	if system := scopes[7:]; !cmp.Equal(slices.Sorted(slices.Values(system)), slices.Sorted(slices.Values(api.Scopes()))) {
		t.Error(cmp.Diff(system, api.Scopes()))
	}
	places := []access.Place{{Namespace: "blog", Collections: []string{"articles"}}, {Namespace: "shop", Collections: []string{"items"}}}
	wider := func(a, b string) bool { return a == "namespace.blog" && strings.HasPrefix(b, a+".") }
	for _, given := range scopes {
		if !access.ValidScope(given) {
			t.Errorf("%s can't be given", given)
		}
		user := &access.Principal{Kind: access.KindUser, ID: "u", Scopes: []string{given}}
		boss := &access.Principal{Kind: access.KindUser, ID: "b", IsAdmin: true}
		pat := &access.Principal{Kind: access.KindPAT, ID: "b", IsAdmin: true, Cap: []string{given}}
		weak := &access.Principal{Kind: access.KindPAT, ID: "u", Cap: []string{given}}
		if !slices.Contains(access.Grantable(user, places), given) {
			t.Errorf("who has %s can't give it to a token", given)
		}
		for _, right := range scopes {
			want := right == given || wider(given, right)
			if user.Has(right) != want || pat.Has(right) != want {
				t.Errorf("with %s: %s is %v for a user and %v for a token", given, right, user.Has(right), pat.Has(right))
			}
			if !boss.Has(right) || weak.Has(right) {
				t.Errorf("%s: %v for an administrator, %v for a token whose owner lacks it", right, boss.Has(right), weak.Has(right))
			}
		}
	}
	for _, bad := range []string{
		"", "namespace", "namespace.", "namespace.blog.", "namespace.blog.articles", "namespace.blog.articles.write", "namespace.blog._actions.read",
		"namespace.blog._actions.publish", "namespace.blog._actions.publish.update", "namespace.blog.articles.read.x", "namespace..read", "project.*", "*",
		"project.create", "org.create", "PROJECT.READ", "project.read ", "keys.rotate", "audit.verify",
	} {
		if access.ValidScope(bad) {
			t.Errorf("%q can be given", bad)
		}
	}
}

// TestGrantable is what a caller may put into a token, of two projects of which they reach one.
func TestGrantable(t *testing.T) {
	places := []access.Place{{Namespace: "blog", Collections: []string{"articles"}}}
	user := func(scopes ...string) *access.Principal {
		return &access.Principal{Kind: access.KindUser, ID: "u", Scopes: scopes}
	}
	all := []string{
		"namespace.blog", "namespace.blog.articles.create", "namespace.blog.articles.delete", "namespace.blog.articles.read", "namespace.blog.articles.update",
	}
	for name, tt := range map[string]struct {
		who  *access.Principal
		want []string
	}{
		"nobody":    {nil, []string{}},
		"no scopes": {user(), []string{}},
		"its own, beyond what is known of the project": {
			user("namespace.blog._actions.publish.create", "namespace.blog.drafts.read", "namespace.blog.articles.read", "project.read"),
			[]string{"namespace.blog._actions.publish.create", "namespace.blog.articles.read", "namespace.blog.drafts.read", "project.read"},
		},
		"a wildcard":              {user("namespace.blog"), all},
		"of a project beyond one": {user("namespace.away", "namespace.away.x.read", "namespace.blogs.x.read"), []string{}},
		"an administrator": {
			&access.Principal{Kind: access.KindUser, ID: "b", IsAdmin: true}, slices.Sorted(slices.Values(append(api.Scopes(), all...))),
		},
		"the admin token's kind is no user's": {&access.Principal{Kind: access.KindToken}, []string{}},
	} {
		if diff := cmp.Diff(tt.want, access.Grantable(tt.who, places)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
