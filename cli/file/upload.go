package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type uploadOptions struct {
	st *command.State
	place
	Field           string
	Files           []string
	Data            command.Input
	Replace, Append bool
}

func newUpload(st *command.State, runF func(context.Context, *uploadOptions) error) *cobra.Command {
	opts := &uploadOptions{st: st}
	cmd := &cobra.Command{
		Use:     "upload [NAMESPACE] COLLECTION ID FIELD FILE…",
		Aliases: []string{"put"},
		Short:   "Send files into a field of a record",
		Long: `Send files into a field of a record. They are read as they are sent, so that their size does not matter here; how large
they may be, and of what types, the service, the project and the collection say.

A field that holds one file takes one, and in the place of another only with --replace. To a field that holds several, files
are added (--append, which need not be said); with --replace they are all that it then holds. A record that somebody else has
changed in between is not written.

With the word new for an ID, records are created: one for each FILE, or, where the field holds several, one that has them
all. --data is what else the record holds.`,
		Example: `  svcctl file upload blog medialib 65f0c2a1b3d4e5f60718293a file cover.jpg --replace
  svcctl file upload blog medialib new file ridge.jpg -d '{"slug": "ridge", "title": "Ridge", "alt": "A ridge"}'
  svcctl file upload shop manuals 65f0c2a1b3d4e5f60718293a files en.pdf de.pdf`,
		Args:              command.Args(cobra.MinimumNArgs(4)),
		ValidArgsFunction: opts.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := placeOf(st, args, 2)
			if err != nil {
				return err
			}
			opts.place, opts.Field, opts.Files = at, rest[0], rest[1:]
			if opts.ID == newID && (opts.Replace || opts.Append) {
				return command.Usagef("a new record has nothing to replace or to append to")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpload(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "in the place of what the field holds")
	cmd.Flags().BoolVar(&opts.Append, "append", false, "to what the field holds, which is the rule for several")
	cmd.Flags().StringVarP(&opts.Data.Data, "data", "d", "", "what else to write into the record: JSON, or @file")
	cmd.MarkFlagsMutuallyExclusive("replace", "append")
	return cmd
}

// complete offers namespaces, collections, records and fields, and behind a field the files that are there.
func (opts *uploadOptions) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if _, rest, err := placeOf(opts.st, args, 0); err == nil && len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return opts.st.CompleteFilesOf()(cmd, args, prefix)
}

func runUpload(ctx context.Context, opts *uploadOptions) error {
	files, err := opts.attachments()
	if err != nil {
		return err
	}
	data := json.RawMessage("{}")
	if opts.Data.Given() {
		if data, err = opts.Data.Read(opts.st); err != nil {
			return err
		}
	}
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	u := &uploader{opts: opts, client: c}
	col, err := c.DescribeCollection(ctx, opts.Namespace, opts.Collection)
	if err != nil {
		return err
	}
	u.fields = col.Fields
	if u.several, err = opts.field(col.Fields); err != nil {
		return err
	}
	switch {
	case opts.ID != newID:
		return u.update(ctx, c, data, files)
	case u.several:
		return u.create(ctx, data, [][]client.Attachment{files})
	}
	var each [][]client.Attachment
	for _, f := range files {
		each = append(each, []client.Attachment{f})
	}
	return u.create(ctx, data, each)
}

// attachments looks at the files that are to be sent.
func (opts *uploadOptions) attachments() ([]client.Attachment, error) {
	var out []client.Attachment
	for _, name := range opts.Files {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, command.Usagef("there is no file %s", name)
		}
		if err != nil {
			return nil, command.Usagef("%v", err)
		}
		if info.IsDir() {
			return nil, command.Usagef("%s is a folder: name the files in it", name)
		}
		a := client.Attachment{Field: opts.Field, Name: filepath.Base(name), Size: -1, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
		if info.Mode().IsRegular() {
			a.Size = info.Size()
		}
		out = append(out, a)
	}
	return out, nil
}

// field checks that the field takes these files, and says whether it holds several.
func (opts *uploadOptions) field(fields []api.FieldDescription) (several bool, err error) {
	var there []string
	for _, f := range fields {
		if isFile(f) {
			there = append(there, f.Name)
		}
		if f.Name != opts.Field || !isFile(f) {
			continue
		}
		several = f.Type == "file[]"
		switch {
		case several:
		case opts.Append:
			return false, command.Usagef("%s holds one file, so there is nothing to append to: --replace puts this one in the place of another", opts.Field)
		case len(opts.Files) > 1 && opts.ID != newID:
			return false, command.Usagef("%s holds one file, and %d are given", opts.Field, len(opts.Files))
		}
		return several, nil
	}
	e := &command.Error{
		Exit: command.ExitUsage, Code: "usage", Message: fmt.Sprintf("%s is no field of %s/%s that holds files", opts.Field, opts.Namespace, opts.Collection),
		Hint: "files inside of objects are written with the object: svcctl doc update, with data URLs",
	}
	if len(there) > 0 {
		e.Hint = "there are: " + strings.Join(there, ", ") + "; " + e.Hint
	}
	return false, e
}

// uploader sends files.
type uploader struct {
	opts    *uploadOptions
	client  *client.Client
	fields  []api.FieldDescription
	several bool // the field holds several files
}

// update sends files into a record as it was read.
func (u *uploader) update(ctx context.Context, c *client.Client, data json.RawMessage, files []client.Attachment) error {
	opts := u.opts
	record, etag, err := c.GetRecord(ctx, opts.Namespace, opts.Collection, opts.ID, client.Query{})
	if err != nil {
		return err
	}
	if data, err = u.change(record, data); err != nil {
		return err
	}
	out, err := u.send(ctx, files, func(ctx context.Context, sent func(int64)) (api.Record, error) {
		return u.client.UpdateWithFiles(ctx, opts.Namespace, opts.Collection, opts.ID, data, files, sent, client.WriteOptions{IfMatch: etag})
	})
	if err != nil {
		return err
	}
	return u.show(out)
}

// change is what is written into a record beside the files: for a field of several, those that stay.
func (u *uploader) change(record, data json.RawMessage) (json.RawMessage, error) {
	field := u.opts.Field
	var now, members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return nil, command.Usagef("--data: want a JSON object")
	}
	if err := json.Unmarshal(record, &now); err != nil {
		return nil, fmt.Errorf("the record of the answer: %w", err)
	}
	if _, both := members[field]; both {
		return nil, command.Usagef("--data has %s, which the files are for", field)
	}
	held, has := now[field]
	has = has && string(held) != "null"
	switch {
	case u.several && u.opts.Replace:
		members[field] = json.RawMessage("[]")
	case u.several && has:
		members[field] = held
	case has && !u.opts.Replace:
		var f api.File
		_ = json.Unmarshal(held, &f) // without a name the text does, too
		return nil, &command.Error{
			Exit: command.ExitConflict, Code: "exists", Message: fmt.Sprintf("%s has a file in %s already: %s", u.opts.place, field, f.Path),
			Hint: "--replace puts this one in its place",
		}
	}
	return json.Marshal(members)
}

