package records

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/script"
)

// Host gives what a script of a project reaches: its records, and what other modules ask. file is the script, which the
// audit log names. It is for one run, whose end has to be told to Close.
func (s *Service) Host(p *project.Project, by Caller, file string) *Host {
	return &Host{s: s, project: p, by: &caller{Caller: by, now: s.now}, file: file}
}

// host is the Host of a hook of a call, which is part of a write; nil: of none.
func (s *Service) host(c *Call, file string, w *writing) *Host {
	return &Host{s: s, project: c.Project, by: &caller{Caller: Caller{Principal: c.Principal, Request: c.Request}, now: s.now}, file: file, write: w}
}

// Host carries out what one run of a script asks for. It is safe for concurrent use.
type Host struct {
	s       *Service
	project *project.Project
	by      *caller
	file    string
	write   *writing // nil: none

	turn   sync.Mutex // of calls that are in a transaction: one at a time
	mu     sync.Mutex
	open   map[string]opened // what db.begin gave
	made   int
	closed bool
}

// Close rolls back the transactions that the run has left open. What they are part of can't be committed then.
func (h *Host) Close() {
	h.mu.Lock()
	open := h.open
	h.open, h.closed = nil, true
	h.mu.Unlock()
	for _, x := range open {
		if x.joined {
			x.broken.Store(errLeftOpen)
			continue
		}
		_ = x.drop(errLeftOpen) // nobody is left to be told
	}
}

var errLeftOpen = errs.New(errs.Conflict, "rolled_back", "a script has ended without an end to its transaction")

// Call carries out one operation; see the table in pkg/script.
func (h *Host) Call(ctx context.Context, op string, args bson.A) (any, error) {
	verb, ok := verbOf(op)
	if !ok {
		others := h.s.hooks.Modules(h.project)
		if others == nil {
			return nil, errNotThere
		}
		return others.Call(ctx, op, args)
	}
	switch verb {
	case "begin":
		return h.begin(ctx)
	case "commit", "rollback":
		name, _ := at(args, 0).(string)
		return h.end(ctx, name, verb == "commit")
	}
	target, _ := at(args, 0).(bson.D)
	t, err := h.target(ctx, target)
	if err != nil {
		return nil, err
	}
	x, err := h.session(ctx, target)
	if err != nil {
		return nil, err
	}
	if t.call.Principal.Kind == access.KindService {
		ctx = audit.WithActor(ctx, audit.Actor{Kind: "script", Name: h.file})
	}
	out, err := h.do(ctx, t, x, verb, args)
	if err != nil && t.callers() && errs.From(err).Code != codeBadArgument {
		if errors.Is(err, errs.ErrDenied) && errs.From(err).Right == "" {
			err = errs.From(err).Lacking(access.LackingOn(t.call.Principal, h.project.Namespace, t.call.Collection.Name, methodFor(verb)))
		}
		return nil, hooks.AsCaller(err)
	}
	return out, err
}

// verbOf gives what to do with a collection. Those of search are those of db, with words to look for.
func verbOf(op string) (verb string, ok bool) {
	switch op {
	case "search.find", "search.count":
		return strings.TrimPrefix(op, "search."), true
	}
	return strings.CutPrefix(op, "db.")
}

func methodFor(verb string) access.Method {
	switch verb {
	case "insert":
		return access.Post
	case "update":
		return access.Put
	case "delete":
		return access.Delete
	}
	return access.Get
}

