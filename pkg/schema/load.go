package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Reader reads config files by slash-separated path. It confines what may be read and how large it may be; its errors
// wrap fs.ErrNotExist, fs.ErrPermission, ErrOutside or ErrTooLarge where they fit.
type Reader interface {
	ReadFile(name string) ([]byte, error)
}

// Globber is a Reader that knows which files there are. References with patterns need one.
type Globber interface {
	// Glob gives the files that match a pattern of path.Match, hidden ones and those in hidden folders left out.
	Glob(pattern string) ([]string, error)
}

// Env looks up an environment variable for ${env:NAME}.
type Env func(name string) (value string, ok bool)

// What a Reader says when it refuses; the texts are shown to whoever wrote the config.
var (
	ErrOutside  = errors.New("it lies outside the project's directory")
	ErrTooLarge = errors.New("it is too large")
	ErrTooMany  = errors.New("the config has too many files")
	ErrNoFile   = errors.New("it is not a file")
)

// maxReferences bounds how deep files may reference each other.
const maxReferences = 16

// File is one config file that was read.
type File struct {
	Name   string // slash-separated, inside the project's directory
	SHA256 string // of its content, hex
}

// Loaded is a config as read: the decoded objects, the files, and where everything stands.
type Loaded struct {
	Project  *Project
	Files    []File   // sorted by name
	Secrets  []string // the files inside the project's directory that ${file:PATH} names, sorted
	Revision string   // sha256 in hex over the files' names and contents and every substituted value

	root    *node
	refs    map[*node]*node
	secrets Redactor

	substitutes bool // something was substituted
}

// loader reads and parses the files of one config.
type loader struct {
	reader      Reader
	env         Env
	secrets     Reader
	problems    Problems
	files       map[string]*node // parsed files; nil for those that failed
	hashes      map[string]string
	substituted map[string]string
	literal     bool // ${…} stays as it is
	work        work // of the YAML library
	merged      int  // entries, by << of YAML

	errors, warnings int
}

// maxText is the longest text of a problem, in bytes.
const maxText = 4096

func (l *loader) add(p Problem) {
	n := &l.errors
	if p.Warning {
		n = &l.warnings
	}
	if *n++; *n > MaxProblems {
		return
	}
	if len(p.Path) > maxText {
		p.Path = ""
	}
	if len(p.Message) > maxText { // not cut: half of a secret would not be known as one
		p.Message = "something is wrong with a text that is too long to be shown"
	}
	l.problems = append(l.problems, p)
}

// more says that there are problems which are not told.
func (l *loader) more(entry string) {
	if l.errors > MaxProblems {
		l.problems = append(l.problems, Problem{
			Position: Position{entry, 1, 1}, Code: CodeInvalid, Message: fmt.Sprintf("there are more than %d problems: mend these first", MaxProblems),
		})
	}
}

// minSecret is the length from which a substituted value is looked for in messages: shorter ones are parts of words.
const minSecret = 4

// Redactor takes the values that were substituted in a config, which may be secrets, out of texts that may show what a member
// holds. It outlives what was loaded, which has every node of the files.
type Redactor []string

