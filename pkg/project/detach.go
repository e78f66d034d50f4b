package project

import (
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

var errAttached = errs.New(errs.Limit, "config_attached",
	"the config can't be given another namespace, or its tokens can't be taken out of it: copy its files, give them the namespace, register them, and restore into that project")

// Detach compiles a config as that of another project, whose namespace it gets; its tokens are left out, and how many places that are is told.
// dir is for secrets that are kept in files. A config that does not compile here is a *ConfigError.
func (l *Loader) Detach(b Bundle, namespace, dir string) (p *Project, tokens int, err error) {
	if !schema.IsNamespace(namespace) {
		return nil, 0, errs.New(errs.Invalid, "bad_namespace", "%.80q is no namespace: send 1 to 40 lowercase letters, digits, _ or -, the first a letter", namespace)
	}
	if len(b.Files) > maxFiles {
		return nil, 0, errAttached.With(schema.ErrTooMany)
	}
	files, tokens, err := schema.Detach(b.Files, b.Entry, namespace)
	if err != nil {
		return nil, 0, errAttached.With(err)
	}
	var secrets schema.Reader = noSecrets{}
	if root, err := openRoot(dir); err == nil {
		defer root.Close() //nolint:errcheck // opened for reading
		secrets = secretReader{root, l.Private, l.Sealed}
	}
	was, problems := schema.LoadProject(bundleReader(b.Files), b.Entry, l.Env, secrets)
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
