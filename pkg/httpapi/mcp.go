package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mcp"
	"github.com/svcctl/svc/pkg/schema"
)

// MCP is what the endpoint for agents may do.
type MCP struct {
	Enabled           bool
	AllowAdminActions bool // whether tools of operators are listed
	MaxResultItems    int  // most items of a list in the result of a tool; 0: 100
}

const (
	defaultResultItems = 100
	maxAgentBody       = math.MaxInt64 // the server's own limit: a tool may write files
	maxPeeked          = 64 << 10      // bytes of a message that is refused, in which its id is looked for
)

var (
	errMCPDisabled   = errs.New(errs.NotFound, "mcp_disabled", "mcp disabled")
	errPATRequired   = errs.New(errs.Denied, "pat_required", "a personal access token is required: send one that is valid as X-Auth-Token: svc_pat_…, or as Authorization: Bearer svc_pat_…")
	errForeignOrigin = errs.New(errs.Denied, "foreign_origin", "a page of another site may not use this endpoint")
)

// mayUseMCP refuses whoever asks where the endpoint is off, and pages of other sites, whatever they show.
func (r *request) mayUseMCP() error {
	switch {
	case !r.server.cfg.MCP.Enabled:
		return errMCPDisabled
	case !r.ownOrigin():
		return errForeignOrigin
	}
	return nil
}

// ownOrigin says that the request comes from no page, or from one of this service: of a host that is known to be its own. A name alone says
// little, for whoever owns it may let it lead here.
func (r *request) ownOrigin() bool {
	given := r.Header.Values("Origin")
	if len(given) == 0 {
		return true
	}
	u, err := url.Parse(given[0])
	if len(given) > 1 || err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	name := hostName(r.Host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	for _, own := range r.server.cfg.AdminHosts {
		if hostName(own) == name {
			return true
		}
	}
	return false
}

// probeMCP tells what there is. Clients that would listen here for messages are told that none come.
func (s *Server) probeMCP(w http.ResponseWriter, r *request) error {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.Contains(accept, api.MediaEvents) && !strings.Contains(accept, api.MediaJSON) && !strings.Contains(accept, "*/*") {
		w.Header().Set("Allow", "GET, POST")
		return errs.New(errs.Method, "method_not_allowed", "there is no stream of messages here: send each by POST")
	}
	return r.respond(w, http.StatusOK, func(dst []byte) []byte { return append(dst, s.mcp.Probe()...) })
}

// answerMCP answers one message of an agent.
func (s *Server) answerMCP(w http.ResponseWriter, r *request) error {
	if _, err := r.mediaType(api.MediaJSON); err != nil {
		return err
	}
	var err error
	if r.read, err = r.body(w); err != nil {
		return err
	}
	r.hasRead = true
	by := mcp.Caller{Principal: r.principal, Do: func(ctx context.Context, ask *mcp.Request) *mcp.Response { return s.do(ctx, r, ask) }}
	answer := s.mcp.Answer(r.Context(), by, r.read)
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	return r.respond(w, http.StatusOK, func(dst []byte) []byte { return append(dst, answer...) })
}

// refuseMCP is a refusal in the form of the endpoint, with the id of the message if it is small enough to be looked at.
func (s *Server) refuseMCP(w http.ResponseWriter, r *request, p *api.Problem) []byte {
	message := r.read
	if !r.hasRead && r.unread && r.Header.Get("Expect") == "" {
		if err := supported(http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.restGrace))); err == nil {
			message, _ = io.ReadAll(io.LimitReader(r.Body, maxPeeked)) // what did not come has no id
		}
	}
	return mcp.Refuse(message, p.Status, p.Detail)
}

// agentRequest marks the context of a request that a tool has made. Its value is what the agent gave as extra parameters.
type agentRequest struct{}

// ofAgent says that a request is what a tool asks, within the request of an agent.
func ofAgent(ctx context.Context) bool {
	_, agent := ctx.Value(agentRequest{}).(url.Values)
	return agent
}

