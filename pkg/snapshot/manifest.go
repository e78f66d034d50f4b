package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/folder"
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

// maxManifest bounds a manifest: some million files.
const maxManifest = 1 << 30

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

// encode gives the bytes of the manifest: its members a line each, and a line for each file.
func (m *Manifest) encode() ([]byte, error) {
	head := *m
	head.Files = nil
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(bytes.TrimSuffix(text, []byte("null\n}")), '[')
	for i := range m.Files {
		line, err := json.Marshal(&m.Files[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, "\n    "...), line...)
	}
	return append(text, "\n  ]\n}\n"...), nil
}

// sumLine is the file beside a manifest, as sha256sum reads it.
func sumLine(manifest []byte) []byte {
	sum := sha256.Sum256(manifest)
	return []byte(hex.EncodeToString(sum[:]) + "  " + manifestFile + "\n")
}

// decode reads a manifest. Without files it stops where these begin. What is not known is refused, and so is what can't be.
func decode(r io.Reader, files bool) (*Manifest, error) {
	d := json.NewDecoder(r)
	members := map[string]json.RawMessage{}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	m := &Manifest{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		members[name] = nil
		if name == "files" {
			if !files {
				break
			}
			if m.Files, err = decodeFiles(d); err != nil {
				return nil, err
			}
			continue
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		members[name] = value
	}
	if _, ok := members["files"]; !ok {
		return nil, errors.New(`"files" is not there`)
	}
	if files {
		if _, err := d.Token(); err != nil {
			return nil, err
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return nil, errors.New("there is more behind it")
		}
	}
	delete(members, "files")
	head, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	strict := json.NewDecoder(bytes.NewReader(head))
	strict.DisallowUnknownFields()
	if err := strict.Decode(m); err != nil {
		return nil, err
	}
	return m, m.check(files)
}

// decodeExactly reads a manifest that is to the byte as encode writes it: what two readers could take for two things is refused.
func decodeExactly(text []byte) (*Manifest, error) {
	m, err := decode(bytes.NewReader(text), true)
	if err != nil {
		return nil, err
	}
	again, err := m.encode()
	if err == nil && !bytes.Equal(again, text) {
		err = errors.New("it is not as svcd writes it")
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

func decodeFiles(d *json.Decoder) ([]File, error) {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.New(`"files" is no list`)
	}
	d.DisallowUnknownFields()
	files := []File{}
	for d.More() {
		var f File
		if err := d.Decode(&f); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	_, err := d.Token()
	return files, err
}

// check refuses what no manifest of ours says. Paths lead nowhere but to where such files are.
func (m *Manifest) check(files bool) error {
	switch {
	case m.Format > format:
		return fmt.Errorf("it has format %d, of a later version of svc; this one reads up to %d", m.Format, format)
	case m.Format != format:
		return fmt.Errorf("there is no format %d", m.Format)
	case !snapshotID.MatchString(m.ID):
		return fmt.Errorf("%q is no id of a snapshot", m.ID)
	case m.Mode != JSON && m.Mode != DB && m.Mode != Both:
		return fmt.Errorf("there is no mode %q", m.Mode)
	}
	names := map[string]bool{}
	for _, c := range m.Collections {
		for _, name := range []string{"name " + c.Name, "file " + c.File} {
			if names[name] {
				return fmt.Errorf("the collection %q is there twice", c.Name)
			}
			names[name] = true
		}
		if c.Name == "" || !isFileName(c.File) || c.Documents < 0 || c.Bytes < 0 {
			return fmt.Errorf("the collection %q can't be", c.Name)
		}
	}
	if !files {
		return nil
	}
	before, collections := "", m.byFile()
	for i := range m.Files {
		f := &m.Files[i]
		if f.Path <= before {
			return fmt.Errorf("the file %q is not in its order", f.Path)
		}
		before = f.Path
		if !has(f, collections) {
			return fmt.Errorf("no snapshot has a file %q like this", f.Path)
		}
	}
	if m.Root != m.root() {
		return errors.New("its files are not those of its root")
	}
	return nil
}

// has says whether a snapshot with these collections can have such a file.
func has(f *File, collections map[string]*Collection) bool {
	if !fs.ValidPath(f.Path) || f.Size < 0 || f.Count < 0 || !hexSum.MatchString(f.SHA256) {
		return false
	}
	dir, name := path.Split(f.Path)
	switch {
	case f.Path == indexesFile, strings.HasPrefix(f.Path, configDir+"/"):
		return true
	case dir == mediaDir+"/":
		return name == f.SHA256
	case dir == collectionsDir+"/":
		return collections[strings.TrimSuffix(name, jsonEnding)] != nil && strings.HasSuffix(name, jsonEnding)
	case dir == dbDir+"/":
		stem := strings.TrimSuffix(strings.TrimSuffix(name, bsonEnding), metadataEnding)
		return collections[stem] != nil && stem != name
	}
	return false
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

// hasMedia says whether a file of that hash is among those of records.
func (m *Manifest) hasMedia(hash string) bool { return m.file(mediaDir+"/"+hash) != nil }

// readHead reads what is in a manifest but for its files.
func readHead(dir *folder.Folder) (*Manifest, error) {
	file, err := dir.Open(manifestFile)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return decode(file, false)
}

// readManifest reads a manifest that is whole. err says which of its two files is not.
func readManifest(dir *folder.Folder) (*Manifest, error) {
	text, err := dir.Read(manifestFile, maxManifest)
	if err != nil {
		return nil, damaged("%s: %s", manifestFile, cause(err))
	}
	sum, err := dir.Read(sumFile, 1<<10)
	if err != nil {
		return nil, damaged("%s: %s", sumFile, cause(err))
	}
	m, problem := decodeExactly(text)
	switch same := bytes.Equal(sum, sumLine(text)); {
	case same && problem != nil:
		return nil, damaged("%s: %s", manifestFile, problem)
	case same:
		return m, nil
	case problem == nil && isNear(sum, sumLine(text)):
		return nil, damaged("%s is not what was written", sumFile)
	}
	return nil, damaged("%s is not what was written", manifestFile)
}

// isNear says that a line differs in a few places only: that is then where the damage is, for the sum of another manifest would be another
// in most.
func isNear(a, b []byte) bool {
	if len(a) != len(b) {
		return true
	}
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n <= 8
}

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