// do carries out an operation on a collection in the transaction that it belongs to, if it does to one.
func (h *Host) do(ctx context.Context, t target, x *session, verb string, args bson.A) (any, error) {
	if x == nil && h.by.Fence != nil && methodFor(verb) != access.Get {
		return h.fenced(ctx, func(ctx context.Context) (any, error) { return t.do(ctx, verb, args) })
	}
	if x == nil {
		return t.do(ctx, verb, args)
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	if sessionOf(ctx, h.project.Namespace) != x { // within one, the call that led here has it
		x.use.Lock()
		defer x.use.Unlock()
	}
	return t.do(within(ctx, x), verb, args)
}

var (
	errNotThere = errs.New(errs.Invalid, "not_available", "this is not available to scripts of this service")
	errNoUser   = errs.New(errs.Invalid, "no_user", "asUser has no meaning here: there is no caller")
	errNoTx     = errs.New(errs.Invalid, "no_transaction", "the transaction has ended, or there never was one")
)

// codeBadArgument is the code of a call that is not made as it should be: the script's failing, whoever it is for.
const codeBadArgument = "bad_argument"

// errNoWhere refuses what would concern any record, or all, because a variable has no value.
var errNoWhere = errs.New(errs.Invalid, codeBadArgument, "a filter or an id is needed, and this is null or undefined; {} is all records")

func at(args bson.A, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// target is a collection as a script has opened it.
type target struct {
	s      *Service
	call   *Call
	asUser bool
}

func (h *Host) target(ctx context.Context, doc bson.D) (target, error) {
	name, _ := document.Member(doc, "collection")
	asUser, _ := document.Member(doc, "asUser")
	text, _ := name.(string)
	c, ok := h.project.Collections[text]
	if !ok {
		return target{}, errs.New(errs.NotFound, errs.ErrCollectionNotFound.Code, "the project has no collection %q", text)
	}
	t := target{s: h.s, asUser: asUser == true, call: &Call{
		Project: h.project, Collection: c, Principal: &access.Principal{Kind: access.KindService, Name: h.file},
	}}
	if h.by.Request != nil {
		t.call.Request = &hooks.Request{ID: h.by.Request.ID, Lang: h.by.Request.Lang}
	}
	if t.asUser {
		who, err := h.by.principal(ctx)
		if err != nil {
			return target{}, err
		}
		t.call.Principal = who
	} else {
		t.call.limits = &serviceLimits
	}
	return t, nil
}

// callers says that an operation is with the rights of somebody who called, rather than the service's.
func (t target) callers() bool { return t.asUser && t.call.Principal.Kind != access.KindService }

// do carries out an operation on a collection.
func (t target) do(ctx context.Context, verb string, args bson.A) (any, error) {
	switch verb {
	case "find":
		return t.find(ctx, at(args, 1), at(args, 2))
	case "findOne":
		return t.findOne(ctx, at(args, 1), at(args, 2))
	case "count":
		return t.count(ctx, at(args, 1), at(args, 2))
	case "aggregate":
		return t.aggregate(ctx, at(args, 1))
	case "insert":
		return t.insert(ctx, at(args, 1))
	case "update":
		return t.update(ctx, at(args, 1), at(args, 2))
	case "delete":
		return t.remove(ctx, at(args, 1))
	}
	return nil, errNotThere
}

// idIn gives the id that stands in place of a filter.
func idIn(v any) (id string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bson.ObjectID:
		return v.Hex(), true
	}
	return "", false
}

func objectIn(v any, what string) (bson.D, error) {
	switch v := v.(type) {
	case nil:
		return bson.D{}, nil
	case bson.D:
		return v, nil
	}
	return nil, errs.New(errs.Invalid, codeBadArgument, "%s must be an object", what)
}

// seen is a record for the script: as it is stored for the service, as the caller may see it for them.
func (t target) seen(rec *Record, id string) any {
	switch {
	case rec == nil:
		return bson.D{{Key: "id", Value: id}}
	case t.asUser:
		return rec.visible()
	}
	return rec.raw
}

func (t target) insert(ctx context.Context, v any) (any, error) {
	if list, ok := v.(bson.A); ok {
		t.call.atomic = true
		res, err := t.s.BulkCreate(ctx, t.call, list)
		if err != nil {
			return nil, err
		}
		out := make(bson.A, len(res.Items))
		for i, it := range res.Items {
			out[i] = t.seen(it.Record, it.ID)
			if !t.asUser && it.raw != nil {
				out[i] = it.raw
			}
		}
		return out, nil
	}
	body, err := objectIn(v, "a record")
	if err != nil {
		return nil, err
	}
	if t.asUser {
		w, err := t.s.Create(ctx, t.call, body)
		if err != nil {
			return nil, err
		}
		return t.seen(w.Record, w.ID), nil
	}
	raw, handled, _, err := t.s.create(ctx, t.call, body)
	if err == nil && raw == nil {
		return t.seen(handled.Record, handled.ID), nil
	}
	return raw, err
}

// changeOf tells a patch from an update with operators.
func changeOf(v any) (Change, error) {
	d, err := objectIn(v, "a change")
	if err != nil {
		return Change{}, err
	}
	dollars := 0
	for _, e := range d {
		if strings.HasPrefix(e.Key, "$") {
			dollars++
		}
	}
	switch dollars {
	case 0:
		return Change{Mode: Merge, Body: d}, nil
	case len(d):
		return Change{Mode: operators, Body: d}, nil
	}
	return Change{}, errs.New(errs.Invalid, codeBadArgument, "a change has either fields or operators such as $inc; it can't have both")
}

func (t target) update(ctx context.Context, where, v any) (any, error) {
	ch, err := changeOf(v)
	if err != nil {
		return nil, err
	}
	if id, ok := idIn(where); ok {
		if t.asUser {
			w, err := t.s.Update(ctx, t.call, id, ch)
			if err != nil {
				return nil, err
			}
			return t.seen(w.Record, w.ID), nil
		}
		raw, _, err := t.s.update(ctx, t.call, id, ch)
		return raw, err
	}
	if where == nil {
		return nil, errNoWhere
	}
	w, err := whereOf(where)
	if err != nil {
		return nil, err
	}
	res, err := t.s.bulkChange(ctx, t.call, w, ch)
	if err == nil {
		err = firstError(res.Items)
	}
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "matched", Value: int64(res.Matched)}, {Key: "modified", Value: int64(len(res.Items))}}, nil
}

// isAbsent says that the record itself is not there. The error of a script that the operation led to is another matter.
func isAbsent(err error) bool {
	_, inner := errors.AsType[*script.Failure](err)
	return errors.Is(err, errs.ErrNotFound) && !inner
}

func (t target) remove(ctx context.Context, where any) (any, error) {
	if id, ok := idIn(where); ok {
		_, err := t.s.Delete(ctx, t.call, id)
		switch {
		case isAbsent(err):
			return int64(0), nil
		case err != nil:
			return nil, err
		}
		return int64(1), nil
	}
	if where == nil {
		return nil, errNoWhere
	}
	w, err := whereOf(where)
	if err != nil {
		return nil, err
	}
	res, err := t.s.BulkDelete(ctx, t.call, w)
	if err == nil {
		err = firstError(res.Items)
	}
	if err != nil {
		return nil, err
	}
	return int64(len(res.Items)), nil
}
