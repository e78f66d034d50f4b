package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/idempotency"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/system"
)

// keyed says what a route does with an Idempotency-Key. The zero value refuses requests that have one.
type keyed uint8

const (
	keyRefused    keyed = iota
	keyOnce             // the request is carried out once, and never again if it is cut off
	keySecret           // the same, and its answer holds a secret, which is not given twice
	keyRepeatable       // it can be carried out again when it was cut off
)

const (
	maxKey   = 255             // bytes of a key
	keyGrace = 5 * time.Second // to note the end of a request whose caller may be gone
)

var (
	errKeyUnsupported = errs.New(errs.Invalid, "unsupported",
		"Idempotency-Key is not supported here, but on the POST that creates something, calls an action or runs a job: leave it out")
	errKeyStream = errs.New(errs.Invalid, "unsupported",
		"Idempotency-Key goes with an answer in one piece: leave text/event-stream out of Accept, and read the events of the run that the answer names")
	errKeyGiven = errs.New(errs.Invalid, "bad_idempotency_key",
		"Idempotency-Key must be given once, and have 1 to %d visible ASCII characters", maxKey)
	errAnswerSecret = errs.New(errs.Conflict, "idempotency_secret",
		"a request with this Idempotency-Key was carried out; its answer held a secret, which is shown once: make another one with another key")
	errAnswerGone = errs.New(errs.Conflict, "idempotency_answer_not_kept",
		"a request with this Idempotency-Key was carried out; its answer was too large to be kept")
)

// idempotencyKey gives the request's key, "" for none.
func (r *request) idempotencyKey() (string, error) {
	given := r.Header.Values(api.HeaderIdempotencyKey)
	switch {
	case len(given) == 0 || r.route.anyQuery || r.safe():
		return "", nil
	case r.route.key == keyRefused:
		return "", errKeyUnsupported
	case r.wantsStream():
		return "", errKeyStream
	}
	key := strings.TrimSpace(given[0])
	if len(given) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", errKeyGiven
	}
	return key, nil
}

// once carries out a request that has a key, or gives the answer that it has had. What the caller may do has been decided
// before, as of now.
func (s *Server) once(w http.ResponseWriter, r *request, key string) (err error) {
	if err := r.readWhole(w); err != nil {
		return err
	}
	if spare := r.route.spare; spare != nil && spare(r) { // else its key is what a full disk would refuse it for
		r.useReserve()
	}
	claim, answer, err := s.cfg.Keys.Begin(r.Context(), r.keyedRequest(key))
	switch {
	case err != nil:
		return err
	case answer != nil:
		if err := s.stillMayBulk(r); err != nil {
			return err
		}
		return r.replay(w, answer)
	}
	r.claim = claim
	kept := false
	defer func() {
		if !kept { // a panic
			s.endClaim(r, func(ctx context.Context) error { return claim.Release(ctx) })
		}
	}()
	// The answer goes out when it is remembered, or a repetition that comes at once would be told that this one is under way.
	held := &heldAnswer{header: w.Header().Clone()}
	rec := &recorder{ResponseWriter: held, begin: func() {}}
	passes := false
	if err := r.route.handle(s, rec, r); err != nil {
		passes = errs.From(err).Passes
		s.fail(rec, r, err)
	}
	kept = true
	s.endClaim(r, func(ctx context.Context) error {
		if passes || held.status >= http.StatusInternalServerError || held.status == http.StatusTooManyRequests {
			return claim.Release(ctx)
		}
		a := idempotency.Answer{
			Status: held.status, Header: held.changed(w.Header()), Body: held.body.Bytes(), Kept: true, Rights: r.rights(),
		}
		if r.route.key == keySecret && held.status < http.StatusBadRequest {
			a.Body, a.Kept = nil, false
		}
		return claim.Done(ctx, a)
	})
	maps.Copy(w.Header(), held.header)
	if held.status == 0 {
		held.status = http.StatusOK
	}
	return finishAnswer(w, held.status, held.body.Bytes())
}

// endClaim notes the end of a request, whether its caller is still there or not.
func (s *Server) endClaim(r *request, end func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), keyGrace)
	defer cancel()
	if err := end(ctx); err != nil {
		s.log.WarnContext(ctx, "the end of a request with an Idempotency-Key is not noted: it counts as under way for a while", "request_id", r.id, "error", err)
	}
}

// finishAnswer sends an answer whose headers are set.
func finishAnswer(w http.ResponseWriter, status int, body []byte) error {
	if media := w.Header().Get("Content-Type"); media != "" && len(body) > 0 {
		return send(w, status, media, body)
	}
	w.WriteHeader(status)
	return nil
}

