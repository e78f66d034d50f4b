package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
)

// svcctl is the program, as lines of a document run it.
func svcctl() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := cli.Run(ctx, &command.State{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Home: os.Getenv("HOME"), Now: time.Now, Version: "test",
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

// TestStartDoc runs the lines of start.md in one go, from an empty directory, as a reader would.
func TestStartDoc(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "start.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?\n)```\n").FindAllStringSubmatch(string(text), -1) {
		lines.WriteString(block[1])
	}
	dir := t.TempDir()
	for _, name := range []string{"svcd", "svcctl"} { // which of them this is, it tells by its name
		if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(os.Args[0], filepath.Join(dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	const head = "set -eux\ntrap '[ -z \"${SVCD-}\" ] || kill \"$SVCD\" || true' EXIT\n"
	sh := exec.CommandContext(t.Context(), "sh", "-c", head+strings.ReplaceAll(lines.String(), "8080", freePort(t)))
	sh.Dir = dir
	sh.Env = []string{endAtOnce, "PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	sh.WaitDelay = patience
	out, err := sh.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "mine", "svcd.log")) // none is as good as an empty one
		t.Fatalf("%v\n%s\n%s", err, out, log)
	}
	for _, want := range []string{"A Loaf of Rye", "2 passed in ", "the-weather-book", "A <mark>Loaf</mark> of Rye", "books/titles", "there are 2 books", "succeeded"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in what the lines print:\n%s", want, out)
		}
	}
}
