package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/settings"
)

// State is the process as commands see it, so that a test can be one. Its fields are set before the root command is
// made.
type State struct {
	In                    io.Reader
	Out, Err              io.Writer
	InTTY, OutTTY, ErrTTY bool
	OutWidth, ErrWidth    int // columns of the terminal at Out and at Err; 0 when there is none
	Env                   func(name string) (string, bool)
	Home                  string // the user's home directory
	Now                   func() time.Time
	ReadSecret            func(ask func()) (string, error) // reads a line from the terminal without showing it, when ask has asked for it
	Transport             http.RoundTripper                // nil is a transport of our own
	Beat                  time.Duration                    // how often a service says on a stream that it is alive; 0: as svcd does
	MaxAnswer             int64                            // bytes of an answer that is read into memory; 0: as many as package client has
	Version               string
	ProblemFolder         string   // where the files are that a refusal tells problems of; "": it is not known
	Compiler              []string // command line of a process that compiles scripts; nil: this one does

	Flags Flags

	file       *settings.File
	target     *target
	isSet      func(flag string) bool
	root       *cobra.Command  // what Register was given
	ctx        context.Context // of the command that runs
	shaped     *output.ShapeWriter
	order      output.Order
	collect    func(output.Result) error // takes what a verb would print; nil: it is printed
	sorted     output.OrderUse
	completing bool // the tab key asks: answers are kept for a while, and nobody is asked anything
	asJSON     bool // errors are told as JSON
}

// Flags are the global flags. Where a flag is not given, SVCCTL_<NAME> is taken, then the context.
type Flags struct {
	Config, Context, Server, Namespace   string
	Token, TokenFile                     string
	AdminToken, AdminTokenFile           string
	CollectionToken, CollectionTokenFile string
	CAFile                               string
	Insecure                             bool
	RequestTimeout                       time.Duration
	Output, Color                        string
	JQ, Template, SortBy                 string
	NoColor, NoHeaders, Quiet            bool
}

// Register adds the global flags to the root command.
func (st *State) Register(root *cobra.Command) {
	st.root = root
	f, fl := &st.Flags, root.PersistentFlags()
	fl.StringVar(&f.Config, "config", "", "file with the contexts (default ~/.config/svcctl/config.yaml)")
	fl.StringVar(&f.Context, "context", "", "name of the context to use")
	fl.StringVarP(&f.Server, "server", "s", "", "address of the service (default http://127.0.0.1:8080)")
	fl.StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the project, where it is not an argument")
	fl.StringVar(&f.Token, "token", "", "JWT of a login, or a personal access token")
	fl.StringVar(&f.TokenFile, "token-file", "", "file that holds the --token")
	fl.StringVar(&f.AdminToken, "admin-token", "", "admin token of the server")
	fl.StringVar(&f.AdminTokenFile, "admin-token-file", "", "file that holds the --admin-token")
	fl.StringVar(&f.CollectionToken, "collection-token", "", "collection token, or admin token of a project")
	fl.StringVar(&f.CollectionTokenFile, "collection-token-file", "", "file that holds the --collection-token")
	fl.StringVar(&f.CAFile, "ca-file", "", "PEM file with the authorities that the server's certificate may come from")
	fl.BoolVar(&f.Insecure, "insecure-skip-tls-verify", false, "accept any certificate (for testing only)")
	fl.DurationVar(&f.RequestTimeout, "request-timeout", time.Minute, "longest wait for one answer, 0 for no limit")
	fl.StringVarP(&f.Output, "output", "o", output.FormatTable, "output format: "+strings.Join(output.Formats(), ", ")+", jsonpath=…, custom-columns=…, go-template=…")
	fl.StringVar(&f.JQ, "jq", "", "print what a jq expression makes of the JSON, as in '.items[].namespace'")
	fl.StringVar(&f.Template, "template", "", "print what a Go template makes of the JSON")
	fl.StringVar(&f.SortBy, "sort-by", "", "sort a list by a path in its items, as in .createdAt; -.createdAt for descending")
	fl.BoolVar(&f.NoHeaders, "no-headers", false, "tables without headings")
	fl.StringVar(&f.Color, "color", "auto", "color: auto, always, never")
	fl.BoolVar(&f.NoColor, "no-color", false, "the same as --color=never")
	fl.BoolVarP(&f.Quiet, "quiet", "q", false, "no progress, notes and hints on stderr")
}

