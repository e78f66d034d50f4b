package command

import (
	"context"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Destination is where a file from the service goes.
type Destination struct {
	File  string // the file, the folder that it goes into under its own name, or "-" for stdout
	Force bool   // in a folder, one of that name is replaced
}

// Register adds the flags. def is the file of those who say nothing.
func (d *Destination) Register(cmd *cobra.Command, def string) {
	cmd.Flags().StringVarP(&d.File, "file", "f", def, "file to write, folder to write into, - for stdout")
	cmd.Flags().BoolVar(&d.Force, "force", false, "in a folder: replace a file of that name")
}

// IsFolder says whether it is a folder, into which any number of files can go.
func (d Destination) IsFolder() bool {
	info, err := os.Stat(d.File)
	return err == nil && info.IsDir()
}

// path says which file is to be written; name is the file's own, which is what the service says and nothing to rely on.
func (d Destination) path(name string) (string, error) {
	if !d.IsFolder() {
		return d.File, nil
	}
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\:`) || strings.HasPrefix(name, ".") || output.Escape(name) != name {
		return "", Usagef("a file called %q does not go into a folder by itself: give -f FILE", name)
	}
	path := filepath.Join(d.File, name)
	if _, err := os.Lstat(path); err == nil && !d.Force {
		return "", &Error{
			Exit: ExitConflict, Code: "exists", Message: path + " is there already",
			Hint: "--force replaces it, -f FILE writes another one",
		}
	}
	return path, nil
}

// Download gets a file and puts it where to says, whole or not at all. name is what the file is called where the service does
// not say; ctx of open is for the reading, too, and ends when nothing comes for --request-timeout.
func (st *State) Download(ctx context.Context, to Destination, name string, open func(context.Context) (*client.File, error)) error {
	ctx, alive, stop := st.Stalling(ctx)
	defer stop()
	f, err := open(ctx)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if to.File == "-" {
		return st.toStdout(f, alive)
	}
	if f.Name != "" {
		name = f.Name
	}
	path, err := to.path(name)
	if err != nil {
		return err
	}
	file, err := output.CreateFile(path)
	if err != nil {
		return Usagef("%v", err)
	}
	defer file.Discard()
	n, err := st.copyFile(file, f, name, alive)
	if err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	st.Notef("wrote %s (%s)", path, output.Size(n))
	return nil
}

// toStdout writes a file to stdout. A terminal gets text alone, without what would drive it.
func (st *State) toStdout(f *client.File, alive func()) error {
	w := st.Stdout()
	if st.OutTTY {
		if !isText(f.Type) {
			return &Error{
				Exit: ExitUsage, Code: "usage", Message: fmt.Sprintf("a file of the type %s is nothing for a terminal", f.Type),
				Hint: "-f FILE writes it to a file",
			}
		}
		w = output.EscapeWriter(w)
	}
	_, err := io.Copy(w, watched{f, func(int) { alive() }})
	return err
}

func isText(media string) bool {
	base, _, _ := mime.ParseMediaType(media) // an unreadable type is no text
	return strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+xml") || base == api.MediaJSON || base == "application/javascript"
}

// copyFile copies with progress.
func (st *State) copyFile(w io.Writer, f *client.File, name string, alive func()) (int64, error) {
	progress := st.ByteProgress("getting "+output.Escape(name), max(f.Size, 0))
	defer progress.Clear()
	var done int64
	return io.Copy(w, watched{f, func(n int) {
		alive()
		done += int64(n)
		progress.SetBytes(done)
	}})
}

// watched tells of each reading. It hides what else r can do, so that a copy goes by it.
type watched struct {
	r    io.Reader
	read func(n int)
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.read(n)
	return n, err
}

// Stalling gives a context that ends when alive was not called for --request-timeout. Call stop in the end.
func (st *State) Stalling(ctx context.Context) (_ context.Context, alive, stop func()) {
	d := st.Flags.RequestTimeout
	ctx, cancel := context.WithCancelCause(ctx)
	if d <= 0 {
		return ctx, func() {}, func() { cancel(context.Canceled) }
	}
	timer := time.AfterFunc(d, func() { cancel(errStalled) })
	return ctx, func() { timer.Reset(d) }, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// errStalled is the cause of the end of a transfer on which nothing moves.
var errStalled = fmt.Errorf("nothing moved within the request timeout: %w", context.DeadlineExceeded)
