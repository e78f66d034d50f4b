// Command svcctl works with a svc content service from the command line.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/term"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/script"
)

// version is set by the linker (-X main.version=v1.2.3); a build without takes what the Go tool knows.
var version string

// compileCommand is what svcctl starts itself with, to compile scripts of a project that it checks: text can end the
// process that compiles it, and take for ever.
const compileCommand = "compile-worker"

func main() {
	if len(os.Args) == 2 && os.Args[1] == compileCommand {
		if err := script.ServeWorker(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := cli.Signals()
	defer stop()
	home, _ := os.UserHomeDir() // without a home, there is no contexts file but one that is named
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	width := func(f *os.File) int {
		columns, _, _ := term.GetSize(int(f.Fd())) // 0 when it is no terminal
		return columns
	}
	return cli.Run(ctx, &command.State{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: tty(os.Stdin), OutTTY: tty(os.Stdout), ErrTTY: tty(os.Stderr), OutWidth: width(os.Stdout), ErrWidth: width(os.Stderr),
		Env: os.LookupEnv, Home: home, Now: time.Now, Version: buildVersion(), Compiler: compiler(),
		ReadSecret: func(ask func()) (string, error) { return command.ReadSecret(ctx, os.Stdin, ask) },
	}, os.Args[1:])
}

func compiler() []string {
	if binary, err := os.Executable(); err == nil {
		return []string{binary, compileCommand}
	}
	return nil
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev" // as svcd says
}
