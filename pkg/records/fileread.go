package records

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

const stageFile = "get.file"

// File is a file of a record that a caller may read, as its record has it.
type File struct {
	Name   string
	Type   string // media type
	Hash   string // SHA-256 of its content in hex
	Shared bool   // who gets it does not depend on more than their credential: caches may share what comes without one

	place media.Place
	store *media.Store
	db    store.Database
}

// File finds a file by its address: the record, the path of the field without list positions, and the name. A file belongs
// to whoever may read the record's field, by their own rights or by those that anybody has; the hook get.file can refuse
// it. Whatever else is asked for is errs.ErrNotFound, as what isn't there.
func (s *Service) File(ctx context.Context, c *Call, id, field, name string) (File, error) {
	oid, err := document.ParseID(id)
	if err != nil || strings.HasPrefix(field, fieldtype.I18n+".") {
		return File{}, errs.ErrNotFound
	}
	if field = c.Collection.FileField(field); field == "" {
		return File{}, errs.ErrNotFound
	}
	doc, value, err := s.readFile(ctx, c, oid, field, name)
	if isRefusal(err) && c.Principal.Kind != access.KindAnonymous {
		doc, value, err = s.readFile(ctx, c.byAnybody(), oid, field, name)
	}
	if err == nil {
		err = s.fileHook(ctx, c, doc, field, name)
	}
	if err != nil {
		if isRefusal(err) {
			err = errs.ErrNotFound.With(err)
		}
		return File{}, err
	}
	files, err := s.files.Store(c.Project.Namespace)
	if err != nil {
		return File{}, err
	}
	return File{
		Name: name, Type: textOf(value, "type"), Hash: textOf(value, "hash"), Shared: c.decidedByCredential(),
		db:    s.store.Database(project.DatabaseName(c.Project.Namespace)),
		place: media.Place{Dir: c.Collection.Uploads.Dir, Record: oid.Hex(), Field: c.Collection.StoredField(field)}, store: files,
	}, nil
}

// Open opens the file. Close it.
func (f File) Open(ctx context.Context) (*media.File, error) {
	file, err := f.store.OpenFile(ctx, f.place, f.Name)
	if over := f.still(ctx); over != nil { // then a file that is not there is no wonder, either
		if err == nil {
			_ = file.Close() // it was not read
		}
		return nil, over
	}
	return file, err
}

// still is an error if records were replaced since the file was found: then another file may be in its place.
func (f File) still(ctx context.Context) error {
	if db, ok := f.db.(store.Steady); ok {
		return db.Still(ctx)
	}
	return nil
}

// Image gives what a filter makes of the file. Close it. Errors are those of imagefilter for what is no picture, and
// errs.Unavailable when too many pictures are being made.
func (f File) Image(ctx context.Context, filter *imagefilter.Filter) (*media.File, media.Info, error) {
	return f.store.Image(ctx, f.place, f.Name, f.Hash, filter, func() error { return f.still(ctx) })
}

// ImageHash stands for what a filter makes of the file, as Hash does for the file itself.
func (f File) ImageHash(filter *imagefilter.Filter) string { return media.ImageHash(f.Hash, filter) }

// byAnybody is the call as whoever has no credential would make it.
func (c *Call) byAnybody() *Call {
	return &Call{Project: c.Project, Collection: c.Collection, Principal: access.Anonymous(), Request: c.Request}
}

// decidedByCredential says that nothing of a request beside its credential decides on what is read: no script does.
func (c *Call) decidedByCredential() bool {
	return len(c.Collection.Hooks[stageFile]) == 0 && len(c.Collection.Filters) == 0 && len(c.Collection.Evals) == 0
}

// readFile gives a record, and what it has of a file in it, if the caller may see that.
func (s *Service) readFile(ctx context.Context, c *Call, id bson.ObjectID, field, name string) (doc, value bson.Raw, err error) {
	g, err := s.grant(ctx, c, access.Get)
	if err != nil {
		return nil, nil, err
	}
	if doc, err = s.readOne(ctx, c, g, id); err != nil {
		return nil, nil, err
	}
	if g, err = s.grantOn(ctx, c, access.Get, g, doc); err != nil {
		return nil, nil, err
	}
	for _, path := range c.withTranslations(field) {
		if g.Hidden.Covers(path) || g.Hidden.Covers(path+".src") || g.Hidden.Covers(path+".path") {
			continue
		}
		if value, ok := fileIn(doc, path, name); ok {
			return doc, value, nil
		}
	}
	return nil, nil, errs.ErrNotFound
}

// withTranslations lists where a record has the files of a field: it, and its translations, which have the same address.
func (c *Call) withTranslations(field string) []string {
	paths := []string{field}
	if l := c.Collection.Tree.Languages(); l != nil {
		for _, lang := range l.Others {
			paths = append(paths, fieldtype.I18n+"."+lang+"."+field)
		}
	}
	return paths
}

// fileIn finds a file by its name among those that a field holds, through lists.
func fileIn(doc []byte, field, name string) (file bson.Raw, ok bool) {
	first, rest, nested := strings.Cut(field, ".")
	v, _ := document.Field(doc, first)
	look := func(v bson.RawValue) (bson.Raw, bool) {
		switch {
		case v.Type != bson.TypeEmbeddedDocument:
			return nil, false
		case nested:
			return fileIn(v.Value, rest, name)
		}
		return v.Value, textOf(v.Value, "path") == name && isHash(textOf(v.Value, "hash"))
	}
	if v.Type != bson.TypeArray {
		return look(v)
	}
	for it := document.NewIter(v.Value); it.Next(); {
		if file, ok := look(it.Value()); ok {
			return file, true
		}
	}
	return nil, false
}

func textOf(doc []byte, name string) string {
	v, _ := document.Field(doc, name)
	text, _ := v.StringValueOK()
	return text
}

// isHash says that a text is a SHA-256 in hex. What is made of a file is kept under it: one that is none would stand for
// many files.
func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32
}

// fileHook asks the stage before a file goes out.
func (s *Service) fileHook(ctx context.Context, c *Call, doc bson.Raw, field, name string) error {
	at := s.step(c, stageFile)
	if !c.has(at.stage) {
		return nil
	}
	_, err := at.run(ctx, hooks.Members{"id": idOf(doc).Hex(), "doc": doc, "field": field, "path": name}, nil)
	return err
}

// isRefusal says that an error means no: the caller may not, there is no such thing, or a script has said so. Other errors
// are no answer to the question.
func isRefusal(err error) bool {
	e := errs.From(err)
	switch {
	case e == nil:
		return false
	case e.Code == hooks.CodeThrown:
		return e.Status < http.StatusInternalServerError
	}
	return e.Kind == errs.Denied || e.Kind == errs.NotFound
}
