package document

import "strings"

// MaxFieldNames is how many names the path of a field may have for a MongoDB server. In an expression the variable in
// front is one of them, also where it is not written.
const MaxFieldNames = 200

// CheckFieldPath refuses a path that stages and expressions of a MongoDB server refuse, with the server's codes. names is
// how many it may have; slug is as for Refuse.
func CheckFieldPath(slug, path string, names int) error {
	switch {
	case path == "":
		return Refuse(slug, 40352, "a field path can't be empty")
	case strings.HasSuffix(path, "."):
		return Refuse(slug, 40353, "the field path %q ends with a dot", Readable(path))
	case strings.Count(path, ".") >= names:
		return Refuse(slug, 15, "the field path %q has more than %d names", Readable(path), names)
	}
	for name := range strings.SplitSeq(path, ".") {
		if err := CheckFieldName(slug, name); err != nil {
			return err
		}
	}
	return nil
}

// CheckFieldName is CheckFieldPath for one name of a path, or of an object that stages and expressions make.
func CheckFieldName(slug, name string) error {
	switch {
	case name == "":
		return Refuse(slug, 15998, "a name in a field path can't be empty")
	case name[0] == '$':
		return Refuse(slug, 16410, "the name %q in a field path begins with $: only expressions read such a field, by $getField", Readable(name))
	case strings.IndexByte(name, 0) >= 0:
		return Refuse(slug, 16411, "a name in a field path contains NUL")
	case strings.IndexByte(name, '.') >= 0:
		return Refuse(slug, 16412, "the name %q of a field contains a dot", Readable(name))
	}
	return nil
}
