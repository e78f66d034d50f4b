package access

import (
	"encoding/json"
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
	KindPAT       Kind = "pat"       // a personal access token of an active user
	KindToken     Kind = "token"     // a Token header: a collection token or a project admin token, as the project says
	KindAdmin     Kind = "admin"     // the server admin token
	KindService   Kind = "service"   // the service itself, such as for a script of a project; nobody can show it
)

// Principal is who is calling. It is made once for a request and not changed; only active users become one, by a
// session or by one of their personal access tokens.
type Principal struct {
	Kind    Kind
	ID      string   // of a user, also behind a personal access token: 24 hex digits
	Name    string   // for logs and the audit log
	IsAdmin bool     // of a user: may do everything
	Scopes  []string // of a user: own and their teams' scopes together
	Limited bool     // of a user: only has to do with the orgs of OrgIDs
	OrgIDs  []string // of a user: the active orgs they belong to, in hex
	TeamIDs []string // of a user, in hex
	Teams   []string // of a user: the slugs of the teams, which permission sets name
	// of a user: sessions that began with another one are void
	TokenVersion int64
	PATVersion   int64    // of a user: personal access tokens that were made with another one are void
	TokenID      string   // of a personal access token: its id, 24 hex digits
	Cap          []string // of a personal access token: its scopes, without which its owner's rights are nothing
	TokenHash    [32]byte // of a token: SHA-256 of the header's value
}

// Anonymous is a caller without a credential.
func Anonymous() *Principal { return &Principal{Kind: KindAnonymous} }

// Fingerprint stands for all that decides what a caller may see and do: it is the same as long as that is. Whatever their
// rights come to mean, a member of Principal that they depend on has to be in it.
func (p *Principal) Fingerprint() []byte {
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) } // as sets
	key, err := json.Marshal([]any{
		p.Kind, p.ID, p.Name, p.IsAdmin, sorted(p.Scopes), p.Limited, sorted(p.OrgIDs), sorted(p.TeamIDs), sorted(p.Teams),
		p.TokenID, sorted(p.Cap), p.TokenHash[:],
	})
	if err != nil { // not possible: texts and truth values
		return nil
	}
	return key
}

// Full says that the caller may do everything: the server admin token, and users who are admins. A personal access
// token never may, whoever owns it.
func (p *Principal) Full() bool {
	if p == nil {
		return false
	}
	return p.Kind == KindAdmin || p.Kind == KindService || p.Kind == KindUser && p.isUser() && p.IsAdmin
}

// isUser says that there is a user behind the caller.
func (p *Principal) isUser() bool { return (p.Kind == KindUser || p.Kind == KindPAT) && p.ID != "" }

// IsUser says that the caller is the user with an id, whatever they came with.
func (p *Principal) IsUser(id string) bool { return p != nil && p.isUser() && p.ID == id }

// InOrg says whether the caller has to do with what belongs to an org; orgID is in hex, "" for what belongs to none. Who
// is limited to orgs has nothing to do with that.
func (p *Principal) InOrg(orgID string) bool {
	switch {
	case p == nil:
		return false
	case p.Kind == KindAdmin, p.Kind == KindService:
		return true
	case !p.isUser():
		return false
	}
	return p.IsAdmin || !p.Limited || orgID != "" && slices.Contains(p.OrgIDs, orgID)
}

// Foreign says that the caller is limited to other orgs than the one of orgID: what belongs to it isn't there for them.
func (p *Principal) Foreign(orgID string) bool { return p != nil && p.isUser() && !p.InOrg(orgID) }

// Has says whether the caller has a right: a system right such as ProjectRead, or a right inside a project such as
// "namespace.blog.articles.read". Nobody has a right that doesn't exist. A personal access token has those of its scopes
// that its owner has, too.
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
	if p.Kind == KindPAT && !Covers(p.Cap, right) {
		return false
	}
	return p.IsAdmin || Covers(p.Scopes, right)
}

// IsAmong says whether a list of scopes, slugs of teams and names of users names the caller. What is a scope is nothing else. A personal
// access token is named by scopes alone, of those that it has: what else its owner may do, it does not bring along.
func (p *Principal) IsAmong(list []string) bool {
	if p == nil || !p.isUser() {
		return false
	}
	for _, name := range list {
		switch {
		case ValidScope(name):
			if p.Has(name) {
				return true
			}
		case p.Kind == KindUser && (slices.Contains(p.Teams, name) || strings.ToLower(name) == p.Name): // as usernames are stored
			return true
		}
	}
	return false
}

// Effective gives the scopes that the caller can use now: a user's own, and those of a personal access token that its
// owner has, too. Of an administrator's, that is all of them.
func (p *Principal) Effective() []string {
	switch {
	case p == nil:
		return nil
	case p.Kind != KindPAT:
		return p.Scopes
	}
	var out []string
	for _, s := range p.Cap {
		if p.Has(s) {
			out = append(out, s)
		}
	}
	for _, s := range p.Scopes { // narrower ones below the token's namespace.<ns>
		if p.Has(s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Covers says whether scopes give a right: by its name, or as namespace.<ns> for all that is in it.
func Covers(scopes []string, right string) bool {
	if slices.Contains(scopes, right) {
		return true
	}
	rest, ok := strings.CutPrefix(right, namespacePrefix)
	if !ok {
		return false
	}
	namespace, _, _ := strings.Cut(rest, ".")
	return slices.Contains(scopes, right[:len(namespacePrefix)+len(namespace)])
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
