package httpapi

import (
	"bytes"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

// getFile answers with a file of a record, or with what an image filter makes of it. Who may not read it is told nothing of
// it, nor of the collection's filters.
func (s *Server) getFile(w http.ResponseWriter, r *request) error {
	name, sound := r.filePath()
	if !sound {
		return errs.ErrNotFound
	}
	download, err := r.boolean(api.ParamDownload)
	if err != nil {
		return err
	}
	filter, err := r.one(api.ParamFilter)
	if err != nil {
		return err
	}
	f, err := s.cfg.Records.File(r.Context(), r.call(), r.param("id"), r.param("field"), name)
	if err != nil {
		return err
	}
	c := content{name: f.Name, media: f.Type, tag: f.Hash, shared: f.Shared, download: download}
	if r.query.Has(api.ParamFilter) {
		return s.getPicture(w, r, f, filter, c)
	}
	body, err := f.Open(r.Context())
	if err != nil {
		if errs.KindOf(err) == errs.NotFound { // else it has just been deleted
			s.log.WarnContext(r.Context(), "a record names a file that is not there", "request_id", r.id, "path", r.URL.Path, "error", err)
		}
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	c.body, c.modified = body, body.ModTime
	return r.serveFile(w, c)
}

// filtersThereAre names the image filters of the collection: whoever may read its files can have any of them.
func (r *request) filtersThereAre() string {
	names := slices.Sorted(maps.Keys(r.collection.ImageFilters))
	if len(names) == 0 {
		return "the collection " + r.collection.Name + " has no imageFilter"
	}
	return "the imageFilter of " + r.collection.Name + " has " + strings.Join(names, ", ")
}

// getPicture answers with what a filter makes of a file. A picture that the caller has already is not made.
func (s *Server) getPicture(w http.ResponseWriter, r *request, f records.File, name string, c content) error {
	filter := r.collection.ImageFilters[name]
	if filter == nil {
		if strings.ContainsAny(name, "{[=") { // whoever tries to write one into the address
			return errs.New(errs.Invalid, "unknown_image_filter", "filter takes the name of an image filter, not its steps; %s", r.filtersThereAre())
		}
		return errs.New(errs.Invalid, "unknown_image_filter", "unknown filter: %.64s; %s", name, r.filtersThereAre())
	}
	c.tag = f.ImageHash(filter)
	if tag := `"` + c.tag + `"`; strings.Contains(strings.Join(r.Header.Values(api.HeaderIfNoneMatch), ","), tag) {
		// The body is none, and may not go out: net/http reads the first header only, and up to what is no tag in it.
		in := *r
		in.Request = r.Clone(r.Context())
		in.Header.Set(api.HeaderIfNoneMatch, tag)
		c.body = bytes.NewReader(nil)
		return in.serveFile(w, c)
	}
	body, info, err := f.Image(r.Context(), filter)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	if info.Warning != "" {
		w.Header().Set(headerWarning, `299 - "`+info.Warning+`"`)
	}
	c.body, c.modified, c.media = body, body.ModTime, info.Type
	if info.Type != f.Type {
		c.name = strings.TrimSuffix(c.name, path.Ext(c.name)) + endingOf(info.Type)
	}
	return r.serveFile(w, c)
}

// headerWarning says what a picture lacks of what its filter asks for.
const headerWarning = "Warning"

// endingOf is the ending of the name of a picture that a filter made.
func endingOf(media string) string {
	switch media {
	case "image/jpeg":
		return ".jpg"
	default:
		return "." + strings.TrimPrefix(media, "image/")
	}
}
