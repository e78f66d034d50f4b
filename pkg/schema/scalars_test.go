package schema_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/schema"
)

func TestSpanIsShownAsItIsWritten(t *testing.T) {
	t.Parallel()
	for want, span := range map[string]schema.Span{
		"1y5m7d2h": {Years: 1, Months: 5, Days: 7, Hours: 2},
		"2y12h":    {Years: 2, Hours: 12},
		"36m":      {Months: 36},
		"7d":       {Days: 7},
		"0h":       {},
	} {
		if got := span.String(); got != want {
			t.Errorf("%s is shown as %s", want, got)
		}
	}
}
