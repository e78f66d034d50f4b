package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// Error is a refusal by the service.
type Error struct {
	Status     int
	Problem    api.Problem
	RetryAfter time.Duration // 0 when the service didn't say
	Method     string
	Path       string
}

// Error is the problem's own text.
func (e *Error) Error() string { return e.Problem.Detail }

// Code is the problem's slug, such as "project_not_found", or "".
func (e *Error) Code() string { return e.Problem.Code }

// IsStatus says whether err is a refusal with that HTTP status.
func IsStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// UnreachableError says that no answer of the service came back.
type UnreachableError struct {
	Server   string
	Err      error
	answered bool // something did answer, so asking again is no use
}

// Error names the server and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s: %v", e.Server, e.Err)
}

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Permanent says that asking again would give the same: a certificate that is refused, or another program's answer.
func (e *UnreachableError) Permanent() bool {
	var (
		record    tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
	)
	return e.answered || errors.As(e.Err, &record) || errors.As(e.Err, &verify) ||
		errors.As(e.Err, &authority) || errors.As(e.Err, &hostname)
}

// refusal reads the problem of an answer. One that carries none (a proxy's, say) gets a text of ours.
func refusal(method string, resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, Method: method, Path: resp.Request.URL.Path}
	if s, err := strconv.Atoi(resp.Header.Get(api.HeaderRetryAfter)); err == nil && s >= 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an unreadable type is no problem document
	if media == api.MediaProblem || media == api.MediaJSON {
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
		if err == nil && json.Unmarshal(data, &e.Problem) == nil && e.Problem.Detail != "" {
			e.Problem.Status = resp.StatusCode
			return e
		}
		var envelope struct { // of the endpoint for agents
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err == nil && json.Unmarshal(data, &envelope) == nil && envelope.Error.Message != "" {
			e.Problem = api.Problem{
				Title: http.StatusText(resp.StatusCode), Status: resp.StatusCode, Detail: envelope.Error.Message,
				RequestID: resp.Header.Get(api.HeaderRequestID),
			}
			return e
		}
	}
	e.Problem = api.Problem{
		Title:     http.StatusText(resp.StatusCode),
		Status:    resp.StatusCode,
		Detail:    fmt.Sprintf("%s %s: %s", method, e.Path, resp.Status),
		RequestID: resp.Header.Get(api.HeaderRequestID),
	}
	if to := resp.Header.Get(api.HeaderLocation); to != "" && resp.StatusCode < 400 {
		if u, err := url.Parse(to); err == nil { // a password in it is not to be shown
			to = u.Redacted()
		} else {
			to = "another address"
		}
		e.Problem.Detail += ": moved to " + to + "; give that address as the server"
	}
	return e
}
