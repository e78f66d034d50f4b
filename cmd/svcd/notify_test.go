package main

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What a service manager waits for with Type=notify: READY=1 when requests are answered, STOPPING=1 when it ends.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	told := func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, err := socket.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	srv := newSvcd(t, "NOTIFY_SOCKET="+path).start()
	if got := told(); got != "READY=1" {
		t.Errorf("at the start: %s", got)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("at the end: %s", got)
	}
}