// create makes records, one for each of several lists of files.
func (u *uploader) create(ctx context.Context, data json.RawMessage, each [][]client.Attachment) error {
	opts := u.opts
	var records []api.Record
	var failed error
	for i, files := range each {
		out, err := u.send(ctx, files, func(ctx context.Context, sent func(int64)) (api.Record, error) {
			return u.client.CreateWithFiles(ctx, opts.Namespace, opts.Collection, data, files, sent)
		})
		if err == nil {
			records = append(records, out)
			continue
		}
		if len(each) == 1 || !isRefusal(err) {
			if i > 0 {
				opts.st.Notef("%d of %s were sent, up to %s", len(records), output.Count(len(each), "file"), opts.Files[i-1])
			}
			return err
		}
		opts.st.Warnf("%s: %v", opts.Files[i], err)
		failed = err
	}
	if failed != nil && len(records) == 0 {
		return command.Told(command.ExitFailed)
	}
	if err := u.show(records...); err != nil || failed == nil {
		return err
	}
	return command.Told(command.ExitPartial)
}

// isRefusal says whether another file may fare better.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusConflict || e.Status == http.StatusRequestEntityTooLarge)
}

// send sends one request with progress. It is given up when nothing moves for --request-timeout.
func (u *uploader) send(ctx context.Context, files []client.Attachment, call func(ctx context.Context, sent func(int64)) (api.Record, error)) (api.Record, error) {
	total := int64(0)
	for _, f := range files {
		if f.Size < 0 {
			total = 0
			break
		}
		total += f.Size
	}
	what := files[0].Name
	if len(files) > 1 {
		what = output.Count(len(files), "file")
	}
	ctx, alive, _, stop := u.client.Stalling(ctx)
	defer stop()
	progress := u.opts.st.ByteProgress("sending "+output.Escape(what), total)
	defer progress.Clear()
	return call(ctx, func(n int64) {
		alive()
		progress.SetBytes(n)
	})
}

// show prints what records now hold in the field.
func (u *uploader) show(records ...api.Record) error {
	st := u.opts.st
	var all []named
	var names []string
	for _, r := range records {
		files, err := filesOf(u.fields, r)
		if err != nil {
			return err
		}
		id := idOf(r)
		names = append(names, u.opts.Collection+"/"+id)
		for _, f := range files {
			if f.in == u.opts.Field {
				all = append(all, f)
			}
		}
		if u.opts.ID == newID {
			st.Notef("created %s/%s", u.opts.Collection, id)
		}
	}
	if st.Flags.Output == output.FormatName {
		return st.Printer().Print(output.Result{Names: names})
	}
	if st.Printer().Structured() {
		value := any(map[string]any{"items": records})
		if u.opts.ID != newID {
			value = records[0]
		}
		return st.Printer().Print(output.Result{Value: value})
	}
	return show(st, all)
}

func idOf(r api.Record) string {
	var v struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(r, &v) != nil {
		return ""
	}
	return v.ID
}
