package records

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
)

// A file in a record is an object. These members are the service's; clients may add others, such as alt.
const (
	fileSrc    = project.FileSrc
	filePath   = "path"
	fileSize   = "size"
	fileType   = "type"
	fileWidth  = "width"
	fileHeight = "height"
	fileHash   = "hash"
)

func isServiceMember(name string) bool {
	switch name {
	case fileSrc, filePath, fileSize, fileType, fileWidth, fileHeight, fileHash:
		return true
	}
	return false
}

// fileMembers are the service's members of a file in place.
func fileMembers(root, field string, info media.Info) bson.D {
	out := bson.D{
		{Key: fileSrc, Value: root + url.PathEscape(field) + "/" + url.PathEscape(info.Name)},
		{Key: filePath, Value: info.Name},
		{Key: fileSize, Value: info.Size},
		{Key: fileType, Value: info.Type},
	}
	if info.Width > 0 && info.Height > 0 {
		out = append(out, bson.E{Key: fileWidth, Value: int64(info.Width)}, bson.E{Key: fileHeight, Value: int64(info.Height)})
	}
	return append(out, bson.E{Key: fileHash, Value: info.Hash})
}

// withOwn is a file with the service's members as they are, and the client's own of what was given.
func withOwn(members, given bson.D) bson.D {
	out := slices.Clip(members)
	for _, e := range given {
		if !isServiceMember(e.Key) {
			out = append(out, e)
		}
	}
	return out
}

// textMember gives a member that is a text.
func textMember(doc bson.D, name string) (string, bool) {
	v, _ := document.Member(doc, name)
	text, ok := v.(string)
	return text, ok
}

// eachFile replaces the values of the file fields of a document, in objects and lists too. at is the place of the document,
// with its dot.
func eachFile(tree *fieldtype.Tree, doc bson.D, at string, replace func(f *fieldtype.Field, v any, at string) any) bson.D {
	out := slices.Clone(doc)
	fields := tree.Fields()
	for i, e := range out {
		n := slices.IndexFunc(fields, func(f *fieldtype.Field) bool { return f.Name == e.Key })
		if n < 0 {
			continue
		}
		f, here := fields[n], at+e.Key
		switch list, isList := e.Value.(bson.A); {
		case isList && (project.IsFile(f) || f.Sub != nil):
			items := make(bson.A, len(list))
			for k, item := range list {
				items[k] = fileItem(f, item, here+"."+strconv.Itoa(k), replace)
			}
			out[i].Value = items
		default:
			out[i].Value = fileItem(f, e.Value, here, replace)
		}
	}
	return out
}

func fileItem(f *fieldtype.Field, v any, at string, replace func(f *fieldtype.Field, v any, at string) any) any {
	if project.IsFile(f) {
		return replace(f, v, at)
	}
	if doc, ok := v.(bson.D); ok && f.Sub != nil {
		return eachFile(f.Sub, doc, at+".", replace)
	}
	return v
}

// fieldOf is the path by which the files of a field are kept: that of the field, in a translation too.
func fieldOf(f *fieldtype.Field) string {
	if rest, ok := strings.CutPrefix(f.Path, fieldtype.I18n+"."); ok {
		if _, path, nested := strings.Cut(rest, "."); nested {
			return path
		}
	}
	return f.Path
}

// knownFiles are the files that a record may name, by field and src, with the service's members of each.
type knownFiles map[[2]string]bson.D

func (k knownFiles) add(tree *fieldtype.Tree, doc bson.D) {
	eachFile(tree, doc, "", func(f *fieldtype.Field, v any, _ string) any {
		file, ok := v.(bson.D)
		if src, has := textMember(file, fileSrc); ok && has {
			var members bson.D
			for _, e := range file {
				if isServiceMember(e.Key) {
					members = append(members, e)
				}
			}
			k[[2]string{fieldOf(f), src}] = members
		}
		return v
	})
}

// settle gives the files of a record's fields the members that the service has set, and reports those that are neither of
// the record as it was nor of this write.
func (c *Call) settle(id bson.ObjectID, next, current bson.D) (bson.D, []errs.FieldError) {
	if c.filing == nil {
		return next, nil
	}
	rf := c.filing.of(id)
	known := knownFiles{}
	known.add(c.Collection.Tree, current)
	maps.Copy(known, rf.placed)
	var problems []errs.FieldError
	out := eachFile(c.Collection.Tree, next, "", func(f *fieldtype.Field, v any, at string) any {
		file, ok := v.(bson.D)
		src, has := textMember(file, fileSrc)
		if !ok || !has || rf.refused[src] {
			return v // the check or receive says what is wrong with it
		}
		given, named := textMember(file, filePath)
		if rf.unnamed[src] {
			if named { // by the file that was here before: the check finds nothing wrong
				problems = append(problems, errs.FieldError{Path: at, Rule: "file", Message: "a data URL needs the name of its file beside it, as path"})
			}
			return v
		}
		members, ok := known[[2]string{fieldOf(f), src}]
		if !ok {
			problems = append(problems, errs.FieldError{Path: at + "." + fileSrc, Rule: "file", Message: "is no file that this field of this record has: " +
				"to store one, send a data URL (data:<type>;base64,…) with the file's name as path, or a part of a form"})
			return v
		}
		stored, _ := textMember(members, filePath)
		if named && given != stored {
			problems = append(problems, errs.FieldError{
				Path: at + "." + filePath, Rule: "file", Message: "can't be changed for a file that is stored: send the file again under its new name",
			})
		}
		return withOwn(members, file)
	})
	return out, problems
}
