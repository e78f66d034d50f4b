package project

import (
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

var errAttached = errs.New(errs.Limit, "config_attached",
	"the config can't be given another namespace, or its tokens can't be taken out of it: copy its files, give them the namespace, register them, and restore into that project")

var errForeign = errs.New(errs.Limit, "config_foreign",
	"the config asks for variables of this service or for files of secrets, and it came with an archive that anybody may have made: look at its files, give them the namespace, register them, and restore into that project")

// Detach compiles a config as that of another project, whose namespace it gets; its tokens are left out, and how many places that are is told.
// dir is for secrets that are kept in files. A foreign config is given no variables and no secrets, and is refused if it asks for some. A config that does not compile here is a *ConfigError.
func (l *Loader) Detach(b Bundle, namespace, dir string, foreign bool) (p *Project, tokens int, err error) {
	if !schema.IsNamespace(namespace) {
		return nil, 0, errs.New(errs.Invalid, "bad_namespace", "%.80q is no namespace: send 1 to 40 lowercase letters, digits, _ or -, the first a letter", namespace)
	}
	if len(b.Files) > MaxFiles {
		return nil, 0, errAttached.With(schema.ErrTooMany)
	}
	files, tokens, err := schema.Detach(b.Files, b.Entry, namespace)
	if err != nil {
		return nil, 0, errAttached.With(err)
	}
	var secrets schema.Reader = noSecrets{}
	asked := &nothingTold{}
	if foreign {
		own := *l
		own.Env, secrets = asked.env, asked
		l = &own
	} else if root, err := openRoot(dir); err == nil {
		defer root.Close() //nolint:errcheck // opened for reading
		secrets = secretReader{root, l.Private, l.Sealed}
	}
	was, problems := schema.LoadProject(bundleReader(b.Files), b.Entry, l.Env, secrets)
	if asked.some {
		return nil, 0, errForeign
	}
	if problems.Err() {
		return nil, 0, &ConfigError{Problems: problems}
	}
	is, problems := schema.LoadProject(bundleReader(files), b.Entry, l.Env, secrets)
	if problems.Err() {
		return nil, 0, &ConfigError{Problems: problems}
	}
	if is.Project.Namespace != namespace || !schema.Detached(was, is) {
		return nil, 0, errAttached
	}
	p, problems = l.compile(is, problems, bundleReader(files), dir)
	if p == nil {
		return nil, 0, &ConfigError{Problems: problems}
	}
	p.Bundle = Bundle{Entry: b.Entry, Files: files}
	return p, tokens, nil
}

// nothingTold stands in for the variables and secrets of a config that is not to be told any.
type nothingTold struct{ some bool }

func (n *nothingTold) env(name string) (string, bool) {
	n.some = true
	return name, true
}

// ReadFile implements schema.Reader.
func (n *nothingTold) ReadFile(name string) ([]byte, error) {
	n.some = true
	return []byte(name), nil
}
