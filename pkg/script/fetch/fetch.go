// Package fetch is http.fetch of scripts: it calls hosts that a project's config allows, and no address inside the
// network that the service runs in.
//
// Three things have to agree: the URL's host is in the list; each redirect's host is, too; and the address that is
// connected to, after DNS and at the moment of the connect, is a public one, unless the list names that very address.
//
// What does not live here: the other modules of scripts, and who may run them (pkg/script, pkg/hooks).
package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/tracing"
)

// The limits of one call.
const (
	maxTime      = 10 * time.Second
	MaxBody      = 5 << 20
	MaxRedirects = 5
	maxHeaders   = 64
)

// Client calls what a list allows. It implements script.Host for http.fetch.
type Client struct {
	allow   List
	client  *http.Client
	resolve Resolver
}

// Resolver finds the addresses of a host.
type Resolver func(ctx context.Context, host string) ([]netip.Addr, error)

// New makes a client. resolve nil is the system's; Close the client when the project goes.
func New(allow List, resolve Resolver) *Client {
	c := &Client{allow: allow, resolve: resolve}
	if resolve == nil {
		c.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	c.client = &http.Client{
		Transport: &http.Transport{ // no proxy: it would connect in our place
			DialContext: c.dial, TLSHandshakeTimeout: maxTime, ResponseHeaderTimeout: maxTime, MaxIdleConns: 16, IdleConnTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: c.redirect,
	}
	return c
}

// NewRecorded makes a client that asks answers in the place of the network, by the same rules.
func NewRecorded(allow List, answers http.RoundTripper) *Client {
	c := &Client{allow: allow}
	c.client = &http.Client{Transport: answers, CheckRedirect: c.redirect}
	return c
}

// Close drops idle connections.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Call is http.fetch with {url, method, headers, body, timeout}; the answer is {status, headers, body, url}.
func (c *Client) Call(ctx context.Context, op string, args bson.A) (any, error) {
	if op != "http.fetch" || len(args) != 1 {
		return nil, errs.New(errs.Invalid, "no_module", "%s is not there", op)
	}
	options, ok := args[0].(bson.D)
	if !ok {
		return nil, errs.New(errs.Invalid, "fetch_invalid", "http.fetch takes a URL and options")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout(options))
	defer cancel()
	request, err := c.request(ctx, options)
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, failed(request.URL.Hostname(), err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read as far as it matters
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	if err != nil {
		return nil, failed(request.URL.Hostname(), err)
	}
	if len(body) > MaxBody {
		return nil, errs.New(errs.TooLarge, "fetch_too_large", "the answer of %s is larger than 5 MiB", request.URL.Hostname())
	}
	return bson.D{
		{Key: "status", Value: int32(response.StatusCode)}, {Key: "headers", Value: headersOf(response.Header)}, //nolint:gosec // a status
		{Key: "body", Value: bson.Binary{Data: body}}, {Key: "url", Value: response.Request.URL.String()},
	}, nil
}

// failed keeps the refusals of this package, and hides what the network says.
func failed(host string, err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errs.New(errs.Timeout, "fetch_timeout", "%s did not answer in time", host).With(err)
	}
	return errs.New(errs.Unavailable, "fetch_failed", "%s can't be reached", host).With(err)
}

func timeout(options bson.D) time.Duration {
	ms := int64(0)
	switch v := get(options, "timeout").(type) {
	case int32:
		ms = int64(v)
	case int64:
		ms = v
	case float64:
		ms = int64(v)
	}
	if ms <= 0 || ms > maxTime.Milliseconds() {
		return maxTime
	}
	return time.Duration(ms) * time.Millisecond
}

func get(doc bson.D, name string) any {
	for _, e := range doc {
		if e.Key == name {
			return e.Value
		}
	}
	return nil
}

// request builds the request, if its host is allowed.
func (c *Client) request(ctx context.Context, options bson.D) (*http.Request, error) {
	text, _ := get(options, "url").(string)
	u, err := url.Parse(text)
	if err != nil {
		return nil, errs.New(errs.Invalid, "fetch_invalid", "http.fetch: the URL is not valid")
	}
	if err := c.check(u); err != nil {
		return nil, err
	}
	method, _ := get(options, "method").(string)
	if method = strings.ToUpper(method); method == "" {
		method = http.MethodGet
	}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return nil, errs.New(errs.Invalid, "fetch_invalid", "http.fetch: the method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")
	}
	var body []byte
	switch v := get(options, "body").(type) {
	case string:
		body = []byte(v)
	case bson.Binary:
		body = v.Data
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errs.New(errs.Invalid, "fetch_invalid", "http.fetch: the request is not valid").With(err)
	}
	request.Header.Set("User-Agent", "svc")
	tracing.Follow(ctx, request.Header)
	headers, _ := get(options, "headers").(bson.D)
	return request, setHeaders(request, headers)
}

// refusedHeaders are the connection's own.
var refusedHeaders = []string{ //nolint:gochecknoglobals // never written
	"Host", "Connection", "Content-Length", "Expect", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func setHeaders(request *http.Request, headers bson.D) error {
	if len(headers) > maxHeaders {
		return errs.New(errs.Invalid, "fetch_invalid", "http.fetch: at most %d headers", maxHeaders)
	}
	for _, e := range headers {
		name := http.CanonicalHeaderKey(e.Key)
		if slices.Contains(refusedHeaders, name) || strings.HasPrefix(name, "Proxy-") {
			return errs.New(errs.Invalid, "fetch_invalid", "http.fetch: the header %s can't be set", name)
		}
		if v, ok := e.Value.(string); ok {
			request.Header.Set(name, v)
		}
	}
	return nil
}

func headersOf(h http.Header) bson.D {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	doc := make(bson.D, 0, len(names))
	for _, name := range names {
		doc = append(doc, bson.E{Key: strings.ToLower(name), Value: strings.Join(h[name], ", ")})
	}
	return doc
}

// check refuses a URL whose host the list does not allow.
func (c *Client) check(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return errs.New(errs.Denied, "fetch_denied", "http.fetch: the URL begins with http:// or https://")
	}
	if u.User != nil {
		return errs.New(errs.Denied, "fetch_denied", "http.fetch: no credentials in the URL; set a header")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if !c.allow.Allows(u.Hostname(), port) {
		return errs.New(errs.Denied, "fetch_denied", "http.fetch: hook.http.allow does not name %s", net.JoinHostPort(u.Hostname(), port))
	}
	return nil
}

// redirect holds each redirect to the same rules.
func (c *Client) redirect(next *http.Request, via []*http.Request) error {
	if len(via) > MaxRedirects {
		return errs.New(errs.Denied, "fetch_denied", "http.fetch: more than %d redirects", MaxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errs.New(errs.Denied, "fetch_denied", "http.fetch: a redirect from https to http")
	}
	return c.check(next.URL)
}

// dial connects to a host. The address is checked by the dialer, at the connect: what DNS says between is not believed.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var addresses []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = []netip.Addr{literal}
	} else if addresses, err = c.resolve(ctx, host); err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: maxTime, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return c.allow.checkAddress(host, address)
	}}
	err = errors.New("no address")
	for _, a := range addresses {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}
