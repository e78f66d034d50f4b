package httpapi

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
)

const headerForwardedProto = "X-Forwarded-Proto"

// sessionCookie gives a browser a session: the token itself, out of reach of scripts, and not sent along with what other
// sites ask for, but for links to here.
func (r *request) sessionCookie(session auth.Session) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the browser speaks TLS
		Name: api.CookieSession, Value: session.Token, Path: "/", Expires: session.ExpiresAt,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.encrypted(),
	}
}

// clearCookie takes the session cookie from the browser.
func (r *request) clearCookie(h http.Header) {
	c := r.sessionCookie(auth.Session{}) //nolint:gosec // as the one that it clears
	c.MaxAge = -1
	h.Add("Set-Cookie", c.String())
}

// cookie gives the session token of the cookie. It counts only where no other credential is given: browsers send cookies
// without being asked.
func (r *request) cookie() (string, error) {
	value := ""
	for _, c := range r.CookiesNamed(api.CookieSession) {
		if value != "" && c.Value != value { // a site beside this one may have put its own there
			return "", errs.New(errs.Invalid, "two_credentials", "the cookie %s is given more than once", api.CookieSession)
		}
		value = c.Value
	}
	return value, nil
}

// sameOrigin refuses what another site has a browser write with the session cookie. Sites tell of themselves in
// Sec-Fetch-Site or Origin; a request with neither is no browser's. A form's media type is refused, too: it is the
// one that browsers send across sites without asking.
func (r *request) sameOrigin() error {
	var protection http.CrossOriginProtection
	if err := protection.Check(r.Request); err != nil {
		return errs.New(errs.Denied, "cross_origin",
			"another site may not write with this one's session cookie; send the token in %s", api.HeaderAuthToken)
	}
	if r.safe() || r.Header.Get("Content-Type") == "" {
		return nil
	}
	_, err := r.mediaType(api.MediaJSON, api.MediaMergePatch, api.MediaJSONPatch)
	return err
}

// encrypted says whether the client's own connection is TLS: to here, or to a trusted proxy that says so. A client that
// lies about it only keeps itself from getting the cookie.
func (r *request) encrypted() bool {
	if r.TLS != nil {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !r.server.trusts(peer.Addr().Unmap()) {
		return false
	}
	words := append(r.Header.Values(headerForwardedProto), r.Header.Values(headerForwarded)...)
	for _, word := range strings.FieldsFunc(strings.Join(words, ","), func(c rune) bool { return strings.ContainsRune(",; ", c) }) {
		word = strings.ToLower(word)
		if word == "https" || word == "proto=https" || word == `proto="https"` {
			return true
		}
	}
	return false
}
