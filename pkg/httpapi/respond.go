package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

// buffers holds answer bodies between requests. A body that grew beyond maxPooled is left to the collector.
var buffers = sync.Pool{New: func() any { return new([]byte) }} //nolint:gochecknoglobals // a pool is shared by nature

const maxPooled = 1 << 20

// answerGrace is the time to send an answer, beside what its size takes at minBodyRate. The server's own WriteTimeout
// counts from the request's head, so a long body or a long bulk write would leave none.
const answerGrace = time.Minute

// respond answers with a body that build appends to a pooled buffer.
func (r *request) respond(w http.ResponseWriter, status int, build func(dst []byte) []byte) error {
	buf, _ := buffers.Get().(*[]byte)
	body := build((*buf)[:0])
	if r.pretty {
		body = indent(body)
	}
	err := send(w, status, api.MediaJSON, body)
	if cap(body) <= maxPooled {
		*buf = body
		buffers.Put(buf)
	}
	return err
}

// send is how every answer goes out that has a body of ours.
func send(w http.ResponseWriter, status int, media string, body []byte) error {
	deadline := time.Now().Add(answerGrace + time.Duration(len(body)/minBodyRate)*time.Second)
	if err := supported(http.NewResponseController(w).SetWriteDeadline(deadline)); err != nil {
		return errClientGone.With(err)
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return errClientGone.With(err)
	}
	return nil
}

// errClientGone says that the answer could not be delivered. There is nobody to tell; the log is.
var errClientGone = errs.New(errs.Unavailable, "client_gone", "the client closed the connection")

func indent(body []byte) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		return body
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// json answers with the JSON of a wire type.
func (r *request) json(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return errs.Wrap(err, "encode answer")
	}
	body = r.withoutOthers(body)
	return r.respond(w, status, func(dst []byte) []byte { return append(dst, body...) })
}

// keepPrivate tells caches that an answer depends on who asks, and not to share one that a credential opened.
func keepPrivate(h http.Header, p *access.Principal) {
	if !slices.Contains(h.Values("Vary"), credentialHeaders) {
		h.Add("Vary", credentialHeaders)
	}
	if p.Kind != access.KindAnonymous {
		h.Set("Cache-Control", "private, no-cache")
	}
}

const credentialHeaders = api.HeaderToken + ", " + api.HeaderAuthToken + ", " + api.HeaderAdminToken + ", " + api.HeaderAuthorization + ", Cookie"
