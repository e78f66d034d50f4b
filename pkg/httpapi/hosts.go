package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/schema"
)

const headerForwardedHost = "X-Forwarded-Host"

// CheckHosts says what is wrong with the names of the admin front and of site fronts, for whoever set them.
func CheckHosts(admin []string, fronts map[string]string) error {
	_, err := prefixesOf(admin, fronts)
	return err
}

// prefixesOf gives the path for which /api stands, by host: that of the API on the admin front, that of a project on a
// site's.
func prefixesOf(admin []string, fronts map[string]string) (map[string]string, error) {
	prefixes := make(map[string]string, len(admin)+len(fronts))
	add := func(host, prefix string) error {
		name := hostName(host)
		if _, err := netip.ParseAddr(host); err == nil {
			name = host
		} else if name == "" || strings.ContainsAny(host, "/:@?#* ") {
			return fmt.Errorf("%q is no host name such as www.example.com: give it without scheme, port and path", host)
		}
		if other, twice := prefixes[name]; twice && other != prefix {
			return fmt.Errorf("%q is given twice: a host is the front of one project, or the admin front", name)
		}
		prefixes[name] = prefix
		return nil
	}
	for _, host := range admin {
		if err := add(host, api.Prefix); err != nil {
			return nil, err
		}
	}
	for _, host := range slices.Sorted(maps.Keys(fronts)) {
		if !schema.IsNamespace(fronts[host]) {
			return nil, fmt.Errorf("%q is no namespace of a project, such as blog", fronts[host])
		}
		if err := add(host, api.Prefix+"/_/"+fronts[host]); err != nil {
			return nil, err
		}
	}
	return prefixes, nil
}

// hostName is a host as hosts are compared: without port, brackets, a last dot, and in lower case.
func hostName(host string) string {
	u := url.URL{Host: host}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// hosts maps the paths of the admin front and of site fronts to the API's own: /api/… becomes the front's prefix. What
// begins with /api/v1/ means the same on every host, and so does what is not below /api/.
func (s *Server) hosts(prefixes map[string]string, next http.Handler) http.Handler {
	if len(prefixes) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, isAPI := strings.CutPrefix(r.URL.EscapedPath(), "/api/")
		if isAPI && !strings.HasPrefix(rest, "v1/") {
			if prefix, ok := s.front(prefixes, r); ok {
				r = withPath(r, prefix+"/"+rest)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// front finds the front that a request asks for. What a trusted proxy says counts only where the request itself names no
// front: a proxy that passes on both the Host and what clients write into X-Forwarded-Host would otherwise let them choose
// the site whose answer a cache keeps for this one. Of several values the last is the proxy's own.
func (s *Server) front(prefixes map[string]string, r *http.Request) (prefix string, ok bool) {
	if prefix, ok = prefixes[hostName(r.Host)]; ok {
		return prefix, true
	}
	said := strings.Join(r.Header.Values(headerForwardedHost), ",")
	if said == "" {
		return "", false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !s.trusts(peer.Addr().Unmap()) {
		return "", false
	}
	prefix, ok = prefixes[hostName(strings.TrimSpace(said[strings.LastIndexByte(said, ',')+1:]))]
	return prefix, ok
}

// withPath is r with another escaped path. Steps such as ".." in it are no steps: they stay what they are and find no
// route.
func withPath(r *http.Request, escaped string) *http.Request {
	u := *r.URL
	path, err := url.PathUnescape(escaped)
	if err != nil { // not possible: it was parsed before
		return r
	}
	u.Path, u.RawPath = path, escaped
	c := *r
	c.URL = &u
	return &c
}
