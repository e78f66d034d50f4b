package fetch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script/fetch"
)

// TestS52Addresses is the table of addresses of row S52.
func TestS52Addresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"93.184.216.34": true, "1.1.1.1": true, "2606:4700:4700::1111": true, "2a00:1450:4001:81b::200e": true,
		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "192.0.0.1": false, "192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false,
		"203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false, "192.88.99.1": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:1.1.1.1": true, // v4-mapped
		"::127.0.0.1": false, "::ffff:0:127.0.0.1": false, // v4-compatible, v4-translated
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, // NAT64
		"2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "100::1": false, "3fff::1": false,
	} {
		if got := fetch.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: public is %v", text, got)
		}
	}
}

func TestS52Hosts(t *testing.T) {
	t.Parallel()
	list := fetch.List{"api.example.com", "*.example.org", "host:8443", "localhost", "127.0.0.1:9000", "[::1]:9000", "::ffff:10.0.0.1"}
	for at, want := range map[[2]string]bool{
		{"api.example.com", "443"}: true, {"API.example.com.", "80"}: true, {"example.com", "443"}: false, {"x.api.example.com", "443"}: false,
		{"a.example.org", "443"}: true, {"a.b.example.org", "443"}: true, {"example.org", "443"}: false, {"badexample.org", "443"}: false,
		{"host", "8443"}: true, {"host", "443"}: false, {"localhost", "1"}: true, {"127.0.0.1", "9000"}: true, {"127.0.0.1", "9001"}: false,
		{"::1", "9000"}: true, {"10.0.0.1", "80"}: true, {"2130706433", "9000"}: false, {"0x7f.0.0.1", "9000"}: false, {"127.1", "9000"}: false, {"", "80"}: false,
	} {
		if got := list.Allows(at[0], at[1]); got != want {
			t.Errorf("%v: allowed is %v", at, got)
		}
	}
}

// server is a site on a loopback address; it counts who comes.
type server struct {
	*httptest.Server
	hits atomic.Int32
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Got", r.Method+" "+r.Header.Get("X-Sent")+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("body"))
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, fetch.MaxBody+1)) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func call(t *testing.T, c *fetch.Client, options bson.D) (bson.D, error) {
	t.Helper()
	v, err := c.Call(t.Context(), "http.fetch", bson.A{options})
	doc, _ := v.(bson.D)
	return doc, err
}

func TestFetch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := fetch.New(fetch.List{strings.TrimPrefix(s.URL, "http://")}, nil)
	defer c.Close()
	answer, err := call(t, c, bson.D{{Key: "url", Value: s.URL + "/echo"}, {Key: "method", Value: "post"}, {Key: "headers", Value: bson.D{{Key: "x-sent", Value: "v"}}}, {Key: "body", Value: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if answer[0].Value != int32(200) || string(answer[2].Value.(bson.Binary).Data) != "body" {
		t.Errorf("got %v", answer)
	}
	headers, _ := answer[1].Value.(bson.D)
	if i := len(headers) - 1; headers[i].Key != "x-got" || headers[i].Value != "POST v" {
		t.Errorf("headers %v", headers)
	}
	for name, o := range map[string]bson.D{
		"fetch_too_large": {{Key: "url", Value: s.URL + "/large"}},
		"fetch_timeout":   {{Key: "url", Value: s.URL + "/slow"}, {Key: "timeout", Value: int32(50)}},
		"fetch_invalid":   {{Key: "url", Value: s.URL + "/echo"}, {Key: "headers", Value: bson.D{{Key: "host", Value: "x"}}}},
	} {
		_, err := call(t, c, o)
		if e := errs.From(err); e == nil || e.Code != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestS52Refused is what a script can't reach, by URL, by redirect and by DNS.
func TestS52Refused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	at := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://"))
	port := strings.TrimPrefix(s.URL, "http://127.0.0.1")
	resolve := func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "private.example.com", "localhost":
			return []netip.Addr{at.Addr()}, nil
		case "mapped.example.com":
			return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}, nil
		case "mixed.example.com": // the second one is tried, too
			return []netip.Addr{netip.MustParseAddr("192.0.2.1"), at.Addr()}, nil
		}
		return nil, errs.New(errs.NotFound, "none", "no such host")
	}
	c := fetch.New(fetch.List{"*.example.com", "127.0.0.1" + port, "localhost"}, resolve)
	defer c.Close()
	before := s.hits.Load()
	for _, u := range []string{
		"http://private.example.com" + port, "http://mapped.example.com" + port, "http://mixed.example.com" + port,
		"http://127.0.0.2" + port, "http://[::ffff:127.0.0.1]:1", "http://2130706433" + port, "http://0x7f000001" + port, "http://127.1" + port, "http://[::1]" + port,
		"http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/", "file:///etc/passwd", "gopher://127.0.0.1" + port, "ftp://private.example.com/",
		"http://user:pw@127.0.0.1" + port + "/echo", "//127.0.0.1" + port, "", "http://", "http://other.test/",
	} {
		_, err := call(t, c, bson.D{{Key: "url", Value: u}})
		if e := errs.From(err); e == nil || e.Code != "fetch_denied" {
			t.Errorf("%s: got %v", u, err)
		}
	}
	if got := s.hits.Load(); got != before {
		t.Errorf("the server was reached %d times", got-before)
	}
	for _, to := range []string{"http://127.0.0.2" + port + "/echo", "http://private.example.com" + port + "/echo", "http://169.254.169.254/", "file:///etc/passwd", "https://other.test/", "/to?u=/to"} {
		_, err := call(t, c, bson.D{{Key: "url", Value: s.URL + "/to?u=" + to}})
		if e := errs.From(err); to != "/to?u=/to" && (e == nil || e.Code != "fetch_denied") {
			t.Errorf("redirect to %s: got %v", to, err)
		}
	}
	if _, err := call(t, c, bson.D{{Key: "url", Value: "http://localhost" + port + "/echo"}}); err != nil {
		t.Errorf("localhost is named: %v", err)
	}
}

// TestS52Redirects follows five, and no more.
func TestS52Redirects(t *testing.T) {
	t.Parallel()
	var hits int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hits++; http.Redirect(w, r, "/again", http.StatusFound) }))
	defer s.Close()
	c := fetch.New(fetch.List{"127.0.0.1"}, nil)
	defer c.Close()
	_, err := call(t, c, bson.D{{Key: "url", Value: s.URL}})
	if e := errs.From(err); e == nil || e.Code != "fetch_denied" {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(fetch.MaxRedirects+1, hits); diff != "" {
		t.Error(diff)
	}
}

// TestS52Rebind asks as the dialer does at the connect, when DNS has changed its mind since the list was asked.
func TestS52Rebind(t *testing.T) {
	t.Parallel()
	list := fetch.List{"api.example.com", "localhost", "10.0.0.1"}
	for at, want := range map[[2]string]bool{
		{"api.example.com", "1.1.1.1:443"}: true, {"api.example.com", "127.0.0.1:443"}: false, {"api.example.com", "[::ffff:10.0.0.1]:443"}: false,
		{"api.example.com", "[64:ff9b::a00:1]:443"}: false, {"localhost", "127.0.0.1:80"}: true, {"localhost", "[::1]:80"}: true, {"localhost", "10.0.0.1:80"}: false,
		{"10.0.0.1", "10.0.0.1:80"}: true, {"10.0.0.1", "10.0.0.2:80"}: false, {"api.example.com", "nonsense"}: false,
	} {
		if got := list.CheckAddress(at[0], at[1]) == nil; got != want {
			t.Errorf("%v: connects is %v", at, got)
		}
	}
}
