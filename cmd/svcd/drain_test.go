package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// TestR15Drain is row R15 of the fault list: the service is told to end while requests are under way and a feed is followed.
// Every request is answered well, the feed ends as such, and the exit code is 0. With SOAK set it is so 100 times.
func TestR15Drain(t *testing.T) {
	rounds := 2
	if os.Getenv("SOAK") != "" {
		rounds = 100
	}
	for range rounds {
		if onEachStore(t, drain); t.Failed() {
			return
		}
	}
}

func drain(t *testing.T, env ...string) {
	t.Helper()
	const requests = 8
	g := newGate(t)
	w := startHeld(t, g, "timeout: 1m", "GATE", env...)
	feed := w.follow(t, "/api/v1/_/wild/notes/_changes")
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			if status, text := w.bad(t.Context(), "held"); status != http.StatusCreated {
				t.Errorf("a request that was under way: %d %s", status, text)
			}
		})
	}
	for range requests {
		g.wait(t)
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "nobody is let in any more", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	if text, err := io.ReadAll(feed); err != nil || !strings.HasSuffix(string(text), "\n\n") || !strings.Contains(string(text), "event: "+api.EventStopping+"\n") {
		t.Errorf("the feed ends with %q, %v", text, err)
	}
	close(g.open)
	group.Wait()
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, w.log)
	}
}

// follow opens a feed, and returns when it has begun.
func (w *wildServer) follow(t *testing.T, path string) io.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, w.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	in := bufio.NewReader(res.Body)
	for line := ""; line != "event: "+api.EventReady+"\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("%s: %v %q", res.Status, err, line)
		}
	}
	return in
}

// TestR15Delay: with a delay, an instance that is told to stop says so to load balancers first, and takes what they send meanwhile.
func TestR15Delay(t *testing.T) {
	w := startWild(t, "SHUTDOWN_DELAY=1h")
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "/readyz is 503", func() bool {
		status, _ := w.call(t.Context(), http.MethodGet, "/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/api/v1/_/wild/clean", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		t.Fatalf("a new connection: %v", err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	if res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("%s, and the connection stays: %v", res.Status, !res.Close)
	}
	w.again(t)
}
