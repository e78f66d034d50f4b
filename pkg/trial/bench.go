package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/trial/report"
)

// bench is where one case is run.
type bench struct {
	*runner
	job

	ctx     context.Context //nolint:containedctx // a bench lives for one call
	given   given
	project *project.Project
	clock   *clock
	seen    *observer
	answers *answers
	box     *app.Sandbox
	vars    bson.D
	out     *report.Case
}

// fail takes down that something is not as it should be. path is where that is written in the file of tests, what is
// what was looked at. It gives false, for its callers to give on.
func (b *bench) fail(path, what, message string) bool {
	pos := b.of.Position(path)
	b.out.Failures = append(b.out.Failures, report.Failure{File: pos.File, Line: pos.Line, Column: pos.Column, Path: what, Message: message})
	return false
}

// differ takes down what is not as expected.
func (b *bench) differ(path, what string, list []difference) bool {
	for _, d := range list {
		pos := b.of.Position(path + d.path)
		b.out.Failures = append(b.out.Failures, report.Failure{
			File: pos.File, Line: pos.Line, Column: pos.Column, Path: what + d.path, Message: d.message, Expected: d.expected, Actual: d.actual,
		})
	}
	return len(list) == 0
}

// caseTime bounds a case: what hangs fails.
const caseTime = time.Minute

func (b *bench) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, caseTime)
	defer cancel()
	b.ctx, b.given = ctx, givenOf(b.job)
	if !b.open() {
		return
	}
	defer func() {
		if err := b.box.Close(ctx); err != nil {
			b.fail(b.Path, "", err.Error())
		}
	}()
	switch {
	case !b.insertAll():
	case b.golden != nil:
		b.judge()
	default:
		b.steps()
	}
}

// open makes the service of the case.
func (b *bench) open() bool {
	one := b.load(b.given.Env)
	if one.project == nil {
		for _, p := range one.problems {
			if !p.Warning {
				b.fail(b.Path, "", "the project can't be loaded: "+p.String()+": set it in given.env")
			}
		}
		return false
	}
	b.clock = &clock{t: b.given.Clock}
	b.seen = newObserver()
	b.answers = &answers{recorded: b.given.HTTP, used: map[*schema.TestAnswer]bool{}}
	b.project = observed(one.project, b.seen)
	b.project.OrgID = b.given.Org
	var err error
	b.box, err = app.NewSandbox(b.ctx, app.SandboxOptions{
		Project: b.project, Now: b.clock.now, Env: lookup(b.given.Env), Answers: b.answers, Logger: slog.New(b.seen),
		Observe: func(e hooks.Engine) hooks.Engine { b.seen.engine = e; return b.seen },
	})
	if err != nil {
		return b.fail(b.Path, "", "the service of the case can't be made: "+err.Error())
	}
	return true
}

// base is the path of the project.
func (b *bench) base() string { return api.Prefix + "/_/" + b.project.Namespace }

// principal is who a caller of a test is.
func principal(c *schema.TestCaller) *access.Principal {
	if c == nil {
		return access.Anonymous()
	}
	switch c.Kind {
	case schema.CallerAdmin:
		return &access.Principal{Kind: access.KindAdmin, Name: "admin token"}
	case schema.CallerToken:
		return &access.Principal{Kind: access.KindToken, Name: "token", TokenHash: sha256.Sum256([]byte(c.Token))}
	case schema.CallerUser:
		p := &access.Principal{
			Kind: access.KindUser, ID: c.ID, Name: c.User, IsAdmin: c.Admin, Scopes: append(append([]string{}, c.Scopes...), c.PAT...),
			Limited: c.Orgs != nil, OrgIDs: c.Orgs, Teams: c.Teams,
		}
		if p.ID == "" {
			p.ID = idOf(c.User)
		}
		for _, slug := range c.Teams {
			p.TeamIDs = append(p.TeamIDs, idOf("team:"+slug))
		}
		if c.PAT != nil {
			p.Kind, p.Cap, p.TokenID = access.KindPAT, c.PAT, idOf("pat:"+c.User)
		}
		return p
	}
	return access.Anonymous()
}

// idOf makes an id of a name, the same each time.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// public is an error in the words that a caller would read.
func public(err error) string {
	e := errs.From(err)
	text := e.Message
	for _, f := range e.Fields {
		if strings.Contains(text, f.Message) && len(e.Fields) == 1 { // it says so already
			continue
		}
		text += fmt.Sprintf("; %s %s", f.Path, f.Message)
	}
	return strings.TrimSuffix(text, "; ")
}
