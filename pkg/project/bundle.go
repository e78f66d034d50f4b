package project

import (
	"io/fs"

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

// noSecrets stands in for a project's directory that is gone.
type noSecrets struct{}

// ReadFile finds nothing.
func (noSecrets) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }
