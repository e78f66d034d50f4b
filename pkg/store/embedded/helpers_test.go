package embedded_test

import (
	"context"
	"testing"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store/embedded"
)

func validateAndClose(t testing.TB, s *embedded.Store) {
	t.Helper()
	if err := s.Validate(context.WithoutCancel(t.Context())); err != nil && errs.KindOf(err) != errs.Unavailable {
		t.Errorf("Validate: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
