package access

import (
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

// Kind says what a caller has shown. The zero Kind may do nothing.
type Kind string

// The kinds of callers.
const (
	KindAnonymous Kind = "anonymous" // no credential
	KindUser      Kind = "user"      // a logged-in user, who is active
	KindToken     Kind = "token"     // a Token header: a collection token or a project admin token, as the project says
	KindAdmin     Kind = "admin"     // the server admin token
)

// Principal is who is calling. It is made once for a request and not changed; only active users become one.
type Principal struct {
	Kind      Kind
	ID        string   // of a user: 24 hex digits
	Name      string   // for logs and the audit log
	IsAdmin   bool     // of a user: may do everything
	Scopes    []string // of a user: own and their teams' scopes together
	OrgIDs    []string // of a user, in hex; empty is no org limit
	TeamIDs   []string // of a user, in hex
	Teams     []string // of a user: the slugs of the teams, which permission sets name
	TokenHash [32]byte // of a token: SHA-256 of the header's value
}

// Anonymous is a caller without a credential.
func Anonymous() *Principal { return &Principal{Kind: KindAnonymous} }

// Full says that the caller may do everything: the server admin token, and users who are admins.
func (p *Principal) Full() bool {
	if p == nil {
		return false
	}
	return p.Kind == KindAdmin || p.isUser() && p.IsAdmin
}

func (p *Principal) isUser() bool { return p.Kind == KindUser && p.ID != "" }

// Has says whether the caller has a right: a system right such as ProjectRead, or a right inside a project such as
// "namespace.blog.articles.read". Nobody has a right that doesn't exist.
func (p *Principal) Has(right string) bool {
	if p == nil {
		return false
	}
	grantable := ValidScope(right)
	if p.Full() {
		return grantable || slices.Contains(adminOnly(), right)
	}
	if !grantable || !p.isUser() {
		return false
	}
	if slices.Contains(p.Scopes, right) {
		return true
	}
	rest, ok := strings.CutPrefix(right, namespacePrefix)
	if !ok {
		return false
	}
	namespace, _, _ := strings.Cut(rest, ".")
	return slices.Contains(p.Scopes, namespacePrefix+namespace)
}

// Require is nil if the caller has a system right, else the denial to answer with. The rights of a project's admin
// token are the project's: see AdminTokens.
func (p *Principal) Require(right string) error {
	switch {
	case p.Has(right):
		return nil
	case p != nil && p.Kind == KindToken:
		return errs.New(errs.Denied, "permission_denied", "permission denied: admin token lacks permission %s", right)
	}
	return errs.ErrDenied
}
