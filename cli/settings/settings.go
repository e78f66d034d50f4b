package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/gofrs/flock"

	"github.com/svcctl/svc/cli/output"
)

// File is the content of the config file.
type File struct {
	Servers        []Server  `json:"servers"         yaml:"servers"`
	Users          []User    `json:"users"           yaml:"users"`
	Contexts       []Context `json:"contexts"        yaml:"contexts"`
	CurrentContext string    `json:"current-context" yaml:"current-context"`
}

// Server is one service.
type Server struct {
	Name                  string `json:"name"                            yaml:"name"`
	Server                string `json:"server"                          yaml:"server"`
	CAFile                string `json:"caFile,omitempty"                yaml:"caFile,omitempty"`
	InsecureSkipTLSVerify bool   `json:"insecureSkipTLSVerify,omitempty" yaml:"insecureSkipTLSVerify,omitempty"`
}

// User is one credential: one of the token members is set. The file forms name a file that holds the token alone, TokenCommand is a program
// with its arguments that prints it.
type User struct {
	Name                string    `json:"name"                          yaml:"name"`
	Username            string    `json:"username,omitempty"            yaml:"username,omitempty"`
	Token               string    `json:"token,omitempty"               yaml:"token,omitempty"` // JWT of a login, or PAT
	ExpiresAt           time.Time `json:"expiresAt,omitzero"            yaml:"expiresAt,omitempty"`
	TokenFile           string    `json:"tokenFile,omitempty"           yaml:"tokenFile,omitempty"`
	TokenCommand        []string  `json:"tokenCommand,omitempty"        yaml:"tokenCommand,omitempty"`
	AdminToken          string    `json:"adminToken,omitempty"          yaml:"adminToken,omitempty"`
	AdminTokenFile      string    `json:"adminTokenFile,omitempty"      yaml:"adminTokenFile,omitempty"`
	CollectionToken     string    `json:"collectionToken,omitempty"     yaml:"collectionToken,omitempty"`
	CollectionTokenFile string    `json:"collectionTokenFile,omitempty" yaml:"collectionTokenFile,omitempty"`
}

// TokenPrefix begins every personal access token.
const TokenPrefix = "svc_pat_"

// Kind says what the credential is, for people.
func (u User) Kind(now time.Time) string {
	switch {
	case u.AdminToken+u.AdminTokenFile != "":
		return "admin token"
	case u.CollectionToken+u.CollectionTokenFile != "":
		return "collection token"
	case len(u.TokenCommand) > 0:
		return "token of " + u.TokenCommand[0]
	case u.Token+u.TokenFile == "":
		return "none"
	case strings.HasPrefix(u.Token, TokenPrefix):
		return "personal access token"
	case u.Username == "":
		return "token"
	case !u.ExpiresAt.IsZero() && u.ExpiresAt.Before(now):
		return "login (over)"
	}
	return "login"
}

// Context joins a server and a user under a name, and may fix a namespace.
type Context struct {
	Name      string `json:"name"                yaml:"name"`
	Server    string `json:"server"              yaml:"server"`
	User      string `json:"user,omitempty"      yaml:"user,omitempty"`
	Namespace string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
}

// Path is where the file is: SVCCTL_CONFIG, else under XDG_CONFIG_HOME, else under ~/.config; "" where there is no home. The current directory is no place for it: it may be
// somebody else's, as in CI, and the file names programs that are run, and where credentials go.
func Path(env func(string) (string, bool), home string) string {
	if p, _ := env("SVCCTL_CONFIG"); p != "" {
		return p
	}
	if dir, _ := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "svcctl", "config.yaml")
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".config", "svcctl", "config.yaml")
}

// errNoHome says what to do where Path is "".
var errNoHome = errors.New("there is no home directory to keep contexts in: set HOME, or name a file by SVCCTL_CONFIG or --config")

// Load reads the file; one that is not there is empty, and so is that of nobody's home (""). The second answer is a warning for the user, or "".
func Load(path string) (*File, string, error) {
	if path == "" {
		return &File{}, "", nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	f := &File{}
	if len(strings.TrimSpace(string(data))) > 0 {
		if err := yaml.UnmarshalWithOptions(data, f, yaml.Strict()); err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, plain(err))
		}
	}
	info, err := os.Stat(path)
	if err != nil || filepath.Separator != '/' { // whose modes say little
		return f, "", nil //nolint:nilerr // it was read
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o002 != 0 && f.runs(): // and somebody else may have named them
		return nil, "", fmt.Errorf("%s names programs that are run, and everybody can change it; look at them, then run: chmod 600 %s", path, path)
	case mode&0o077 != 0 && f.secret():
		return f, fmt.Sprintf("%s holds credentials and others can read it; run: chmod 600 %s", path, path), nil
	case mode&0o022 != 0 && len(f.Contexts) > 0: // and with it where credentials go
		return f, fmt.Sprintf("%s says where credentials go and others can change it; run: chmod 600 %s", path, path), nil
	}
	return f, "", nil
}

