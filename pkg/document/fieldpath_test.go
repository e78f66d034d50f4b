package document_test

import (
	"testing"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func TestCheckFieldPath(t *testing.T) {
	for path, want := range map[string]document.ServerCode{
		"a": 0, "a.b.c": 0, "a.0": 0, "ä.b$": 0,
		"": 40352, ".": 40353, "a.": 40353, ".a": 15998, "a..b": 15998, "$a": 16410, "a.$b": 16410, "a\x00b": 16411, "a.b.c.d": 15, "a..b.c": 15,
	} {
		err := document.CheckFieldPath("bad_it", path, 3)
		if (err != nil) != (want != 0) || document.ServerCodeOf(err) != want || err != nil && errs.From(err).Code != "bad_it" {
			t.Errorf("%q: %v, want the code %d", path, err, want)
		}
	}
	if err := document.CheckFieldName("bad_it", "a.b"); document.ServerCodeOf(err) != 16412 {
		t.Errorf("a name with a dot: %v", err)
	}
}
