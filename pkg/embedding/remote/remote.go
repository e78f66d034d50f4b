// Package remote is how embedding providers are asked over HTTP: a question in JSON, an answer within bounds, and errors
// that say what to do without a word of the provider in their public text.
//
// A client follows no redirects, so that texts and keys go nowhere but to the base URL. What a question and an answer look
// like is the provider's package.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/embedding"
)

const (
	maxAnswer  = 32 << 20 // 32 vectors of 4,096 numbers are a tenth of it
	maxExcerpt = 2 << 10  // of an answer that is an error, for the log
	maxRetry   = 24 * time.Hour
	maxIdle    = 8
)

// Client asks one provider.
type Client struct {
	name    string
	base    *url.URL
	key     string
	timeout time.Duration
	http    *http.Client
}

// New makes a client for the base URL of a provider.
func New(config embedding.ProviderConfig) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	switch {
	case config.BaseURL == "":
		return nil, embedding.Misconfigured("embedding provider %s: baseURL is missing", config.Name)
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, embedding.Misconfigured("embedding provider %s: baseURL is not of the form https://host/path", config.Name)
	case base.User != nil || base.Fragment != "":
		return nil, embedding.Misconfigured("embedding provider %s: baseURL holds a password or a fragment: a key belongs into apiKey", config.Name)
	case strings.ContainsAny(config.APIKey, "\r\n"):
		return nil, embedding.Misconfigured("embedding provider %s: apiKey has more than one line", config.Name)
	}
	return &Client{
		name: config.Name, base: base, key: config.APIKey, timeout: config.Timeout(),
		http: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: config.Timeout(),
				MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close drops idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Post asks a question at a path below the base URL, and gives the answer of a success.
func (c *Client) Post(ctx context.Context, path string, question any) ([]byte, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, embedding.Refused(c.name, err)
	}
	attempt, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(attempt, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, embedding.Refused(c.name, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read as far as it matters
	if response.StatusCode != http.StatusOK {
		return nil, c.refused(response)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && kind == "text/html" {
		return nil, embedding.Garbage(c.name, errors.New("the answer is a web page"))
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if len(answer) > maxAnswer {
		return nil, embedding.Garbage(c.name, fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20))
	}
	return answer, nil
}

// failed says why there is no answer. What the caller's context ended is the caller's.
func (c *Client) failed(ctx context.Context, err error) error {
	err = c.scrubbed(err)
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return embedding.TimedOut(c.name, err)
	}
	return embedding.Failed(c.name, "can't be reached", err)
}

// refused says what a status means.
func (c *Client) refused(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, int64(maxExcerpt+len(c.key)))) // whatever there is
	excerpt := string(body)
	if c.key != "" { // before it is cut, lest a part of it is left
		excerpt = strings.ReplaceAll(excerpt, c.key, "[apiKey]")
	}
	excerpt = excerpt[:min(len(excerpt), maxExcerpt)]
	cause := c.scrubbed(fmt.Errorf("status %d: %s", response.StatusCode, strings.ToValidUTF8(excerpt, "�")))
	switch status := response.StatusCode; status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return embedding.Refused(c.name, cause)
	case http.StatusTooManyRequests:
		return embedding.Throttled(c.name, retryAfter(response), cause)
	case http.StatusUnauthorized, http.StatusForbidden:
		return embedding.Failed(c.name, "refuses its apiKey", cause)
	case http.StatusNotFound:
		return embedding.Failed(c.name, "does not know the model, or its baseURL is wrong", cause)
	case http.StatusServiceUnavailable:
		if after := retryAfter(response); after > 0 {
			return embedding.Throttled(c.name, after, cause)
		}
		return embedding.Failed(c.name, "answers with status 503", cause)
	default:
		if status >= 300 && status < 400 {
			return embedding.Failed(c.name, "sends us elsewhere, which is not followed: set its baseURL", cause)
		}
		return embedding.Failed(c.name, "answers with status "+strconv.Itoa(status), cause)
	}
}

// scrubbed takes the key out of a text that a provider may have repeated it in.
func (c *Client) scrubbed(err error) error {
	if c.key == "" || !strings.Contains(err.Error(), c.key) {
		return err
	}
	return &scrubbed{text: strings.ReplaceAll(err.Error(), c.key, "[apiKey]"), err: err}
}

// scrubbed is an error whose text had to be changed. What it wraps is only asked what it is.
type scrubbed struct {
	text string
	err  error
}

func (s *scrubbed) Error() string        { return s.text }
func (s *scrubbed) Is(target error) bool { return errors.Is(s.err, target) }

// retryAfter is how long a provider wants to be left alone, in seconds or until a time by its own clock.
func retryAfter(response *http.Response) time.Duration {
	value := strings.TrimSpace(response.Header.Get("Retry-After"))
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(0, seconds), int(maxRetry/time.Second))) * time.Second
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(0, until.Sub(now)), maxRetry)
}
