package project

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/media"
)

// FileSrc is the member of a file in a record that has its address.
const FileSrc = "src"

// FilesRoot begins the addresses of all files of a namespace.
func FilesRoot(namespace string) string { return "/api/v1/_/" + namespace + "/" }

// FileRoot begins the src of every file that a record gets.
func FileRoot(namespace, collection string, id bson.ObjectID) string {
	return FilesRoot(namespace) + collection + "/" + id.Hex() + "/"
}

// FileAddresses are those of the files that a record has, also of those that it got before its collection or a field was renamed.
type FileAddresses struct {
	roots      []string // the beginnings of src; the first is that of now
	collection *Collection
}

// FileAddresses gives those of a record.
func (c *Collection) FileAddresses(namespace string, id bson.ObjectID) FileAddresses {
	roots := []string{FileRoot(namespace, c.Name, id)}
	for _, name := range c.Before {
		roots = append(roots, FileRoot(namespace, name, id))
	}
	return FileAddresses{roots, c}
}

// Each calls fn for every file that a record names, wherever in the record that stands, also where the config no longer has a file
// field: with its media.Key, and the object that names it.
func (a FileAddresses) Each(raw bson.Raw, fn func(key string, file bson.Raw)) { a.each(raw, true, fn) }

func (a FileAddresses) each(raw []byte, object bool, fn func(key string, file bson.Raw)) {
	for it := document.NewIter(raw); it.Next(); {
		item := it.Value()
		switch {
		case item.Type == bson.TypeEmbeddedDocument || item.Type == bson.TypeArray:
			a.each(item.Value, item.Type == bson.TypeEmbeddedDocument, fn)
		case item.Type == bson.TypeString && object && string(it.Key()) == FileSrc:
			if key, ok := a.Key(item.StringValue()); ok {
				fn(key, raw)
			}
		}
	}
}

// Keys adds the media.Key of every file that a record names.
func (a FileAddresses) Keys(raw bson.Raw, into map[string]bool) {
	a.Each(raw, func(key string, _ bson.Raw) { into[key] = true })
}

// Cut takes a src apart, into the names that stand in it. ok is false for one of no file of the record.
func (a FileAddresses) Cut(src string) (field, name string, ok bool) {
	i := slices.IndexFunc(a.roots, func(root string) bool { return strings.HasPrefix(src, root) })
	if i < 0 {
		return "", "", false
	}
	field, name, ok = strings.Cut(src[len(a.roots[i]):], "/")
	if !ok {
		return "", "", false
	}
	field, err := url.PathUnescape(field)
	if err != nil {
		return "", "", false
	}
	name, err = url.PathUnescape(name)
	return field, name, err == nil
}

// Key gives the media.Key of the file that a src is of. ok is false for one of no file of the record.
func (a FileAddresses) Key(src string) (key string, ok bool) {
	field, name, ok := a.Cut(src)
	if !ok {
		return "", false
	}
	return media.Key(a.collection.StoredField(field), name), true
}

// Current gives a src with the names that the collection and the field have now. One of no file of the record stays as it is.
func (a FileAddresses) Current(src string) string {
	field, name, ok := a.Cut(src)
	now := cmp.Or(a.collection.FileField(field), field)
	if !ok || now == field && strings.HasPrefix(src, a.roots[0]) {
		return src
	}
	return a.roots[0] + url.PathEscape(now) + "/" + url.PathEscape(name)
}
