package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// Limits of what is read from a server into memory, in bytes.
const (
	maxAnswer  = 256 << 20
	maxProblem = 1 << 20
)

// maxAttempts is how often a request is sent at most; maxRetryAfter is the longest wait that is obeyed in between.
const (
	maxAttempts   = 3
	maxRetryAfter = 10 * time.Second
)

// Options say which service to talk to, and as whom. At most one of the three credentials may be set, since the
// service refuses a request that carries two.
type Options struct {
	Server          string        // such as "http://127.0.0.1:8080"; a path in it is kept as the service root
	Token           string        // JWT of a login, or a personal access token
	AdminToken      string        // server admin token
	CollectionToken string        // collection token or project admin token
	HTTPClient      *http.Client  // its CheckRedirect is replaced; nil is a client of our own
	UserAgent       string        // "" is the library's
	Timeout         time.Duration // of one attempt, answer included, and until a stream begins; 0 is none. Do and files don't use it
	Patient         bool          // an answer may take longer than Timeout, as long as the service answers beside: see WhileAnswering
	MaxAnswer       int64         // bytes of an answer that is read into memory, as they are unpacked; 0 is 256 MiB. Streams and files don't use it
	Quiet           time.Duration // longest time between two lines of a stream; 0 is none. The service sends one every 15 seconds at least
	// Backoff is the wait before attempt n (2, 3, …) of a request that may be repeated; nil is 100 ms, 400 ms.
	Backoff func(attempt int) time.Duration
}

// Client talks to one service with one credential. It is safe for concurrent use.
type Client struct {
	root       string
	header     http.Header
	http       *http.Client
	timeout    time.Duration
	patient    bool
	maxAnswer  int64
	quiet      time.Duration
	backoff    func(int) time.Duration
	credential bool
}

// CheckServer says what is wrong with the address of a service, without showing what may be secret in it.
func CheckServer(address string) error {
	_, err := parseServer(address)
	return err
}

func parseServer(address string) (*url.URL, error) {
	if strings.ContainsAny(address, "@?#") { // what stands beside these may be secret
		return nil, errors.New("the server's address has a user, a password, a query or a fragment: want one such as http://127.0.0.1:8080, and a credential by itself")
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server %q: want an address such as http://127.0.0.1:8080", address)
	}
	return u, nil
}

// New checks options and makes a Client. It sends nothing.
func New(o Options) (*Client, error) {
	u, err := parseServer(o.Server)
	if err != nil {
		return nil, err
	}
	c := &Client{
		root:    strings.TrimRight(u.String(), "/"),
		header:  http.Header{"Accept": {api.MediaJSON}},
		timeout: o.Timeout,
		patient: o.Patient,
		quiet:   o.Quiet,
		backoff: o.Backoff,

		maxAnswer: cmp.Or(o.MaxAnswer, maxAnswer),
	}
	for name, value := range map[string]string{
		api.HeaderAuthToken:  o.Token,
		api.HeaderAdminToken: o.AdminToken,
		api.HeaderToken:      o.CollectionToken,
	} {
		if value == "" {
			continue
		}
		if c.credential {
			return nil, errors.New("more than one credential: give one of token, admin token and collection token")
		}
		c.header.Set(name, value)
		c.credential = true
	}
	if o.UserAgent != "" {
		c.header.Set("User-Agent", o.UserAgent)
	}
	if c.backoff == nil {
		c.backoff = func(attempt int) time.Duration { return 25 * time.Millisecond << (2 * (attempt - 1)) }
	}
	h := http.Client{}
	if o.HTTPClient != nil {
		h = *o.HTTPClient
	}
	// A redirect is never followed: our credential headers would go along to wherever it points.
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &h
	return c, nil
}

// Server is the address that the client talks to.
func (c *Client) Server() string { return c.root }

// HasCredential says whether requests carry a credential.
func (c *Client) HasCredential() bool { return c.credential }

// CloseIdle closes the connections that are kept open for the next request. It is for who has asked for the last time.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Request is one request for Do. Path is relative to the service root and begins with "/"; Body may be nil.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header // added to, and over, the client's own
	Body   io.Reader
}

// Do sends a request as it is and gives the answer as it is, unless it is a refusal (status 400 and above, or a
// redirect), which is an *Error. The caller closes the body. It is sent once, and bounded by ctx alone.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	target := c.root + r.Path
	if len(r.Query) > 0 {
		sep := "?"
		if strings.Contains(r.Path, "?") {
			sep = "&"
		}
		target += sep + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, r.Body)
	if err != nil {
		return nil, err
	}
	if body, ok := r.Body.(sized); ok {
		req.ContentLength = body.size
	}
	maps.Copy(req.Header, c.header)
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotModified {
		defer resp.Body.Close() //nolint:errcheck // the answer is already an error
		if err := c.wantsTLS(resp); err != nil {
			return nil, err
		}
		return nil, refusal(r.Method, resp)
	}
	return resp, nil
}