// keyedRequest describes the request for the memory of keys.
func (r *request) keyedRequest(key string) idempotency.Request {
	body := r.read
	if r.spool != nil {
		sum := r.spool.Sum()
		body = sum[:]
	}
	out := idempotency.Request{
		Database: system.DatabaseName, Key: key, Repeatable: r.route.key == keyRepeatable,
		Hash: digest([]byte(r.Method), []byte(r.URL.EscapedPath()), []byte(r.URL.RawQuery), []byte(r.Header.Get("Content-Type")), body),
	}
	if r.project != nil && r.route.right.inProject() {
		out.Database = project.DatabaseName(r.project.Namespace)
	}
	scope := [][]byte{[]byte(r.whose()), []byte(r.Method), []byte(r.route.pattern)}
	if r.principal.Kind == access.KindAnonymous { // nobody in particular: only who asks for the very same has the same key
		scope = append(scope, out.Hash[:])
	}
	sum := digest(scope...)
	out.Scope = string(sum[:])
	return out
}

// whose names the caller: a user, a personal access token, the holders of another token. Those without a credential have one name.
func (r *request) whose() string {
	p := r.principal
	if p.Kind == access.KindToken {
		return string(p.Kind) + " " + string(p.TokenHash[:])
	}
	return string(p.Kind) + " " + p.ID + " " + p.TokenID
}

// digest is a hash of parts, each as it is.
func digest(parts ...[]byte) [32]byte {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

// rights stands for what the caller may see now: the project's config, and all that decides for them.
func (r *request) rights() []byte {
	generation := int64(0)
	if r.project != nil {
		generation = r.project.Generation
	}
	sum := digest(strconv.AppendInt(nil, generation, 10), r.principal.Fingerprint())
	return sum[:]
}

// stillMayBulk refuses an answer to a bulk create to who may not make one any more. What else it takes has been asked.
func (s *Server) stillMayBulk(r *request) error {
	if r.collection == nil {
		return nil
	}
	body, err := r.dataAgain()
	if err != nil { // as it was answered then
		return nil //nolint:nilerr // the answer says so
	}
	if _, bulk, err := r.bulkItems(body); err != nil || !bulk {
		return err
	}
	return r.lacking(s.cfg.Records.MayBulk(r.Context(), r.call(), access.Post))
}

// dataAgain gives the JSON of a body that has been read.
func (r *request) dataAgain() (bson.D, error) {
	if r.spool == nil {
		return document.ParseJSON(r.read)
	}
	parts, err := r.parts(r.spool.Reader())
	if err != nil {
		return nil, err
	}
	for {
		part, err := parts.NextRawPart()
		if err != nil {
			return nil, formError(err)
		}
		if name, file, _, err := partNames(part); err == nil && name == api.PartData && file == "" {
			return readData(part)
		}
	}
}

// replay gives the first answer again. Where the caller's rights or the config are others now, what the answer showed of
// records stays out of it. What an action answers is its own.
func (r *request) replay(w http.ResponseWriter, a *idempotency.Answer) error {
	switch {
	case !a.Kept && r.route.key == keySecret:
		return errAnswerSecret
	case !a.Kept:
		return errAnswerGone
	}
	h := w.Header()
	for name, value := range a.Header {
		h.Set(name, value)
	}
	body := a.Body
	if r.action == nil && a.Status < http.StatusBadRequest && !bytes.Equal(a.Rights, r.rights()) {
		body = idsOnly(body)
		h.Del(api.HeaderETag)
	}
	h.Set(api.HeaderIdempotencyReplayed, "true")
	return finishAnswer(w, a.Status, body)
}

// idsOnly is an answer to a create without what was created, but for ids.
func idsOnly(body []byte) []byte {
	type item struct {
		ID      string          `json:"id,omitempty"`
		Status  int             `json:"status,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
		Warning string          `json:"warning,omitempty"`
	}
	var in struct {
		item
		Items     *[]item `json:"items,omitempty"`
		Succeeded *int    `json:"succeeded,omitempty"`
		Failed    *int    `json:"failed,omitempty"`
	}
	var out any = in.item
	if err := json.Unmarshal(body, &in); err == nil {
		if out = in.item; in.Items != nil && in.Succeeded != nil { // and no record that has a field of that name
			in.item = item{}
			out = in
		}
	}
	reduced, err := json.Marshal(out)
	if err != nil { // not possible: it was JSON
		return []byte(`{}`)
	}
	return reduced
}

// heldAnswer is an answer that does not go out yet.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *heldAnswer) Header() http.Header         { return a.header }
func (a *heldAnswer) WriteHeader(status int)      { a.status = status }
func (a *heldAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// changed gives the headers that were set since before, but for those that are of one answer only.
func (a *heldAnswer) changed(before http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range a.header {
		switch name {
		case "Content-Length", "Set-Cookie", "Cache-Control", "Vary", api.HeaderGeneration:
			continue
		}
		if len(values) > 0 && !slices.Equal(values, before[name]) {
			out[name] = values[0]
		}
	}
	return out
}
