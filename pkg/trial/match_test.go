package trial

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/document"
)

// What is compared, and what is told of it: places, and why.
func TestCompare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want, got string
		exactly   bool
		diffs     string
	}{
		{`{"a": 1}`, `{"a": 1.0, "b": 2}`, false, ""},
		{`{"a": 1}`, `{"a": 1, "b": 2}`, true, ".b should not be there"},
		{`{"a": {"b": [1, 2]}}`, `{"a": {"b": [1, 3]}}`, false, ".a.b[1] differs"},
		{`[1, 2]`, `[1]`, false, "[1] is not there"},
		{`[1]`, `[1, 2]`, false, "[1] should not be there"},
		{`[]`, `{}`, false, " is no list"},
		{`{"a": {"b": 1}}`, `{"a": 1}`, false, ".a is no object"},
		{`{"a": null}`, `{}`, false, ".a is not there"},
		{`{"a": null}`, `{"a": null}`, false, ""},
		{`{"a": "$any"}`, `{"a": null}`, false, ""},
		{`{"a": "$any"}`, `{}`, false, ".a is not there"},
		{`{"a": {"$exists": false}}`, `{}`, true, ""},
		{`{"a": {"$exists": false}}`, `{"a": 1}`, false, ".a does not match"},
		{`{"a": {"$gte": 3, "$lt": 5}}`, `{"a": 4}`, true, ""},
		{`{"a": {"$regex": "^x"}}`, `{"a": "yx"}`, false, ".a does not match"},
		{`{"a": {"$size": 2}}`, `{"a": [1, 2]}`, false, ""},
		{`{"a": {"$nothing": 2}}`, `{"a": 1}`, false, ".a is compared with what is no filter"},
		{`"x"`, `"y"`, false, " differs"},
		{`"1"`, `1`, false, " differs"},
		{`{"a": 1, "b": 2}`, `{"a": 2, "b": 1}`, false, ".a differs|.b differs"},
	} {
		want, err1 := document.ParseJSONValue([]byte(tt.want))
		got, err2 := document.ParseJSONValue([]byte(tt.got))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var told []string
		for _, d := range compare(want, got, tt.exactly) {
			message, _, _ := strings.Cut(d.message, ":")
			told = append(told, d.path+" "+message)
		}
		if s := strings.Join(told, "|"); s != tt.diffs {
			t.Errorf("%s of %s: %q, want %q", tt.want, tt.got, s, tt.diffs)
		}
	}
}
