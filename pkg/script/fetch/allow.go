package fetch

import (
	"net"
	"net/netip"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
)

// List is which hosts may be called: names, "*.example.com" for what is below a name, an address, or localhost; with
// ":port" for that port only.
type List []string

// split takes an entry apart.
func split(entry string) (host, port string) {
	if h, p, err := net.SplitHostPort(entry); err == nil {
		return normal(h), p
	}
	return normal(strings.Trim(entry, "[]")), ""
}

// normal is a host as names are compared.
func normal(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

// Allows says whether the list has a host with this port.
func (l List) Allows(host, port string) bool {
	host = normal(host)
	if host == "" {
		return false
	}
	for _, entry := range l {
		h, p := split(entry)
		if p != "" && p != port {
			continue
		}
		if below, ok := strings.CutPrefix(h, "*."); ok {
			if strings.HasSuffix(host, "."+below) {
				return true
			}
		} else if h == host {
			return true
		}
	}
	return false
}

// checkAddress refuses to connect to an address that is not public, unless host is that address, or localhost, and so
// the list has named it.
func (l List) checkAddress(host, address string) error {
	refused := errs.New(errs.Denied, "fetch_denied", "http.fetch: the address of %s is not a public one", host)
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refused.With(err)
	}
	a := at.Addr().Unmap()
	if Public(a) {
		return nil
	}
	host = normal(host)
	if host == "localhost" && a.IsLoopback() {
		return nil
	}
	if literal, err := netip.ParseAddr(host); err == nil && literal == a && a.Zone() == "" {
		return nil
	}
	return refused
}

// reserved is what no public host has, beside what netip knows: the special-purpose registries of IANA.
var reserved = prefixes( //nolint:gochecknoglobals // never written
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// unicast6 is all that is given out of IPv6: what maps or translates IPv4 addresses is outside of it.
var unicast6 = netip.MustParsePrefix("2000::/3") //nolint:gochecknoglobals // never written

// Public says whether an address is one of the open internet.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" || a.Is6() && !unicast6.Contains(a) {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
