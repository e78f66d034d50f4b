package command

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/settings"
	"github.com/svcctl/svc/pkg/client"
)

// DefaultServer is where the service listens unless told otherwise.
const DefaultServer = "http://127.0.0.1:8080"

// target is the outcome of flags, environment and context.
type target struct {
	context    *settings.Context // nil without one
	server     settings.Server
	user       *settings.User // of the context, when its credential is the one used
	credential Credential
	own        bool // the server is that of the context
}

// foreign says that the context has a credential that is not used, since it belongs to another server.
func (t *target) foreign() bool { return t.context != nil && t.context.User != "" && !t.own }

// Credential is what requests carry: at most one member is set.
type Credential struct {
	Token, AdminToken, CollectionToken string
}

// Set says whether there is one.
func (c Credential) Set() bool { return c != Credential{} }

// resolve decides once which service is meant, and as whom.
func (st *State) resolve() (*target, error) {
	if st.target != nil {
		return st.target, nil
	}
	file, err := st.Settings()
	if err != nil {
		return nil, err
	}
	t := &target{server: settings.Server{Server: DefaultServer}, own: true}
	name := st.Flags.Context
	if name == "" {
		name = file.CurrentContext
	}
	if name != "" {
		if t.context, t.server, err = st.fromContext(file, name); err != nil {
			return nil, err
		}
	}
	if s := strings.TrimRight(st.Flags.Server, "/"); s != "" && s != strings.TrimRight(t.server.Server, "/") {
		t.server, t.own = settings.Server{Server: s}, false
	}
	if st.Flags.CAFile != "" {
		t.server.CAFile = st.Flags.CAFile
	}
	t.server.InsecureSkipTLSVerify = t.server.InsecureSkipTLSVerify || st.Flags.Insecure
	if err := client.CheckServer(t.server.Server); err != nil { // before it is shown anywhere
		return nil, Usagef("%v", err)
	}
	if t.credential, err = st.given(); err != nil {
		return nil, err
	}
	// A context's credential belongs to its server, so --server with another address goes without it.
	if t.context != nil && t.own && !t.credential.Set() && t.context.User != "" {
		u, ok := file.User(t.context.User)
		if !ok {
			return nil, Usagef("context %s names user %s, which is not in %s", t.context.Name, t.context.User, st.SettingsPath())
		}
		t.user = u
		if t.credential, err = st.stored(u, t.server.Server); err != nil {
			return nil, err
		}
	}
	st.target = t
	return t, nil
}

func (st *State) fromContext(file *settings.File, name string) (*settings.Context, settings.Server, error) {
	c, ok := file.Context(name)
	if !ok {
		return nil, settings.Server{}, &Error{
			Exit: ExitNotFound, Code: "context_not_found", Message: fmt.Sprintf("there is no context %q in %s", name, st.SettingsPath()),
			Hint: "svcctl config get-contexts lists them, svcctl config set-context makes one",
		}
	}
	s, ok := file.Server(c.Server)
	if !ok {
		return nil, settings.Server{}, Usagef("context %s names server %s, which is not in %s", name, c.Server, st.SettingsPath())
	}
	server := *s
	if server.CAFile != "" {
		server.CAFile = st.beside(server.CAFile)
	}
	return c, server, nil
}

// given is the credential of the flags, else of the environment.
func (st *State) given() (Credential, error) {
	f := st.Flags
	c, n, err := credential(settings.User{
		Token: f.Token, TokenFile: f.TokenFile, AdminToken: f.AdminToken, AdminTokenFile: f.AdminTokenFile,
		CollectionToken: f.CollectionToken, CollectionTokenFile: f.CollectionTokenFile,
	}, func(p string) string { return p })
	if err != nil {
		return Credential{}, err
	}
	if n > 1 {
		return Credential{}, Usagef("more than one credential: give one of --token, --admin-token and --collection-token (or a -file form)")
	}
	if n == 1 {
		return c, nil
	}
	env := func(flag string) string { v, _ := st.Env(envName(flag)); return v }
	c, n, err = credential(settings.User{
		Token: env("token"), TokenFile: env("token-file"),
		AdminToken: env("admin-token"), AdminTokenFile: env("admin-token-file"),
		CollectionToken: env("collection-token"), CollectionTokenFile: env("collection-token-file"),
	}, func(p string) string { return p })
	if err == nil && n > 1 {
		err = Usagef("more than one credential in the environment: set one of SVCCTL_TOKEN, SVCCTL_ADMIN_TOKEN and SVCCTL_COLLECTION_TOKEN (or a _FILE form)")
	}
	return c, err
}

// stored is the credential of a user of the contexts file. Its paths are relative to that file.
func (st *State) stored(u *settings.User, server string) (Credential, error) {
	c, n, err := credential(*u, st.beside)
	if len(u.TokenCommand) > 0 {
		n++
	}
	if err == nil && n == 1 && len(u.TokenCommand) > 0 {
		c.Token, err = st.runTokenCommand(u, server)
	}
	if err == nil && n > 1 {
		err = Usagef("user %s in %s has more than one credential", u.Name, st.SettingsPath())
	}
	return c, err
}

