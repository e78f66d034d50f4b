// Package remote is how embedding providers are asked over HTTP: a question in JSON, an answer within bounds, and errors
// that say what to do without a word of the provider in their public text.
//
// A Client is all of a provider but its questions and what its answers look like, which its package adds as Embed. It follows no
// redirects, so that texts and keys go nowhere but to the base URL.
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

// Client asks one provider. It is safe for concurrent use.
type Client struct {
	Config embedding.ProviderConfig // not to be changed

	base *url.URL
	http *http.Client
}

// New makes a client of a provider, which needs a model and a base URL.
func New(config embedding.ProviderConfig) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	switch {
	case config.Model == "":
		return nil, embedding.Misconfigured("embedding provider %s: model is missing: name the one that its server runs", config.Name)
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
		Config: config, base: base,
		http: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: config.Timeout(),
				MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// NewDense is New for a type of provider that has no sparse vectors.
func NewDense(config embedding.ProviderConfig) (*Client, error) {
	if config.Sparse {
		return nil, embedding.Misconfigured("embedding provider %s: the type %s has no sparse vectors", config.Name, config.Type)
	}
	return New(config)
}

// Name implements embedding.Provider.
func (c *Client) Name() string { return c.Config.Name }

// Dimensions implements embedding.Provider.
func (c *Client) Dimensions() int { return c.Config.Dimensions }

// Sparse implements embedding.Provider.
func (c *Client) Sparse() bool { return c.Config.Sparse }

// Close drops idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Ask asks a question about n texts at a path below the base URL. decode reads the vectors of an answer; what it can't read is garbage.
func (c *Client) Ask(ctx context.Context, path string, question any, n int, decode func(answer []byte, n int) ([]embedding.Vector, error)) ([]embedding.Vector, error) {
	answer, err := c.post(ctx, path, question)
	if err != nil {
		return nil, err
	}
	vectors, err := decode(answer, n)
	if err != nil {
		return nil, embedding.Garbage(c.Config.Name, err)
	}
	return vectors, nil
}

// post asks a question, and gives the answer of a success.
func (c *Client) post(ctx context.Context, path string, question any) ([]byte, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, embedding.Refused(c.Config.Name, err)
	}
	attempt, cancel := context.WithTimeout(ctx, c.Config.Timeout())
	defer cancel()
	request, err := http.NewRequestWithContext(attempt, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, embedding.Refused(c.Config.Name, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if c.Config.APIKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.Config.APIKey)
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
		return nil, embedding.Garbage(c.Config.Name, errors.New("the answer is a web page"))
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if len(answer) > maxAnswer {
		return nil, embedding.Garbage(c.Config.Name, fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20))
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
		return embedding.TimedOut(c.Config.Name, err)
	}
	return embedding.Failed(c.Config.Name, "can't be reached", err)
}

// refused says what a status means.
func (c *Client) refused(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, int64(maxExcerpt+len(c.Config.APIKey)))) // whatever there is
	excerpt := string(body)
	if c.Config.APIKey != "" { // before it is cut, lest a part of it is left
		excerpt = strings.ReplaceAll(excerpt, c.Config.APIKey, "[apiKey]")
	}
	excerpt = excerpt[:min(len(excerpt), maxExcerpt)]
	cause := c.scrubbed(fmt.Errorf("status %d: %s", response.StatusCode, strings.ToValidUTF8(excerpt, "�")))
	switch status := response.StatusCode; status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return embedding.Refused(c.Config.Name, cause)
	case http.StatusTooManyRequests:
		return embedding.Throttled(c.Config.Name, retryAfter(response), cause)
	case http.StatusUnauthorized, http.StatusForbidden:
		return embedding.Failed(c.Config.Name, "refuses its apiKey", cause)
	case http.StatusNotFound:
		return embedding.Failed(c.Config.Name, "does not know the model, or its baseURL is wrong", cause)
	case http.StatusServiceUnavailable:
		if after := retryAfter(response); after > 0 {
			return embedding.Throttled(c.Config.Name, after, cause)
		}
		return embedding.Failed(c.Config.Name, "answers with status 503", cause)
	default:
		if status >= 300 && status < 400 {
			return embedding.Failed(c.Config.Name, "sends us elsewhere, which is not followed: set its baseURL", cause)
		}
		return embedding.Failed(c.Config.Name, "answers with status "+strconv.Itoa(status), cause)
	}
}

// scrubbed takes the key out of a text that a provider may have repeated it in.
func (c *Client) scrubbed(err error) error {
	if c.Config.APIKey == "" || !strings.Contains(err.Error(), c.Config.APIKey) {
		return err
	}
	return &scrubbed{text: strings.ReplaceAll(err.Error(), c.Config.APIKey, "[apiKey]"), err: err}
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
