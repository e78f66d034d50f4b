package schema

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// substitute replaces ${env:NAME} and ${file:PATH} in one string; $${ stands for ${. The values never take part in
// parsing, so they can't change the structure of a config. secret says that the result holds such a value. A missing
// value is reported, and ok is false.
func (l *loader) substitute(text, file string, pos Position) (out string, secret, ok bool) {
	if l.literal || !strings.Contains(text, "${") {
		return text, false, true
	}
	var b strings.Builder
	ok = true
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), secret, ok
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		inner, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed {
			l.add(Problem{Position: pos, Code: CodeSubstitution, Message: "${ without }; write $${ for the text ${"})
			return "", secret, false
		}
		value, problem := l.lookup(inner, file)
		if problem != "" {
			l.add(Problem{Position: pos, Code: CodeSubstitution, Message: problem})
			ok = false
		}
		b.WriteString(value)
		secret = true
		text = rest
	}
}

// lookup gives the value of what stands between ${ and }, or a problem. Values are kept for the revision.
func (l *loader) lookup(inner, file string) (value, problem string) {
	source, name, _ := strings.Cut(inner, ":")
	switch source {
	case "env":
		if !envName.MatchString(name) {
			return "", "${env:NAME} takes a name of letters, digits and _"
		}
		value, ok := "", false
		if l.env != nil {
			value, ok = l.env(name)
		}
		if !ok {
			return "", fmt.Sprintf("the environment variable %s is not set", name)
		}
		l.substituted["env:"+name] = value
		return value, ""
	case "file":
		return l.lookupFile(name, file)
	}
	return "", "only ${env:NAME} and ${file:PATH} are replaced; write $${ for the text ${"
}

// lookupFile reads a secret: a relative path is relative to the config file, an absolute one goes to the reader as it
// is. One newline at the end is dropped.
func (l *loader) lookupFile(name, file string) (value, problem string) {
	if name == "" || l.secrets == nil {
		return "", fmt.Sprintf("the file %q can't be read", name)
	}
	if !path.IsAbs(name) {
		name = path.Join(path.Dir(file), name)
	}
	data, err := l.secrets.ReadFile(name)
	if err != nil {
		return "", fmt.Sprintf("the file %q can't be read: %s", name, readProblem(err))
	}
	value = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	l.substituted["file:"+name] = value
	return value, ""
}
