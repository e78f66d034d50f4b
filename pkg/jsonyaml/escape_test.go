package jsonyaml_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/jsonyaml"
)

// S28: what is safe is so wherever it stands, and JSON that is escaped is the same JSON.
func TestS28Escape(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{
		"": true, "plain": true, "می\u200cخواهم": true, "ක්\u200dරී": true, "\u0915\u094d": true, "خ": true, "👩": true,
		"\u200d": false, "می\u200c": false, "\u200cمی": false, "ad\u200dmin": false, "م\u200c\u200dم": false, "👩\u200d🚒": false, "\u202e": false, "\x1b": false, "\x9b": false, "م\u200bم": false,
	}
	for text, want := range texts {
		if got := jsonyaml.Clean(text); got != want {
			t.Errorf("%+q is clean: %v", text, got)
		}
		for next, clean := range texts {
			if want && clean && !jsonyaml.Clean(text+next) {
				t.Errorf("%+q is clean, and %+q is, but not both", text, next)
			}
		}
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := jsonyaml.Escape(raw)
		if !jsonyaml.Clean(string(escaped)) {
			t.Errorf("%+q is escaped as %+q", text, escaped)
		}
		var back string
		if err := json.Unmarshal(escaped, &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%+q is read back as %+q, %v", text, back, err)
		}
	}
}
