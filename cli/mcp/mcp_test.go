package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/cli/mcp"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// buffer may be written to by several.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// TestBridge: each line is sent, and each answer is one line with its message's id, also where the endpoint refuses or is not there.
func TestBridge(t *testing.T) {
	send := func(_ context.Context, line []byte) (json.RawMessage, error) {
		switch {
		case strings.Contains(string(line), "note"):
			return nil, nil
		case strings.Contains(string(line), "refused"):
			return nil, &client.Error{Status: 403, Problem: api.Problem{Detail: "mcp disabled"}}
		case strings.Contains(string(line), "obeyed"):
			return nil, &client.Error{Status: 500, Problem: api.Problem{Detail: "a\x1b[31mb\r\nsvcctl: all is well\u202e"}}
		case strings.Contains(string(line), "bytes"):
			return json.RawMessage("{\"bytes\":\"\xff\"}"), nil
		case strings.Contains(string(line), "away"):
			return nil, errors.New("no answer from there")
		}
		return json.RawMessage("{\n  \"sent\": " + string(line) + "\n}"), nil
	}
	in := strings.Join([]string{
		`{"id":1,"method":"a"}`, ``, `  `, `{"method":"note"}`, `{"id":5,"method":"note"}`, `{"id":6,"result":"note"}`, `{"id":7,"method":"obeyed"}`, `{"id":8,"method":"bytes"}`, `{"id":"2","method":"refused"}`, `{"method":"refused"}`, `{"id":3,"method":"away"}`,
		`{"id":4,"method":"b","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`,
	}, "\r\n")
	var out, log buffer
	if err := mcp.Bridge(t.Context(), strings.NewReader(in), &out, &log, send); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out.b.String()), "\n")
	for i := range got {
		if len(got[i]) > 200 {
			got[i] = got[i][:40]
		}
	}
	slices.Sort(got)
	want := []string{
		"{\"bytes\":\"\ufffd\"}",
		`{"error":{"code":-32000,"message":"no answer from there"},"id":3,"jsonrpc":"2.0"}`,
		`{"error":{"code":-32000,"message":"the service has not answered the message"},"id":5,"jsonrpc":"2.0"}`,
		`{"error":{"code":403,"message":"mcp disabled"},"id":"2","jsonrpc":"2.0"}`,
		"{\"error\":{\"code\":500,\"message\":\"a\\u001b[31mb\\r\\nsvcctl: all is well\u202e\"},\"id\":7,\"jsonrpc\":\"2.0\"}",
		`{"sent":{"id":1,"method":"a"}}`,
		`{"sent":{"id":4,"method":"b","params":{"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(log.b.String(), "svcctl mcp serve: "); n != 5 || n != strings.Count(log.b.String(), "\n") || strings.ContainsAny(log.b.String(), "\x1b\u202e\r") {
		t.Errorf("%d lines are told to people: %s", n, log.b.String())
	}
}

// TestBridgeAnswersBesideEachOther: an answer that takes long does not hold up those behind it, and none is lost at the end of the input.
func TestBridgeAnswersBesideEachOther(t *testing.T) {
	slow, in := make(chan struct{}), strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(&in, `{"id":%d}`+"\n", i)
	}
	var mu sync.Mutex
	var order []string
	send := func(_ context.Context, line []byte) (json.RawMessage, error) {
		if string(line) == `{"id":0}` {
			<-slow
		}
		mu.Lock()
		defer mu.Unlock()
		if order = append(order, string(line)); len(order) == 50 {
			close(slow)
		}
		return line, nil
	}
	var out, log buffer
	if err := mcp.Bridge(t.Context(), strings.NewReader(in.String()), &out, &log, send); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.b.String(), "\n"); n != 100 {
		t.Errorf("%d answers to 100 messages", n)
	}
}

type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, errors.New("shut") }

// TestBridgeEnds: with its context, and when nobody reads its answers any more, while its input goes on.
func TestBridgeEnds(t *testing.T) {
	send := func(_ context.Context, line []byte) (json.RawMessage, error) { return line, nil }
	in, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mcp.Bridge(ctx, in, io.Discard, io.Discard, send) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	in, other := io.Pipe()
	defer other.Close()
	go func() { done <- mcp.Bridge(t.Context(), in, shut{}, io.Discard, send) }()
	if _, err := other.Write([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || err.Error() != "shut" {
		t.Error(err)
	}
}

// TestBridgeRefusesWhatIsTooLong, and goes on with what is behind it.
func TestBridgeRefusesWhatIsTooLong(t *testing.T) {
	var out, log buffer
	in := io.MultiReader(strings.NewReader(strings.Repeat("x", 65<<20)+"\n"), strings.NewReader(`{"id":1}`))
	send := func(_ context.Context, line []byte) (json.RawMessage, error) { return line, nil }
	if err := mcp.Bridge(t.Context(), in, &out, &log, send); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out.b.String()), "\n")
	slices.Sort(got)
	want := []string{`{"id":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message is longer than 64 MiB"}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "svcctl mcp serve: a message is longer than 64 MiB\n"; log.b.String() != want {
		t.Error(log.b.String())
	}
}
