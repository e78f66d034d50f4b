package httpapi

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzhttp"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
)

// content is a file that goes out: one of a record, a picture made of it, or an asset.
type content struct {
	name     string // of the file, for who saves it
	media    string // its media type, as its bytes say; "": unknown
	tag      string // stands for its bytes: the ETag without quotes
	modified time.Time
	body     io.ReadSeeker
	shared   bool // whoever has no credential gets the same, so that caches may share it
	download bool // it is to be saved, whatever it is
}

const (
	// fileMaxAge is how long a shared cache may give a file without asking: as long is it seen after it was withdrawn.
	fileMaxAge = "public, max-age=60"
	// filePolicy has a browser that shows a file run nothing that is in it, and load nothing but its own styles.
	filePolicy = "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'"
	maxRanges  = 16
)

// inlineTypes are the types that a browser may show in the place of a page: nothing of them runs as part of a site. All else
// is to be saved, SVG, too, which pages can use in an <img> all the same.
func inlineTypes() []string {
	return []string{
		"image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/bmp", "image/tiff", "image/x-icon",
		"image/vnd.microsoft.icon", "audio/aac", "audio/aiff", "audio/basic", "audio/flac", "audio/midi", "audio/mp4", "audio/mpeg", "audio/ogg",
		"audio/wav", "audio/wave", "audio/webm", "audio/x-wav", "video/avi", "video/mp4", "video/mpeg", "video/ogg", "video/quicktime",
		"video/webm", "video/x-msvideo", "application/ogg", "application/pdf",
	}
}

// serveFile answers with a file: whole, a part of it, or that the caller has it already.
func (r *request) serveFile(w http.ResponseWriter, c content) error {
	h := w.Header()
	media := safeType(c.media)
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", policyOf(media))
	h.Set("Content-Disposition", disposition(c.name, c.download || !isInline(media)))
	h.Set(gzhttp.HeaderNoCompression, "true") // an ETag and a range are about these very bytes
	if c.tag != "" {
		h.Set(api.HeaderETag, `"`+c.tag+`"`)
	}
	if c.shared && r.principal.Kind == access.KindAnonymous {
		h.Set("Cache-Control", fileMaxAge)
	} else {
		h.Set("Cache-Control", "private, no-cache")
	}
	in := r.Request
	if given := in.Header.Values("Range"); len(given) > 0 {
		in = in.Clone(in.Context())
		in.Header.Del("Range")
		if ranges := rangesOf(given); ranges != "" {
			in.Header.Set("Range", ranges)
		}
	}
	out := &fileWriter{ResponseWriter: w, control: http.NewResponseController(w), start: time.Now()}
	http.ServeContent(out, in, "", c.modified, c.body)
	switch {
	case out.refused != 0:
		h.Del("Content-Disposition")
		return refusedFile(out.refused)
	case out.err != nil:
		return errClientGone.With(out.err)
	}
	return nil
}

// rangesOf gives the ranges of a request as net/http reads them: none where they are in another unit than bytes, which RFC 9110
// (section 14.2) has a server ignore, or where they are too many.
func rangesOf(given []string) string {
	unit, ranges, ok := strings.Cut(given[0], "=")
	if ok && !strings.EqualFold(strings.TrimSpace(unit), "bytes") || strings.Count(strings.Join(given, ","), ",") >= maxRanges {
		return ""
	}
	if !ok {
		return given[0] // which is none, and is refused
	}
	return emptySuffix.ReplaceAllString("bytes="+ranges, "${1}"+beyond)
}

// emptySuffix is a range of the last 0 bytes, which no file can satisfy (RFC 9110, section 14.1.2). net/http would answer with
// a part that has none; beyond stands for it, where no file has bytes.
var emptySuffix = regexp.MustCompile(`([=,]\s*)-0+\b`)

const beyond = "9223372036854775807-"

