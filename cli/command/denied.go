package command

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/settings"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// hintTimeout bounds what a hint waits for.
const hintTimeout = 2 * time.Second

// hintDenied says what to do about a refusal for lack of rights.
func (st *State) hintDenied(ctx context.Context, e *client.Error) string {
	t := st.target
	switch {
	case t == nil:
		return ""
	case e.Path == api.Prefix+api.RouteMCP:
		return "svcctl token create NAME --scope project.read,namespace.<project> makes one, for a user who is logged in; give it by --token-file or SVCCTL_TOKEN"
	case !t.credential.Set() && t.foreign():
		login := "svcctl login"
		if st.isSet == nil || !st.isSet("server") { // the flag is shown with it
			login += " -s " + t.server.Server
		}
		return "no credential was sent: that of the context " + t.context.Name + " belongs to another server; run " + login + ", or give --token, --admin-token-file or --collection-token"
	case !t.credential.Set():
		return "no credential was sent: run svcctl login, or give --token, --admin-token-file or --collection-token"
	case t.user != nil && !t.user.ExpiresAt.IsZero() && t.user.ExpiresAt.Before(st.Now()):
		return "the login ended at " + t.user.ExpiresAt.UTC().Format(api.TimeLayout) + ": run svcctl login"
	case t.credential.CollectionToken != "" && asksWho(e):
		return "a collection token, or an admin token of a project, is nobody to the service: only its project knows it"
	case t.credential.CollectionToken != "":
		return "the collection token is wrong, or it may not do that"
	case t.credential.AdminToken != "" && e.Path == api.Prefix+api.RouteTokens:
		return "personal access tokens are users', and the admin token is nobody: run svcctl login"
	case e.Problem.Right != "": // so the credential itself is good
		return "you lack the right " + e.Problem.Right + "; svcctl whoami shows who you are and what you may do"
	case !asksWho(e) && !st.refused(ctx):
		return "svcctl whoami shows who you are and what you may do"
	case t.credential.AdminToken != "":
		return "the service does not take the admin token: it is wrong, or the service has none"
	}
	return st.hintRefused()
}

// hintRefused says what to do where the service takes the credential for nobody's: what ends, and how there is another one, depends on where it is from.
func (st *State) hintRefused() string {
	t := st.target
	user := t.user
	switch {
	case user != nil && len(user.TokenCommand) > 0:
		return "the token that the tokenCommand of the context " + t.context.Name + " prints is wrong, revoked or over: " + anotherToken
	case user != nil && user.TokenFile != "":
		return "the token in " + user.TokenFile + ", where the context " + t.context.Name + " reads it, is wrong, revoked or over: " + anotherToken
	case strings.HasPrefix(t.credential.Token, settings.TokenPrefix):
		return "the personal access token is wrong, revoked or over: " + anotherToken
	}
	return "your login is over, or the credential is wrong: run svcctl login"
}

// anotherToken is not with the flags of this command, which Reach would add to svcctl.
const anotherToken = "its user makes another one (token create)"

// asksWho says that what was refused is the question that every good credential may ask.
func asksWho(e *client.Error) bool { return e.Path == api.Prefix+api.RouteMe }

// refused asks whether the service refuses the credential itself. No answer is no.
func (st *State) refused(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	c, err := st.Client()
	if err != nil {
		return false
	}
	_, err = c.Me(ctx)
	return client.IsStatus(err, http.StatusForbidden)
}
