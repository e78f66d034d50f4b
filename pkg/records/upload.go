package records

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

const (
	maxFiles     = 1000   // that one record may bring in one write
	maxBulkFiles = 10_000 // that all records of a bulk write may bring
)

// Uploads are files that come beside a record, in parts of its request. They are staged as they come. The zero value is
// empty. Discard it when the request has ended.
type Uploads struct {
	staged map[string]*media.Staged // by what stands for each as its src, until it is in place
	placed map[string]bson.ObjectID // the records that they have gone to
}

// uploadMark begins what stands for an upload. The rest of it can't be guessed, so nothing in a body can be one.
const uploadMark = "upload:"

// IsUpload says that src stands for an upload.
func IsUpload(src string) bool { return strings.HasPrefix(src, uploadMark) }

// Discard removes what no record has taken.
func (u *Uploads) Discard() {
	for _, st := range u.staged {
		st.Discard()
	}
}

// errSpent says that an upload can't be had again.
var errSpent = errs.New(errs.Invalid, "upload_once", "a part of a form can go to one record: send the file as a data URL, or in a request for each record")

// Upload takes a file for a field of the record that a write with that method is about to bring, and gives what has to stand
// in the record for it. path is that of the field, with positions in lists of objects. It reads the file to its end, in
// little memory.
func (s *Service) Upload(ctx context.Context, c *Call, m access.Method, u *Uploads, path, name string, file io.Reader) (bson.D, error) {
	if err := s.MayUpload(ctx, c, m, path); err != nil {
		return nil, err
	}
	if len(u.staged) >= maxFiles {
		return nil, tooManyFiles()
	}
	st, err := s.stage(ctx, c, name, file)
	if err != nil {
		return nil, inField(path, err)
	}
	if u.staged == nil {
		u.staged, u.placed = map[string]*media.Staged{}, map[string]bson.ObjectID{}
	}
	mark := uploadMark + rand.Text()
	u.staged[mark] = st
	return bson.D{{Key: fileSrc, Value: mark}, {Key: filePath, Value: st.Info().Name}}, nil
}

// MayUpload says whether the caller may bring a file for that field.
func (s *Service) MayUpload(ctx context.Context, c *Call, m access.Method, path string) error {
	g, err := s.grant(ctx, c, m)
	if err != nil {
		return err
	}
	f, ok := c.Collection.Tree.Resolve(path)
	if !ok || !project.IsFile(f) || g.Hidden.Covers(f.Path) {
		return errs.Validation([]errs.FieldError{{Path: path, Rule: "unknown", Message: "unknown file field; " + fileFields(c, g.Hidden)}})
	}
	return nil
}

// Spool is a body that is kept on the disk.
type Spool = media.Spool

// Spool keeps a body with files, which has to be read more than once, on the disk where these go.
func (s *Service) Spool(ctx context.Context, c *Call, body io.Reader) (*Spool, error) {
	files, err := s.filesOf(c.Project)
	if err != nil {
		return nil, err
	}
	return files.Spool(ctx, body)
}

// fileFields names the fields that hold files, but for hidden ones.
func fileFields(c *Call, hidden *document.PathSet) string {
	there := slices.DeleteFunc(slices.Clone(c.Collection.Uploads.Fields), hidden.Covers)
	if len(there) == 0 {
		return c.Collection.Name + " has no fields of type file"
	}
	return c.Collection.Name + " has " + strings.Join(there, ", ")
}

func tooManyFiles() error {
	return errs.New(errs.Limit, "too_many_files", "a request may bring %d files for a record: send the others with the next one", maxFiles)
}

