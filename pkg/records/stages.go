package records

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/script"
	"github.com/svcctl/svc/pkg/store"
)

// has says whether a stage has hooks that run in this call: a bulk write runs those of single writes only if the
// collection asks for it.
func (c *Call) has(stage string) bool {
	if len(c.Collection.Hooks[stage]) == 0 || c.DryRun && behindWrite(stage) {
		return false
	}
	return !c.bulk || c.Collection.Bulk.EachHooks || strings.Contains(stage, ".bulk")
}

// step is a stage of a call, with the method of the operation that the stage is one of.
type step struct {
	s      *Service
	call   *Call
	method access.Method
	stage  string
}

// step gives a stage of a call. Its name begins with its method.
func (s *Service) step(c *Call, stage string) step {
	method := access.Get
	switch group, _, _ := strings.Cut(stage, "."); group {
	case "post":
		method = access.Post
	case "put":
		method = access.Put
	case "delete":
		method = access.Delete
	}
	return step{s: s, call: c, method: method, stage: stage}
}

func (at step) operation() *hooks.Operation { return at.s.operation(at.call, at.method) }

// run runs the hooks. w is the write that they are part of; nil: none.
func (at step) run(ctx context.Context, members hooks.Members, w *writing) (hooks.Outcome, error) {
	if at.call.DryRun && sessionOf(ctx, at.call.Project.Namespace) == nil {
		return at.runUndone(ctx, members, w)
	}
	return at.s.hooks.Run(ctx, at.operation(), at.stage, members, func(file string) script.RunHost { return at.s.host(at.call, file, w) })
}

// bad is the error of hooks that gave back what the stage can't use.
func (at step) bad(ctx context.Context, message string) error {
	return at.s.hooks.Bad(ctx, at.operation(), at.stage, message)
}

// object takes an object from what a hook gave back.
func (at step) object(ctx context.Context, v any) (bson.D, error) {
	d, ok := v.(bson.D)
	if !ok {
		return nil, at.bad(ctx, "what the hook gives back must be an object")
	}
	return d, nil
}

// bind runs the stage that sees the body. What scripts put into it is theirs, not the caller's: no guard looks at it.
func (s *Service) bind(ctx context.Context, c *Call, stage string, body bson.D, previous bson.Raw) (next bson.D, changed bool, err error) {
	if !c.has(stage) {
		return body, false, nil
	}
	members := hooks.Members{"data": body}
	if previous != nil {
		members["id"], members["previous"] = idOf(previous).Hex(), previous
	}
	at := s.step(c, stage)
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("data") {
		return body, false, err
	}
	next, err = at.object(ctx, members["data"])
	return next, true, err
}

// judge carries out the rules that need the store or a script.
func (s *Service) judge(ctx context.Context, c *Call, m access.Method, doc bson.D, check *fieldtype.Check, from origin) error {
	if err := s.checkForeign(ctx, c, check, from); err != nil {
		return err
	}
	for _, d := range check.Deferred {
		validator := c.Collection.Validators[d.Field.Path]
		switch {
		case d.Rule.Name != "script":
			continue
		case validator == nil:
			return errs.New(errs.Internal, "internal", "internal error")
		}
		message, err := s.hooks.Validate(ctx, s.operation(c, m), validator, d.Path, d.Value, doc)
		if err != nil {
			return err
		}
		if message != "" {
			check.Problems = append(check.Problems, errs.FieldError{Path: d.Path, Rule: "script", Message: message})
		}
	}
	return nil
}

// validate runs the stage that looks for more problems, once nothing else has found any.
func (s *Service) validate(ctx context.Context, c *Call, g access.Grant, stage string, doc, previous bson.Raw) error {
	if !c.has(stage) {
		return nil
	}
	members := hooks.Members{"doc": doc}
	if previous != nil {
		members["id"], members["previous"] = idOf(doc).Hex(), previous
	}
	out, err := s.step(c, stage).run(ctx, members, nil)
	if err != nil || len(out.Problems) == 0 {
		return err
	}
	return errs.Validation(withoutHidden(g, out.Problems))
}

// writeStages are the stages within a write.
type writeStages struct{ one, bulk string }

func stagesOf(kind store.OpKind) writeStages {
	switch kind {
	case store.Insert:
		return writeStages{"post.create", "post.bulkCreate"}
	case store.Delete:
		return writeStages{"delete.delete", "delete.bulkDelete"}
	default:
		return writeStages{"put.update", "put.bulkUpdate"}
	}
}

func methodOf(kind store.OpKind) access.Method {
	switch kind {
	case store.Insert:
		return access.Post
	case store.Delete:
		return access.Delete
	default:
		return access.Put
	}
}

