package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

// A body must arrive at minBodyRate bytes a second on average after bodyGrace, so that slow senders can't hold
// connections.
const (
	bodyGrace   = 10 * time.Second
	minBodyRate = 4 << 10
	maxPrealloc = 64 << 10
)

// maxSystemBody bounds the bodies of requests that are not for records, which anyone may send to log in.
const maxSystemBody = 1 << 20

// maxSmallBody is enough for two passwords of the greatest length, escaped: logins are the one thing that everybody may
// send a body for.
const maxSmallBody = 16 << 10

// mediaType gives the request's media type and refuses one that the route does not read. Requiring JSON also keeps
// plain web forms from writing. A compressed body is refused, for it could become anything.
func (r *request) mediaType(allowed ...string) (string, error) {
	for _, coding := range r.Header.Values("Content-Encoding") {
		if !strings.EqualFold(coding, "identity") {
			return "", errPacked
		}
	}
	got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && slices.Contains(allowed, got) {
		return got, nil
	}
	if r.collection != nil && len(r.collection.Uploads.Fields) > 0 && slices.Contains(allowed, api.MediaForm) {
		return "", errs.New(errs.MediaType, "unsupported_media_type", "send the body as Content-Type: %s, or with files as %s", allowed[0], api.MediaForm)
	}
	return "", errs.New(errs.MediaType, "unsupported_media_type", "send the body as Content-Type: %s", allowed[0])
}

var errPacked = errs.New(errs.MediaType, "unsupported_media_type", "send the body as it is, without Content-Encoding: compressed bodies are not read")

// body reads the whole body within the limit of the place that it is for. With it, the caller is let in anew.
func (r *request) body(w http.ResponseWriter) ([]byte, error) {
	if r.hasRead {
		return r.read, nil
	}
	limit := r.maxBody()
	if r.ContentLength > limit.bytes {
		return nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	reader := &ratedReader{r: r.Body, control: control, start: time.Now()}
	var data bytes.Buffer
	expected := r.ContentLength
	if expected < 0 { // not told
		expected = 4 << 10
	}
	data.Grow(int(min(expected, maxPrealloc)) + bytes.MinRead) // what is claimed is not there yet
	_, err := data.ReadFrom(io.LimitReader(keepRead{reader, r}, limit.bytes+1))
	switch {
	case errors.Is(err, errBodiesFull):
		return nil, errBodiesFull
	case err != nil:
		r.unread = false // nothing more will come; the connection's deadline stays
		if errors.Is(err, errSlowBody) {
			return nil, errSlowBody
		}
		return nil, errs.New(errs.Invalid, "bad_body", "the body could not be read to its end").With(err)
	case int64(data.Len()) > limit.bytes:
		return nil, tooLarge(limit)
	}
	r.unread = false
	if err := supported(control.SetReadDeadline(time.Time{})); err != nil { // it was the body's; a handler may take longer
		return nil, errClientGone.With(err)
	}
	return data.Bytes(), r.enter(w.Header())
}

// noBody refuses a body with anything in it, where nothing would come of that: who sends some means something by it.
func (r *request) noBody(w http.ResponseWriter, instead string) error {
	if r.ContentLength == 0 {
		return nil
	}
	data, err := r.body(w)
	if err != nil {
		return err
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "{}" {
		return nil
	}
	return errs.New(errs.Invalid, "unexpected_body", "this takes no body: %s", instead)
}

// bodyLimit is how many bytes a body may have, and whose limit that is, in words; "": it is the same everywhere.
type bodyLimit struct {
	bytes int64
	of    string
}

func tooLarge(limit bodyLimit) error {
	if limit.of == "" {
		return errs.New(errs.TooLarge, "body_too_large", "the body is larger than the limit of %d bytes", limit.bytes)
	}
	return errs.New(errs.TooLarge, "body_too_large", "the body is larger than the limit of %d bytes of %s: send less at once, such as fewer records, or a smaller file", limit.bytes, limit.of)
}

var errSlowBody = errs.New(errs.Unavailable, "slow_body", "the body came too slowly")

// ratedReader holds a sender to the least rate by moving the connection's read deadline as bytes come.
type ratedReader struct {
	r       io.Reader
	control *http.ResponseController
	start   time.Time
	n       int64
	over    func() bool // says that nothing more is to be read; nil: never
}

func (b *ratedReader) Read(p []byte) (int, error) {
	deadline := b.start.Add(bodyGrace + time.Duration(b.n/minBodyRate)*time.Second)
	if err := supported(b.control.SetReadDeadline(deadline)); err != nil {
		return 0, err
	}
	if b.over != nil && b.over() { // asked only now: else this would undo the end of its deadline
		return 0, os.ErrDeadlineExceeded
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	if err != nil && time.Now().After(deadline) {
		err = errSlowBody.With(err)
	}
	return n, err
}

// supported takes it as no error that there is no connection to set a deadline on, as in tests.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// object reads a JSON object from the body.
func (r *request) object(w http.ResponseWriter) (bson.D, error) {
	if _, err := r.mediaType(api.MediaJSON, api.MediaMergePatch); err != nil {
		return nil, err
	}
	data, err := r.body(w)
	if err != nil {
		return nil, err
	}
	return document.ParseJSON(data)
}

// texts takes the members of an object, each a string, to where they go, and says what is wrong with others. prefix is
// the path of the object, with a dot.
func texts(doc bson.D, prefix string, into map[string]*string) (problems []errs.FieldError) {
	for _, e := range doc {
		to, known := into[e.Key]
		text, ok := e.Value.(string)
		switch {
		case !known:
			problems = append(problems, errs.FieldError{Path: prefix + e.Key, Rule: "unknown", Message: "unknown field"})
		case !ok:
			problems = append(problems, errs.FieldError{Path: prefix + e.Key, Rule: "type", Message: "must be a string"})
		default:
			*to = text
		}
	}
	return problems
}

// maxBody is the limit for this request's body: the most specific setting, under the server's ceiling.
func (r *request) maxBody() bodyLimit {
	limit := bodyLimit{r.server.cfg.MaxBodySize, "the server (setting api.upload.maxBodySize)"}
	lower := func(bytes int64, of string) bodyLimit {
		if bytes > 0 && bytes <= limit.bytes {
			return bodyLimit{bytes, of}
		}
		return limit
	}
	switch {
	case r.action != nil:
		return lower(r.action.MaxBodySize, "the action or its project (upload.maxBodySize)")
	case r.collection != nil:
		return lower(r.collection.Limits.MaxBodySize, r.collection.Limits.MaxBodyOf)
	case r.small:
		return lower(maxSmallBody, "")
	case r.route.body > 0:
		return lower(r.route.body, "")
	}
	return lower(maxSystemBody, "") // logins and models of the system are small
}

// What is left of a body that an answer does without, such as a refusal, must come within restGrace. Up to restAtOnce
// bytes are read before the answer, and the connection serves on. Of more, up to restMax are read after it.
const (
	restGrace  = 5 * time.Second
	restAtOnce = 256 << 10
	restMax    = 64 << 20
)

// beginRest prepares an answer that goes out while some of the body may still be to come: it bounds the wait for it, and
// says that the connection ends where there is too much of it.
func (s *Server) beginRest(w http.ResponseWriter, r *request) {
	if !r.unread {
		return
	}
	if err := supported(http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.restGrace))); err != nil {
		s.log.DebugContext(r.Context(), "no deadline for the rest of a body", "request_id", r.id, "error", err)
	}
	if r.Header.Get("Expect") != "" { // reading would ask for the body
		return
	}
	if r.ContentLength < 0 {
		_, err := io.CopyN(io.Discard, r.Body, restAtOnce)
		r.lingers = err == nil
	} else {
		r.lingers = r.ContentLength > restAtOnce || r.Close // of what is the last on its connection, net/http reads nothing more
	}
	if r.lingers {
		w.Header().Set("Connection", "close")
	}
}

// endRest reads on after such an answer, so that who is still sending gets to read it: closing the connection at once
// would reset it, and the answer with it (RFC 9112, section 9.6).
func (s *Server) endRest(w http.ResponseWriter, r *request) {
	if !r.lingers {
		return
	}
	err := supported(http.NewResponseController(w).Flush())
	if err == nil {
		_, err = io.CopyN(io.Discard, r.Body, restMax)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.log.DebugContext(r.Context(), "the rest of a body did not come", "request_id", r.id, "error", err)
	}
}

// optionalObject reads a JSON object from the body, if there is one.
func (r *request) optionalObject(w http.ResponseWriter) (bson.D, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	data, err := r.body(w)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil, err
	}
	if _, err := r.mediaType(api.MediaJSON); err != nil {
		return nil, err
	}
	return document.ParseJSON(data)
}