// runs says that the file names a program that gives a token.
func (f *File) runs() bool {
	return slices.ContainsFunc(f.Users, func(u User) bool { return len(u.TokenCommand) > 0 })
}

// plain takes the excerpt of the file, which may show a token, out of a decoding error.
func plain(err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		pos := ye.GetToken().Position
		return fmt.Errorf("line %d, column %d: %s", pos.Line, pos.Column, ye.GetMessage())
	}
	return err
}

func (f *File) secret() bool {
	return slices.ContainsFunc(f.Users, func(u User) bool { return u.Token+u.AdminToken+u.CollectionToken != "" })
}

// Update changes the file under a lock: change gets what is on disk now, and what it leaves is written in one step,
// readable by the owner only. When change fails, the file stays as it is.
func Update(path string, change func(*File) error) (err error) {
	if path == "" {
		return errNoHome
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, _, err := Load(path)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	data, err := yaml.MarshalWithOptions(f, yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return output.WriteFile(path, data, 0o600)
}

// Context finds a context by name.
func (f *File) Context(name string) (*Context, bool) {
	return find(f.Contexts, func(c *Context) bool { return c.Name == name })
}

// Server finds a server by name.
func (f *File) Server(name string) (*Server, bool) {
	return find(f.Servers, func(s *Server) bool { return s.Name == name })
}

// User finds a user by name.
func (f *File) User(name string) (*User, bool) {
	return find(f.Users, func(u *User) bool { return u.Name == name })
}

func find[T any](list []T, match func(*T) bool) (*T, bool) {
	for i := range list {
		if match(&list[i]) {
			return &list[i], true
		}
	}
	return nil, false
}

// SetContext adds or replaces the context and what it joins, by their names.
func (f *File) SetContext(c Context, s Server, u User) {
	f.Contexts = put(f.Contexts, c, func(x *Context) string { return x.Name })
	f.Servers = put(f.Servers, s, func(x *Server) string { return x.Name })
	if u.Name != "" {
		f.Users = put(f.Users, u, func(x *User) string { return x.Name })
	}
}

func put[T any](list []T, v T, name func(*T) string) []T {
	if old, ok := find(list, func(x *T) bool { return name(x) == name(&v) }); ok {
		*old = v
		return list
	}
	return append(list, v)
}

// DeleteContext removes a context, and its server and user when no other context uses them.
func (f *File) DeleteContext(name string) bool {
	c, ok := f.Context(name)
	if !ok {
		return false
	}
	gone := *c
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	used := func(match func(Context) bool) bool { return slices.ContainsFunc(f.Contexts, match) }
	if !used(func(c Context) bool { return c.Server == gone.Server }) {
		f.Servers = slices.DeleteFunc(f.Servers, func(s Server) bool { return s.Name == gone.Server })
	}
	if !used(func(c Context) bool { return c.User == gone.User }) {
		f.Users = slices.DeleteFunc(f.Users, func(u User) bool { return u.Name == gone.User })
	}
	if f.CurrentContext == name {
		f.CurrentContext = ""
	}
	return true
}

// Names gives the names of the contexts.
func (f *File) Names() []string {
	names := make([]string, 0, len(f.Contexts))
	for _, c := range f.Contexts {
		names = append(names, c.Name)
	}
	return names
}

// Redacted is a copy that shows that a secret is there, but not the secret.
func (f *File) Redacted() *File {
	c := *f
	c.Users = slices.Clone(f.Users)
	for i := range c.Users {
		for _, secret := range []*string{&c.Users[i].Token, &c.Users[i].AdminToken, &c.Users[i].CollectionToken} {
			if *secret != "" {
				*secret = "REDACTED"
			}
		}
	}
	c.Servers = slices.Clone(f.Servers)
	for i := range c.Servers {
		c.Servers[i].Server = c.Servers[i].Shown()
	}
	return &c
}

// Shown is the address of the server without what may be secret in it, such as a password that does not belong there.
func (s Server) Shown() string {
	if !strings.ContainsAny(s.Server, "@?#") {
		return s.Server
	}
	u, err := url.Parse(s.Server)
	if err != nil || u.Host == "" {
		return "REDACTED"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