// newRedactor makes one that takes out these values, and what they look like in quotes: the longest first, for one may be a
// part of another, of which the rest would stay.
func newRedactor(values iter.Seq[string]) Redactor {
	var r Redactor
	for value := range values {
		if len(value) < minSecret {
			continue
		}
		r = append(r, value)
		if q := strconv.Quote(value); q[1:len(q)-1] != value {
			r = append(r, q[1:len(q)-1])
		}
	}
	slices.SortFunc(r, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(r)
}

// Redact gives the text without the values.
func (r Redactor) Redact(text string) string {
	for _, value := range r {
		text = strings.ReplaceAll(text, value, "***")
	}
	return text
}

func (r Redactor) problems(problems Problems) {
	for i := range problems {
		p := &problems[i]
		p.Message, p.Path = r.Redact(p.Message), r.Redact(p.Path)
	}
}

// Redactor is that of the config.
func (l *Loaded) Redactor() Redactor { return l.secrets }

// LoadProject reads the config whose entry file is named, decodes it and checks it. secrets reads what ${file:PATH}
// names. Loaded is nil only when the entry file can't be parsed, or has more values or problems than are looked at; otherwise it holds what could be decoded, and is fit
// for use only when no problem is an error. Problems are sorted.
func LoadProject(r Reader, entry string, env Env, secrets Reader) (*Loaded, Problems) {
	l := &loader{
		reader: r, env: env, secrets: secrets,
		files: map[string]*node{}, hashes: map[string]string{}, substituted: map[string]string{},
	}
	root := l.entry(entry)
	if root == nil {
		l.more(entry)
		return nil, l.problems.Sort()
	}
	d := newDecoder(l)
	loaded := &Loaded{Project: &Project{}, root: root, refs: d.refs}
	d.root(root, entry, loaded.Project)
	loaded.secrets, loaded.substitutes = newRedactor(maps.Values(l.substituted)), len(l.substituted) > 0
	for _, source := range slices.Sorted(maps.Keys(l.substituted)) {
		if name, ok := strings.CutPrefix(source, "file:"); ok && !path.IsAbs(name) {
			loaded.Secrets = append(loaded.Secrets, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.hashes)) {
		loaded.Files = append(loaded.Files, File{Name: name, SHA256: l.hashes[name]})
	}
	loaded.Revision = l.revision()
	if !d.over { // else what was decoded is not what is meant
		check(loaded, d)
	}
	loaded.secrets.problems(l.problems)
	l.more(entry)
	if d.over {
		loaded = nil
	}
	return loaded, l.problems.Sort()
}

// entry opens the first file. Its problems have no other place than the file itself.
func (l *loader) entry(name string) *node {
	pos := Position{name, 1, 1}
	if !isConfigFile(name) {
		l.add(Problem{Position: pos, Code: CodeReference, Message: "a config file's name ends in .yaml, .yml or .json"})
		return nil
	}
	n, err := l.open(name)
	if err != nil {
		l.add(Problem{Position: pos, Code: CodeReference, Message: "the config file can't be read: " + readProblem(err)})
	}
	return n
}

// open gives the root of a file, parsed once. It is nil without an error when the parser has reported why.
func (l *loader) open(name string) (*node, error) {
	if n, ok := l.files[name]; ok {
		return n, nil
	}
	data, err := l.reader.ReadFile(name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	l.hashes[name] = hex.EncodeToString(sum[:])
	p := &parser{l: l, file: name}
	n := p.parse(data)
	l.files[name] = n
	return n, nil
}

// resolve turns a reference into a file name inside the project, or reports false when it points outside.
func resolve(reference, file string) (string, bool) {
	if path.IsAbs(reference) || strings.ContainsAny(reference, "\\\x00") {
		return "", false
	}
	name := path.Join(path.Dir(file), reference)
	return name, fs.ValidPath(name) && name != "."
}

// readProblem words a reader's error without anything of the machine in it.
func readProblem(err error) string {
	for _, known := range []error{ErrOutside, ErrTooLarge, ErrTooMany, ErrNoFile} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return "reading failed"
}

// revision hashes everything the config is made of, each part with its length so that no two configs look alike.
func (l *loader) revision() string {
	h := sha256.New()
	for _, parts := range []map[string]string{l.hashes, l.substituted} {
		fmt.Fprintf(h, "%d;", len(parts)) //nolint:errcheck // a hash never fails
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			writeSized(h, name)
			writeSized(h, parts[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeSized(w io.Writer, s string) {
	fmt.Fprintf(w, "%d:%s", len(s), s) //nolint:errcheck // a hash never fails
}

// Resolve turns the path of a file, written at a place of the config, into one inside the project's directory. It is ""
// for one that leads outside.
func (l *Loaded) Resolve(at, reference string) string {
	name, ok := resolve(reference, l.Position(at).File)
	if !ok {
		return ""
	}
	return name
}

// ScriptProblem makes a problem in a script's own file.
func (l *Loaded) ScriptProblem(pos Position, at, message string) Problem {
	p := Problems{{Position: pos, Path: l.mask(at), Code: CodeScript, Message: message}}
	l.secrets.problems(p)
	return p[0]
}

// Revised gives the revision of the config together with more files that it is made of.
func (l *Loaded) Revised(more []File) string {
	if len(more) == 0 {
		return l.Revision
	}
	h := sha256.New()
	writeSized(h, l.Revision)
	for _, f := range more {
		writeSized(h, f.Name)
		writeSized(h, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ReadProblem words a reader's error for whoever wrote the config.
func ReadProblem(err error) string { return readProblem(err) }

// Position tells where the value at a path stands, such as collections[0].fields[2].type. A path that the files don't
// have gives the nearest parent that they do.
func (l *Loaded) Position(at string) Position {
	n := l.root
	for at != "" {
		if target, ok := l.refs[n]; ok {
			n = target
		}
		next, _, rest := n.step(strings.TrimPrefix(at, "."))
		if next == nil {
			break
		}
		n, at = next, rest
	}
	if target, ok := l.refs[n]; ok {
		n = target
	}
	return n.pos
}

// Problem makes a problem at a path. What may be a credential in the path or the message is masked.
func (l *Loaded) Problem(at, code, format string, args ...any) Problem {
	p := Problems{{Position: l.Position(at), Path: l.mask(at), Code: code, Message: fmt.Sprintf(format, args...)}}
	l.secrets.problems(p)
	return p[0]
}

// mask gives a path with its keys as problems may print them.
func (l *Loaded) mask(at string) string {
	out := ""
	for n := l.root; at != ""; {
		if target, ok := l.refs[n]; ok {
			n = target
		}
		at = strings.TrimPrefix(at, ".")
		next, label, rest := n.step(at)
		if next == nil { // a member that is absent
			return join(out, maskKey(at))
		}
		if n.kind == kindList {
			out += label
		} else {
			out = join(out, label)
		}
		n, at = next, rest
	}
	return out
}

// step follows the first segment of a path: the longest key that fits, since keys may contain dots, or a list index.
// label is the segment as problems may print it.
func (n *node) step(at string) (next *node, label, rest string) {
	if n.kind == kindList {
		number, after, ok := strings.Cut(strings.TrimPrefix(at, "["), "]")
		i, err := strconv.Atoi(number)
		if !ok || err != nil || i < 0 || i >= len(n.items) {
			return nil, "", ""
		}
		return n.items[i], "[" + number + "]", after
	}
	best := -1
	for _, e := range n.entries {
		for _, key := range []string{e.key, e.label()} {
			after, ok := strings.CutPrefix(at, key)
			if ok && len(key) > best && (after == "" || after[0] == '.' || after[0] == '[') {
				best, next, label, rest = len(key), e.value, e.label(), after
			}
		}
	}
	return next, label, rest
}
