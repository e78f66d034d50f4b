package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// Names of what is in a snapshot.
const (
	manifestFile   = "manifest.json"
	sumFile        = "manifest.json.sha256"
	indexesFile    = "indexes.json"
	collectionsDir = "collections"
	dbDir          = "db"
	configDir      = "config"
	mediaDir       = "media"
)

// format is the version of what is written. A snapshot of a later one is refused.
const format = 1

// How says how a file of a snapshot came to be.
type How string

// The ways.
const (
	Written      How = "written"
	Linked       How = "linked" // to the file that the record names
	Copied       How = "copied" // of that, where links can't be
	Deduplicated How = "deduplicated"
)

// Manifest says what is in a snapshot. It is never changed.
type Manifest struct {
	Format       int       `json:"format"`
	ID           string    `json:"id"` // the name of its folder
	Profile      string    `json:"profile"`
	Namespace    string    `json:"project"`
	Revision     string    `json:"revision"` // of the config that was served
	Generation   int64     `json:"generation"`
	Entry        string    `json:"entry"` // the file in config that the others hang on
	ConsistentAt time.Time `json:"consistentAt"`
	Position     []byte    `json:"position"` // in the feed of the store; base64
	Store        string    `json:"store"`    // its Name
	Tool         string    `json:"tool"`     // the version of svcd
	Mode         Mode      `json:"mode"`
	Media        bool      `json:"media"` // whether the files of records are in it

	// Only and Without are the collections that it was taken of, and those that it leaves out, as the profile had them; none: all, and nothing.
	Only    []string `json:"only,omitempty"`
	Without []string `json:"without,omitempty"`

	Collections []Collection `json:"collections"`
	Counts      Counts       `json:"counts"`
	Differing   []Differing  `json:"differing,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"` // the first hundred

	Root  string `json:"root"`  // SHA-256 of the lines "<SHA-256>  <size>  <path>" of all Files, in their order
	Files []File `json:"files"` // by path
}

// Collection is one that is in a snapshot.
type Collection struct {
	Name       string `json:"name"`
	File       string `json:"file"` // how its files are called, without ending
	Undeclared bool   `json:"undeclared,omitempty"`
	Documents  int64  `json:"documents"`
	Bytes      int64  `json:"bytes"`            // as BSON
	SHA256     string `json:"sha256,omitempty"` // of the lines of its export, not compressed
}

// Counts sum up a snapshot.
type Counts struct {
	Documents    int64 `json:"documents"`
	MediaFiles   int64 `json:"mediaFiles"`
	MediaBytes   int64 `json:"mediaBytes"`
	Missing      int64 `json:"missing"` // files that records name and that were not there
	Bytes        int64 `json:"bytes"`   // of all files
	NewBytes     int64 `json:"newBytes"`
	Written      int64 `json:"written"`
	Linked       int64 `json:"linked"`
	Copied       int64 `json:"copied"`
	Deduplicated int64 `json:"deduplicated"`
	Warnings     int64 `json:"warnings"`
}

// File is one file of a snapshot.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Count  int64  `json:"count,omitempty"` // of documents
	How    How    `json:"how"`
}

// Differing is a file of a record that is not what the record says of it, or of which that says nothing.
type Differing struct {
	Collection string `json:"collection"`
	Record     string `json:"record"`
	Field      string `json:"field"`
	Name       string `json:"name"`
	SHA256     string `json:"sha256"` // of the file in media
}

// Info is a Manifest without its files, and what is known of the snapshot.
type Info struct {
	Manifest

	State   State
	Problem string // why the manifest can't be read, of which no more is known then than ID and Profile; ""
}

var (
	snapshotID = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z0-9]{6}$`)
	hexSum     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

const timeOfID = "20060102T150405Z"

// root is what Manifest.Root has to be.
func (m *Manifest) root() string {
	h := sha256.New()
	for i := range m.Files {
		f := &m.Files[i]
		fmt.Fprintf(h, "%s  %d  %s\n", f.SHA256, f.Size, f.Path) //nolint:errcheck // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Endings of a collection's files.
const (
	jsonEnding     = ".jsonl.zst"
	bsonEnding     = ".bson"
	metadataEnding = ".metadata.json"
)

// byFile gives the collections by their File. What is asked for each file is asked of this: a manifest from elsewhere can have very many of both.
func (m *Manifest) byFile() map[string]*Collection {
	out := make(map[string]*Collection, len(m.Collections))
	for i := range m.Collections {
		out[m.Collections[i].File] = &m.Collections[i]
	}
	return out
}

// collection gives the collection of that name; nil if there is none.
func (m *Manifest) collection(name string) *Collection {
	for i := range m.Collections {
		if m.Collections[i].Name == name {
			return &m.Collections[i]
		}
	}
	return nil
}

// file gives the file of that path; nil if there is none.
func (m *Manifest) file(name string) *File {
	low, high := 0, len(m.Files)
	for low < high {
		if mid := (low + high) / 2; m.Files[mid].Path < name {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(m.Files) && m.Files[low].Path == name {
		return &m.Files[low]
	}
	return nil
}

// ExportSizes gives how much the exports among some files take on the disk, by Collection.File.
func ExportSizes(files []File) map[string]int64 {
	out := map[string]int64{}
	for i := range files {
		dir, name := path.Split(files[i].Path)
		if dir == collectionsDir+"/" {
			out[strings.TrimSuffix(name, jsonEnding)] += files[i].Size
		}
		if of, ok := strings.CutSuffix(name, bsonEnding); ok && dir == dbDir+"/" {
			out[of] += files[i].Size
		}
	}
	return out
}

// hasMedia says whether a file of that hash is among those of records.
func (m *Manifest) hasMedia(hash string) bool { return m.file(mediaDir+"/"+hash) != nil }

// fileName is what the files of a collection are called.
func fileName(collection string) string {
	var out strings.Builder
	for i := range len(collection) {
		switch c := collection[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	if out.Len() > maxFileName {
		sum := sha256.Sum256([]byte(collection))
		return "~" + hex.EncodeToString(sum[:16])
	}
	return out.String()
}

const maxFileName = 200

var plainFile = regexp.MustCompile(`^(~[0-9a-f]{32}|[A-Za-z0-9_%-][A-Za-z0-9_.%-]{0,199})$`)

func isFileName(name string) bool { return plainFile.MatchString(name) }
