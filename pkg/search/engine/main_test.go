package engine_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain is row R19 of the fault list: no goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
