package project

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/schema"
)

// Bundle is a config as it was read: what it takes to compile the same project once more, when the files have changed.
// Secrets are not in it, only the references to them. It must not be changed.
type Bundle struct {
	Entry string
	Files map[string][]byte // by slash-separated path inside the project's directory
}

// Size is the bytes of all files.
func (b Bundle) Size() int {
	n := 0
	for _, data := range b.Files {
		n += len(data)
	}
	return n
}

// Load compiles the bundle as Load does the files. dir is the project's directory, for secrets that are kept in it.
func (b Bundle) Load(dir string, env schema.Env, private ...string) (*Project, schema.Problems) {
	return (&Loader{Env: env, Private: private}).LoadBundle(b, dir)
}

// LoadBundle compiles a bundle; see Bundle.Load.
func (l *Loader) LoadBundle(b Bundle, dir string) (*Project, schema.Problems) {
	var secrets schema.Reader = noSecrets{}
	if root, err := openRoot(dir); err == nil {
		defer root.Close() //nolint:errcheck // opened for reading
		secrets = secretReader{root, l.Private, l.Sealed}
	}
	p, problems := l.load(bundleReader(b.Files), dir, b.Entry, secrets)
	if p != nil {
		p.Bundle, p.Dir = b, dir
	}
	return p, problems
}

// LoadUploaded compiles a bundle that was sent by somebody who may reload the project, which need not be somebody who may
// know the secrets of its config. Of variables and secret files it is given those that the served config, which may be nil, has
// at the same members, too: elsewhere they could be asked about, such as by a rule that a default has to pass. Any other stands
// for its own name.
func (l *Loader) LoadUploaded(b Bundle, dir string, served *Project) (*Project, schema.Problems) {
	known := map[string]bool{}
	if served != nil {
		for place := range served.places {
			known[place.Source] = true
		}
	}
	secrets := uploadedSecrets{known: known}
	if root, err := openRoot(dir); err == nil {
		defer root.Close() //nolint:errcheck // opened for reading
		secrets.of = secretReader{root, l.Private, l.Sealed}
	}
	own := *l
	own.Env = func(name string) (string, bool) {
		if known["env:"+name] && l.Env != nil {
			return l.Env(name)
		}
		return name, true
	}
	for {
		loaded, problems := schema.LoadProject(bundleReader(b.Files), b.Entry, own.Env, secrets)
		if len(known) > 0 && !agree(loaded, served, known) {
			continue // with less that is known
		}
		if loaded == nil {
			return nil, problems
		}
		p, problems := own.compile(loaded, problems, bundleReader(b.Files), dir)
		if p != nil {
			p.Bundle, p.Dir = b, dir
		}
		return p, problems
	}
}

// Collections gives the collections that the config declares, by name, as far as they are known without what is taken from outside: of variables and secrets
// each stands for its own name. ok says that the config can be read so.
func (b Bundle) Collections() (byName map[string]*schema.Collection, ok bool) {
	itself := func(name string) (string, bool) { return name, true }
	loaded, problems := schema.LoadProject(bundleReader(b.Files), b.Entry, itself, uploadedSecrets{})
	if loaded == nil || problems.Err() {
		return nil, false
	}
	byName = map[string]*schema.Collection{}
	for _, c := range loaded.Project.Collections {
		byName[c.Name] = c
	}
	return byName, true
}

// agree says that what is known stands only where it does in the served config. Else what does not is known no more.
func agree(loaded *schema.Loaded, served *Project, known map[string]bool) bool {
	if loaded == nil {
		clear(known)
		return false
	}
	places, ok := loaded.Places()
	if !ok {
		clear(known)
		return false
	}
	before := len(known)
	for place := range places {
		if !served.places[place] {
			delete(known, place.Source)
		}
	}
	return len(known) == before
}

// uploadedSecrets reads the secrets of an uploaded bundle.
type uploadedSecrets struct {
	of    schema.Reader // nil: there are none
	known map[string]bool
}

// ReadFile reads a secret that the served config refers to. Another one is its name.
func (r uploadedSecrets) ReadFile(name string) ([]byte, error) {
	if !r.known["file:"+name] {
		return []byte(name), nil
	}
	if r.of == nil {
		return nil, fs.ErrNotExist
	}
	return r.of.ReadFile(name)
}

// bundleReader reads the files of a bundle.
type bundleReader map[string][]byte

// ReadFile reads one file.
func (r bundleReader) ReadFile(name string) ([]byte, error) {
	data, ok := r[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

// Glob gives the files that match a pattern.
func (r bundleReader) Glob(pattern string) ([]string, error) {
	var out []string
	for name := range r {
		matches, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		if matches && !hidden(name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// hidden says whether a file, or a folder that it is in, begins with a dot.
func hidden(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
}

// noSecrets stands in for a project's directory that is gone.
type noSecrets struct{}

// ReadFile finds nothing.
func (noSecrets) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }
