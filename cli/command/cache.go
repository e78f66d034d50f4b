package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// What the tab key asks the service is kept for a while: presses follow each other, and each is a process of its own.
const (
	cacheFor   = 30 * time.Second
	cacheClean = 10 * time.Minute // how old what is kept gets before it is removed
	maxCached  = 1 << 20          // longest answer that is kept, in bytes
)

// cached keeps the answers to GET requests in files that only the user can read. Each credential has its own. Nothing that goes
// wrong with a file is told: there is always the service.
type cached struct {
	next http.RoundTripper
	dir  string
	now  func() time.Time
}

// caching makes a transport one that keeps answers, where there is a place for them.
func (st *State) caching(next http.RoundTripper) http.RoundTripper {
	dir, _ := st.Env("XDG_CACHE_HOME")
	if !filepath.IsAbs(dir) {
		if st.Home == "" {
			return next
		}
		dir = filepath.Join(st.Home, ".cache")
	}
	if next == nil {
		next = http.DefaultTransport
	}
	return &cached{next: next, dir: filepath.Join(dir, "svcctl", "completion"), now: st.Now}
}

// kept is an answer in a file.
type kept struct {
	At   time.Time `json:"at"`
	Type string    `json:"type"`
	Body []byte    `json:"body"`
}

// RoundTrip implements http.RoundTripper.
func (c *cached) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return c.next.RoundTrip(req)
	}
	file := filepath.Join(c.dir, keyOf(req)+".json")
	if k, err := read(file); err == nil {
		if age := c.now().Sub(k.At); age >= 0 && age < cacheFor {
			return k.answer(req), nil
		}
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCached+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxCached {
		return nil, errors.New("the answer is too long for a completion")
	}
	k := kept{At: c.now(), Type: resp.Header.Get("Content-Type"), Body: body}
	c.keep(file, k)
	return k.answer(req), nil
}

// keyOf names the file of a request: by what is asked, and as whom.
func keyOf(req *http.Request) string {
	h := sha256.New()
	write := func(text string) { _, _ = h.Write(append([]byte(text), 0)) } // which never fails
	write(req.URL.String())
	for _, name := range []string{api.HeaderAuthToken, api.HeaderAdminToken, api.HeaderToken} {
		write(req.Header.Get(name))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func read(file string) (k kept, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(data, &k)
}

// keep writes an answer, and removes those that are old.
func (c *cached) keep(file string, k kept) {
	data, err := json.Marshal(k)
	if err != nil || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	if output.ReplaceFile(file, data) != nil {
		return
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && c.now().Sub(info.ModTime()) > cacheClean {
			_ = os.Remove(filepath.Join(c.dir, e.Name())) // another press of the key may have done it
		}
	}
}

func (k kept) answer(req *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {k.Type}}, Body: io.NopCloser(bytes.NewReader(k.Body)), ContentLength: int64(len(k.Body)), Request: req,
	}
}
