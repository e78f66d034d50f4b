package mongotest_test

import (
	"bufio"
	"net"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/store/mongotest"
)

// asOwner makes this test binary a process that starts a server and then waits to be killed.
const asOwner = "MONGOTEST_OWNER"

func TestServerEndsWithItsOwner(t *testing.T) {
	if os.Getenv(asOwner) != "" {
		server, err := mongotest.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString(server.URI + "\n"); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	startStandalone(t) // skips where there is no server to start
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerEndsWithItsOwner$")
	owner.Env = append(os.Environ(), asOwner+"=1")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the owner said nothing")
	}
	uri, err := url.Parse(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	if !listens(t, uri.Host) {
		t.Fatalf("nothing listens on %s", uri.Host)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed
	for giveUp := time.Now().Add(2 * time.Minute); listens(t, uri.Host); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatalf("the server on %s outlives its owner", uri.Host)
		}
	}
}

func TestStop(t *testing.T) {
	server := startStandalone(t)
	uri, err := url.Parse(server.URI)
	if err != nil || !listens(t, uri.Host) {
		t.Fatalf("nothing listens on %s", server.URI)
	}
	if err := server.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if listens(t, uri.Host) {
		t.Errorf("%s still listens", uri.Host)
	}
}

func startStandalone(t *testing.T) *mongotest.Server {
	t.Helper()
	server, err := mongotest.StartStandalone(t.Context())
	if err != nil {
		t.Skipf("no MongoDB can be started here: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() }) // the second time, if the test does it itself
	return server
}

func listens(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
