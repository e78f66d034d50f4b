// Command svcd is the service: the API, the controllers and their workers.
//
// main.go has the commands, settings.go the table of settings; docs/settings.md is made from that table.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // zones of schedules, where the machine has none

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/trial"
)

// version is set by the build.
var version = ""

// Exit codes.
const (
	exitFailed    = 1
	exitUsage     = 2  // or check could not check
	exitStoreLost = 70 // the embedded store could not write; a restart recovers it
	exitInterrupt = 130
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { // the second signal ends the process at once
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-again
			os.Exit(exitInterrupt)
		}()
	})
	err := newRootCmd(os.Stdout, os.Stderr).ExecuteContext(ctx)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(os.Stderr, "svcd:", output.Escape(line))
		}
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage *usageError
	var not *notCheckedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.As(err, &not):
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitInterrupt
	default:
		return exitFailed
	}
}

// usageError is a mistake in the command line or the settings.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// noArgs refuses arguments, such as a command that does not exist.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		next := cmd.CommandPath() + " --help tells how it is used"
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			next = "did you mean " + cmd.CommandPath() + " " + near[0] + "?"
		}
		return &usageError{fmt.Errorf("%w: %s", err, next)}
	}
	return nil
}

// flagHint names the flag that an unknown one most likely means: one of the command, else one of a setting.
func flagHint(cmd *cobra.Command, name string) string {
	var own []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { own = append(own, f.Name) })
	if near := schema.Nearest(name, own); near != "" {
		return "did you mean --" + near + "?"
	}
	if next, ok := strings.CutPrefix(hint(name), "did you mean "); ok {
		return "did you mean --" + next
	}
	return cmd.CommandPath() + " --help lists the flags"
}

func newRootCmd(stdout, stderr io.Writer) *cobra.Command {
	serve := newServeCmd(stderr)
	root := &cobra.Command{
		Use:           "svcd",
		Short:         "A headless content service with its configuration in files",
		Long:          "svcd serves projects that are described by config files.\nWithout a command it serves: svcd is svcd serve.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          serve.RunE,
		Version:       versionText(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			err = fmt.Errorf("%w: %s", err, flagHint(cmd, unknown.GetSpecifiedName()))
		}
		return &usageError{err}
	})
	addFlags(root.PersistentFlags())
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}",
		"Each setting is a flag, too, such as --config and --data.dir: svcd serve --help tells of them.", 1))
	root.AddCommand(serve, newCheckCmd(stdout, stderr), newVersionCmd(stdout), newWorkerCmd(), newHashCmd(stdout), newGoldenCmd(stdout), newProjectTestCmd(stdout))
	return root
}

func newServeCmd(stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:        "serve",
		SuggestFor: []string{"server", "start", "run", "up"},
		Short:      "Serve the API and run the controllers",
		Long:       "Serve the API and run the controllers.\n\n" + settingsHelp(),
		Example:    "  API_PORT=8080 svcd serve\n  svcd serve --api.port 8080 --projects.dir ./projects --data.dir ./data",
		Args:       noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := readSettings(cmd.Flags(), stderr)
			if err != nil {
				return &usageError{err}
			}
			if cfg.Port <= 0 {
				panic("api.port (API_PORT) is missing or not greater than 0: set it, such as API_PORT=8080")
			}
			cfg.WorkerCommand = workers()
			return serve(cmd.Context(), cfg)
		},
	}
}

// workers is the command line of processes that run and compile scripts apart; nil, and all is done in this one, if nobody
// knows where this program is.
func workers() []string {
	binary, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{binary, workerCommand}
}

// newWorkerCmd is the command that svcd starts itself with, to run scripts in a process of their own.
func newWorkerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return script.ServeWorker(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}

const workerCommand = "worker"

func serve(ctx context.Context, cfg app.Config) error {
	began, manager := time.Now(), serviceManager()
	cfg.HashCommand, cfg.Judge = hashCommand(), trial.Judge{}
	a, err := app.New(ctx, cfg)
	if err != nil {
		return err
	}
	shareCores()
	debug.FreeOSMemory() // what reading the projects' files has left behind is many times what is kept of them
	cfg.Logger.InfoContext(ctx, "serving", "address", a.Addr(), "version", cfg.Version, "started_in", time.Since(began).Round(time.Millisecond).String())
	manager.tell(ctx, cfg.Logger, "READY=1")
	told := context.AfterFunc(ctx, func() { manager.tell(context.WithoutCancel(ctx), cfg.Logger, "STOPPING=1") })
	stop := paceGC()
	err = a.Run(ctx)
	stop()
	told()
	cfg.Logger.InfoContext(context.WithoutCancel(ctx), "stopped", "reason", stopReason(ctx, err))
	return err
}

// stopReason says why the service has ended: who reads the log later asks whether somebody wanted it.
func stopReason(ctx context.Context, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	}
	return "asked for by the API"
}

