package project

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
)

// Action is one compiled action. It is immutable.
type Action struct {
	Name        string
	Config      *schema.Action
	Permissions *access.Permissions
	Methods     map[access.Method]*ActionMethod // those that it has, among Get and Post
	Audit       *Audit                          // nil: calls are not logged
	CORS        *schema.CORS                    // nil: no other origin may call it from a browser
	MaxBodySize int64                           // bytes of a request body; 0: the server's limit
	MimeTypes   []string                        // of files that it takes, such as image/*; nil: all

	Validate, Handle, Return []*Script // the stages, each in the order they run
}

// ActionMethod is what one method of an action takes, and how it runs.
type ActionMethod struct {
	Query       *fieldtype.Tree // parameters that are not in it are refused
	Data        *fieldtype.Tree // nil: any object
	Secret      *document.PathSet
	Kind        string // ActionSync, ActionAsync or ActionStream
	Cancellable bool
	Mapping     *schema.ActionMapping // nil: none
}

// The kinds of execution.
const (
	ActionSync   = "sync"
	ActionAsync  = "async"
	ActionStream = "stream"
)

// Long says that the method makes a run, which its caller need not wait for.
func (m *ActionMethod) Long() bool { return m.Kind != ActionSync }

// runTimeout is the time that the script of a run may take when its entry says nothing.
const runTimeout = 10 * time.Minute

// actions compiles the actions of a config.
func (c *compiler) actions(config *schema.Project) map[string]*Action {
	out := make(map[string]*Action, len(config.Actions))
	for i, a := range config.Actions {
		out[a.Name] = c.action(config, a, "actions["+strconv.Itoa(i)+"]")
	}
	return out
}

func (c *compiler) action(config *schema.Project, a *schema.Action, at string) *Action {
	out := &Action{Name: a.Name, Config: a, CORS: a.CORS, Methods: map[access.Method]*ActionMethod{}}
	if config.Upload != nil {
		out.MaxBodySize, out.MimeTypes = int64(config.Upload.MaxBodySize), config.Upload.AllowedMimeTypes
	}
	methods := &schema.ActionMethods{}
	if a.Meta != nil && a.Meta.Methods != nil {
		methods = a.Meta.Methods
	} else { // nothing is said of either
		methods.Get, methods.Post = &schema.ActionMethod{}, &schema.ActionMethod{}
	}
	long := false
	for m, spec := range map[access.Method]*schema.ActionMethod{access.Get: methods.Get, access.Post: methods.Post} {
		if spec != nil {
			out.Methods[m] = c.actionMethod(spec, a.Audit, m, at+".meta.methods."+m.String())
			long = long || out.Methods[m].Long()
		}
	}
	c.actionPermissions(a, out, at+".permissions")
	c.actionHooks(a, out, long, at+".hooks")
	if log := a.Audit; log != nil && log.Enabled {
		out.Audit = &Audit{Retention: log.Retention.Std()}
		if slices.Contains(log.Methods, access.Post.String()) {
			out.Audit.Methods = []access.Method{access.Post}
		}
	}
	return out
}

func (c *compiler) actionMethod(spec *schema.ActionMethod, log *schema.Audit, m access.Method, at string) *ActionMethod {
	out := &ActionMethod{Kind: ActionSync, Query: fieldtype.NewTree(c.actionFields(spec.Query, at+".query"), true)}
	if spec.Data != nil {
		if m == access.Get {
			c.fail(at+".data", schema.CodeConflict, "a GET has no body; take data as query, or by post")
		}
		out.Data = fieldtype.NewTree(c.actionFields(spec.Data, at+".data"), true)
	}
	for i, f := range spec.Query {
		here := at + ".query[" + strconv.Itoa(i) + "]"
		if slices.Contains([]string{"token", "pretty"}, strings.ToLower(f.Name)) {
			c.fail(here+".name", schema.CodeReserved, "%s is a parameter of every route", f.Name)
		}
		if strings.HasPrefix(string(f.Type), "object") || strings.HasPrefix(string(f.Type), "file") {
			c.fail(here+".type", schema.CodeConflict, "a parameter can't be of type %s; take it as data", f.Type)
		}
	}
	var secret []string
	for _, tree := range []*fieldtype.Tree{out.Query, out.Data} {
		if tree == nil {
			continue
		}
		tree.Walk(func(f *fieldtype.Field) {
			if f.Hidden {
				secret = append(secret, "query."+f.Path, "data."+f.Path)
			}
		})
	}
	if log != nil {
		for _, path := range log.ExcludeFields {
			secret = append(secret, "query."+path, "data."+path)
		}
	}
	out.Secret = document.NewPathSet(secret...)
	if x := spec.Execution; x != nil {
		if x.Kind != "" {
			out.Kind = x.Kind
		}
		out.Cancellable = x.Cancellable
		if x.Cancellable && !out.Long() {
			c.fail(at+".execution.cancellable", schema.CodeConflict, "a sync call is no run, and ends with its request; kind: async or stream makes runs that can be cancelled")
		}
	}
	if spec.Output != nil {
		out.Mapping = spec.Output.Mapping
	}
	return out
}

