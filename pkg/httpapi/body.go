package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
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
// plain web forms from writing.
func (r *request) mediaType(allowed ...string) (string, error) {
	got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil {
		for _, m := range allowed {
			if got == m {
				return m, nil
			}
		}
	}
	return "", errs.New(errs.MediaType, "unsupported_media_type", "send the body as Content-Type: %s", allowed[0])
}

// body reads the whole body within the limit of the place that it is for. With it, the caller is let in anew.
func (r *request) body(w http.ResponseWriter) ([]byte, error) {
	limit := r.maxBody()
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	reader := &ratedReader{r: r.Body, control: control, start: time.Now()}
	size := min(max(r.ContentLength, 4<<10), maxPrealloc) // what is claimed is not there yet
	data, err := readAll(make([]byte, 0, size+1), io.LimitReader(reader, limit+1))
	switch {
	case err != nil:
		r.unread = false // nothing more will come; the connection's deadline stays
		if errors.Is(err, errSlowBody) {
			return nil, errSlowBody
		}
		return nil, errs.New(errs.Invalid, "bad_body", "the body could not be read to its end").With(err)
	case int64(len(data)) > limit:
		return nil, tooLarge(limit)
	}
	r.unread = false
	if err := supported(control.SetReadDeadline(time.Time{})); err != nil { // it was the body's; a handler may take longer
		return nil, errClientGone.With(err)
	}
	return data, r.enter(w.Header())
}

func readAll(dst []byte, r io.Reader) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

func tooLarge(limit int64) error {
	return errs.New(errs.TooLarge, "body_too_large", "the body is larger than the limit of %d bytes", limit)
}

var errSlowBody = errs.New(errs.Unavailable, "slow_body", "the body came too slowly")

// ratedReader holds a sender to the least rate by moving the connection's read deadline as bytes come.
type ratedReader struct {
	r       io.Reader
	control *http.ResponseController
	start   time.Time
	n       int64
}

func (b *ratedReader) Read(p []byte) (int, error) {
	deadline := b.start.Add(bodyGrace + time.Duration(b.n/minBodyRate)*time.Second)
	if err := supported(b.control.SetReadDeadline(deadline)); err != nil {
		return 0, err
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

// maxBody is the limit for this request's body in bytes: the most specific setting, under the server's ceiling.
func (r *request) maxBody() int64 {
	limit := r.server.cfg.MaxBodySize
	if r.action != nil {
		if own := r.action.MaxBodySize; own > 0 {
			limit = min(limit, own)
		}
		return limit
	}
	if r.collection == nil { // logins and models of the system are small
		if r.small {
			return min(limit, maxSmallBody)
		}
		return min(limit, maxSystemBody)
	}
	if r.collection != nil && r.collection.Limits.MaxBodySize > 0 {
		limit = min(limit, r.collection.Limits.MaxBodySize)
	}
	return limit
}