// filesFit refuses a bulk write whose bodies bring more files than a request may, before anything is written. Each body is for
// so many records. What a body holds is bounded before, but one for many records is stored with each.
func (c *Call) filesFit(records int, bodies ...any) error {
	if len(c.Collection.Uploads.Fields) == 0 {
		return nil
	}
	var size, files int64
	for _, body := range bodies {
		doc, _ := body.(bson.D)
		eachFile(c.Collection.Tree, doc, "", func(_ *fieldtype.Field, v any, _ string) any {
			file, _ := v.(bson.D)
			if src, _ := textMember(file, fileSrc); isDataURL(src) {
				files++
				_, data, _ := strings.Cut(src, ",")
				size += int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "="))))
			}
			return v
		})
	}
	if files *= int64(records); files > maxBulkFiles {
		return errs.New(errs.Limit, "too_many_files", "the request brings %d files, the limit is %d: write fewer records at once", files, maxBulkFiles)
	}
	limit, of := c.filesLimit()
	if size *= int64(records); limit > 0 && size > limit {
		return errs.New(errs.TooLarge, "files_too_large",
			"the files would be stored with each of %d records, which is %d bytes together, and the limit is %d bytes of %s: narrow the filter, and write the records in several requests",
			records, size, limit, of)
	}
	return nil
}

// filesLimit is how many bytes all files of a bulk write may have together, and whose limit that is; 0 is none.
func (c *Call) filesLimit() (limit int64, of string) {
	if c.MaxFiles != 0 {
		return c.MaxFiles, c.MaxFilesOf
	}
	return c.Collection.Limits.MaxBodySize, c.Collection.Limits.MaxBodyOf
}

// brings counts a file of a bulk write. filesFit has let those of the bodies pass; hooks may add to them.
func (f *filing) brings(size int64) error {
	if !f.call.bulk {
		return nil
	}
	f.brought++
	f.size += size
	if f.brought > maxBulkFiles {
		return errs.New(errs.Limit, "too_many_files", "the request and its hooks bring more than %d files: write fewer records at once", maxBulkFiles)
	}
	if limit, of := f.call.filesLimit(); limit > 0 && f.size > limit {
		return errs.New(errs.TooLarge, "files_too_large",
			"the files that the request and its hooks bring have more than %d bytes together, the limit of %s: write the records in several requests", limit, of)
	}
	return nil
}

// inField says of which field the error of a file is, where the caller can mend it.
func inField(path string, err error) error {
	e := errs.From(err)
	if e == nil || e.Kind != errs.Invalid || len(e.Fields) > 0 {
		return err
	}
	return errs.Validation([]errs.FieldError{{Path: path, Rule: "file", Message: e.Message}})
}

// stage reads a file to its end.
func (s *Service) stage(ctx context.Context, c *Call, name string, file io.Reader) (*media.Staged, error) {
	files, err := s.filesOf(c.Project)
	if err != nil {
		return nil, err
	}
	return files.Stage(ctx, name, file, media.Limits{MaxBytes: c.Collection.Limits.MaxBodySize, Of: c.Collection.Limits.MaxBodyOf, Types: c.Collection.Uploads.Types})
}

// receive puts the files that a body brings into place, and gives the body with what is stored of them. Problems are of files
// that can't be taken, which stay as they are in the body.
func (s *Service) receive(ctx context.Context, c *Call, id bson.ObjectID, body bson.D) (bson.D, []errs.FieldError, error) {
	if c.filing == nil {
		return body, nil, nil
	}
	r := receiver{s: s, c: c, id: id, rf: c.filing.of(id)}
	out := eachFile(c.Collection.Tree, body, "", func(f *fieldtype.Field, v any, at string) any {
		file, ok := v.(bson.D)
		src, has := textMember(file, fileSrc)
		if !ok || !has || r.err != nil {
			return v
		}
		members, err := r.take(ctx, fieldOf(f), src, file)
		switch e := errs.From(err); {
		case err == nil && members == nil:
			return v
		case err == nil:
			return withOwn(members, file)
		case e.Kind == errs.Invalid:
			r.rf.refused[src] = true
			r.problems = append(r.problems, errs.FieldError{Path: at, Rule: "file", Message: e.Message})
		default:
			r.err = err
		}
		return v
	})
	return out, r.problems, r.err
}

