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
	root, err := openRoot(dir)
	if err != nil {
		return nil, schema.Problems{{
			Position: schema.Position{File: entry, Line: 1, Column: 1}, Code: schema.CodeReference,
			Message: "the project's directory can't be opened",
		}}
	}
	defer root.Close() //nolint:errcheck // opened for reading
	reader := &rootReader{root: root, read: map[string][]byte{}}
	p, problems := load(reader, entry, env, secretReader{root, private})
	if p != nil {
		p.Bundle = Bundle{Entry: entry, Files: reader.read}
	}
	return p, problems
}

func load(r schema.Reader, entry string, env schema.Env, secrets schema.Reader) (*Project, schema.Problems) {
	loaded, problems := schema.LoadProject(r, entry, env, secrets)
	if loaded == nil {
		return nil, problems
	}
	c := newCompiler(loaded, problems)
	p := c.project()
	problems = c.all()
	if problems.Err() {
		return nil, problems
	}
	p.Warnings = problems
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
