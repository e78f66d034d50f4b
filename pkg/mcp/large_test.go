package mcp_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/mcp"
)

// TestLargeMessagesTakeLittle: of a message of any form no more is made than a few times its size, as of a body of REST. The door for
// bodies (httpapi's memory.go) counts on it when it says how many may be under way.
func TestLargeMessagesTakeLittle(t *testing.T) {
	const size = 1 << 20
	fill := func(open, item, end string) string { return open + strings.Repeat(item, size/len(item)) + end }
	names := &strings.Builder{}
	for i := 0; names.Len() < size; i++ {
		names.WriteString(`,"k` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i%11) + strings.Repeat("z", i%1013) + `":1`)
	}
	const blog = `"namespace": "blog", "collection": "articles"`
	for _, tt := range []struct{ tool, arguments, want string }{
		{"documents_list", `{` + blog + names.String() + `}`, "an object has more than 1000 members"},
		{"documents_list", fill(`{`+blog+`, "filter": {"a": [`, "0,", "0]}}"), "filter is longer than 64 KiB"},
		{"documents_list", fill(`{`+blog+`, "aggregate": [`, "{},", "{}]}"), "aggregate is longer than 64 KiB"},
		{"documents_list", fill(`{`+blog+`, "sort": [`, `"a",`, `"a"]}`), "sort is longer than 64 KiB"},
		{"documents_list", fill(`{`+blog+`, "select": "`, `a,`, `a"}`), "select is longer than 64 KiB"},
		{"documents_list", fill(`{`+blog+`, "extra": {"a": [`, "0,", "0]}}"), "extra is longer than 64 KiB"},
		{"document_get", fill(`{`+blog+`, "id": "`, `/`, `"}`), "id is longer than 64 KiB"},
		{"audit_query", fill(`{"filter": "{\"a\":[`, "0,", `0]}"}`), "filter is longer than 64 KiB"},
		{"action_call", fill(`{"namespace": "blog", "action": "a", "method": "get", "data": {"a": [`, "0,", "0]}}"), "data is longer than 64 KiB"},
		{"document_create", fill(`{`+blog+`, "data": {"a": [`, "0,", "0]}}"), `"result"`}, // REST has its own limits on it
		{"document_create", fill(`{`+blog+`, "items": [`, "{},", "{}]}"), `"result"`},
	} {
		d := newDoor(mcp.Options{}, everything...)
		message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tt.tool + `","arguments":` + tt.arguments + `}}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := d.send(t, message)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) / uint64(len(message)); took > 5 { // one is the test's own, from text to bytes; the race detector adds another
			t.Errorf("%s of %.60s takes %d times its size", tt.tool, tt.arguments, took)
		}
		if !strings.Contains(got, tt.want) || len(got) > 1000 {
			t.Errorf("%s of %.60s: %.300s, want %s", tt.tool, tt.arguments, got, tt.want)
		}
	}
	d := newDoor(mcp.Options{}, everything...)
	for _, message := range []string{`{"jsonrpc":"2.0","id":1` + names.String() + `}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"projects_list"` + names.String() + `}}`} {
		if got := d.send(t, message); !strings.Contains(got, "an object has more than 1000 members") {
			t.Errorf("%.300s", got)
		}
	}
}