// shareCores leaves it to the kernel to share the cores between requests and scripts: Go's scheduler lets a script compute
// for 10 ms before a request that is ready has its turn.
func shareCores() {
	if os.Getenv("GOMAXPROCS") == "" { // or somebody knows better
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
}

func newCheckCmd(stdout, stderr io.Writer) *cobra.Command {
	store, c := false, storeCheck{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the settings and the config of every registered project, or the store",
		Long: "Check the settings and the config of every registered project, without serving anything and without asking\n" +
			"embedding providers.\n" +
			"The embedded store can be read by one process only: stop svcd first, or ask the running one\n" +
			"with svcctl project status.\n\n" +
			"With --store, check instead that everything in the store can be read and agrees: checksums, documents,\n" +
			"index entries, counters, feeds. It reads all there is. --repair makes anew what is derived from\n" +
			"documents; documents are never changed. MongoDB may go on serving meanwhile, and is repaired with its own tools.\n\n" +
			"Exit codes: 0 all is well (or is after the repair), 1 there are problems, 2 it could not be checked: a mistake in the\n" +
			"command line or the settings, or the store is in use, is away or is not there; 130 interrupted.",
		Example: "  svcd check --data.dir ./data --projects.dir ./projects\n" +
			"  svcd check --store --data.dir ./data\n" +
			"  svcd check --store --repair -o json --data.dir ./data",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !store && (c.repair || cmd.Flags().Changed("output")) {
				return &usageError{errors.New("--repair and --output go with --store")}
			}
			if err := c.checkFormat(); err != nil {
				return err
			}
			signal.Ignore(syscall.SIGPIPE) // a reader that goes away must not end a repair: see write
			cfg, err := readSettings(cmd.Flags(), stderr)
			if err != nil {
				return &usageError{err}
			}
			if store {
				return c.run(cmd.Context(), cfg)
			}
			cfg.WorkerCommand = workers()
			return check(cmd.Context(), cfg, stdout)
		},
	}
	cmd.Flags().BoolVar(&store, "store", false, "check the store instead")
	cmd.Flags().BoolVar(&c.repair, "repair", false, "with --store: make anew what is derived from documents and damaged")
	cmd.Flags().StringVarP(&c.format, "output", "o", output.FormatTable, "with --store: table or json")
	return cmd
}

// check prints what is wrong, place by place, and a line for each project.
func check(ctx context.Context, cfg app.Config, stdout io.Writer) error {
	var report strings.Builder
	bad := app.CheckEmbedding(cfg)
	for _, problem := range bad {
		fmt.Fprintf(&report, "embedding: %v\n", problem)
	}
	if len(bad) > 0 {
		return errors.Join(fmt.Errorf("problems of the embedding settings: %d", len(bad)), write(stdout, output.EscapeLines(report.String())))
	}
	results, err := app.Check(ctx, cfg)
	if errors.Is(err, app.ErrNoStore) {
		return write(stdout, fmt.Sprintf("%v: nothing is registered\nsettings ok\n", err))
	}
	if err != nil {
		return notChecked(ctx, err)
	}
	failed := 0
	for _, r := range results {
		var invalid *project.ConfigError
		switch {
		case errors.As(r.Err, &invalid):
			failed++
			for _, p := range invalid.Problems {
				fmt.Fprintf(&report, "%s: %s\n", r.Namespace, p)
			}
		case r.Err != nil:
			failed++
			fmt.Fprintf(&report, "%s: %s\n", r.Namespace, r.Err)
		default:
			fmt.Fprintf(&report, "%s: ok, %d collections\n", r.Namespace, r.Collections)
		}
	}
	if failed == 0 {
		fmt.Fprintf(&report, "settings ok, %d registered projects ok\n", len(results))
	} else {
		err = fmt.Errorf("%d of %d registered projects have errors", failed, len(results))
	}
	return errors.Join(err, write(stdout, output.EscapeLines(report.String())))
}

func newVersionCmd(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  svcd version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, versionText())
			return err
		},
	}
}

const hashName = "hash"

// hashCommand starts this program as newHashCmd has it.
func hashCommand() []string {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", hashName} // the program that runs, even if its file has been replaced
	}
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, hashName}
}

// newHashCmd is what svcd starts for each password hash. A first signal does not end it: the service, which gets it, too,
// finishes the logins it has.
func newHashCmd(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: hashName, Short: "Make one password hash for svcd", Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return auth.ServeHash(cmd.Context(), cmd.InOrStdin(), stdout)
		},
	}
}

// versionText is the version of the build: a release's tag, else what the toolchain recorded.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// newLogger writes text on a terminal and JSON elsewhere, unless log.format says which. What a terminal would obey is
// escaped in both.
func newLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	if format == "auto" {
		format = "json"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			format = "text"
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(output.EscapeJSONWriter(w), opts))
}
