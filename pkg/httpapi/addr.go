package httpapi

import (
	"net/netip"
	"strings"
)

// The headers in which proxies say for whom they ask.
const (
	headerForwarded    = "Forwarded" // RFC 7239
	headerForwardedFor = "X-Forwarded-For"
)

// addr is the address of the client: the peer's, or the one that a trusted proxy names. When a request has both headers
// and they don't agree, one of them may be the client's own invention, passed on by a proxy that sets the other: then
// neither is believed.
func (r *request) addr() netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	from := peer.Addr().Unmap()
	forwarded, xForwarded := r.Header.Values(headerForwarded), r.Header.Values(headerForwardedFor)
	addr := r.follow(from, forwarded, parseForwarded)
	switch other := r.follow(from, xForwarded, parseForwardedFor); {
	case len(forwarded) == 0:
		return other
	case len(xForwarded) > 0 && other != addr:
		return from
	}
	return addr
}

// follow goes back from proxy to proxy. Of what they say the last word is read first, and nothing that stands before the
// word of one that is not trusted; what can't be read ends it.
func (r *request) follow(addr netip.Addr, header []string, parse func(string) (netip.Addr, error)) netip.Addr {
	rest := strings.Join(header, ",")
	for rest != "" && r.server.trusts(addr) {
		var hop string
		rest, hop = cutLast(rest, ',')
		next, err := parse(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		addr = next.Unmap()
	}
	return addr
}

// cutLast cuts s around its last sep that is not inside quotes. It reads from the end, so that what a client wrote in
// front of a proxy's words, such as a single quote, makes no difference to them.
func cutLast(s string, sep byte) (before, last string) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return "", s
}

// parseForwardedFor reads an item of X-Forwarded-For: an address, to which some proxies add the port.
func parseForwardedFor(item string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(item)
	if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(item)
		addr = withPort.Addr()
	}
	return addr, err
}

type forwardedError string

func (e forwardedError) Error() string { return "not an address: " + string(e) }

// parseForwarded reads the address of one element of Forwarded, such as for="[2001:db8::1]:4711";proto=https. The
// names that may stand for an address ("unknown", "_hidden") are none.
func parseForwarded(element string) (netip.Addr, error) {
	var node string
	for rest := element; rest != ""; {
		var pair string
		rest, pair = cutLast(rest, ';')
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case !ok, strings.EqualFold(name, "for") && (node != "" || value == ""):
			return netip.Addr{}, forwardedError(element)
		case strings.EqualFold(name, "for"):
			node = value
		}
	}
	if text, ok := strings.CutPrefix(node, `"`); ok {
		if node, ok = strings.CutSuffix(text, `"`); !ok {
			return netip.Addr{}, forwardedError(element)
		}
	} else if strings.ContainsAny(node, "[:") { // these need quotes
		return netip.Addr{}, forwardedError(element)
	}
	host, port, hasPort := strings.Cut(node, ":")
	if inner, ok := strings.CutPrefix(node, "["); ok {
		if host, port, ok = strings.Cut(inner, "]"); !ok {
			return netip.Addr{}, forwardedError(element)
		}
		if port, hasPort = strings.CutPrefix(port, ":"); !hasPort && port != "" {
			return netip.Addr{}, forwardedError(element)
		}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || hasPort && port == "" || addr.Is4() == strings.HasPrefix(node, "[") {
		return netip.Addr{}, forwardedError(element)
	}
	return addr, nil
}

func (s *Server) trusts(addr netip.Addr) bool {
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