// lastLook runs the hooks of a single write within it, and gives the change as they leave it.
func (s *Service) lastLook(c *Call, g access.Grant, ch change, w *writing) (change, error) {
	at := s.step(c, stagesOf(ch.Kind).one)
	if !c.has(at.stage) {
		return ch, nil
	}
	doc := ch.Doc
	if ch.Kind == store.Delete {
		doc = ch.before
	}
	members := hooks.Members{"doc": doc}
	if ch.before != nil {
		members["id"] = idOf(ch.before).Hex()
	}
	if ch.Kind == store.Replace {
		members["previous"] = ch.before
	}
	out, err := at.run(w.context(), members, w)
	if err != nil || !out.Changed("doc") {
		return ch, err
	}
	ch.Doc, err = at.again(w.context(), g, ch.Doc, members["doc"])
	return ch, err
}

// lastLookAtAll runs the hooks of a bulk write on all of its changes, in place.
func (s *Service) lastLookAtAll(ctx context.Context, c *Call, g access.Grant, changes []change, w *writing) error {
	if len(changes) == 0 {
		return nil
	}
	kind := changes[0].Kind
	at := s.step(c, stagesOf(kind).bulk)
	if !c.has(at.stage) {
		return nil
	}
	docs, previous := make([]bson.Raw, len(changes)), make([]bson.Raw, len(changes))
	for i, ch := range changes {
		docs[i], previous[i] = ch.Doc, ch.before
		if kind == store.Delete {
			docs[i] = ch.before
		}
	}
	members := hooks.Members{"docs": docs}
	if kind == store.Replace {
		members["previous"] = previous
	}
	out, err := at.run(ctx, members, w)
	if err != nil || !out.Changed("docs") {
		return err
	}
	list, ok := members["docs"].(bson.A)
	if !ok || len(list) != len(changes) {
		return at.bad(ctx, "docs must stay a list of as many records")
	}
	if w != nil {
		ctx = w.context()
	}
	for i := range changes {
		if changes[i].Doc, err = at.again(ctx, g, docs[i], list[i]); err != nil {
			return err
		}
	}
	return nil
}

// again checks a record that a hook has changed as if it were new: types, rules, and the filter of the caller's right.
// What the service sets stays as it is, and so does every field that the hook did not change.
func (at step) again(ctx context.Context, g access.Grant, was bson.Raw, v any) (bson.Raw, error) {
	d, err := at.object(ctx, v)
	if err != nil {
		return nil, err
	}
	s, c := at.s, at.call
	before, err := document.Unmarshal(was)
	if err != nil {
		return nil, errs.Wrap(err, "decode a record")
	}
	system, own := fieldtype.SplitSystem(before)
	_, d = fieldtype.SplitSystem(d)
	d, bad, err := s.receive(ctx, c, idOf(was), d)
	if err != nil {
		return nil, err
	}
	d, unknown := c.settle(idOf(was), d, own)
	if bad = append(bad, unknown...); len(bad) > 0 {
		return nil, errs.Validation(bad)
	}
	touched := differences(own, d)
	if len(touched) == 0 {
		return was, nil
	}
	check := &fieldtype.Check{Now: s.now()}
	next := c.Collection.Tree.Check(d, check)
	from := origin{was: was, theirs: func() []fieldtype.Deferred { return nil }}
	if err := s.judge(ctx, c, at.method, next, check, from); err != nil {
		return nil, err
	}
	problems, err := at.blame(ctx, relevant(access.Grant{}, check.Problems, touched), own, d, func() []errs.FieldError {
		alone := &fieldtype.Check{Now: s.now()}
		c.Collection.Tree.Check(own, alone)
		return alone.Problems
	})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		g.Hidden = neverNamed(g)
		return nil, errs.Validation(withoutHidden(g, problems))
	}
	return admitted(c, at.method, g, whole(system, c.Collection.Ordered(untouched(next, own, touched))))
}

// differences names the members in which two objects differ.
func differences(a, b bson.D) map[string]bool {
	out := map[string]bool{}
	for _, e := range b {
		if v, ok := document.Member(a, e.Key); !ok || !equalValues(v, e.Value) {
			out[e.Key] = true
		}
	}
	for _, e := range a {
		if _, ok := document.Member(b, e.Key); !ok {
			out[e.Key] = true
		}
	}
	return out
}

