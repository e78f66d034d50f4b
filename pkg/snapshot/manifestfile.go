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
	"strings"

	"github.com/svcctl/svc/pkg/folder"
)

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

// maxManifest bounds a manifest: some million files.
const maxManifest = 1 << 30

// readHead reads what is in a manifest but for its files.
func readHead(dir *folder.Folder) (*Manifest, error) {
	file, err := dir.Open(manifestFile)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return decode(file, false)
}

// readManifest reads a manifest that is whole. err says which of its two files is not. What is given beside it has the files that there
// were: their lines go together with its root.
func readManifest(dir *folder.Folder) (*Manifest, error) {
	text, err := dir.Read(manifestFile, maxManifest)
	if err != nil {
		return nil, damaged("%s: %s", manifestFile, cause(err))
	}
	sum, err := dir.Read(sumFile, 1<<10)
	if err != nil {
		m, _ := decodeExactly(text)
		return m, damaged("%s: %s", sumFile, cause(err))
	}
	m, problem := decodeExactly(text)
	switch same := bytes.Equal(sum, sumLine(text)); {
	case same && problem != nil:
		return nil, damaged("%s: %s", manifestFile, problem)
	case same:
		return m, nil
	case problem == nil && isNear(sum, sumLine(text)):
		return m, damaged("%s: %s", sumFile, errSum)
	}
	return m, damaged("%s: %s", manifestFile, errSum)
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

// isOf is an error if it is the manifest of another snapshot than the one in whose folder it is.
func (m *Manifest) isOf(id string) error {
	if m.ID != id {
		return damaged("%s: it is that of %s", manifestFile, m.ID)
	}
	return nil
}