// wantsTLS is the error for a request without TLS to a port that takes TLS alone, as servers answer it; nil: it was none.
func (c *Client) wantsTLS(resp *http.Response) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an unreadable type is a text at most
	if resp.StatusCode != http.StatusBadRequest || !strings.HasPrefix(c.root, "http://") || media == api.MediaProblem || media == api.MediaJSON {
		return nil
	}
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil || !bytes.Contains(text, []byte("HTTPS")) {
		return nil
	}
	return &UnreachableError{Server: c.root, Err: errors.New("it takes https alone there: give the address with https://"), answered: true}
}

// unreachable tells a caller's cancellation from a server that does not answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // the URL is in our own message
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", c.root, context.Cause(ctx))
	}
	if err.Error() == "http: server gave HTTP response to HTTPS client" { // which has no type
		return &UnreachableError{Server: c.root, Err: errors.New("there is no TLS there: give the address with http://"), answered: true}
	}
	return &UnreachableError{Server: c.root, Err: err}
}

// call is a typed request: in is marshaled as the body unless nil, a []byte or json.RawMessage goes as it is; out takes
// the answer unless nil.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	in     any
	out    any
}

// do sends a call, again if that is safe, and gives the answer's headers.
func (c *Client) do(ctx context.Context, r call) (http.Header, error) {
	if strings.Contains(r.path, "//") || strings.HasSuffix(r.path, "/") {
		return nil, fmt.Errorf("%s %s: an id or a name is empty", r.method, r.path)
	}
	var body []byte
	switch in := r.in.(type) {
	case nil:
	case []byte:
		body = in
	case json.RawMessage:
		body = in
	default:
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	}
	for attempt := 1; ; attempt++ {
		header, err := c.once(ctx, r, body)
		if err == nil || attempt == maxAttempts || ctx.Err() != nil {
			return header, err
		}
		wait, again := c.retry(r, attempt, err)
		if !again {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%s: %w", c.root, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// retry says whether a failed request may be sent again, and after which wait: a read may, when the connection failed or
// when the service said with 503 when to come again. A write may if it has an idempotency key. Any other never is: an answer
// that gets lost, or that comes from something between here and the service, does not tell whether it was carried out.
func (c *Client) retry(r call, attempt int, err error) (time.Duration, bool) {
	keyed := r.header.Get(api.HeaderIdempotencyKey) != ""
	if r.method != http.MethodGet && r.method != http.MethodHead && !keyed {
		return 0, false
	}
	if un, ok := errors.AsType[*UnreachableError](err); ok {
		return c.backoff(attempt + 1), !un.Permanent()
	}
	var refused *Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 &&
		(refused.Status == http.StatusServiceUnavailable || keyed && refused.Status == http.StatusConflict) {
		return refused.RetryAfter, refused.RetryAfter <= maxRetryAfter
	}
	return 0, false
}

// once sends a call one time and decodes the answer.
func (c *Client) once(ctx context.Context, r call, body []byte) (http.Header, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	req := Request{Method: r.method, Path: r.path, Query: r.query, Header: r.header}
	if body != nil {
		req.Body = bytes.NewReader(body)
		if r.header.Get("Content-Type") == "" {
			req.Header = req.Header.Clone()
			if req.Header == nil {
				req.Header = http.Header{}
			}
			req.Header.Set("Content-Type", api.MediaJSON)
		}
	}
	resp, err := c.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	data, err := c.ReadAnswer(ctx, resp)
	if err != nil {
		return nil, err
	}
	if r.out == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(data, r.out); err != nil {
		return nil, c.notOurs(resp, err)
	}
	return resp.Header, nil
}

// ReadAnswer reads the body of an answer into memory; the caller closes it. ctx is that of the request. An answer that breaks off is an *UnreachableError. What
// is longer than Options.MaxAnswer when it is unpacked is an error, and not read to its end: a few bytes of gzip can stand for gigabytes.
func (c *Client) ReadAnswer(ctx context.Context, resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if int64(len(data)) > c.maxAnswer {
		return nil, fmt.Errorf("%s answered with more than %d MiB: ask for less at once", c.root, c.maxAnswer>>20)
	}
	return data, nil
}

// notOurs is the error for an answer that the service would not give, which mostly is another program's.
func (c *Client) notOurs(resp *http.Response, err error) error {
	return &UnreachableError{Server: c.root, Err: fmt.Errorf(
		"the answer to %s (%s, %s) is not the service's: %w",
		resp.Request.URL.Path, strconv.Itoa(resp.StatusCode), resp.Header.Get("Content-Type"), err), answered: true}
}
