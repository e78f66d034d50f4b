package httpapi

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/records"
)

// A form (multipart/form-data) has the record as its part data, and one part for each file, whose name is the path of the
// field. Files go to the disk as they come, in whatever order; nothing is written before all have come.

const (
	maxDataPart = 32 << 20 // bytes of the part data, which is JSON and is kept in memory
	maxPartHead = 8 << 10  // bytes of what is before the content of a part; net/http allows more
)

var errFormTwice = errs.New(errs.Invalid, "bad_form", "the form has more than one part %q: send the record once", api.PartData)

var errFormEmpty = errs.New(errs.Invalid, "bad_form", "the form has no parts: send the record as JSON in the part %q, and each file in a part of the name of its field", api.PartData)

// record reads the record of a body: a JSON object, or a form.
func (r *request) record(w http.ResponseWriter, m access.Method) (bson.D, error) {
	media, err := r.mediaType(api.MediaJSON, api.MediaMergePatch, api.MediaForm)
	if err != nil {
		return nil, err
	}
	if media == api.MediaForm {
		return r.form(w, m)
	}
	return r.object(w)
}

// formFile is a file of a form: where it goes, and what stands for it.
type formFile struct {
	path  string
	value bson.D
}

// form reads a form. With its end, the caller is let in anew.
func (r *request) form(w http.ResponseWriter, m access.Method) (bson.D, error) {
	body, end, err := r.stream(w)
	if err != nil {
		return nil, err
	}
	parts, err := r.parts(body)
	if err != nil {
		return nil, err
	}
	var data bson.D
	var files []formFile
	given := 0
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, formError(err)
		}
		given++
		name, file, isFile, err := partNames(part)
		switch {
		case err != nil:
			return nil, err
		case isFile && file == "": // as browsers send a field of a form that no file was chosen for
			if err := r.noFile(m, name, part); err != nil {
				return nil, err
			}
		case name == api.PartData && file == "":
			if data, err = firstData(data, keepRead{part, r}); err != nil {
				return nil, err
			}
		case file == "":
			return nil, errs.New(errs.Invalid, "bad_form",
				"the part %q of the form has no file name: what is no file goes into the part data, which is the record as JSON: -F 'data={%q: …}'", name, name)
		default:
			f := formFile{path: name}
			if f.value, err = r.server.cfg.Records.Upload(r.Context(), r.call(), m, &r.uploads, inItem(r.collection.Tree, name), file, part); err != nil {
				return nil, formError(err)
			}
			files = append(files, f)
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	if given == 0 {
		return nil, errFormEmpty
	}
	if data == nil {
		data = bson.D{}
	}
	return r.withFiles(data, files)
}

// noFile takes a part that says that there is no file for a field.
func (r *request) noFile(m access.Method, name string, content io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(content, 1))
	switch {
	case err != nil:
		return formError(err)
	case n > 0:
		return errs.New(errs.Invalid, "bad_form", "the file in the part %q of the form has no name: give it one by filename", name)
	}
	return r.server.cfg.Records.MayUpload(r.Context(), r.call(), m, inItem(r.collection.Tree, name))
}

// stream gives the body to be read once, within its limit and not too slowly. end is to be called when it has been read.
func (r *request) stream(w http.ResponseWriter) (body io.Reader, end func() error, err error) {
	if r.spool != nil {
		return r.spool.Reader(), func() error { return nil }, nil
	}
	limit := r.maxBody()
	if r.ContentLength > limit.bytes {
		return nil, nil, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	limited := &limitedReader{r: &ratedReader{r: r.Body, control: control, start: time.Now()}, left: limit.bytes, limit: limit}
	return limited, func() error {
		if _, err := io.Copy(io.Discard, limited); err != nil { // what is behind the last part
			return formError(err)
		}
		r.unread = false
		if err := supported(control.SetReadDeadline(time.Time{})); err != nil {
			return errClientGone.With(err)
		}
		return r.enter(w.Header())
	}, nil
}

// limitedReader refuses a body as soon as it is longer than its limit. Its errors stay: one that a reader ahead has come upon
// must be there for who asks whether the body came to its end.
type limitedReader struct {
	r     io.Reader
	left  int64
	limit bodyLimit
	err   error
}

func (l *limitedReader) Read(p []byte) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	n, l.err = l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		n, l.err = 0, tooLarge(l.limit)
	} else if errors.Is(l.err, errSlowBody) {
		l.err = errSlowBody
	}
	return n, l.err
}

