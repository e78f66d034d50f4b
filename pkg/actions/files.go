package actions

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
)

// files takes the contents of files out of a body before it is checked, and puts them in again behind that. A file comes
// as {src: a data URL, path: its name}, and the script gets {path, type, size, data}.
type files struct {
	types    []string // that are allowed, such as image/*; none: all
	found    map[string]bson.D
	problems []errs.FieldError
}

// maxFiles is how many files one call may bring: each costs memory, however little is in it.
const maxFiles = 1000

// maxFileName is how long the name of a file may be, in bytes.
const maxFileName = 255

// takeOut reads the files of an object at the fields of a tree. at is the path of the object, with its dot.
func (f *files) takeOut(tree *fieldtype.Tree, doc bson.D, at string) bson.D {
	return f.each(tree, doc, at, func(v any, at string) any {
		file, ok := v.(bson.D)
		if !ok {
			return v // which the check will say
		}
		text, _ := document.Member(file, "src")
		src, hasSrc := text.(string)
		text, _ = document.Member(file, "path")
		name, hasName := text.(string)
		if !hasSrc || !hasName {
			return v
		}
		read, message := f.read(src, name)
		if len(f.found) >= maxFiles {
			message = "is one too many: a call may have " + strconv.Itoa(maxFiles) + " files"
		}
		if message != "" {
			f.problems = append(f.problems, errs.FieldError{Path: at, Rule: "file", Message: message})
			return bson.D{{Key: "src", Value: "-"}, {Key: "path", Value: name}}
		}
		if f.found == nil {
			f.found = map[string]bson.D{}
		}
		f.found[at] = read
		return bson.D{{Key: "src", Value: "-"}, {Key: "path", Value: name}} // so that no rule looks at the contents
	})
}

// putIn puts what takeOut has read into the checked object.
func (f *files) putIn(tree *fieldtype.Tree, doc bson.D, at string) bson.D {
	return f.each(tree, doc, at, func(v any, at string) any {
		if file, ok := f.found[at]; ok {
			return file
		}
		return v
	})
}

// each replaces the values of file fields, in objects and lists too.
func (f *files) each(tree *fieldtype.Tree, doc bson.D, at string, replace func(v any, at string) any) bson.D {
	out := slices.Clone(doc)
	for i, e := range out {
		n := slices.IndexFunc(tree.Fields(), func(field *fieldtype.Field) bool { return field.Name == e.Key })
		if n >= 0 {
			out[i].Value = f.value(tree.Fields()[n], e.Value, at+e.Key, replace)
		}
	}
	return out
}

func (f *files) value(field *fieldtype.Field, v any, at string, replace func(v any, at string) any) any {
	list, isList := v.(bson.A)
	switch kind := strings.TrimSuffix(field.Type.Name(), "[]"); {
	case isList && field.IsList():
		out := make(bson.A, len(list))
		for i := range list {
			out[i] = f.item(field, kind, list[i], at+"."+strconv.Itoa(i), replace)
		}
		return out
	default:
		return f.item(field, kind, v, at, replace)
	}
}

func (f *files) item(field *fieldtype.Field, kind string, v any, at string, replace func(v any, at string) any) any {
	if kind == "file" {
		return replace(v, at)
	}
	if doc, ok := v.(bson.D); ok && field.Sub != nil {
		return f.each(field.Sub, doc, at+".", replace)
	}
	return v
}

// read decodes one file.
func (f *files) read(src, name string) (file bson.D, problem string) {
	if problem := badName(name); problem != "" {
		return nil, problem
	}
	declared, data, ok := parseDataURL(src)
	if !ok {
		return nil, "src must be a data URL, such as data:text/csv;base64,…"
	}
	media := typeOf(declared, data)
	if len(f.types) > 0 && !slices.ContainsFunc(f.types, func(allowed string) bool { matched, err := path.Match(allowed, media); return matched && err == nil }) {
		return nil, "is of type " + media + "; allowed are " + strings.Join(f.types, ", ")
	}
	return bson.D{
		{Key: "path", Value: name},
		{Key: "type", Value: media},
		{Key: "size", Value: int64(len(data))},
		{Key: "data", Value: bson.Binary{Data: data}},
	}, ""
}

// badName says what is wrong with the name of a file: it must not lead anywhere.
func badName(name string) string {
	switch {
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "path must be the name of a file, without a directory"
	case len(name) > maxFileName:
		return "path is longer than " + strconv.Itoa(maxFileName) + " bytes"
	}
	return ""
}

// parseDataURL reads a data URL (RFC 2397).
func parseDataURL(src string) (media string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(src, "data:")
	if !ok {
		return "", nil, false
	}
	head, body, ok := strings.Cut(rest, ",")
	if !ok {
		return "", nil, false
	}
	head, encoded := strings.CutSuffix(head, ";base64")
	if head == "" {
		head = "text/plain"
	}
	media, _, err := mime.ParseMediaType(head)
	if err != nil || !strings.Contains(media, "/") {
		return "", nil, false
	}
	if encoded {
		data, err = base64.StdEncoding.DecodeString(body)
		return media, data, err == nil
	}
	text, err := url.PathUnescape(body)
	return media, []byte(text), err == nil
}

// typeOf is the type of a file's contents: what the contents show, or else what was declared. Text, XML and ZIP are the
// outer form of many types.
func typeOf(declared string, data []byte) string {
	shown, _, err := mime.ParseMediaType(http.DetectContentType(data))
	switch {
	case err != nil, shown == "application/octet-stream":
		return declared
	case shown == "text/plain":
		if strings.HasPrefix(declared, "image/") && declared != "image/svg+xml" || strings.HasPrefix(declared, "audio/") || strings.HasPrefix(declared, "video/") {
			return shown
		}
		return declared
	case shown == "text/xml" && (strings.HasSuffix(declared, "+xml") || declared == "application/xml"):
		return declared
	case shown == "application/zip" && strings.HasPrefix(declared, "application/"):
		return declared
	}
	return shown
}
