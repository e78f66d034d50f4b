package httpapi

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// bodies counts what is held in memory of the bodies of all requests. What is made of a body takes about twice as much again.
type bodies struct {
	held atomic.Int64
	most int64 // 0: no limit
}

// freeBody is how much of each body is not counted, so that what large bodies take keeps nobody from logging in or from
// writing a record.
const freeBody = 64 << 10

var errBodiesFull = &errs.Error{
	Kind: errs.Unavailable, Code: "bodies_busy", RetryAfter: 5 * time.Second,
	Message: "other requests have so many large bodies under way that there is no memory for this one: try again in a moment; files in a form take none",
}

// keepRead reads what is going to be kept in memory until the request ends. It fails as soon as there is too much of all
// requests: to wait would have those that came first wait for each other.
type keepRead struct {
	r  io.Reader
	of *request
}

func (k keepRead) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	if !k.of.keepsBody(int64(n)) {
		return 0, errBodiesFull
	}
	return n, err
}

// keepsBody counts bytes of the request's body, and says whether there is memory for them.
func (r *request) keepsBody(n int64) bool {
	all := &r.server.bodies
	before := max(r.bodyBytes-freeBody, 0)
	r.bodyBytes += n
	more := max(r.bodyBytes-freeBody, 0) - before
	return all.held.Add(more) <= all.most || more == 0 || all.most == 0
}

// dropBody ends what the request keeps of its body.
func (r *request) dropBody() {
	r.server.bodies.held.Add(-max(r.bodyBytes-freeBody, 0))
	r.bodyBytes = 0
}