// parts splits a form. Its parts end with io.EOF behind the closing boundary, and nowhere else.
func (r *request) parts(body io.Reader) (*multipart.Reader, error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if boundary := params["boundary"]; err == nil && boundary != "" {
		return multipart.NewReader(io.MultiReader(body, strings.NewReader("\r\n"), cutOff{}), boundary), nil
	}
	return nil, errs.New(errs.Invalid, "bad_form", "the Content-Type of the form lacks its boundary: leave the header to the program that makes the form")
}

// cutOff is what is behind a form: who reads up to it has met no closing boundary. multipart takes the end of a body for that
// of its parts in places, such as behind a boundary that another part should follow; the line break before is for a closing
// boundary that has none.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// formError is the error of reading a form: ours as it is.
func formError(err error) error {
	if _, ours := errors.AsType[*errs.Error](err); ours {
		return err
	}
	return errs.New(errs.Invalid, "bad_form", "the form is broken or was cut off: send it again").With(err)
}

// partNames gives the name of a part, and what its file is called, as the client says it, if it is one.
func partNames(part *multipart.Part) (name, file string, isFile bool, err error) {
	size := 0
	for key, values := range part.Header {
		size += len(key) + len(strings.Join(values, ""))
	}
	disposition, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	encoding := part.Header.Get("Content-Transfer-Encoding")
	switch {
	case err != nil || disposition != "form-data" || params["name"] == "" || size > maxPartHead:
		return "", "", false, errs.New(errs.Invalid, "bad_form", "a part of the form has no usable Content-Disposition: it must be form-data with a name")
	case encoding != "" && !slices.Contains([]string{"binary", "8bit", "7bit"}, strings.ToLower(encoding)):
		return "", "", false, errs.New(errs.Invalid, "bad_form", "the part %q of the form has a Content-Transfer-Encoding: send it as it is", params["name"])
	}
	file, isFile = params["filename"]
	return params["name"], file, isFile, nil
}

// firstData is readData for a form that has given nothing of the kind yet.
func firstData(given bson.D, part io.Reader) (bson.D, error) {
	if given != nil {
		return nil, errFormTwice
	}
	return readData(part)
}

func readData(part io.Reader) (bson.D, error) {
	data, err := io.ReadAll(io.LimitReader(part, maxDataPart+1))
	if err != nil {
		return nil, formError(err)
	}
	if len(data) > maxDataPart {
		return nil, errs.New(errs.TooLarge, "body_too_large", "the part %s of the form is larger than %d bytes: send files in parts of their own", api.PartData, maxDataPart)
	}
	return document.ParseJSON(data)
}

// inItem takes the place of the record in a bulk create off the path of a field: items.3.cover is cover.
func inItem(tree *fieldtype.Tree, path string) string {
	rest, ok := strings.CutPrefix(path, "items.")
	if _, own := tree.Resolve(path); !ok || own && len(tree.Fields()) > 0 {
		return path
	}
	n, field, ok := strings.Cut(rest, ".")
	if _, err := strconv.Atoi(n); !ok || err != nil {
		return path
	}
	return field
}

