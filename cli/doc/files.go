package doc

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// Files of records go with an export and an import, into and from a folder: <id>/<field>/<name>, where the field is a path
// without positions in lists and without the language, as in the address of the file. Names are those that the service, or
// the file of an import, gives, so nothing relies on them: all goes through os.Root.

var errFilesCSV = command.Usagef("--files goes with NDJSON and JSON, and the records are CSV: give --format ndjson, or leave --files out")

// Members of a file. The client's own, such as alt, are any others.
const (
	fileSrc  = "src"
	filePath = "path"
)

// translations is the member of a record that has what it is in other languages.
const translations = "_i18n"

// setByService says that a member of a file follows from its content.
func setByService(name string) bool {
	return slices.Contains([]string{fileSrc, filePath, "size", "type", "width", "height", "hash"}, name)
}

// eachFile gives a record whose files are what change makes of them, in objects, lists and translations, too. field is the
// path of the file without positions and language, at is where it stands.
type eachFile func(field, at string, file []member) ([]member, error)

func (change eachFile) record(fields []api.FieldDescription, record api.Record) (api.Record, error) {
	all, err := members(record)
	if err != nil {
		return nil, err
	}
	for i, m := range all {
		if m.name != translations || !isObject(m.value) {
			continue
		}
		languages, err := members(m.value)
		if err != nil {
			return nil, err
		}
		for j, l := range languages {
			if !isObject(l.value) {
				continue
			}
			if languages[j].value, err = change.object(fields, l.value, translations+"."+l.name+".", ""); err != nil {
				return nil, err
			}
		}
		all[i].value = object(languages)
	}
	return change.object(fields, object(all), "", "")
}

func (change eachFile) object(fields []api.FieldDescription, given json.RawMessage, at, in string) (json.RawMessage, error) {
	all, err := members(given)
	if err != nil {
		return nil, err
	}
	for i, m := range all {
		n := slices.IndexFunc(fields, func(f api.FieldDescription) bool { return f.Name == m.name })
		if n < 0 {
			continue
		}
		if all[i].value, err = change.value(fields[n], m.value, at+m.name, in+m.name); err != nil {
			return nil, err
		}
	}
	return object(all), nil
}

