package media

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/svcctl/svc/pkg/errs"
)

const (
	maxName   = 255 // bytes, as file systems have it
	maxEnding = 32
	noName    = "file"
)

var (
	// encoded is what becomes a dot, a separator or the end of a text when something on the way decodes it.
	encoded = regexp.MustCompile(`(?i)%(25)*(2e|2f|5c|00)`)
	// device is a name that Windows takes for a device, whatever its ending.
	device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])[ ]*(\.|$)`)
)

// CleanName makes the name of a file of what a client calls it. Names that can only be meant to leave a folder are refused:
// with a part "..", a control character, or an encoded dot or separator. Others are made good: what stands before the
// last separator goes, and so do dots and spaces around, characters that are not seen, and those that other systems
// don't have in names.
func CleanName(name string) (string, error) {
	if !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0 {
		return "", badName("has characters that no name of a file has")
	}
	name = norm.NFC.String(strings.Map(seen, name))
	if encoded.MatchString(name) {
		return "", badName("has an encoded dot or separator in it")
	}
	name = strings.ReplaceAll(name, `\`, "/")
	for part := range strings.SplitSeq(name, "/") {
		if strings.TrimSpace(part) == ".." {
			return "", badName(`has a part ".."`)
		}
	}
	name = trim(name[strings.LastIndexByte(name, '/')+1:])
	if name == "" {
		name = noName
	}
	if device.MatchString(name) {
		name = "_" + name
	}
	return suffixed(name, ""), nil
}

func badName(what string) error {
	return errs.New(errs.Invalid, "bad_file_name", "the name of the file %s: rename it and send it again", what)
}

// seen drops what is not seen, such as marks that turn the direction of writing, and replaces what Windows refuses.
func seen(r rune) rune {
	const joiner, nonJoiner = '\u200d', '\u200c' // they are part of emoji and of words
	switch {
	case strings.ContainsRune(`<>:"|?*`, r):
		return '_'
	case r != joiner && r != nonJoiner && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
		return -1
	}
	return r
}

func trim(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
}

// ending is the ending of a name with its dot, in lower case, "" when it has none.
func ending(name string) string {
	e := path.Ext(name)
	if len(e) < 2 || len(e) > maxEnding || len(e) == len(name) {
		return ""
	}
	return strings.ToLower(e)
}

// suffixed puts suffix before the ending of a name, and shortens what is before it to what a file system takes.
func suffixed(name, suffix string) string {
	stem, e := name, ""
	if ending(name) != "" {
		e = path.Ext(name)
		stem = strings.TrimSuffix(name, e)
	}
	if room := maxName - len(suffix) - len(e); len(stem) > room {
		for room > 0 && !utf8.RuneStart(stem[room]) {
			room--
		}
		stem = stem[:room]
		if suffix+e == "" {
			stem = trim(stem)
		}
	}
	return stem + suffix + e
}
