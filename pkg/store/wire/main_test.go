package wire_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that nobody has waited for.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
