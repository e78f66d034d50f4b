// Command startmongo starts one MongoDB for the tests of many packages (see package mongotest).
//
//	startmongo                 prints its URI and serves until standard input ends or a signal comes
//	startmongo go test ./...   runs a command with MONGODB_URI set to it, and ends with the command's exit code
//
// MONGODB_CACHE_GB is the size of its cache: 0.25 is enough for tests, and less than what MongoDB has by itself for what is measured with it.
// With MONGODB_URI set it starts nothing and gives that. If no MongoDB can be had, the command form says so and runs
// the command without, unless CI=true.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/svcctl/svc/pkg/store/mongotest"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(command []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	uri := os.Getenv("MONGODB_URI")
	if uri == "" {
		options, err := options()
		if err != nil {
			fmt.Fprintln(os.Stderr, "startmongo:", err)
			return 2
		}
		server, err := mongotest.Start(ctx, options...)
		if err != nil {
			fmt.Fprintln(os.Stderr, "NO MONGODB TO TEST WITH:", err)
			if len(command) == 0 || os.Getenv("CI") == "true" {
				return 1
			}
			return runCommand(ctx, command, "")
		}
		defer func() {
			if err := server.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "startmongo: stopping:", err)
			}
		}()
		uri = server.URI
	}
	if len(command) > 0 {
		return runCommand(ctx, command, uri)
	}
	fmt.Println(uri)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return 0
}

func options() ([]mongotest.Option, error) {
	text := os.Getenv("MONGODB_CACHE_GB")
	if text == "" {
		return nil, nil
	}
	gb, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("MONGODB_CACHE_GB is %q, want a number such as 0.25", text)
	}
	return []mongotest.Option{mongotest.CacheGB(gb)}, nil
}

func runCommand(ctx context.Context, command []string, uri string) int {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if uri != "" {
		cmd.Env = append(os.Environ(), "MONGODB_URI="+uri)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "startmongo:", err)
		return 1
	}
}