// handle asks the stage in place of an insert. done says that it has answered.
func (s *Service) handle(ctx context.Context, c *Call, g access.Grant, raw bson.Raw) (w Written, done bool, err error) {
	at := s.step(c, "post.handle")
	if !c.has(at.stage) {
		return Written{}, false, nil
	}
	members := hooks.Members{"doc": raw}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("result") {
		return Written{}, false, err
	}
	if read, ok := s.readGrant(ctx, c); ok {
		g = read
	}
	rec, err := at.remade(ctx, members["result"], neverNamed(g))
	if err != nil {
		return Written{}, false, err
	}
	return Written{ID: rec.ID(), Record: rec}, true, nil
}

// answered runs a stage behind a write on what the caller is to get, which is masked again behind it. The write stands,
// whatever the stage does: where it fails, the caller is told, and gets nothing that it might have taken out.
func (s *Service) answered(ctx context.Context, c *Call, g access.Grant, stage string, w Written) Written {
	if !c.has(stage) {
		return w
	}
	id := bson.D{{Key: "id", Value: w.ID}}
	members := hooks.Members{"id": w.ID, "result": id}
	hidden := neverNamed(g)
	rev := int64(0)
	if w.Record != nil {
		members["result"], hidden, rev = w.Record.visible(), w.Record.hidden, w.Record.rev
	}
	at := s.step(c, stage)
	out, err := at.run(ctx, members, nil)
	if err == nil && !out.Changed("result") {
		return w
	}
	if err == nil {
		w.Record, err = at.remade(ctx, members["result"], hidden)
	}
	if err != nil {
		return Written{ID: w.ID, Warning: warning(err)}
	}
	w.Record.rev = rev
	return w
}

// eachAnswered runs the stage behind a single write for each record of a bulk write, whose answer has ids only.
func (s *Service) eachAnswered(ctx context.Context, c *Call, g access.Grant, stage string, res BulkResult) BulkResult {
	if !c.has(stage) {
		return res
	}
	for i := range res.Items {
		if it := &res.Items[i]; it.Err == nil {
			w := s.answered(ctx, c, g, stage, Written{ID: it.ID})
			it.Record, it.Warning = w.Record, w.Warning
		}
	}
	return res
}

// bulkAnswered runs the stage behind a bulk write on its answer. Scripts can change what goes out of each item, and add
// members to the whole; what became of each item is not theirs to say.
func (s *Service) bulkAnswered(ctx context.Context, c *Call, g access.Grant, stage string, res BulkResult) BulkResult {
	if !c.has(stage) {
		return res
	}
	items := make(bson.A, len(res.Items))
	for i, it := range res.Items {
		item := bson.D{{Key: "id", Value: it.ID}}
		if it.Err != nil {
			item = append(item, bson.E{Key: "error", Value: errs.From(it.Err).Message})
		} else if it.Record != nil {
			item = append(item, bson.E{Key: "item", Value: it.Record.visible()})
		}
		items[i] = item
	}
	members := hooks.Members{"result": bson.D{{Key: "items", Value: items}}}
	at := s.step(c, stage)
	out, err := at.run(ctx, members, nil)
	if err == nil && !out.Changed("result") {
		return res
	}
	if err == nil {
		err = at.takeBulk(ctx, g, members["result"], &res)
	}
	if err != nil {
		res.Warning = warning(err)
		for i := range res.Items {
			res.Items[i].Record = nil
		}
	}
	return res
}

// takeBulk takes what a stage behind a bulk write made of its answer.
func (at step) takeBulk(ctx context.Context, g access.Grant, v any, res *BulkResult) error {
	d, err := at.object(ctx, v)
	if err != nil {
		return err
	}
	list, _ := document.Member(d, "items")
	items, ok := list.(bson.A)
	if !ok || len(items) != len(res.Items) {
		return at.bad(ctx, "items must stay a list of as many")
	}
	for i, item := range items {
		of, isObject := item.(bson.D)
		own, there := document.Member(of, "item")
		if !isObject || !there || res.Items[i].Err != nil {
			res.Items[i].Record = nil
			continue
		}
		hidden, rev := neverNamed(g), int64(0)
		if was := res.Items[i].Record; was != nil {
			hidden, rev = was.hidden, was.rev
		}
		if res.Items[i].Record, err = at.remade(ctx, own, hidden); err != nil {
			return err
		}
		res.Items[i].Record.rev = rev
	}
	for _, e := range d {
		switch e.Key {
		case "items", "matched", "succeeded", "failed":
		default:
			res.Extra = append(res.Extra, e)
		}
	}
	return nil
}

// warning says that a write stands although a script behind it failed.
func warning(err error) string {
	e := errs.From(err)
	if e.Code == hooks.CodeThrown {
		return "the change was made, but a script behind it gave an error: " + e.Message
	}
	return "the change was made, but a script behind it failed"
}
