package media

import (
	"bytes"
	"encoding/xml"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/svcctl/svc/pkg/errs"
)

// sniffed is how many bytes of a file tell its type.
const sniffed = 4096

const (
	plainText = "text/plain"
	markup    = "text/html"
	zipped    = "application/zip"
	compound  = "application/x-ole-storage"
)

// typeOf gives the type of a file that begins with head. It goes by these bytes; the name has to fit:
//   - an ending that stands for types in endings refuses bytes of another type, such as a .png that is a JPEG;
//   - where the format has no marks of its own, such as a .csv, text of any kind that is not markup fits, and has the
//     ending's type;
//   - any other ending, and none, says nothing: what the bytes tell is the type.
func typeOf(name string, head []byte) (string, error) {
	found := mimetype.Detect(head)
	if len(head) == 0 {
		found = mimetype.Lookup(plainText)
	}
	found = atFirst(found, head)
	e := ending(name)
	if e == ".svg" && descends(found, plainText) && rootElement(head) == "svg" {
		found = mimetype.Lookup("image/svg+xml")
	}
	kind := base(found.String())
	if textual := textEndings[e]; textual != "" {
		switch {
		case kind == markup && slices.Contains(markupEndings, e):
			return kind, nil
		case descends(found, plainText) && !active(found):
			return textual, nil
		}
		return "", misfit(e, textual, kind)
	}
	types := endings[e]
	if len(types) == 0 || slices.ContainsFunc(types, func(t string) bool { return descends(found, t) }) {
		return kind, nil
	}
	if len(head) == 0 {
		kind = "empty"
	}
	return "", misfit(e, types[0], kind)
}

// atFirst has the first bytes decide where a PDF, which may begin anywhere in the first 1024, follows on something else, such as
// a page of HTML. Bytes that say nothing, such as the commands of a printer, may be before one.
func atFirst(found *mimetype.MIME, head []byte) *mimetype.MIME {
	if !found.Is("application/pdf") {
		return found
	}
	if before := mimetype.Detect(head[:max(bytes.Index(head, []byte("%PDF-")), 0)]); !before.Is(plainText) && !before.Is("application/octet-stream") {
		return before
	}
	return found
}

func misfit(e, want, kind string) error {
	return errs.New(errs.Invalid, "file_type_mismatch", "the name ends in %s, which is %s, but the content is %s: give it the name that it is, or save it as what its name says", e, want, kind)
}

// rootElement is the first element of a text of XML, behind all that may be before it: a byte order mark, a declaration, comments,
// a document type. It is "" where there is none.
func rootElement(head []byte) string {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, []byte("\ufeff"))))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		switch token, err := d.RawToken(); t := token.(type) {
		case xml.StartElement:
			return t.Name.Local
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return ""
			}
		default:
			if err != nil {
				return ""
			}
		}
	}
}

// allowed says whether a collection takes files of a type.
func (l Limits) allowed(kind string) error {
	known := mimetype.Lookup(kind)
	for _, glob := range l.Types {
		glob = strings.ToLower(base(glob))
		if ok, err := path.Match(glob, kind); err == nil && ok {
			return nil
		}
		if known != nil && !strings.Contains(glob, "*") && known.Is(glob) { // by another name
			return nil
		}
	}
	if len(l.Types) == 0 {
		return nil
	}
	return errs.New(errs.Invalid, "file_type_refused", "the content of the file is %s, and only %s can be stored here", kind, strings.Join(l.Types, ", "))
}

// base takes parameters, such as a character set, off a media type.
func base(mediaType string) string {
	t, _, _ := strings.Cut(mediaType, ";")
	return strings.TrimSpace(t)
}

// descends says that a type is wanted, or a kind of it.
func descends(m *mimetype.MIME, wanted string) bool {
	for ; m != nil; m = m.Parent() {
		if m.Is(wanted) {
			return true
		}
	}
	return false
}

// active says that a browser would run what is in a text.
func active(m *mimetype.MIME) bool {
	return descends(m, markup) || descends(m, "image/svg+xml") || descends(m, "text/xml")
}

// textEndings are endings of texts that have no marks of their own.
var textEndings = map[string]string{
	".txt": plainText, ".text": plainText, ".log": plainText, ".md": "text/markdown", ".markdown": "text/markdown",
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".json": "application/json", ".ndjson": "application/x-ndjson",
	".geojson": "application/geo+json", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml",
	".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript", ".ts": plainText, ".html": markup, ".htm": markup,
	".ics": "text/calendar", ".vcf": "text/vcard", ".vtt": "text/vtt", ".srt": "application/x-subrip", ".tex": "application/x-tex",
	".sql": "application/sql", ".diff": "text/x-diff", ".ini": plainText, ".conf": plainText,
}

