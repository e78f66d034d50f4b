package service

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/settings"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// machine checks what needs no service.
func (c *checker) machine(ctx context.Context) {
	st := c.opts.st
	c.add(finding{Name: "svcctl", Status: ok, Message: st.Version})
	path := st.SettingsPath()
	file, warning, err := settings.Load(path)
	switch {
	case err != nil:
		c.add(finding{Name: "contexts", Status: failed, Message: err.Error(), Hint: "mend or remove " + path, exit: command.ExitUsage})
		return
	case warning != "":
		c.add(finding{Name: "contexts", Status: warn, Message: warning})
	case len(file.Contexts) == 0:
		c.add(finding{Name: "contexts", Status: ok, Message: "none in " + cmp.Or(path, "any file, for lack of a home directory")})
	default:
		c.add(finding{Name: "contexts", Status: ok, Message: fmt.Sprintf("%d in %s", len(file.Contexts), path)})
	}
	server, err := st.Server()
	if err != nil {
		c.fail(ctx, "credential", err)
		return
	}
	where := server.Server
	if name := st.ContextName(); name != "" {
		where += " (context " + name + ")"
	}
	c.add(finding{Name: "server", Status: ok, Message: where})
	if kind := st.CredentialKind(); kind == "" {
		c.add(finding{Name: "credential", Status: warn, Message: "none: you are nobody to the service", Hint: "svcctl login, or --token-file, --admin-token-file, SVCCTL_TOKEN"})
	} else {
		c.add(finding{Name: "credential", Status: ok, Message: kind})
	}
	if c.opts.Pre {
		c.svcd()
		c.editor()
	}
}

// svcd looks for the program that svcctl project test starts.
func (c *checker) svcd() {
	path, err := exec.LookPath("svcd")
	if own, ownErr := os.Executable(); ownErr == nil {
		if info, statErr := os.Stat(filepath.Join(filepath.Dir(own), "svcd")); statErr == nil && info.Mode().IsRegular() {
			path, err = filepath.Join(filepath.Dir(own), "svcd"), nil
		}
	}
	if err != nil {
		c.add(finding{Name: "svcd", Status: warn, Message: "not beside svcctl, and not in PATH", Hint: "svcctl project test needs it"})
		return
	}
	c.add(finding{Name: "svcd", Status: ok, Message: path})
}

// editor looks for what svcctl doc edit starts.
func (c *checker) editor() {
	var words []string
	for _, name := range []string{"SVCCTL_EDITOR", "VISUAL", "EDITOR"} {
		if line, _ := c.opts.st.Env(name); len(words) == 0 {
			words = strings.Fields(line)
		}
	}
	if len(words) == 0 {
		return
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		c.add(finding{Name: "editor", Status: warn, Message: words[0] + " is not in PATH", Hint: "set EDITOR: svcctl doc edit starts it"})
		return
	}
	c.add(finding{Name: "editor", Status: ok, Message: strings.Join(words, " ")})
}

// maxSkew is how far the clocks may be apart before it is worth telling: logins, runs and the audit log go by the service's.
const maxSkew = 10 * time.Second

// service checks what the service says. What can't be asked without an answer to something else is left out.
func (c *checker) service(ctx context.Context) {
	cl, err := c.opts.st.Client()
	if err != nil {
		c.fail(ctx, "reachable", err)
		return
	}
	anybody, err := c.opts.st.AnonymousClient() // a credential that is not taken is a finding of its own
	if err != nil {
		c.fail(ctx, "reachable", err)
		return
	}
	before := c.opts.st.Now()
	head, err := anybody.Health(ctx)
	if err != nil {
		c.fail(ctx, "reachable", err)
		return
	}
	took := c.opts.st.Now().Sub(before)
	c.add(finding{Name: "reachable", Status: ok, Message: fmt.Sprintf("an answer in %s", took.Round(time.Millisecond))})
	c.clock(before.Add(took/2), head.Get("Date"))
	health, err := readHealth(ctx, anybody)
	if err != nil {
		c.fail(ctx, "ready", err)
	}
	if health != nil && err == nil {
		for _, part := range health.Checks {
			f := finding{Name: "ready/" + part.Name, Status: ok, Message: part.Message}
			switch part.Status {
			case api.CheckDegraded:
				f.Status = warn
			case api.CheckFailed:
				f.Status, f.exit = failed, command.ExitUnreachable
			}
			c.add(f)
		}
	}
	if version, err := anybody.Version(ctx); err != nil {
		c.fail(ctx, "version", err)
	} else {
		c.add(versions(c.opts.st.Version, version.Version))
	}
	if c.who(ctx, cl) {
		c.projects(ctx, cl)
	}
}

