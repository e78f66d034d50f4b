package project

import (
	"os"
	"path/filepath"

	"github.com/svcctl/svc/pkg/schema"
)

// Load reads the config whose entry file is named, a slash-separated path inside dir, and compiles it. dir itself may
// be a symbolic link; nothing outside of what it points at is read, but for secrets (see schema.LoadProject). The
// project is nil if any problem is an error; warnings are also in Project.Warnings. Problems are sorted, and every one
// is reported, not just the first. private names files that no reference in a config may read.
func Load(dir, entry string, env schema.Env, private ...string) (*Project, schema.Problems) {
	return (&Loader{Env: env, Private: private}).Load(dir, entry)
}

// Loader loads configs, one after the other or several at once.
type Loader struct {
	Env     schema.Env // environment variables that configs may refer to
	Private []string   // files that no reference in a config may read
	Sealed  bool       // no reference in a config leads out of the project's directory, to secrets of the machine neither
	Scripts *Scripts   // compiled before; nil: all are compiled
}

// Load loads the files of a directory; see the function of that name.
func (l *Loader) Load(dir, entry string) (*Project, schema.Problems) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, schema.Problems{{
			Position: schema.Position{File: entry, Line: 1, Column: 1}, Code: schema.CodeReference,
			Message: "the project's directory can't be opened",
		}}
	}
	defer root.Close() //nolint:errcheck // opened for reading
	reader := &rootReader{root: root, read: map[string][]byte{}}
	p, problems := l.load(reader, dir, entry, secretReader{root, l.Private, l.Sealed})
	if p != nil {
		p.Bundle, p.Dir = Bundle{Entry: entry, Files: reader.read}, dir
	}
	return p, problems
}

func (l *Loader) load(r schema.Reader, dir, entry string, secrets schema.Reader) (*Project, schema.Problems) {
	loaded, problems := schema.LoadProject(r, entry, l.Env, secrets)
	if loaded == nil {
		return nil, problems
	}
	return l.compile(loaded, problems, r, dir)
}

func (l *Loader) compile(loaded *schema.Loaded, problems schema.Problems, r schema.Reader, dir string) (*Project, schema.Problems) {
	c := newCompiler(loaded, problems, r, dir, l.Scripts)
	p := c.project()
	problems = c.all()
	if problems.Err() {
		return nil, problems
	}
	p.Warnings, p.redactor = problems, loaded.Redactor()
	p.places, _ = loaded.Places()
	return p, problems
}

// openRoot opens the directory behind any symbolic links, so that one swapped meanwhile can't mix two versions.
func openRoot(dir string) (*os.Root, error) {
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(target)
}

// Render gives the config whose entry file is named as one object; see schema.Loaded.Render. It is checked by itself, without its
// scripts and folders.
func (l *Loader) Render(dir, entry string, secrets bool) (any, schema.Problems, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // opened for reading
	loaded, problems := schema.LoadProject(&rootReader{root: root, read: map[string][]byte{}}, entry, l.Env, secretReader{root, l.Private, l.Sealed})
	if problems.Err() {
		return nil, problems, nil
	}
	return loaded.Render(secrets), problems, nil
}
