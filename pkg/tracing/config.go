package tracing

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// Config is what the settings say of traces.
type Config struct {
	Endpoint    string  // base URL of a collector that takes OTLP over HTTP; "": nothing is traced
	Headers     string  // sent to it, as OTEL_EXPORTER_OTLP_HEADERS has them: name=value,name=value, values escaped as in URLs; may be a secret
	SampleRatio float64 // of requests, reconciles and runs of which there are traces: 0 to 1
	Service     string  // the name that the service has in traces; "": svcd
}

// CheckEndpoint says what is wrong with Endpoint, for whoever set it. No part of it is in the error: it may hold what should not be there.
func (c Config) CheckEndpoint() error {
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("is no URL such as http://127.0.0.1:4318")
	case u.User != nil:
		return errors.New("has a user in it: what a collector asks for goes into otel.headers or otel.headersFile")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("ends with a query or a fragment: give the URL alone")
	}
	return nil
}

// CheckHeaders says what is wrong with Headers. No value is in the error.
func (c Config) CheckHeaders() error {
	_, err := c.headers()
	return err
}

// Check says what is wrong with any of it.
func (c Config) Check() error {
	if err := errors.Join(c.CheckEndpoint(), c.CheckHeaders()); err != nil {
		return err
	}
	if !(c.SampleRatio >= 0 && c.SampleRatio <= 1) {
		return errors.New("the ratio of traces must be from 0 to 1")
	}
	return nil
}

const tracesPath = "/v1/traces"

// url is where traces are sent.
func (c Config) url() string {
	base := strings.TrimRight(c.Endpoint, "/")
	if strings.HasSuffix(base, tracesPath) {
		return base
	}
	return base + tracesPath
}

func (c Config) service() string {
	if c.Service == "" {
		return "svcd"
	}
	return c.Service
}

func (c Config) headers() (http.Header, error) {
	out, n := http.Header{}, 0
	for item := range strings.SplitSeq(c.Headers, ",") {
		if n++; strings.TrimSpace(item) == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !isToken(name) || value == "" || strings.ContainsFunc(value, isControl) {
			return nil, fmt.Errorf("number %d is no header such as Authorization=Bearer%%20…: a name, =, and a value that is escaped as in URLs", n)
		}
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Content-Type", "Content-Length", "Content-Encoding", "Host", "Transfer-Encoding", "Connection":
			return nil, fmt.Errorf("number %d is a header that svcd sets itself", n)
		}
		out.Set(name, value)
	}
	return out, nil
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