type receiver struct {
	s        *Service
	c        *Call
	id       bson.ObjectID
	rf       *recordFiles
	problems []errs.FieldError
	err      error
}

// sentFile is a file as a body has it.
type sentFile struct{ field, name, src string }

// take puts one file into place. It gives nil for a src that brings none.
func (r *receiver) take(ctx context.Context, field, src string, file bson.D) (bson.D, error) {
	name, named := textMember(file, filePath)
	key := sentFile{field, name, src}
	if members, again := r.rf.sent[key]; again {
		return members, nil
	}
	var st *media.Staged
	switch {
	case len(r.rf.staged) >= maxFiles:
		return nil, tooManyFiles()
	case strings.HasPrefix(src, uploadMark) && r.c.Uploads != nil && r.c.Uploads.staged[src] != nil:
		if to, spent := r.c.Uploads.placed[src]; spent && to != r.id {
			return nil, errSpent
		} else if spent { // it was put in place for a write that has been given up
			return nil, errBusyRecord
		}
		r.c.Uploads.placed[src], st = r.id, r.c.Uploads.staged[src]
	case isDataURL(src):
		if !named { // which settle or the check will say
			r.rf.unnamed[src] = true
			return nil, nil //nolint:nilnil // nothing was taken
		}
		content, err := dataURL(src)
		if err != nil {
			return nil, err
		}
		if st, err = r.s.stage(ctx, r.c, name, content); err != nil {
			return nil, err
		}
		if err := r.c.filing.brings(st.Info().Size); err != nil {
			st.Discard()
			return nil, err
		}
	default:
		return nil, nil //nolint:nilnil // nothing was taken
	}
	r.rf.staged = append(r.rf.staged, st)
	info, err := st.Put(ctx, media.Place{Dir: r.c.Collection.Uploads.Dir, Record: r.id.Hex(), Field: r.c.Collection.StoredField(field)})
	if err != nil {
		return nil, err
	}
	members := fileMembers(project.FileRoot(r.c.Project.Namespace, r.c.Collection.Name, r.id), field, info)
	src, _ = textMember(members, fileSrc)
	r.rf.placed[[2]string{field, src}], r.rf.sent[key] = members, members
	return members, nil
}

const dataScheme = "data:"

func isDataURL(src string) bool {
	return len(src) >= len(dataScheme) && strings.EqualFold(src[:len(dataScheme)], dataScheme)
}

var errDataURL = errs.New(errs.Invalid, "bad_data_url", "src is no data URL of the form data:<type>;base64,<data>, such as data:image/png;base64,iVBORw0…")

// dataURL reads the content of a data URL. What it says about the type counts for nothing: the content does.
func dataURL(src string) (io.Reader, error) {
	head, data, ok := strings.Cut(src[len(dataScheme):], ",")
	const maxHead = 255
	if !ok || len(head) > maxHead {
		return nil, errDataURL
	}
	kind, marker := "", head
	if i := strings.LastIndexByte(head, ';'); i >= 0 {
		kind, marker = head[:i], head[i+1:]
	}
	if !strings.EqualFold(marker, "base64") {
		return nil, errDataURL
	}
	if kind != "" {
		if t, _, err := mime.ParseMediaType(kind); err != nil || !strings.Contains(t, "/") {
			return nil, errDataURL
		}
	}
	encoding := base64.StdEncoding.Strict()
	if len(data)%4 != 0 && !strings.HasSuffix(data, "=") {
		encoding = base64.RawStdEncoding.Strict()
	}
	if strings.ContainsAny(data, "\r\n") { // a decoder would pass over them
		return nil, errBase64
	}
	return &base64Reader{base64.NewDecoder(encoding, strings.NewReader(data))}, nil
}

var errBase64 = errs.New(errs.Invalid, "bad_data_url", "the data of src is not base64 as RFC 4648 has it, without line breaks: it was cut off or changed on the way")

// base64Reader tells what is wrong with the data.
type base64Reader struct{ io.Reader }

func (b *base64Reader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBase64.With(err)
	}
	return n, err
}
