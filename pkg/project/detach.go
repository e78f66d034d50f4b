package project

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

var errAttached = errs.New(errs.Limit, "config_attached",
	"the config can't be given another namespace, or its tokens can't be taken out of it: copy its files, give them the namespace, register them, and restore into that project")

// foreignConfig refuses a config that came with an archive, and says what it asks for.
func foreignConfig(asked []string) error {
	const most = 5
	slices.Sort(asked)
	asked = slices.Compact(asked)
	more := ""
	if len(asked) > most {
		asked, more = asked[:most], " and others"
	}
	return errs.New(errs.Limit, "config_foreign",
		"the config asks for %s%s of this service, and it came with an archive that anybody may have made: look at its files, give them the namespace, register them, and restore into that project",
		strings.Join(asked, ", "), more)
}

// Detached is the config of one project as that of another one.
type Detached struct {
	*Project // whose Bundle has the files that the loader reads, and no others

	Tokens int // places of the config that had tokens, which were left out
	// Secrets are the files in the folder of the project that ${file:PATH} names, by slash-separated path: a folder of its own needs them, too.
	Secrets map[string][]byte
	Unread  []string // files that came with the config, and that the loader does not read, by name
}

// Detach compiles the config of a project as that of another one, whose namespace it gets; its tokens are left out. dir is the folder of the
// project that it is of, whose secrets it reads there; "" where there is none. A foreign config, of which nobody knows who has written it, is
// given no variables and no secrets, and is refused if it asks for some. A config that does not compile here is a *ConfigError.
func (l *Loader) Detach(b Bundle, namespace, dir string, foreign bool) (*Detached, error) {
	if !schema.IsNamespace(namespace) {
		return nil, errs.New(errs.Invalid, "bad_namespace", "%.80q is no namespace: send 1 to 40 lowercase letters, digits, _ or -, the first a letter", namespace)
	}
	if len(b.Files) > MaxFiles {
		return nil, errAttached.With(schema.ErrTooMany)
	}
	secrets := &detachedSecrets{of: noSecrets{}, read: map[string][]byte{}}
	asked := &nothingTold{}
	if foreign {
		own := *l
		own.Env, secrets.of = asked.env, asked
		l = &own
	} else if root, err := openRoot(dir); err == nil {
		defer root.Close() //nolint:errcheck // opened for reading
		secrets.of = secretReader{root, l.Private, l.Sealed}
	}
	was, problems := schema.LoadProject(bundleReader(b.Files), b.Entry, l.Env, secrets.of)
	if len(asked.names) > 0 {
		return nil, foreignConfig(asked.names)
	}
	if problems.Err() {
		return nil, &ConfigError{Problems: problems}
	}
	if h := was.Project.Hook; foreign && h != nil && len(h.Env) > 0 { // which scripts would read
		for _, name := range h.Env {
			asked.names = append(asked.names, fmt.Sprintf("the variable %.80q (hook.env)", name))
		}
		return nil, foreignConfig(asked.names)
	}
	config := map[string][]byte{} // what else there is, such as data that scripts import, stays as it is
	for _, f := range was.Files {
		config[f.Name] = b.Files[f.Name]
	}
	config, tokens, err := schema.Detach(config, b.Entry, namespace)
	if err != nil {
		return nil, errAttached.With(err)
	}
	secrets.files = maps.Clone(b.Files)
	maps.Copy(secrets.files, config)
	reader := &detachedReader{bundleReader(secrets.files), map[string][]byte{}}
	is, problems := schema.LoadProject(reader, b.Entry, l.Env, secrets)
	if problems.Err() {
		return nil, &ConfigError{Problems: problems}
	}
	if is.Project.Namespace != namespace || !schema.Detached(was, is) {
		return nil, errAttached
	}
	p, problems := l.compile(is, problems, reader, dir)
	if p == nil {
		return nil, &ConfigError{Problems: problems}
	}
	p.Bundle = Bundle{Entry: b.Entry, Files: reader.read}
	out := &Detached{Project: p, Tokens: tokens, Secrets: secrets.read}
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		if _, read := reader.read[name]; !read {
			out.Unread = append(out.Unread, name)
		}
	}
	return out, nil
}

// detachedReader reads the files of a bundle that will lie in a folder of their own, and remembers which.
type detachedReader struct {
	bundleReader

	read map[string][]byte
}

// ReadFile reads one file.
func (r *detachedReader) ReadFile(name string) ([]byte, error) {
	data, err := r.bundleReader.ReadFile(name)
	if err == nil {
		r.read[name] = data
	}
	return data, err
}

// Bounds of the path of a folder that can be made on any file system, in bytes.
const (
	maxPath = 1000
	maxPart = 255
)

// noFolder says why no folder of that path can be made beside the files, of which the bundle does not have some secrets, or "".
func (r *detachedReader) noFolder(name string, secrets []string) string {
	if len(name) > maxPath {
		return "is longer than a path can be"
	}
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		if at = path.Join(at, part); len(part) > maxPart {
			return "has a part that is longer than a name can be"
		}
		if _, file := r.bundleReader[at]; (file || slices.Contains(secrets, at)) && at != name { // what has the name itself is in it
			return "lies in " + at + ", which is a file"
		}
	}
	return ""
}

// detachedSecrets reads secrets for a folder that will be another one, and remembers which lie in the folder.
type detachedSecrets struct {
	of    schema.Reader
	files map[string][]byte // that the folder will have
	read  map[string][]byte
}

// ReadFile reads one secret.
func (s *detachedSecrets) ReadFile(name string) ([]byte, error) {
	if data, ok := s.files[name]; ok {
		return data, nil
	}
	data, err := s.of.ReadFile(name)
	if err == nil && !path.IsAbs(name) {
		s.read[name] = data
	}
	return data, err
}

// nothingTold stands in for the variables and secrets of a config that is not to be told any.
type nothingTold struct{ names []string } // what it has asked for

func (n *nothingTold) env(name string) (string, bool) {
	n.names = append(n.names, fmt.Sprintf("the variable %.80q", name))
	return name, true
}

// ReadFile implements schema.Reader.
func (n *nothingTold) ReadFile(name string) ([]byte, error) {
	n.names = append(n.names, fmt.Sprintf("the file of secrets %.80q", name))
	return []byte(name), nil
}