// do carries out what a tool asks as a request of this API: by the same route, and so with its rights, limits and hooks. It has the caller's
// credential and address, and nothing else of what came with the message.
func (s *Server) do(ctx context.Context, from *request, ask *mcp.Request) *mcp.Response {
	query := url.Values{}
	for _, values := range []url.Values{ask.Query, ask.Extra} {
		for name, v := range values {
			query[name] = append(query[name], v...)
		}
	}
	target := ask.Path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	u, err := url.Parse(target)
	if err != nil {
		return &mcp.Response{Status: http.StatusInternalServerError}
	}
	h := http.Header{"Accept": {api.MediaJSON}, api.HeaderRequestID: {from.id}}
	for name, values := range from.Header {
		switch {
		case name == api.HeaderAuthToken, name == api.HeaderAuthorization, name == "User-Agent", name == headerForwarded,
			strings.HasPrefix(name, "X-Forwarded-"):
			h[name] = values
		}
	}
	if ask.IfRev != "" {
		h.Set(api.HeaderIfMatch, ask.IfRev)
	}
	inner := &http.Request{
		Method: ask.Method, URL: u, RequestURI: target, Proto: from.Proto, ProtoMajor: from.ProtoMajor, ProtoMinor: from.ProtoMinor,
		Header: h, Host: from.Host, RemoteAddr: from.RemoteAddr, TLS: from.TLS, Body: http.NoBody,
	}
	if ask.Body != nil {
		h.Set("Content-Type", api.MediaJSON)
		inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(ask.Body)), int64(len(ask.Body))
	}
	ctx = context.WithValue(ctx, agentRequest{}, ask.Extra)
	ctx = context.WithValue(ctx, chi.RouteCtxKey, (*chi.Context)(nil)) // the router makes one for each request
	var answer inProcess
	s.router.ServeHTTP(&answer, inner.WithContext(ctx))
	return &mcp.Response{
		Status: answer.status, Type: answer.Header().Get("Content-Type"), RetryAfter: answer.Header().Get(api.HeaderRetryAfter), Body: answer.body.Bytes(),
	}
}

// knownExtra holds what an agent gives as further parameters against those that the collection declares (meta.query): what they are, and that
// those are there that agents must give. By REST, hooks take what comes.
func (r *request) knownExtra() error {
	extra, agent := r.Context().Value(agentRequest{}).(url.Values)
	if !agent || extra == nil || r.collection == nil || !r.safe() {
		return nil
	}
	declared := r.collection.QueryParams
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		p := declared[name]
		if p == nil {
			return errs.New(errs.Invalid, "unknown_parameter", "unknown extra parameter: %s; collection_describe tells which there are, under meta.query", name)
		}
		if want := fitsParameter(p, extra.Get(name)); want != "" {
			return errs.New(errs.Invalid, "bad_parameter", "extra parameter %s must be %s", name, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if declared[name].Required && !extra.Has(name) {
			return errs.New(errs.Invalid, "bad_parameter", "extra parameter %s is required", name)
		}
	}
	return nil
}

// fitsParameter says what a parameter would have to be, if it is not that.
func fitsParameter(p *schema.QueryParam, given string) string {
	v, err := document.ParseJSONValue([]byte(given))
	ok, want := true, ""
	switch p.Type {
	case "number":
		_, whole := v.(int64)
		_, other := v.(float64)
		ok, want = err == nil && (whole || other), "a number"
	case "integer":
		_, whole := v.(int64)
		ok, want = err == nil && whole, "a whole number"
	case "boolean":
		ok, want = given == "true" || given == "false", "true or false"
	case "array":
		_, is := v.(bson.A)
		ok, want = err == nil && is, "a list"
	case "object":
		_, is := v.(bson.D)
		ok, want = err == nil && is, "an object"
	}
	if ok && len(p.Enum) > 0 {
		var named []string
		for _, e := range p.Enum {
			named = append(named, fmt.Sprint(e))
		}
		ok, want = slices.Contains(named, given), "one of "+strings.Join(named, ", ")
	}
	if ok {
		return ""
	}
	return want
}

// namespaces are the projects that are served.
func (s *Server) namespaces() []string {
	var out []string
	for _, p := range s.cfg.Registry.List() {
		out = append(out, p.Namespace)
	}
	slices.Sort(out)
	return out
}

// inProcess takes the answer to a request that came from no connection.
type inProcess struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *inProcess) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *inProcess) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *inProcess) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Cap() == 0 { // most come at once
		w.body.Grow(len(p))
	}
	return w.body.Write(p)
}
