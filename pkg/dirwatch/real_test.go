package dirwatch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/dirwatch"
)

// git runs git in the watched tree.
func (f *fixture) git(args ...string) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir, cmd.Env = f.path("tree"), append(os.Environ(), "HOME="+f.base, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// TestACheckoutIsOneChange switches hundreds of files and folders with the real git, there and back.
func TestACheckoutIsOneChange(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED with git, which is not installed")
	}
	t.Parallel()
	files := func(f *fixture, version string) {
		for i := range 300 {
			dir := fmt.Sprintf("tree/%s%d/deep/er", version, i%20)
			f.mkdir(dir)
			f.write(fmt.Sprintf("%s/%d.yaml", dir, i), version)
			f.write(fmt.Sprintf("tree/%d.yaml", i), version)
		}
	}
	f := watch(t, dirwatch.New(quick), func(f *fixture) {
		f.mkdir("tree")
		f.git("init", "-q", "-b", "old")
		files(f, "old")
		f.git("add", "-A")
		f.git("commit", "-q", "-m", "old")
		f.git("checkout", "-q", "-b", "new")
		f.git("rm", "-q", "-r", ".")
		files(f, "new")
		f.git("add", "-A")
		f.git("commit", "-q", "-m", "new")
	})
	for _, args := range [][]string{{"checkout", "-q", "old"}, {"checkout", "-q", "new"}, {"reset", "-q", "--hard", "old"}} {
		f.git(args...)
		f.changed()
		f.unchanged() // nothing of it comes after
	}
	f.git("status")
	f.git("commit", "-q", "--allow-empty", "-m", "nothing")
	f.unchanged()
	f.write("tree/old7/deep/er/7.yaml", "by hand") // the new folders are watched
	f.changed()
}

// TestLostEventsAreMadeUpFor has so much happen while the watcher is busy that the kernel drops what comes then.
func TestLostEventsAreMadeUpFor(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip("NOT TESTED with lost events: no inotify")
	}
	queue, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || queue > 1<<17 {
		t.Skipf("NOT TESTED with lost events: the queue takes %s", text)
	}
	var log bytes.Buffer // of the watcher alone, until it has ended
	opts := quick
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w := dirwatch.New(opts)
	f := &fixture{T: t, w: w, base: t.TempDir(), changes: make(chan string, 100)}
	for _, key := range []string{"tree", "marker"} {
		f.mkdir(key)
		f.must(w.Watch(key, f.path(key)))
	}
	busy, free := make(chan struct{}), make(chan struct{})
	first := true
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- w.Start(ctx, func(key string) {
			if first {
				first = false
				close(busy)
				<-free
			}
			f.changes <- key
		})
	}()
	f.write("marker/m", "1")
	<-busy
	const read = 4096 // that the watcher has taken from the queue before it stopped, at most
	for range (queue+read)/2 + 1 {
		f.write("tree/4913", "")
		f.must(os.Remove(f.path("tree/4913")))
	}
	f.mkdir("tree/sub")
	f.write("tree/sub/a.yaml", "1")
	close(free)
	if key := <-f.changes; key != "marker" {
		t.Fatalf("%s was reported", key)
	}
	f.changed()
	f.write("tree/sub/a.yaml", "2")
	f.changed()
	cancel()
	f.must(<-done)
	if !strings.Contains(log.String(), "events were lost") {
		t.Errorf("nothing was lost, so this tested nothing: %s", log.String())
	}
}

// TestSilentDirectoriesArePolled has a file system that takes a watch and tells of nothing, as network mounts do of what
// other machines write.
func TestSilentDirectoriesArePolled(t *testing.T) {
	t.Parallel()
	opts := quick
	opts.Poll = 20 * time.Millisecond
	f := watch(t, dirwatch.WithSilence(opts), func(f *fixture) { f.mkdir("tree") })
	f.write("tree/a.yaml", "1")
	f.changed()
	f.mkdir("tree/sub/sub")
	f.write("tree/sub/sub/b.yaml", "1")
	f.changed()
	f.must(os.RemoveAll(f.path("tree")))
	f.changed()
}
