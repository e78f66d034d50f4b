package embedding

import (
	"time"

	"github.com/svcctl/svc/pkg/errs"
)

// The codes of errors: what is to blame.
const (
	CodeOffline   = "embedding_offline"   // a group gives no vectors for now
	CodeRefused   = "embedding_refused"   // a text, or a request as we make it; asking again does not help
	CodeThrottled = "embedding_throttled" // the moment; after RetryAfter it may be answered
	CodeTimeout   = "embedding_timeout"   // the provider took too long
	CodeFailed    = "embedding_failed"    // the provider can't be reached, or says that it can't
	CodeGarbage   = "embedding_garbage"   // the provider's answer is none
	codeDeviates  = "embedding_deviates"  // the provider's vectors are other ones
)

// Refused is the error of a provider that does not take what it was asked.
func Refused(provider string, cause error) error {
	return errs.New(errs.Invalid, CodeRefused, "the embedding provider %s refuses the text or the request", provider).With(cause)
}

// Throttled is the error of a provider that is asked too often; after is 0 when it doesn't say for how long.
func Throttled(provider string, after time.Duration, cause error) error {
	e := errs.New(errs.Throttled, CodeThrottled, "the embedding provider %s is asked too often", provider).With(cause)
	e.RetryAfter = after
	return e
}

// TimedOut is the error of a provider that did not answer in time.
func TimedOut(provider string, cause error) error {
	return errs.New(errs.Timeout, CodeTimeout, "the embedding provider %s did not answer in time", provider).With(cause)
}

// Failed is the error of a provider that can't be reached or can't answer. why is public.
func Failed(provider, why string, cause error) error {
	return errs.New(errs.Unavailable, CodeFailed, "the embedding provider %s %s", provider, why).With(cause)
}

// Garbage is the error of an answer that can't be read.
func Garbage(provider string, cause error) error {
	return errs.New(errs.Unavailable, CodeGarbage, "the embedding provider %s gave an answer that can't be read", provider).With(cause)
}

// Misconfigured is the error of settings that can't work. The text is public, and says what to write instead.
func Misconfigured(format string, args ...any) error {
	return errs.New(errs.Invalid, "embedding_config", format, args...)
}

// deviates is the error of a vector that is not one of the reference. what is public.
func deviates(what string) error {
	return errs.New(errs.Unavailable, codeDeviates, "%s", what)
}

func codeOf(err error) string { return errs.From(err).Code }

// publicText is what callers may read of an error.
func publicText(err error) string { return errs.From(err).Message }