func (st *State) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(st.SettingsPath()), path)
}

// credential reads the members that are set, and counts them.
func credential(u settings.User, path func(string) string) (c Credential, n int, err error) {
	for _, m := range []struct {
		value, file string
		to          *string
	}{
		{u.Token, u.TokenFile, &c.Token},
		{u.AdminToken, u.AdminTokenFile, &c.AdminToken},
		{u.CollectionToken, u.CollectionTokenFile, &c.CollectionToken},
	} {
		if m.value != "" {
			if !isToken(m.value) {
				return Credential{}, 0, Usagef("the token has white space in it, or other characters that no token has")
			}
			*m.to = m.value
			n++
		}
		if m.file == "" {
			continue
		}
		data, err := os.ReadFile(path(m.file))
		if err != nil {
			return Credential{}, 0, Usagef("read the token: %v", err)
		}
		if *m.to = strings.TrimSpace(string(data)); *m.to == "" {
			return Credential{}, 0, Usagef("read the token: %s is empty", path(m.file))
		}
		if !isToken(*m.to) {
			return Credential{}, 0, Usagef("read the token: %s holds more than a token alone", path(m.file))
		}
		n++
	}
	return c, n, nil
}

// Client connects to the service. Each answer has to be there within --request-timeout; streams and files have to go on, see quiet and client.Stalling.
func (st *State) Client() (*client.Client, error) { return st.connect(false) }

// PatientClient is a Client for answers that take as long as the work behind them, such as a reload. They end with the caller's context, or when
// the service does not answer anything else within --request-timeout either.
func (st *State) PatientClient() (*client.Client, error) { return st.connect(true) }

func (st *State) connect(patient bool) (*client.Client, error) {
	t, err := st.resolve()
	if err != nil {
		return nil, err
	}
	return st.open(t.server, t.credential, patient)
}

// beat is how often the service says on a stream that it is alive.
const beat = 15 * time.Second

// quiet is how long nothing may come on a stream: three beats, or longer where --request-timeout is.
func (st *State) quiet() time.Duration {
	if st.Flags.RequestTimeout <= 0 {
		return 0
	}
	return max(st.Flags.RequestTimeout, 3*cmp.Or(st.Beat, beat))
}

// AnonymousClient is a Client without a credential, for a login.
func (st *State) AnonymousClient() (*client.Client, error) {
	t, err := st.resolve()
	if err != nil {
		return nil, err
	}
	return st.open(t.server, Credential{}, false)
}

func (st *State) open(s settings.Server, cred Credential, patient bool) (*client.Client, error) {
	transport, err := st.transport(s)
	if err != nil {
		return nil, err
	}
	if st.completing {
		transport = st.caching(transport)
	}
	c, err := client.New(client.Options{
		Server: s.Server, Token: cred.Token, AdminToken: cred.AdminToken, CollectionToken: cred.CollectionToken,
		HTTPClient: &http.Client{Transport: transport}, UserAgent: "svcctl/" + st.Version,
		Timeout: st.Flags.RequestTimeout, Patient: patient, Quiet: st.quiet(), MaxAnswer: st.MaxAnswer,
	})
	if err != nil {
		return nil, Usagef("%v", err)
	}
	return c, nil
}

func (st *State) transport(s settings.Server) (http.RoundTripper, error) {
	if st.Transport != nil || (s.CAFile == "" && !s.InsecureSkipTLSVerify) {
		return st.Transport, nil
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.InsecureSkipTLSVerify} //nolint:gosec // the user asked for it by name
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, Usagef("read the authorities: %v", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usagef("read the authorities: %s holds no PEM certificate", s.CAFile)
		}
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}, nil
}

// Server is the service that is meant.
func (st *State) Server() (settings.Server, error) {
	t, err := st.resolve()
	if err != nil {
		return settings.Server{}, err
	}
	return t.server, nil
}

// ContextName is the name of the context whose server and credential are in use, or "".
func (st *State) ContextName() string {
	t := st.target
	if t == nil || t.context == nil || !t.own || t.user == nil && t.credential.Set() {
		return ""
	}
	return t.context.Name
}

// OfCollection says that the credential in use is one that only a project knows: a collection token, or the admin token of a project.
func (st *State) OfCollection() bool {
	return st.target != nil && st.target.credential.CollectionToken != ""
}

// User is the user of the contexts file whose credential is in use, or nil.
func (st *State) User() *settings.User {
	if st.target == nil {
		return nil
	}
	return st.target.user
}

// CredentialKind says for people what the credential in use is, such as "login" or "admin token"; "" is none.
func (st *State) CredentialKind() string {
	t, err := st.resolve()
	if err != nil || !t.credential.Set() {
		return ""
	}
	if t.user != nil {
		return t.user.Kind(st.Now())
	}
	return settings.User{Token: t.credential.Token, AdminToken: t.credential.AdminToken, CollectionToken: t.credential.CollectionToken}.Kind(st.Now())
}