// withFiles puts what stands for files into a record, or into the records of a bulk create.
func (r *request) withFiles(data bson.D, files []formFile) (bson.D, error) {
	var err error
	for _, f := range files {
		own := inItem(r.collection.Tree, f.path)
		if own == f.path {
			if data, err = putFile(r.collection.Tree, data, strings.Split(own, "."), f); err != nil {
				return nil, err
			}
			continue
		}
		position := strings.TrimSuffix(strings.TrimPrefix(f.path, "items."), "."+own)
		list, _ := document.Member(data, "items")
		items, _ := list.(bson.A)
		at, _ := strconv.Atoi(position)
		if at < 0 || at >= len(items) {
			return nil, noPlace(f.path)
		}
		item, ok := items[at].(bson.D)
		if !ok {
			return nil, noPlace(f.path)
		}
		if items[at], err = putFile(r.collection.Tree, item, strings.Split(own, "."), f); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func noPlace(path string) error {
	return errs.Validation([]errs.FieldError{{Path: path, Rule: "file", Message: "the part data has no place for this file: put the object or the list that it goes into there"}})
}

// putFile puts what stands for a file into a document at a path. In a list of files it goes to the first that lacks a src, or
// to the end.
func putFile(tree *fieldtype.Tree, doc bson.D, path []string, f formFile) (bson.D, error) {
	fields := tree.Fields()
	n := slices.IndexFunc(fields, func(field *fieldtype.Field) bool { return field.Name == path[0] })
	if n < 0 {
		return nil, noPlace(f.path)
	}
	field := fields[n]
	was, _ := document.Member(doc, field.Name)
	var next any
	var err error
	switch {
	case project.IsFile(field) && field.IsList():
		next, err = inList(was, path[1:], f)
	case project.IsFile(field) && len(path) == 1:
		next, err = inFile(was, f)
	case project.IsFile(field) || len(path) == 1 || field.Sub == nil:
		return nil, noPlace(f.path)
	default:
		next, err = inObject(field, was, path[1:], f)
	}
	if err != nil {
		return nil, err
	}
	return document.WithMember(doc, field.Name, next), nil
}

func inObject(field *fieldtype.Field, was any, path []string, f formFile) (any, error) {
	switch was := was.(type) {
	case nil:
		if field.IsList() {
			return nil, noPlace(f.path)
		}
		return putFile(field.Sub, bson.D{}, path, f)
	case bson.D:
		return putFile(field.Sub, was, path, f)
	case bson.A:
		at, err := strconv.Atoi(path[0])
		if err != nil || at < 0 || at >= len(was) || len(path) < 2 {
			return nil, noPlace(f.path)
		}
		item, ok := was[at].(bson.D)
		if !ok {
			return nil, noPlace(f.path)
		}
		was[at], err = putFile(field.Sub, item, path[1:], f)
		return was, err
	}
	return nil, noPlace(f.path)
}

func inList(was any, path []string, f formFile) (any, error) {
	list, ok := was.(bson.A)
	if !ok && was != nil {
		return nil, noPlace(f.path)
	}
	at := slices.IndexFunc(list, func(item any) bool {
		doc, ok := item.(bson.D)
		_, has := document.Member(doc, "src")
		return ok && !has
	})
	if len(path) == 1 {
		n, err := strconv.Atoi(path[0])
		if err != nil || n < 0 || n > len(list) {
			return nil, noPlace(f.path)
		}
		at = n
	} else if len(path) > 1 {
		return nil, noPlace(f.path)
	}
	if at < 0 || at == len(list) {
		return append(list, f.value), nil
	}
	item, err := inFile(list[at], f)
	list[at] = item
	return list, err
}

// inFile gives a file the members that stand for the upload. Those of the client's own, such as alt, stay.
func inFile(was any, f formFile) (any, error) {
	doc, ok := was.(bson.D)
	if !ok && was != nil {
		return nil, noPlace(f.path)
	}
	if src, _ := document.Member(doc, "src"); isUpload(src) {
		return nil, errs.Validation([]errs.FieldError{{Path: f.path, Rule: "file", Message: "the form has more than one file for this place: send one of them"}})
	}
	for _, e := range f.value {
		doc = document.WithMember(doc, e.Key, e.Value)
	}
	return doc, nil
}

// isUpload says that a src stands for a part of the form.
func isUpload(src any) bool {
	text, _ := src.(string)
	return records.IsUpload(text)
}

// errFormBulk refuses a form for many records at once.
var errFormBulk = errs.New(errs.Invalid, "bad_form", "a form is for the record of one id: for a bulk update, send the file as a data URL in JSON")

// discardUploads lets go of the files of a request that no record has taken.
func (r *request) discardUploads() {
	r.uploads.Discard()
	r.spool.Discard()
}

// readWhole reads a body that has to be known before it is carried out: a form goes to the disk, all else is kept in memory.
func (r *request) readWhole(w http.ResponseWriter) (err error) {
	if media, err := r.mediaType(api.MediaForm); r.collection == nil || err != nil || media != api.MediaForm {
		r.read, err = r.body(w)
		r.hasRead = err == nil
		return err
	}
	body, end, err := r.stream(w)
	if err != nil {
		return err
	}
	spool, err := r.server.cfg.Records.Spool(r.Context(), r.call(), body)
	if err != nil {
		return formError(err)
	}
	r.spool = spool // from here on there is no other body
	return end()
}