func (c *checker) clock(now time.Time, date string) {
	at, err := http.ParseTime(date)
	if err != nil { // a proxy may leave it out
		return
	}
	switch skew := now.Sub(at).Round(time.Second); {
	case skew.Abs() > maxSkew:
		c.add(finding{Name: "clock", Status: warn, Message: fmt.Sprintf("this machine's clock differs from the service's by %s", skew), Hint: "have both follow a time server"})
	default:
		c.add(finding{Name: "clock", Status: ok, Message: "as the service's"})
	}
}

var releaseOf = regexp.MustCompile(`^v?(\d+)\.(\d+)\.`)

// versions compares the releases: one minor version apart is fine, as with kubectl.
func versions(own, other string) finding {
	f := finding{Name: "version", Status: ok, Message: "the service is " + other}
	a, b := releaseOf.FindStringSubmatch(own), releaseOf.FindStringSubmatch(other)
	if a == nil || b == nil || own == other {
		return f
	}
	var minor [2]int
	if _, err := fmt.Sscan(a[2]+" "+b[2], &minor[0], &minor[1]); err != nil {
		return f
	}
	if apart := minor[0] - minor[1]; a[1] != b[1] || apart < -1 || apart > 1 {
		f.Status, f.Message = warn, fmt.Sprintf("svcctl is %s and the service is %s", own, other)
		f.Hint = "use a svcctl of the service's release: some commands may not fit"
	}
	return f
}

// soon is how long before its end a credential is worth a warning.
const soon = 24 * time.Hour

// who checks the credential and the rights, and says whether the service takes it.
func (c *checker) who(ctx context.Context, cl *client.Client) bool {
	st := c.opts.st
	if st.CredentialKind() == "" {
		for _, right := range c.opts.Rights {
			c.add(finding{Name: "right/" + right, Status: failed, Message: "without a credential there is none", exit: command.ExitDenied})
		}
		return len(c.opts.Namespaces) > 0
	}
	me, err := cl.Me(ctx)
	if err != nil && st.OfCollection() {
		c.add(finding{Name: "identity", Status: ok, Message: "of a project alone"})
		return false
	}
	if err != nil {
		c.fail(ctx, "identity", err)
		return false
	}
	name := me.Kind
	if me.Username != "" {
		name += " " + me.Username
	}
	c.add(finding{Name: "identity", Status: ok, Message: name})
	end := me.ExpiresAt.Time
	if u := st.User(); end.IsZero() && u != nil { // of a login the contexts file knows
		end = u.ExpiresAt
	}
	if !end.IsZero() {
		left := end.Sub(st.Now())
		f := finding{Name: "expiry", Status: ok, Message: "until " + end.UTC().Format(api.TimeLayout)}
		if left < soon && me.Kind != "user" { // a login is short anyway
			f.Status, f.Hint = warn, "make another token in time: svcctl token create"
		}
		c.add(f)
	}
	admin := me.IsAdmin || me.Kind == "admin"
	for _, right := range c.opts.Rights {
		if !admin && !slices.Contains(me.Scopes, right) {
			c.add(finding{Name: "right/" + right, Status: failed, Message: "you lack it", Hint: "svcctl whoami shows what you may do", exit: command.ExitDenied})
			continue
		}
		c.add(finding{Name: "right/" + right, Status: ok})
	}
	return true
}

func (c *checker) projects(ctx context.Context, cl *client.Client) {
	list, err := readProjects(ctx, cl)
	if err != nil {
		if client.IsStatus(err, http.StatusForbidden) && len(c.opts.Namespaces) == 0 {
			return
		}
		c.fail(ctx, "projects", err)
		return
	}
	for _, namespace := range c.opts.Namespaces {
		if !slices.ContainsFunc(list, func(p projectState) bool { return p.Namespace == namespace }) {
			c.add(finding{Name: "project/" + namespace, Status: failed, Message: "there is none that you may see", Hint: "svcctl project list shows the registered ones", exit: command.ExitNotFound})
		}
	}
	for _, p := range list {
		if len(c.opts.Namespaces) > 0 && !slices.Contains(c.opts.Namespaces, p.Namespace) {
			continue
		}
		f := finding{Name: "project/" + p.Namespace, Status: ok, Message: fmt.Sprintf("%s, generation %d", p.Phase, p.Generation)}
		switch {
		case p.Problem != "": // it is there, and nothing more is known
			f.Message = p.Problem
		case p.Phase == api.PhaseDisabled && len(c.opts.Namespaces) == 0: // by somebody's will
			f.Message = string(p.Phase)
		case p.Ready != "True":
			f.Status, f.Message, f.exit = failed, fmt.Sprintf("%s: %s", p.Phase, p.Message), command.ExitFailed
			f.Hint = "svcctl project status " + p.Namespace + " shows everything"
		}
		c.add(f)
	}
}
