package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	mediaProtobuf = "application/x-protobuf"
	maxAnswer     = 64 << 10 // bytes of an answer that are read
)

// errRefused says that a collector took a part of a batch.
var errRefused = errors.New("the collector refused a part of the spans")

// answerError is an answer that is no good. Its text has nothing of the body: that may be anything.
type answerError struct {
	status int
	after  time.Duration // how long the collector wants to be left alone
}

func (e *answerError) Error() string {
	return fmt.Sprintf("the collector answers %d %s", e.status, http.StatusText(e.status))
}

func newTarget(c Config) (target, error) {
	header, err := c.headers()
	if err != nil {
		return target{}, err
	}
	header.Set("Content-Type", mediaProtobuf)
	header.Set("User-Agent", "svcd")
	return target{url: c.url(), header: header, client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, MaxConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxAnswer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers are for this collector
	}}, nil
}

// send sends a batch once, and tells how many of its spans were refused.
func (t target) send(ctx context.Context, body []byte) (lost int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = t.header
	res, err := t.client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the address is told beside it
		}
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode/100 != 2:
		return 0, &answerError{res.StatusCode, retryAfter(res.Header)}
	case err != nil:
		return 0, err
	case len(answer) == 0:
		return 0, nil
	}
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind { //nolint:errcheck // it is none then
	case mediaProtobuf:
		return rejected(answer)
	case "application/json":
		return 0, nil
	}
	return 0, errGarbage // a page of something else
}

// retryable says that another try may do: where nothing answered, or the collector says so.
func retryable(err error) bool {
	if errors.Is(err, errGarbage) {
		return false
	}
	if answer, ok := errors.AsType[*answerError](err); ok {
		switch answer.status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return true
}

// askedFor is how long a collector wants to be left alone, within bounds.
func askedFor(err error) time.Duration {
	if answer, ok := errors.AsType[*answerError](err); ok {
		return min(answer.after, maxRetry)
	}
	return 0
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(maxRetry/time.Second))) * time.Second
}