// actionFields compiles the fields of query or data. What takes a record to mean something is refused.
func (c *compiler) actionFields(fields []*schema.Field, at string) []*fieldtype.Field {
	eachField(fields, at, "", func(f *schema.Field, here, _ string) {
		if f.Hidden.Eval != "" || f.Readonly.Eval != "" {
			c.fail(here, schema.CodeConflict, "a field of an action can't be hidden or readonly by an expression")
		}
		for _, rule := range []string{"unique", "exists", "script"} {
			if hasRule(f.Validator, rule) {
				c.fail(here+".validator", schema.CodeConflict, "%s is for records; check it in the action's hook validate", rule)
			}
		}
		if len(f.Index) > 0 {
			c.fail(here+".index", schema.CodeConflict, "an action stores nothing, so its fields have no index")
		}
	})
	out := c.fields(fields, at, "", true)
	if out == nil {
		out = []*fieldtype.Field{}
	}
	return out
}

// actionPermissions compiles who may call. The parts of sets that are about records are refused.
func (c *compiler) actionPermissions(a *schema.Action, out *Action, at string) {
	if a.Permissions != nil {
		for key, set := range a.Permissions.Sets() {
			here := at + "." + key
			for member, given := range map[string]bool{
				"filter": set.Filter != nil, "validProjections": set.ValidProjections != nil, "readonlyFields": len(set.ReadonlyFields) > 0,
				"hiddenFields": len(set.HiddenFields) > 0, "methods.put": set.Methods.Put.Allow, "methods.delete": set.Methods.Delete.Allow,
			} {
				if given {
					c.fail(here+"."+member, schema.CodeConflict, "%s is about records; an action's permissions have methods get and post", member[strings.LastIndexByte(member, '.')+1:])
				}
			}
		}
	}
	keep := func(_, _ string, v any) (any, error) { return v, nil }
	var problems []errs.FieldError
	out.Permissions, problems = access.Compile(a.Permissions, nil, nil, nil, keep)
	for _, x := range problems {
		c.fail(at+"."+tokenPath(a.Permissions, x.Path), schema.CodeInvalid, "%s", x.Message)
	}
}

// actionHooks compiles the scripts of an action.
func (c *compiler) actionHooks(a *schema.Action, out *Action, long bool, at string) {
	otherwise := hookSettings(c.Loaded.Project).Timeout.Std()
	var stages map[string][]schema.Script
	if a.Hooks != nil {
		stages = *a.Hooks
	}
	for _, stage := range []struct {
		name    string
		into    *[]*Script
		timeout time.Duration
	}{{"validate", &out.Validate, otherwise}, {"handle", &out.Handle, otherwise}, {"return", &out.Return, otherwise}} {
		if long && stage.name != "validate" { // which runs before
			stage.timeout = max(stage.timeout, runTimeout)
		}
		entries := stages[stage.name]
		for i, e := range entries {
			here := at + "." + stage.name
			if len(entries) > 1 || c.Position(here+"[0]") != c.Position(here) {
				here += "[" + strconv.Itoa(i) + "]"
			}
			if s := c.script(e.File, here+".file", timeout(e.Timeout, stage.timeout)); s != nil {
				*stage.into = append(*stage.into, s)
			}
		}
	}
	if len(stages["handle"]) == 0 && a.Name != "" && !c.isBroken(at) {
		c.fail(strings.TrimSuffix(at, ".hooks"), schema.CodeRequired, "has no hooks.handle, the script that does it")
	}
}
