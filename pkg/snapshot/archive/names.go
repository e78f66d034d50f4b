package archive

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 1024 // bytes
	maxPart  = 255  // bytes, as file systems have it
	maxDepth = 32
	maxShown = 120 // bytes of a name in a message
)

// badName says what is wrong with a name, "" if nothing is.
func badName(name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(name) > maxName:
		return fmt.Sprintf("has a name of more than %d bytes", maxName)
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character in its name"
	case strings.Contains(name, `\`):
		return "has a backslash in its name"
	case name[0] == '/':
		return "has an absolute path"
	case strings.Count(name, "/") >= maxDepth:
		return fmt.Sprintf("is more than %d folders deep", maxDepth-1)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return `has ".." in its path`
		case part == "" || part == ".":
			return `has an empty part, or ".", in its path`
		case len(part) > maxPart:
			return fmt.Sprintf("has a part of more than %d bytes in its path", maxPart)
		}
	}
	return ""
}

// quote shows a name in a message: in ASCII, and not all of a long one.
func quote(name string) string {
	if len(name) > maxShown {
		return strconv.QuoteToASCII(name[:maxShown]) + "..."
	}
	return strconv.QuoteToASCII(name)
}

// announced checks what a manifest announces, and gives the sum of its bytes.
func announced(files []File, l Limits, s side) (total int64, err error) {
	if len(files) > l.Files {
		return 0, s.tooLarge("has %d files, and the limit is %d", len(files), l.Files)
	}
	names, folders := make(map[string]bool, len(files)+1), map[string]bool{}
	names[ManifestName] = true
	for i := range files {
		f := &files[i]
		switch bad := badName(f.Name); {
		case bad != "":
			return 0, s.refuse(f.Name, bad)
		case names[f.Name]:
			return 0, s.refuse(f.Name, "is there twice")
		case f.Size < 0:
			return 0, s.refuse(f.Name, "has a negative size")
		case f.Size > l.FileBytes:
			return 0, s.tooLarge("has a file %s of %d bytes, and the limit is %d", quote(f.Name), f.Size, l.FileBytes)
		case f.Size > l.Bytes-total:
			return 0, s.tooLarge("has more than %d bytes, which is the limit", l.Bytes)
		}
		total += f.Size
		names[f.Name] = true
		for at := strings.LastIndexByte(f.Name, '/'); at > 0 && !folders[f.Name[:at]]; at = strings.LastIndexByte(f.Name[:at], '/') {
			folders[f.Name[:at]] = true
		}
	}
	for i := range files {
		if folders[files[i].Name] {
			return 0, s.refuse(files[i].Name, "is a file, and a folder of other files")
		}
	}
	if folders[ManifestName] {
		return 0, s.refuse(ManifestName, "is a file, and a folder of other files")
	}
	return total, nil
}
