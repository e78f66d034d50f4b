package trial

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/schema"
)

// answer is what came of a step.
type answer struct {
	status int
	header http.Header
	body   any    // as JSON if it is that, else a text
	run    bson.D // of an action or a job; nil: none
}

// recorder takes an answer.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush has nothing to do: all is in memory.
func (w *recorder) Flush() {}

// SetWriteDeadline and SetReadDeadline have no meaning in memory.
func (w *recorder) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (w *recorder) SetReadDeadline(time.Time) error { return nil }

// steps does what the case does, one after the other, and stops at the first that is not as expected.
func (b *bench) steps() bool {
	if slices.ContainsFunc(b.When, func(s *schema.TestStep) bool { return s.Advance != nil }) {
		if _, err := b.box.RunDue(b.ctx); err != nil { // from now on, jobs have slots
			return b.fail(b.Path, "", "the jobs can't be scheduled: "+public(err))
		}
	}
	for i, s := range b.When {
		a, ok := b.step(s)
		if !ok {
			return false
		}
		var expect []*schema.TestExpect
		if s.Expect != nil {
			expect = append(expect, s.Expect)
		}
		if i == len(b.When)-1 && b.Expect != nil {
			expect = append(expect, b.Expect)
		}
		if !b.check(s, a, expect) || !b.save(s, a) {
			return false
		}
	}
	return true
}

func (b *bench) step(s *schema.TestStep) (*answer, bool) {
	b.seen.begin(methodOf(s))
	b.answers.begin()
	b.let("now", b.clock.now().UTC().Format(time.RFC3339))
	who := s.As
	if who == nil {
		who = b.As
	}
	if who == nil {
		who = b.of.As
	}
	switch verb, target := s.Verb(); verb {
	case "action":
		return b.action(s, principal(who))
	case "job":
		return b.runJob(s, target)
	case "advance":
		return b.advance(s)
	default:
		return b.request(s, strings.ToUpper(verb), target, s.Path+"."+verb, principal(who))
	}
}

// methodOf is the method whose rules a step is about; 0: any.
func methodOf(s *schema.TestStep) access.Method {
	verb, target := s.Verb()
	if strings.HasPrefix(target, "/_/") {
		return 0
	}
	return map[string]access.Method{"get": access.Get, "post": access.Post, "put": access.Put, "patch": access.Put, "delete": access.Delete}[verb]
}

// request sends a request of a step.
func (b *bench) request(s *schema.TestStep, method, target, path string, who *access.Principal) (*answer, bool) {
	u, ok := b.target(target, path, s.Query)
	if !ok {
		return nil, false
	}
	filled, ok := b.fill(s.Body, s.Path+".body")
	if !ok {
		return nil, false
	}
	body, isJSON, err := encode(filled)
	if err != nil {
		return nil, b.fail(s.Path+".body", "", "can't be sent: "+err.Error())
	}
	r, err := http.NewRequestWithContext(b.ctx, method, "http://service"+u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, b.fail(path, "", "can't be requested: "+err.Error())
	}
	if isJSON {
		r.Header.Set("Content-Type", api.MediaJSON)
	}
	for name, v := range s.Headers {
		if v, ok = b.fillText(v, s.Path+".headers."+name, func(t string) string { return t }); !ok {
			return nil, false
		}
		r.Header.Set(name, v)
	}
	return b.serve(r, who), true
}

func (b *bench) serve(r *http.Request, who *access.Principal) *answer {
	r.RemoteAddr = "127.0.0.1:1"
	w := &recorder{header: http.Header{}}
	b.box.Serve(w, r, who)
	return &answer{status: w.status, header: w.header, body: parsed(w.body.Bytes())}
}

// get reads a path of the service.
func (b *bench) get(path string, who *access.Principal) *answer {
	r, err := http.NewRequestWithContext(b.ctx, http.MethodGet, "http://service"+path, nil)
	if err != nil {
		return &answer{status: http.StatusInternalServerError, body: err.Error()}
	}
	return b.serve(r, who)
}

// action calls an action, and waits for its run if it makes one.
func (b *bench) action(s *schema.TestStep, who *access.Principal) (*answer, bool) {
	method := s.Method
	if method == "" {
		method = "post"
		if a := b.project.Actions[s.Action]; a != nil && a.Methods[access.Post] == nil {
			method = "get"
		}
	}
	a, ok := b.request(s, strings.ToUpper(method), "/_/actions/"+s.Action, s.Path+".action", who)
	if !ok || a.status != http.StatusAccepted || a.header.Get(api.HeaderLocation) == "" {
		return a, ok
	}
	location := a.header.Get(api.HeaderLocation)
	b.get(location+"/events", who) // ends with the run
	run, _ := b.get(location, who).body.(bson.D)
	if member(run, "status") == string(operation.Succeeded) {
		a = b.get(location+"?result=true", who)
	}
	a.run = run
	return a, true
}

// runJob runs a job, and waits for it.
func (b *bench) runJob(s *schema.TestStep, name string) (*answer, bool) {
	u, ok := b.target("/_/jobs/"+name+"/run", s.Path+".job", bson.D{{Key: api.ParamWait, Value: true}})
	if !ok {
		return nil, false
	}
	r, err := http.NewRequestWithContext(b.ctx, http.MethodPost, "http://service"+u.String(), nil)
	if err != nil {
		return nil, b.fail(s.Path+".job", "", err.Error())
	}
	a := b.serve(r, principal(&schema.TestCaller{Kind: schema.CallerAdmin}))
	if a.status < http.StatusBadRequest {
		a.run, _ = a.body.(bson.D)
		a.body = at(a.run, "result")
	}
	return a, true
}

// advance lets time pass from one slot of a job to the next.
func (b *bench) advance(s *schema.TestStep) (*answer, bool) {
	end := b.clock.now().Add(s.Advance.Std())
	for {
		next, err := b.box.RunDue(b.ctx)
		if err != nil {
			return nil, b.fail(s.Path+".advance", "", "the jobs can't be run: "+public(err))
		}
		if next.IsZero() || next.After(end) {
			break
		}
		b.clock.set(next)
	}
	b.clock.set(end)
	a := &answer{status: http.StatusOK}
	a.run = b.newestRun()
	return a, true
}

// newestRun is the job run that began last; nil: there is none.
func (b *bench) newestRun() (newest bson.D) {
	admin := principal(&schema.TestCaller{Kind: schema.CallerAdmin})
	for _, j := range b.project.Jobs {
		runs, _ := at(b.get(b.base()+"/_/jobs/"+j.Name+"/runs?limit=1", admin).body, "items").(bson.A)
		for _, r := range runs {
			run, _ := r.(bson.D)
			if newest == nil || textOf(member(run, "createdAt")) > textOf(member(newest, "createdAt")) {
				newest = run
			}
		}
	}
	return newest
}

// save keeps values of an answer for later steps.
func (b *bench) save(s *schema.TestStep, a *answer) bool {
	for _, name := range slices.Sorted(maps.Keys(s.Save)) {
		v := at(a.body, s.Save[name])
		if v == (missing{}) {
			return b.fail(s.Path+".save."+name, "body."+s.Save[name], "the answer has no such value to save")
		}
		b.let(name, v)
	}
	return true
}
