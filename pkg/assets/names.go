package assets

import (
	"io/fs"
	"path"
	"strings"
)

// isName says that a path may be that of an asset's file: it names no hidden file or folder, and means the same on every
// system.
func isName(name string) bool {
	if !fs.ValidPath(name) || name == "." {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part[0] == '.' || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || isDevice(part) ||
			strings.ContainsFunc(part, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' || c == ':' }) {
			return false
		}
	}
	return true
}

// isDevice says that a name is a device's on Windows, whatever its ending.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch stem = strings.TrimRight(stem, " "); stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	number, ok := strings.CutPrefix(stem, "com")
	if !ok {
		number, ok = strings.CutPrefix(stem, "lpt")
	}
	one := []rune(number)
	return ok && len(one) == 1 && strings.ContainsRune("0123456789¹²³", one[0])
}

// typeOf gives the media type that a name's ending stands for. The table is our own: that of the machine differs from one
// to the next. A style sheet or a script can't be told by its bytes, and browsers take neither without its type.
func typeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".html", ".htm":
		return "text/html; charset=utf-8"
	case ".txt", ".md":
		return "text/plain; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".vtt":
		return "text/vtt; charset=utf-8"
	case ".xml":
		return "application/xml"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".wasm":
		return "application/wasm"
	case ".pdf":
		return "application/pdf"
	case ".zip":
		return "application/zip"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".avif":
		return "image/avif"
	case ".ico":
		return "image/x-icon"
	case ".woff":
		return "font/woff"
	case ".woff2":
		return "font/woff2"
	case ".ttf":
		return "font/ttf"
	case ".otf":
		return "font/otf"
	case ".mp3":
		return "audio/mpeg"
	case ".ogg":
		return "audio/ogg"
	case ".wav":
		return "audio/wav"
	case ".mp4":
		return "video/mp4"
	case ".webm":
		return "video/webm"
	}
	return ""
}