// markupEndings are those of texts that may well begin with an element of HTML. The type is HTML then: that is how it
// has to be handled.
var markupEndings = []string{".html", ".htm", ".md", ".markdown", ".txt"}

// endings are those of formats that are known by their bytes. The first type is named to the caller.
var endings = map[string][]string{
	".png": {"image/png"}, ".apng": {"image/apng", "image/png"}, ".jpg": {"image/jpeg"}, ".jpeg": {"image/jpeg"}, ".jpe": {"image/jpeg"}, ".jfif": {"image/jpeg"},
	".gif": {"image/gif"}, ".webp": {"image/webp"}, ".bmp": {"image/bmp"}, ".tif": {"image/tiff"}, ".tiff": {"image/tiff"},
	".svg": {"image/svg+xml"}, ".ico": {"image/x-icon"}, ".avif": {"image/avif"}, ".jxl": {"image/jxl"}, ".jp2": {"image/jp2"},
	".heic": {"image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence"}, ".heif": {"image/heif", "image/heic", "image/heif-sequence", "image/heic-sequence"},
	".psd": {"image/vnd.adobe.photoshop"}, ".djvu": {"image/vnd.djvu"},

	".pdf": {"application/pdf"}, ".ps": {"application/postscript"}, ".eps": {"application/postscript"}, ".rtf": {"text/rtf"},
	".doc": {"application/msword", compound}, ".xls": {"application/vnd.ms-excel", compound}, ".ppt": {"application/vnd.ms-powerpoint", compound}, ".msg": {"application/vnd.ms-outlook", compound},
	".docx": {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", zipped}, ".xlsx": {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", zipped},
	".pptx": {"application/vnd.openxmlformats-officedocument.presentationml.presentation", zipped},
	".odt":  {"application/vnd.oasis.opendocument.text", zipped}, ".ods": {"application/vnd.oasis.opendocument.spreadsheet", zipped}, ".odp": {"application/vnd.oasis.opendocument.presentation", zipped},
	".epub": {"application/epub+zip", zipped}, ".jar": {"application/java-archive", zipped}, ".apk": {"application/vnd.android.package-archive", zipped},

	".zip": {zipped}, ".gz": {"application/gzip"}, ".tgz": {"application/gzip"}, ".bz2": {"application/x-bzip2"}, ".xz": {"application/x-xz"}, ".zst": {"application/zstd"},
	".7z": {"application/x-7z-compressed"}, ".rar": {"application/vnd.rar"}, ".tar": {"application/x-tar"},

	".mp3": {"audio/mpeg"}, ".wav": {"audio/wav"}, ".flac": {"audio/flac"}, ".aac": {"audio/aac"}, ".m4a": {"audio/x-m4a", "audio/mp4", "video/mp4"}, ".aif": {"audio/aiff"}, ".aiff": {"audio/aiff"},
	".mid": {"audio/midi"}, ".midi": {"audio/midi"}, ".ogg": {"application/ogg"}, ".oga": {"application/ogg"}, ".ogv": {"application/ogg"}, ".opus": {"application/ogg"},
	".mp4": {"video/mp4", "video/quicktime"}, ".m4v": {"video/x-m4v", "video/mp4"}, ".mov": {"video/quicktime", "video/mp4"}, ".webm": {"video/webm", "video/matroska"}, ".mkv": {"video/matroska", "video/webm"},
	".avi": {"video/x-msvideo"}, ".mpg": {"video/mpeg"}, ".mpeg": {"video/mpeg"}, ".3gp": {"video/3gpp"}, ".flv": {"video/x-flv"}, ".wmv": {"video/x-ms-asf"}, ".wma": {"video/x-ms-asf"},

	".xml": {"text/xml", "image/svg+xml", "application/xhtml+xml"}, ".xhtml": {"application/xhtml+xml", "text/xml"}, ".rss": {"application/rss+xml", "text/xml"}, ".atom": {"application/atom+xml", "text/xml"},
	".gpx": {"application/gpx+xml", "text/xml"}, ".kml": {"application/vnd.google-earth.kml+xml", "text/xml"},
	".ttf": {"font/ttf"}, ".otf": {"font/otf"}, ".woff": {"font/woff"}, ".woff2": {"font/woff2"}, ".wasm": {"application/wasm"},
	".exe": {"application/vnd.microsoft.portable-executable"}, ".dll": {"application/vnd.microsoft.portable-executable"}, ".swf": {"application/x-shockwave-flash"}, ".sqlite": {"application/vnd.sqlite3"},
}
