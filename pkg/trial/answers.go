package trial

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// answers are what outbound requests are answered with. Those to the same method and URL are used in their order, and
// the last of them again and again.
type answers struct {
	mu         sync.Mutex
	recorded   []*schema.TestAnswer
	used       map[*schema.TestAnswer]bool
	step       bson.A   // the requests of this step
	unrecorded []string // the requests of the case that have no answer
}

func (a *answers) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step = nil
}

// RoundTrip answers a request. It is an error if no answer is recorded.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close() // it is in memory
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.step = append(a.step, requestOf(r, body))
	var found *schema.TestAnswer
	for _, one := range a.recorded {
		if one.Method == r.Method && one.URL == r.URL.String() && (found == nil || a.used[found]) {
			found = one
		}
	}
	if found == nil {
		what := r.Method + " " + r.URL.String()
		a.unrecorded = append(a.unrecorded, what)
		return nil, errs.New(errs.Unavailable, "fetch_not_recorded", "the test has no answer to %s: record one in given.http", what)
	}
	a.used[found] = true
	return respond(r, found)
}

// requestOf is a request as expect.http compares it.
func requestOf(r *http.Request, body []byte) bson.D {
	headers := bson.D{}
	for name, values := range r.Header {
		headers = append(headers, bson.E{Key: strings.ToLower(name), Value: strings.Join(values, ", ")})
	}
	return bson.D{
		{Key: "method", Value: r.Method},
		{Key: "url", Value: r.URL.String()},
		{Key: "headers", Value: headers},
		{Key: "body", Value: parsed(body)},
	}
}

// parsed is a body as JSON if it is that, else as text.
func parsed(body []byte) any {
	if v, err := document.ParseJSONValue(body); err == nil {
		return v
	}
	return string(body)
}

func respond(r *http.Request, a *schema.TestAnswer) (*http.Response, error) {
	body, isJSON, err := encode(a.Body)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	if isJSON {
		h.Set("Content-Type", "application/json")
	}
	for name, v := range a.Headers {
		h.Set(name, v)
	}
	return &http.Response{
		Status: http.StatusText(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// encode gives a body of a test: a string as it is, anything else as JSON; nil is none.
func encode(v any) (body []byte, isJSON bool, err error) {
	switch v := v.(type) {
	case nil:
		return nil, false, nil
	case string:
		return []byte(v), false, nil
	}
	raw, err := document.MarshalValue(v)
	if err != nil {
		return nil, false, err
	}
	return document.AppendJSONValue(nil, raw, nil), true, nil
}
