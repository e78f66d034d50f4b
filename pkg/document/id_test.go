package document_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
)

func TestParseID(t *testing.T) {
	const hex = "0123456789abcdef01234567"
	for _, text := range []string{hex, strings.ToUpper(hex)} {
		if id, err := document.ParseID(text); err != nil || id.Hex() != hex {
			t.Errorf("%s: %s, %v", text, id.Hex(), err)
		}
	}
	for _, text := range []string{"", "x", hex + "0", hex[1:], hex[1:] + "g", " " + hex, `{"$ne":null}`} {
		id, err := document.ParseID(text)
		if e := errs.From(err); e == nil || e.Kind != errs.Invalid || e.Code != "bad_id" || !id.IsZero() {
			t.Errorf("%q: %s, %v; want bad_id", text, id.Hex(), err)
		}
	}
}