func (change eachFile) value(f api.FieldDescription, value json.RawMessage, at, in string) (json.RawMessage, error) {
	holdsFiles := f.Type == "file" || f.Type == "file[]"
	switch {
	case !holdsFiles && len(f.SubFields) == 0:
		return value, nil
	case len(value) > 0 && value[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i, item := range items {
			var err error
			if items[i], err = change.value(f, item, at+"."+strconv.Itoa(i), in); err != nil {
				return nil, err
			}
		}
		return append(append([]byte{'['}, bytes.Join(rawOf(items), []byte{','})...), ']'), nil
	case !isObject(value): // null, or what the service refuses
		return value, nil
	case !holdsFiles:
		return change.object(f.SubFields, value, at+".", in+".")
	}
	file, err := members(value)
	if err != nil {
		return nil, err
	}
	if file, err = change(in, at, file); err != nil {
		return nil, err
	}
	return object(file), nil
}

func rawOf(items []json.RawMessage) [][]byte {
	out := make([][]byte, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}

// text is a member of a file that is a text.
func text(file []member, name string) string {
	var s string
	for _, m := range file {
		if m.name == name && json.Unmarshal(m.value, &s) != nil {
			return ""
		}
	}
	return s
}

var (
	recordIDs = regexp.MustCompile(`^[0-9a-f]{24}$`)
	device    = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\.|$)`)
)

// isPlainName says that a name is one of a file in its folder, on every system.
func isPlainName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, `/\:`) && !device.MatchString(name) &&
		strings.TrimRight(name, ". ") == name && output.Escape(name) == name
}

// fileExport writes the files of records to a folder.
type fileExport struct {
	opts   *exportOptions
	client *client.Client // waits as long as something comes
	fields []api.FieldDescription
	root   *os.Root
}

func newFileExport(ctx context.Context, c *client.Client, opts *exportOptions) (*fileExport, error) {
	col, err := c.DescribeCollection(ctx, opts.Namespace, opts.Collection)
	if err != nil {
		return nil, fmt.Errorf("ask about the fields of %s: %w", opts.place, err)
	}
	if err := os.MkdirAll(opts.Files, 0o700); err != nil {
		return nil, command.Usagef("--files: %v", err)
	}
	root, err := os.OpenRoot(opts.Files)
	if err != nil {
		return nil, command.Usagef("--files: %v", err)
	}
	return &fileExport{opts: opts, client: c, fields: col.Fields, root: root}, nil
}

// take writes the files of a record, and gives the record with where they are.
func (e *fileExport) take(ctx context.Context, record api.Record) (api.Record, error) {
	id := recordID(record)
	there := map[string]bool{}
	return eachFile(func(field, at string, file []member) ([]member, error) {
		name := text(file, filePath)
		switch {
		case id == "":
			return nil, command.Usagef("--files needs the ids of the records: select id, too")
		case name == "":
			return nil, command.Usagef("record %s: %s has no path in the answer, which --files needs: select %s, too", id, at, field)
		case !recordIDs.MatchString(id) || !isPlainName(field) || !isPlainName(name):
			return nil, fmt.Errorf("the service names a file %q in the field %q of the record %q, which is no name to write to: nothing was written there", name, field, id)
		}
		to := path.Join(id, field, name)
		if !there[to] {
			if err := e.fetch(ctx, id, field, name, to); err != nil {
				return nil, fmt.Errorf("record %s: file %s of %s: %w", id, name, at, err)
			}
			there[to] = true
		}
		src, err := json.Marshal(to)
		if err != nil {
			return nil, err
		}
		out := slices.DeleteFunc(file, func(m member) bool { return m.name == fileSrc })
		return append([]member{{name: fileSrc, value: src}}, out...), nil
	}).record(e.fields, record)
}

// fetch gets a file and puts it into its place, whole and durable, or not at all.
func (e *fileExport) fetch(ctx context.Context, id, field, name, to string) error {
	ctx, alive, _, stop := e.client.Stalling(ctx)
	defer stop()
	f, err := e.client.RecordFile(ctx, e.opts.Namespace, e.opts.Collection, id, field, name, "")
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	return writeFile(e.root, to, aliveReader{f, alive})
}

// writeFile puts a file into its place below root, with the folders that it takes.
func writeFile(root *os.Root, name string, from io.Reader) error {
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temporary := path.Join(folder, "."+rand.Text()+".tmp")
	to, err := root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary) // the error before counts
		return err
	}
	for ; ; folder = path.Dir(folder) {
		if err := syncFolder(root, folder); err != nil || folder == "." {
			return err
		}
	}
}

// syncFolder makes durable which files a folder has, on systems that have that.
func syncFolder(root *os.Root, folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// aliveReader tells when something came.
type aliveReader struct {
	r     io.Reader
	alive func()
}

func (a aliveReader) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	a.alive()
	return n, err
}

// attach gives a record without the files that are in a folder, and these. The problem is one of the record.
func attach(root *os.Root, fields []api.FieldDescription, record api.Record) (api.Record, []client.Attachment, *api.Problem, error) {
	var files []client.Attachment
	var problem *api.Problem
	out, err := eachFile(func(_, at string, file []member) ([]member, error) {
		src, name := text(file, fileSrc), text(file, filePath)
		if src == "" || len(src) >= 5 && strings.EqualFold(src[:5], "data:") {
			return file, nil
		}
		size, err := sizeOf(root, src)
		if err != nil {
			if problem == nil {
				problem = &api.Problem{Code: "no_file", Detail: fmt.Sprintf("%s: %v", at, err)}
			}
			return file, nil
		}
		if name == "" {
			name = path.Base(src)
		}
		files = append(files, client.Attachment{Field: at, Name: name, Size: size, Open: func() (io.ReadCloser, error) {
			if _, err := sizeOf(root, src); err != nil { // it may be another one by now
				return nil, err
			}
			return root.Open(filepath.FromSlash(src))
		}})
		return slices.DeleteFunc(file, func(m member) bool { return setByService(m.name) }), nil
	}).record(fields, record)
	return out, files, problem, err
}

// sizeOf gives the size of a file in a folder.
func sizeOf(root *os.Root, src string) (int64, error) {
	if !fs.ValidPath(src) || slices.ContainsFunc(strings.Split(src, "/"), func(s string) bool { return !isPlainName(s) }) {
		return 0, fmt.Errorf("the src %q is no path in the folder of --files, such as 65f0c2a1b3d4e5f60718293a/cover/a.jpg", src)
	}
	info, err := root.Stat(filepath.FromSlash(src))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("%s is not in the folder of --files", src)
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular(): // a pipe would never end
		return 0, fmt.Errorf("%s in the folder of --files is no regular file", src)
	}
	return info.Size(), nil
}

// uploads gives what carries out a request with files, which ends when nothing moves for --request-timeout.
func uploads(st *command.State) (func(context.Context, func(context.Context, *client.Client, func(int64)) error) error, error) {
	c, err := st.Client()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, send func(context.Context, *client.Client, func(int64)) error) error {
		ctx, alive, _, stop := c.Stalling(ctx)
		defer stop()
		return send(ctx, c, func(int64) { alive() })
	}, nil
}

// fileSender sends records with files one by one, and those between them together.
type fileSender struct{ next sender }

func (s fileSender) send(ctx context.Context, first int, batch []item) ([]outcome, error) {
	alone := func(it item) bool { return it.problem != nil || len(it.files) > 0 }
	out := make([]outcome, 0, len(batch))
	for len(out) < len(batch) {
		rest := batch[len(out):]
		n := max(1, slices.IndexFunc(rest, alone))
		if !slices.ContainsFunc(rest, alone) {
			n = len(rest)
		}
		some, err := s.together(ctx, first+len(out), rest[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// together sends some of a batch. What refuses them as a whole is their outcome: those before are written.
func (s fileSender) together(ctx context.Context, first int, some []item) ([]outcome, error) {
	if some[0].problem != nil {
		return []outcome{{problem: some[0].problem}}, nil
	}
	out, err := s.next.send(ctx, first, some)
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return out, err
	case tooMany(refused) && len(some) > 1:
		half := len(some) / 2
		out, err := s.together(ctx, first, some[:half])
		if err != nil {
			return nil, err
		}
		more, err := s.together(ctx, first+half, some[half:])
		return append(out, more...), err
	case !aboutRecords(refused):
		return nil, err
	}
	return slices.Repeat([]outcome{{problem: &refused.Problem}}, len(some)), nil
}
