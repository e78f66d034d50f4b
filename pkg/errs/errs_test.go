package errs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
)

func TestValidationListsTheFirstHundred(t *testing.T) {
	t.Parallel()
	var fields []errs.FieldError
	for i := range 5000 {
		fields = append(fields, errs.FieldError{Path: fmt.Sprint("f", i), Rule: "type", Message: "is wrong"})
	}
	e := errs.Validation(fields)
	if len(e.Fields) != 100 || !strings.Contains(e.Message, "4999 more") {
		t.Errorf("%d problems are listed: %s", len(e.Fields), e.Message)
	}
}

func TestFromNeverShowsAForeignText(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial mongodb://user:secret@host")
	for _, err := range []error{secret, errs.Wrap(secret, "connect"), fmt.Errorf("context: %w", errs.Wrap(secret, "x"))} {
		if e := errs.From(err); e.Message != "internal error" || e.Kind != errs.Internal || !errors.Is(err, secret) {
			t.Errorf("%v became %q", err, e.Message)
		}
	}
	if errs.From(nil) != nil || errs.KindOf(nil) != errs.Internal {
		t.Error("no error is not nil")
	}
	if wrapped := fmt.Errorf("read: %w", errs.ErrNotFound); !errors.Is(wrapped, errs.ErrNotFound) || errs.KindOf(wrapped) != errs.NotFound {
		t.Error("a wrapped error lost its kind")
	}
	if got := errs.ErrNotFound.With(secret); !errors.Is(got, errs.ErrNotFound) || !errors.Is(got, secret) || got.Message != "not found" {
		t.Errorf("With: %v", got)
	}
}