// FormatGiven says whether the user chose an output format.
func (st *State) FormatGiven() bool {
	if st.shaped != nil {
		return true
	}
	value, _ := st.Env(envName("output"))
	return value != "" || st.isSet != nil && st.isSet("output")
}

// Printer writes results to stdout.
func (st *State) Printer() output.Printer {
	return output.Printer{W: st.Stdout(), Format: st.Flags.Output, NoHeaders: st.Flags.NoHeaders, Style: st.Style(st.OutTTY), Order: st.order, Collect: st.collect}
}

// Stdout is where data goes. A reader that has gone away gives ErrOutputClosed. With --jq and the like, what goes there is
// JSON, of which it makes what was asked for.
func (st *State) Stdout() io.Writer {
	if st.shaped != nil {
		return st.shaped
	}
	return dataWriter{st.Out}
}

// ErrOutputClosed says that the reader of stdout has gone away, as head does; nothing is wrong then.
var ErrOutputClosed = errors.New("output closed")

type dataWriter struct{ w io.Writer }

func (d dataWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return n, ErrOutputClosed
	}
	return n, err
}

// Style decides about color on a stream.
func (st *State) Style(tty bool) output.Style {
	env := func(name string) string { v, _ := st.Env(name); return v }
	force, _ := strconv.ParseBool(env("CLICOLOR_FORCE")) // what is no boolean forces nothing
	switch {
	case st.Flags.NoColor, st.Flags.Color == "never":
		return output.Style{}
	case st.Flags.Color == "always":
		return output.Style{Color: true}
	case env("NO_COLOR") != "", env("TERM") == "dumb":
		return output.Style{}
	}
	return output.Style{Color: tty || force}
}

// FitTable cuts the cells of a table so that its lines fit into the terminal, if that is where it goes; -o wide shows them
// whole. It gives the table back.
func (st *State) FitTable(t *output.Table) *output.Table {
	if st.OutWidth > 0 && st.Flags.Output == output.FormatTable {
		t.Shrink(st.OutWidth, minColumn)
	}
	return t
}

// minColumn is how many characters FitTable leaves of a column.
const minColumn = 8

// Notef tells a person something on stderr, as one line, unless --quiet. Commands in it reach the same service (see Reach).
func (st *State) Notef(format string, args ...any) {
	if !st.Flags.Quiet {
		fmt.Fprintln(st.Err, st.uncommanded(output.Escape(st.Reach(fmt.Sprintf(format, args...)))))
	}
}

// Warnf is a note that --quiet doesn't silence.
func (st *State) Warnf(format string, args ...any) {
	fmt.Fprintln(st.Err, st.Style(st.ErrTTY).Yellow("warning:"), st.uncommanded(output.Escape(st.Reach(fmt.Sprintf(format, args...)))))
}

// Progress starts a progress display on stderr; it shows nothing with --quiet.
func (st *State) Progress(what, unit string, totalBytes int64) *output.Progress {
	w := st.Err
	if st.Flags.Quiet {
		w = io.Discard
	}
	return output.NewProgress(w, st.ErrTTY && !st.Flags.Quiet, st.Now, what, unit, totalBytes).Within(st.ErrWidth)
}

// ByteProgress is Progress of what is measured in bytes.
func (st *State) ByteProgress(what string, totalBytes int64) *output.Progress {
	return st.Progress(what, output.UnitBytes, totalBytes)
}

// Settings reads the contexts file once.
func (st *State) Settings() (*settings.File, error) {
	if st.file != nil {
		return st.file, nil
	}
	f, warning, err := settings.Load(st.SettingsPath())
	if err != nil {
		return nil, Usagef("%v", err)
	}
	if warning != "" {
		st.Warnf("%s", warning)
	}
	st.file = f
	return f, nil
}

// SettingsPath is where the contexts file is.
func (st *State) SettingsPath() string {
	if st.Flags.Config != "" {
		return st.Flags.Config
	}
	return settings.Path(st.Env, st.Home)
}

// UpdateSettings changes the contexts file.
func (st *State) UpdateSettings(change func(*settings.File) error) error {
	st.file = nil
	return settings.Update(st.SettingsPath(), change)
}

// WithTimeout bounds ctx for --timeout; 0 is no bound.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