// refusedFile is the error for a status of http.ServeContent.
func refusedFile(status int) error {
	switch status {
	case http.StatusPreconditionFailed:
		return errs.New(errs.Precondition, "stale", "the file is another one than the request's If-Match or If-Unmodified-Since asks for: leave that out to get what it is now")
	case http.StatusRequestedRangeNotSatisfiable:
		e := errs.New(errs.Invalid, "bad_range", "the header Range asks for bytes that the file does not have, or is not of the form bytes=0-1023")
		e.Status = status
		return e
	}
	return errs.New(errs.Internal, "internal", "internal error")
}

// safeType is a media type that can go into a header: one that is none is that of any bytes.
func safeType(media string) string {
	base, params, err := mime.ParseMediaType(media)
	if err != nil || !strings.Contains(base, "/") {
		return "application/octet-stream"
	}
	if charset, ok := params["charset"]; ok && strings.HasPrefix(base, "text/") {
		return mime.FormatMediaType(base, map[string]string{"charset": charset})
	}
	return base
}

func isInline(media string) bool {
	return slices.Contains(inlineTypes(), media)
}

// policyOf is what a browser may do with a file that it shows. A sandbox has it belong to no site; the viewers of PDF, which
// are programs of their own, don't open in one.
func policyOf(media string) string {
	if media == "application/pdf" {
		return filePolicy
	}
	return filePolicy + "; sandbox"
}

// disposition says under which name a file is saved, and whether it may be shown instead (RFC 6266). A name that is more
// than plain ASCII is said twice, as RFC 8187 has it and for those who don't know that.
func disposition(name string, save bool) string {
	kind := "inline"
	if save {
		kind = "attachment"
	}
	if name == "" {
		return kind
	}
	var plain, extended strings.Builder
	for _, c := range strings.ToValidUTF8(name, string(utf8.RuneError)) {
		if c < ' ' || c > '~' || strings.ContainsRune(`"\%/`, c) {
			plain.WriteByte('_')
		} else {
			plain.WriteRune(c)
		}
	}
	for _, b := range []byte(strings.ToValidUTF8(name, string(utf8.RuneError))) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("!#$&+-.^_`|~", b) >= 0 {
			extended.WriteByte(b)
		} else {
			fmt.Fprintf(&extended, "%%%02X", b)
		}
	}
	out := kind + `; filename="` + plain.String() + `"`
	if plain.String() != name {
		out += "; filename*=UTF-8''" + extended.String()
	}
	return out
}

// fileWriter sends a file to a reader who must take it at minBodyRate, and keeps back what http.ServeContent would say of a
// range that is none.
type fileWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	start   time.Time
	n       int64
	refused int // the status of a range that is none; 0: none was
	err     error
}

func (f *fileWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		f.refused = status
		return
	}
	f.ResponseWriter.WriteHeader(status)
}

// fileBuffers are what files are read into between requests.
var fileBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }} //nolint:gochecknoglobals // a pool is shared by nature

// ReadFrom sends what there is to read. io.Copy uses it, and needs no buffer of its own then.
func (f *fileWriter) ReadFrom(r io.Reader) (n int64, err error) {
	buf, _ := fileBuffers.Get().(*[64 << 10]byte)
	defer fileBuffers.Put(buf)
	for {
		read, err := r.Read(buf[:])
		if read > 0 {
			written, err := f.Write(buf[:read])
			n += int64(written)
			if err != nil {
				return n, err
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func (f *fileWriter) Write(p []byte) (n int, err error) {
	if f.refused != 0 {
		return len(p), nil
	}
	deadline := f.start.Add(answerGrace + time.Duration((f.n+int64(len(p)))/minBodyRate)*time.Second)
	if err = supported(f.control.SetWriteDeadline(deadline)); err == nil {
		n, err = f.ResponseWriter.Write(p)
	}
	f.n += int64(n)
	if err != nil {
		f.err = err
	}
	return n, err
}
