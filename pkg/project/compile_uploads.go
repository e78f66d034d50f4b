package project

import (
	"path"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/schema"
)

// uploads compiles where the files of a collection's records are, and which may be stored.
func (c *compiler) uploads(config *schema.Project, col *schema.Collection, tree *fieldtype.Tree, at string) Uploads {
	out := Uploads{Dir: col.Name}
	if col.UploadPath != "" {
		out.Dir = path.Clean(col.UploadPath)
		if err := media.CheckDir(out.Dir); err != nil && !c.isBroken(at+".uploadPath") {
			c.fail(at+".uploadPath", schema.CodeInvalid, "%s", errs.From(err).Message)
		}
	}
	c.mistakenTypes(col.Upload, at+".upload")
	for _, upload := range []*schema.Upload{col.Upload, config.Upload} { // the most specific wins
		if upload != nil && len(upload.AllowedMimeTypes) > 0 && out.Types == nil {
			out.Types = upload.AllowedMimeTypes
		}
	}
	tree.Walk(func(f *fieldtype.Field) {
		if IsFile(f) {
			out.Fields = append(out.Fields, f.Path)
		}
	})
	return out
}

// mistaken are media types that are often written and that no file is.
var mistaken = map[string]string{"image/jpg": "image/jpeg", "image/svg": "image/svg+xml", "image/tif": "image/tiff"}

// mistakenTypes warns of allowed types that let nothing in.
func (c *compiler) mistakenTypes(upload *schema.Upload, at string) {
	if upload == nil {
		return
	}
	for i, name := range upload.AllowedMimeTypes {
		if right := mistaken[strings.ToLower(name)]; right != "" {
			c.warn(at+".allowedMimeTypes["+strconv.Itoa(i)+"]", "no file is of the type "+name+"; did you mean "+right+"?")
		}
	}
}

// IsFile says that a field holds a file, or a list of them.
func IsFile(f *fieldtype.Field) bool { return strings.TrimSuffix(f.Type.Name(), "[]") == "file" }

// ownUploads refuses singletons whose files would be in one folder: their records have the same id.
func (c *compiler) ownUploads(p *Project, config *schema.Project) {
	first := map[string]string{}
	for i, col := range config.Collections {
		own := p.Collections[col.Name]
		if own == nil || !own.Singleton || len(own.Uploads.Fields) == 0 {
			continue
		}
		at := "collections[" + strconv.Itoa(i) + "]"
		if other := first[own.Uploads.Dir]; other != "" && other != col.Name {
			c.fail(at+".uploadPath", schema.CodeInvalid, "the singleton %s has its files in %q, too: give one of them another uploadPath", other, own.Uploads.Dir)
			continue
		}
		first[own.Uploads.Dir] = col.Name
	}
}

// imageFilters compiles what pictures among a collection's files can be asked for as.
func (c *compiler) imageFilters(col *schema.Collection, at string) map[string]*imagefilter.Filter {
	filters, problems := imagefilter.Compile(col.ImageFilter)
	for _, p := range problems {
		if here := at + "." + p.Path; !c.isBroken(here) {
			c.fail(here, schema.CodeInvalid, "%s", p.Message)
		}
	}
	return filters
}
