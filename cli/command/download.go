package command

import (
	"context"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Destination is where a file from the service goes.
type Destination struct {
	File  string // the file, the folder that it goes into under its own name, or "-" for stdout
	Force bool   // in a folder, one of that name is replaced

	// About is how large it is about, where the service does not say; 0: nobody knows.
	About int64
	// Made says that the service makes it for the call: the wait for its beginning is not bounded, as long as the service answers beside.
	Made bool
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
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\:`) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || output.Escape(name) != name {
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

// downloaded is what programs are told of an archive that was written.
type downloaded struct {
	File     string `json:"file"     yaml:"file"`
	Bytes    int64  `json:"bytes"    yaml:"bytes"`
	Snapshot string `json:"snapshot" yaml:"snapshot"`
	Run      string `json:"run,omitempty" yaml:"run,omitempty"` // that has made it for this
}

// madeOf says which snapshot a file is, and which run has made it; "": it is none.
func madeOf(f *client.File) string {
	text := ""
	if f.Snapshot != "" {
		text = ": the snapshot " + f.Snapshot
	}
	if f.Run != "" {
		text += ", made by the run " + f.Run
	}
	return text
}

// Download gets a file and puts it where to says, whole or not at all. name is what the file is called where the service does
// not say. Of an archive that goes into a file, it prints which snapshot it is for programs; ctx of open is for the reading, too, and ends when nothing comes for --request-timeout.
func (st *State) Download(ctx context.Context, to Destination, name string, open func(context.Context) (*client.File, error)) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	ctx, alive, rest, stop := c.Stalling(ctx)
	defer stop()
	if to.Made {
		rest()
	}
	f, err := open(ctx)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if to.File == "-" {
		return st.toStdout(f, to, name, alive)
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
	n, err := st.copyFile(file, f, to, name, alive)
	if err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	st.Notef("wrote %s (%s)%s", path, output.Size(n), madeOf(f))
	if p := st.Printer(); f.Snapshot != "" && !p.ForPeople() {
		return p.Print(output.Result{Value: downloaded{path, n, f.Snapshot, f.Run}, Names: []string{SnapshotName + f.Snapshot}})
	}
	return nil
}

// toStdout writes a file to stdout. A terminal gets text alone, without what would drive it.
func (st *State) toStdout(f *client.File, to Destination, name string, alive func()) error {
	w := st.Stdout()
	if !st.OutTTY {
		if f.Name != "" {
			name = f.Name
		}
		n, err := st.copyFile(w, f, to, name, alive)
		if err == nil && f.Snapshot != "" {
			st.Notef("sent %s%s", output.Size(n), madeOf(f))
		}
		return err
	}
	if !isText(f.Type) {
		return &Error{
			Exit: ExitUsage, Code: "usage", Message: fmt.Sprintf("a file of the type %s is nothing for a terminal", f.Type),
			Hint: "-f FILE writes it to a file",
		}
	}
	_, err := io.Copy(output.EscapeWriter(w), watched{f, func(int) { alive() }})
	return err
}

func isText(media string) bool {
	base, _, _ := mime.ParseMediaType(media) // an unreadable type is no text
	return strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+xml") || base == api.MediaJSON || base == "application/javascript"
}

// copyFile copies with progress.
func (st *State) copyFile(w io.Writer, f *client.File, to Destination, name string, alive func()) (int64, error) {
	size := f.Size
	if size < 0 {
		size = to.About
	}
	progress := st.ByteProgress("getting "+output.Escape(name), size)
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

// Upload has send send what is read from r, with progress; size is how much that is, -1 where nobody knows. It is given up when nothing moves for
// --request-timeout until all was read. How long the service then takes is not bounded, as long as it answers beside.
func (st *State) Upload(ctx context.Context, what string, r io.Reader, size int64, send func(ctx context.Context, r io.Reader) error) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	ctx, alive, rest, stop := c.Stalling(ctx)
	defer stop()
	progress := st.ByteProgress("sending "+output.Escape(what), max(size, 0))
	defer progress.Clear()
	var done int64
	return send(ctx, watched{r, func(n int) {
		alive()
		done += int64(n)
		progress.SetBytes(done)
		if n == 0 || done == size {
			rest()
			progress.Clear()
		}
	}})
}