// read takes the members of an object to where they go, and says what is wrong with others. null is refused: who lacks a value of dryRun, into or collections would have more done
// than was meant.
func read(doc bson.D, into map[string]any) error {
	var problems []errs.FieldError
	for _, e := range doc {
		to, known := into[e.Key]
		if !known {
			problems = append(problems, errs.FieldError{Path: e.Key, Rule: "unknown", Message: "unknown field"})
		} else if want := assign(to, e.Value); want != "" {
			problems = append(problems, errs.FieldError{Path: e.Key, Rule: "type", Message: "must be " + want})
		}
	}
	if problems != nil {
		return errs.Validation(problems)
	}
	return nil
}

// filled refuses empty strings of members that stand for more where they are left out, such as all profiles: a variable that is not set is one.
func filled(doc bson.D, names ...string) error {
	var problems []errs.FieldError
	for _, e := range doc {
		if e.Value == "" && slices.Contains(names, e.Key) {
			problems = append(problems, errs.FieldError{Path: e.Key, Rule: "required", Message: "is empty: give it a value, or leave it out"})
		}
	}
	if problems != nil {
		return errs.Validation(problems)
	}
	return nil
}

// assign sets what to points to, or says what the value would have to be.
func assign(to, v any) string {
	ok := false
	switch to := to.(type) {
	case *string:
		*to, ok = v.(string)
		return unless(ok, "a string")
	case *bool:
		*to, ok = v.(bool)
		return unless(ok, "true or false")
	case **bool:
		b, ok := v.(bool)
		*to = &b
		return unless(ok, "true or false")
	case **float64:
		var n float64
		switch v := v.(type) {
		case float64:
			n, ok = v, true
		case int64:
			n, ok = float64(v), true
		case int32:
			n, ok = float64(v), true
		}
		*to = &n
		return unless(ok, "a number")
	case *[]string:
		list, ok := v.(bson.A)
		*to = []string{} // which is not nil, where it is empty
		for _, x := range list {
			text, is := x.(string)
			*to, ok = append(*to, text), ok && is
		}
		return unless(ok, "a list of strings")
	}
	return "left out"
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}
