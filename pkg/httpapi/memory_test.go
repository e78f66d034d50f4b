package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/httpapi"
)

// TestBodyMemory: large bodies take so much memory together and no more, small ones always go, and what a request had is free
// when that ends.
func TestBodyMemory(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	read := httpapi.Bodies(1024*kib, 1000*kib)
	send := func(size int, declared bool) (func(), error) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
		if !declared {
			r.ContentLength = -1
		}
		return read(httptest.NewRecorder(), r)
	}
	full := func(what string, err error) {
		t.Helper()
		if e := errs.From(err); e == nil || e.Kind != errs.Unavailable || e.Code != "bodies_busy" || e.RetryAfter == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	good := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 3 {
		first, err := send(700*kib, true)
		good("the first", err)
		second, err := send(364*kib, false) // but for 64 KiB of each, 936 of 1000
		good("the second", err)
		third, err := send(200*kib, true)
		full("the third", err)
		fourth, err := send(200*kib, false)
		full("the fourth", err)
		third()
		fourth()
		for range 50 { // of which none ends
			_, err := send(64*kib, true)
			good("a small one", err)
		}
		again, err := send(128*kib, false)
		good("one for which there is room", err)
		again()
		second()
		third, err = send(364*kib, true)
		good("one in the place of the second", err)
		third()
		first()
	}
	over, err := send(1025*kib, false)
	if errs.KindOf(err) != errs.TooLarge {
		t.Errorf("too large: %v", err)
	}
	over()
	all, err := send(1000*kib, true)
	good("after all of these", err)
	all()
}
