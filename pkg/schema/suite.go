package schema

import (
	"reflect"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Suite is one file of a project's own tests; docs/testing.md says what its keys do.
type Suite struct {
	Name  string      `cfg:"name" doc:"What the suite is called; the file's path otherwise."`
	Given *TestGiven  `cfg:"given" doc:"What all cases begin with."`
	As    *TestCaller `cfg:"as" doc:"Who calls, where a case does not say; public otherwise."`
	Cases []*TestCase `cfg:"cases,required" min:"1" doc:"The cases. Each has a service and a store of its own."`
}

// TestGiven is what a case begins with.
type TestGiven struct {
	Clock   *time.Time        `cfg:"clock" doc:"What time it is; it stands still, but for advance. 2026-01-01T00:00:00Z when absent."`
	Env     map[string]string `cfg:"env" doc:"Environment variables, for env in scripts and for ${env:NAME} in the config. The machine's own are not there."`
	Org     string            `cfg:"org" pattern:"objectId" doc:"The id of the organization that the project belongs to; none when absent."`
	Records bson.D            `cfg:"records" doc:"Records by collection, created in this order and checked like all others, but without hooks."`
	HTTP    []*TestAnswer     `cfg:"http" doc:"The answers to http.fetch. A request that has none fails the case."`
}

// TestAnswer is what an outbound request is answered with.
type TestAnswer struct {
	Method  string            `cfg:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS" default:"GET" doc:"The method of the request."`
	URL     string            `cfg:"url,required" doc:"The whole URL of the request."`
	Status  int               `cfg:"status" min:"100" max:"599" default:"200" doc:"The status of the answer."`
	Headers map[string]string `cfg:"headers" doc:"Headers of the answer."`
	Body    any               `cfg:"body" doc:"The body of the answer: a string as it is, anything else as JSON."`
}

// TestCaller is who calls.
type TestCaller struct {
	Kind string // CallerPublic, CallerAdmin or CallerUser

	User   string   `cfg:"user" doc:"A user's name."`
	ID     string   `cfg:"id" pattern:"objectId" doc:"The user's id, 24 hex digits; made of the name when absent."`
	Teams  []string `cfg:"teams" doc:"Slugs of the user's teams."`
	Orgs   []string `cfg:"orgs" pattern:"objectId" doc:"Ids of the orgs that the user is limited to."`
	Admin  bool     `cfg:"admin" doc:"Whether the user is an administrator."`
	Scopes []string `cfg:"scopes" doc:"Scopes that the user has."`
	PAT    []string `cfg:"pat" doc:"Scopes of a personal access token that the user comes with, and has themselves."`
	Token  string   `cfg:"token" doc:"The value of a Token header: of a token:… set, or of the project's admin tokens."`
}

// The kinds of callers of tests.
const (
	CallerPublic = "public"
	CallerAdmin  = "admin"
	CallerUser   = "user"
	CallerToken  = "token"
)

// TestCase is one case.
type TestCase struct {
	At   Position
	Path string // in its file, such as cases[0]

	Name   string      `cfg:"name,required" doc:"What is so."`
	Skip   string      `cfg:"skip" doc:"Why the case is not run."`
	Given  *TestGiven  `cfg:"given" doc:"What the case begins with, beside what its suite does."`
	As     *TestCaller `cfg:"as" doc:"Who calls, where a step does not say."`
	When   TestSteps   `cfg:"when,required" doc:"A step, or a list of them."`
	Expect *TestExpect `cfg:"expect" doc:"What is so after the last step."`
}

// TestSteps are what a case does, one after the other.
type TestSteps []*TestStep

// TestStep is one thing that a case does.
type TestStep struct {
	At   Position
	Path string

	Get     string    `cfg:"get" doc:"GET a path below the project's: /articles?limit=2."`
	Post    string    `cfg:"post" doc:"POST a body to a path."`
	Put     string    `cfg:"put" doc:"PUT a body to a path."`
	Patch   string    `cfg:"patch" doc:"PATCH a path with a body."`
	Delete  string    `cfg:"delete" doc:"DELETE a path."`
	Action  string    `cfg:"action" doc:"Call an action, and wait for its run."`
	Job     string    `cfg:"job" doc:"Run a job, and wait for it."`
	Advance *Duration `cfg:"advance" min:"1" doc:"Let time pass. Jobs run when they are due."`

	As      *TestCaller       `cfg:"as" doc:"Who calls."`
	Method  string            `cfg:"method" enum:"get,post" doc:"Of an action: how it is called; post if it has that."`
	Query   bson.D            `cfg:"query" doc:"Query parameters. Objects and lists go as JSON."`
	Body    any               `cfg:"body" doc:"The body; of an action, its data. A string goes as it is, anything else as JSON."`
	Headers map[string]string `cfg:"headers" doc:"Headers of the request."`
	Save    map[string]string `cfg:"save" keys:"variable" doc:"Values of the answer by name, such as id: id; a later ${id} stands for it."`
	Expect  *TestExpect       `cfg:"expect" doc:"What is so after this step."`
}

// TestExpect is what has to be so. What is absent is not looked at, but for one thing: a step succeeds unless status,
// problem or run say otherwise.
type TestExpect struct {
	At   Position
	Path string

	Status   int            `cfg:"status" min:"100" max:"599" doc:"The status of the answer."`
	Problem  string         `cfg:"problem" doc:"The code of the refusal."`
	Headers  map[string]any `cfg:"headers" doc:"Headers of the answer."`
	Body     any            `cfg:"body" doc:"What the body has; it may have more."`
	Exactly  any            `cfg:"exactly" doc:"The body, with nothing more."`
	Records  map[string]any `cfg:"records" doc:"The records of a collection as they are stored, oldest first, each with at least these members; or how many there are."`
	Hooks    []string       `cfg:"hooks" doc:"The hooks that the step ran, in order: articles.post.bind, actions.export.handle, jobs.cleanup."`
	Logs     []any          `cfg:"logs" doc:"Texts that lines of the scripts' log have, in this order."`
	HTTP     []any          `cfg:"http" doc:"The outbound requests, in order: method, url, headers, body."`
	Run      bson.D         `cfg:"run" doc:"What the run of the action or job has: status, progress, result, error."`
	Progress []any          `cfg:"progress" doc:"The progress that the run told of, in order."`
}

// Verb gives what a step does, and with what.
func (s *TestStep) Verb() (verb, target string) {
	for _, v := range s.verbs() {
		if v[1] != "" {
			return v[0], v[1]
		}
	}
	return "", ""
}

func (s *TestStep) verbs() [][2]string {
	advance := ""
	if s.Advance != nil {
		advance = s.Advance.Std().String()
	}
	return [][2]string{
		{"get", s.Get},
		{"post", s.Post},
		{"put", s.Put},
		{"patch", s.Patch},
		{"delete", s.Delete},
		{"action", s.Action},
		{"job", s.Job},
		{"advance", advance},
	}
}

// LoadedSuite is a suite as read.
type LoadedSuite struct {
	Suite
	loaded Loaded
}

// Position tells where the value at a path stands; see Loaded.Position.
func (l *LoadedSuite) Position(at string) Position { return l.loaded.Position(at) }

// newLiteralLoader makes the loader of files in which ${…} is not of the environment.
func newLiteralLoader(r Reader) *loader {
	return &loader{reader: r, literal: true, files: map[string]*node{}, hashes: map[string]string{}, substituted: map[string]string{}}
}

// LoadSuite reads a file of tests. In it, ${…} is not of the environment: the steps of a case fill it in. The suite is
// fit for use only when no problem is an error.
func LoadSuite(r Reader, file string) (*LoadedSuite, Problems) {
	l := newLiteralLoader(r)
	root := l.entry(file)
	if root == nil {
		return nil, l.problems.Sort()
	}
	d := newDecoder(l)
	out := &LoadedSuite{loaded: Loaded{root: root, refs: d.refs}}
	d.root(root, file, &out.Suite)
	for i, c := range out.Cases {
		out.checkCase(d, c, "cases["+strconv.Itoa(i)+"]")
	}
	return out, l.problems.Sort()
}

// checkCase fills in where a case stands, and checks what its type can't say.
func (l *LoadedSuite) checkCase(d *decoder, c *TestCase, at string) {
	place := func(path string, pos *Position, own *string) { *pos, *own = l.Position(path), path }
	place(at, &c.At, &c.Path)
	if c.Expect != nil {
		place(at+".expect", &c.Expect.At, &c.Expect.Path)
	}
	whens, _ := l.node(at + ".when")
	if c.When != nil && len(c.When) == 0 {
		d.problem(l.Position(at+".when"), at+".when", CodeRange, "must have at least one step")
	}
	for i, s := range c.When {
		here := at + ".when"
		if whens != nil && whens.kind == kindList {
			here += "[" + strconv.Itoa(i) + "]"
		}
		place(here, &s.At, &s.Path)
		if s.Expect != nil {
			place(here+".expect", &s.Expect.At, &s.Expect.Path)
		}
		l.checkStep(d, s, here)
	}
}

func (l *LoadedSuite) checkStep(d *decoder, s *TestStep, at string) {
	given := 0
	for _, v := range s.verbs() {
		if v[1] != "" {
			given++
		}
	}
	if given != 1 && !d.isBroken(at) {
		d.problem(s.At, at, CodeRequired, "needs one of get, post, put, patch, delete, action, job and advance, and no other of them")
		return
	}
	verb, target := s.Verb()
	refuse := func(key, why string) {
		d.problem(l.Position(at+"."+key), at+"."+key, CodeConflict, "%s", why)
	}
	switch {
	case verb == "action" || verb == "job" || verb == "advance":
	case target != "" && target[0] != '/':
		d.problem(l.Position(at+"."+verb), at+"."+verb, CodePattern, "must begin with /, and goes on below the project's path: /articles")
	}
	if s.Method != "" && verb != "action" {
		refuse("method", "is of actions only")
	}
	for key, there := range map[string]bool{"body": s.Body != nil, "query": len(s.Query) > 0, "headers": len(s.Headers) > 0, "as": s.As != nil} {
		if there && (verb == "job" || verb == "advance") {
			refuse(key, "has no meaning here: "+verb+" is no request")
		}
	}
	if s.Body != nil && (verb == "get" || verb == "delete") {
		refuse("body", "a "+verb+" has none")
	}
}

// node finds the value at a path.
func (l *LoadedSuite) node(at string) (*node, bool) {
	n := l.loaded.root
	for at != "" {
		next, _, rest := n.step(trimDot(at))
		if next == nil {
			return nil, false
		}
		if target, ok := l.loaded.refs[next]; ok {
			next = target
		}
		n, at = next, rest
	}
	return n, true
}

func trimDot(s string) string {
	if s != "" && s[0] == '.' {
		return s[1:]
	}
	return s
}

func (s *TestSteps) decodeConfig(d *decoder, n *node, path string, _ *member) {
	if n.kind == kindList {
		var list []*TestStep
		d.list(n, path, reflect.ValueOf(&list).Elem(), &member{})
		*s = append(TestSteps{}, list...)
		return
	}
	step := &TestStep{}
	d.value(n, path, reflect.ValueOf(&step).Elem(), &member{})
	*s = TestSteps{step}
}

func (s *TestSteps) configSchema(g *generator, _ *member) map[string]any {
	step := map[string]any{"$ref": g.define(reflect.TypeFor[TestStep]())}
	return anyOf(step, map[string]any{"type": "array", "minItems": 1, "items": step})
}

func (c *TestCaller) decodeConfig(d *decoder, n *node, path string, _ *member) {
	if n.kind == kindString {
		own := &member{enum: []string{CallerPublic, CallerAdmin}}
		if d.text(n, path, own) {
			c.Kind = n.text
		}
		return
	}
	type plain TestCaller // the same members, without a form of its own
	var p plain
	d.object(n, path, reflect.ValueOf(&p).Elem())
	*c = TestCaller(p)
	switch {
	case d.isBroken(path):
	case c.User != "" && c.Token == "":
		c.Kind = CallerUser
	case c.User == "" && c.Token != "":
		c.Kind = CallerToken
	default:
		d.problem(n.pos, path, CodeRequired, "needs user or token, and not both; public and admin are words in its place")
	}
}

func (c *TestCaller) configSchema(g *generator, _ *member) map[string]any {
	return anyOf(
		map[string]any{"enum": []string{CallerPublic, CallerAdmin}}, map[string]any{"$ref": g.define(reflect.TypeOf(c).Elem())},
	)
}
