package records

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// change is one operation, and the record as it was before.
type change struct {
	store.Op

	before bson.Raw // nil for an Insert
}

// apply carries out operations as store.Writer.Write does, together with their entries where writes are logged.
func (s *Service) apply(ctx context.Context, c *Call, changes []change, atomic bool) ([]store.Result, error) {
	s.note(ctx, c, changes)
	c.filing.trying(changes)
	var w engine.Writing
	if s.search != nil {
		w = s.search.Writing(c.Project, c.Collection)
	}
	results, err := s.carryOut(ctx, c, changes, atomic)
	if atomic && slices.ContainsFunc(results, failed) { // the others are not written
		for i := range results {
			if results[i].Err == nil {
				results[i].Err = store.ErrAborted
			}
		}
	}
	c.filing.wrote(changes, results, err)
	if err == nil {
		s.indexed(ctx, c, w, changes, results)
	}
	return results, err
}

func (s *Service) carryOut(ctx context.Context, c *Call, changes []change, atomic bool) ([]store.Result, error) {
	if len(changes) == 0 || !c.logs(changes[0].Kind) {
		return s.collection(ctx, c).Write(ctx, operations(changes), atomic)
	}
	results, err := s.applyLogged(ctx, c, changes)
	switch {
	case atomic || len(changes) == 1:
		return results, err
	case err != nil && errs.KindOf(err) != errs.Limit: // too much for one transaction is not too much for many
		return nil, err
	case err == nil && !slices.ContainsFunc(results, failed):
		return results, nil
	}
	// Each by itself: one that fails would take the others with it.
	results = make([]store.Result, len(changes))
	for i := range changes {
		one, err := s.applyLogged(ctx, c, changes[i:i+1])
		switch {
		case err == nil:
			results[i] = one[0]
		case i == 0:
			return nil, err
		default: // some are written
			results[i].Err = err
		}
	}
	return results, nil
}

func operations(changes []change) []store.Op {
	ops := make([]store.Op, len(changes))
	for i := range changes {
		ops[i] = changes[i].Op
	}
	return ops
}

func failed(r store.Result) bool { return r.Err != nil }

// applyLogged carries out operations and writes their entries, all or none.
func (s *Service) applyLogged(ctx context.Context, c *Call, changes []change) ([]store.Result, error) {
	entries := make([]audit.Entry, len(changes))
	for i, ch := range changes {
		var err error
		if entries[i], err = s.entry(ctx, c, ch); err != nil {
			return nil, err
		}
		renamed(&entries[i], c.Collection.FieldNames)
	}
	var results []store.Result
	refused := false // by the operations, which results tell of
	change := func(ctx context.Context, tx store.Tx) (err error) {
		refused = false
		results, err = fieldnames.WrapTx(tx, c.Project.FieldNames).Collection(c.Collection.StoredName()).Write(ctx, operations(changes), true)
		if i := slices.IndexFunc(results, failed); err == nil && i >= 0 {
			refused, err = true, results[i].Err
		}
		return err
	}
	err := s.writeLogged(ctx, c, change, entries)
	if refused {
		return results, nil
	}
	return results, err
}

// writeLogged makes a change and writes the entries about it, within the transaction that ctx is in, if any.
func (s *Service) writeLogged(
	ctx context.Context, c *Call, change func(ctx context.Context, tx store.Tx) error, entries []audit.Entry,
) error {
	x := sessionOf(ctx, c.Project.Namespace)
	if x == nil {
		return s.logs.Of(project.DatabaseName(c.Project.Namespace)).Write(ctx, change, entries...)
	}
	if err := change(ctx, x.tx); err != nil {
		return err
	}
	x.logged = true
	return x.log.WriteIn(ctx, x.tx, entries...)
}

// renamed has the states of an entry name fields in another way. In the log they have the names that the store has for fields, so that what
// a reader may see is found in entries from before a field was renamed, too.
func renamed(e *audit.Entry, names *document.Names) {
	if names == nil {
		return
	}
	e.Before, e.After = names.Document(e.Before), names.Document(e.After)
	for i, name := range e.Changed {
		e.Changed[i] = names.Path(name)
	}
}

// entry describes a change for the audit log.
func (s *Service) entry(ctx context.Context, c *Call, ch change) (audit.Entry, error) {
	e := audit.Entry{Kind: audit.Records, Namespace: c.Project.Namespace, Collection: c.Collection.Name}
	switch ch.Kind {
	case store.Insert:
		e.Op = audit.OpCreate
	case store.Delete:
		e.Op = audit.OpDelete
	default:
		e.Op = audit.OpUpdate
	}
	config := c.Collection.Audit
	if config.Retention > 0 {
		e.Expires = s.now().Add(config.Retention)
	}
	var err error
	if e.Before, err = audit.State(ch.before, config.Secret); err != nil {
		return e, err
	}
	e.After, err = audit.State(ch.Doc, config.Secret)
	if whole := ch.before; whole != nil {
		e.RecordID = idOf(whole).Hex()
	} else {
		e.RecordID = idOf(ch.Doc).Hex()
	}
	if err != nil || len(c.Collection.Hooks[stageAudit]) == 0 {
		return e, err
	}
	return s.auditHook(ctx, c, methodOf(ch.Kind), e)
}

const stageAudit = "audit.return"

// auditHook runs the stage before an entry is written. It can change the states and add a note; who did what is not its
// to say, and it can't keep the entry from being written.
func (s *Service) auditHook(ctx context.Context, c *Call, m access.Method, e audit.Entry) (audit.Entry, error) {
	doc := bson.D{{Key: "op", Value: e.Op}, {Key: "recordId", Value: e.RecordID}}
	if e.Before != nil {
		doc = append(doc, bson.E{Key: "before", Value: e.Before})
	}
	if e.After != nil {
		doc = append(doc, bson.E{Key: "after", Value: e.After})
	}
	members := hooks.Members{"id": e.RecordID, "doc": doc}
	at := step{s: s, call: c, method: m, stage: stageAudit}
	out, err := at.run(ctx, members, nil)
	if err != nil || !out.Changed("doc") {
		return e, err
	}
	d, err := at.object(ctx, members["doc"])
	if err != nil {
		return e, err
	}
	changed := map[string]bool{}
	for name, state := range map[string]*bson.Raw{"before": &e.Before, "after": &e.After} {
		v, _ := document.Member(d, name)
		if *state, err = retold(*state, v, changed); err != nil {
			return e, err
		}
	}
	e.Changed = slices.Sorted(maps.Keys(changed))
	if note, ok := document.Member(d, "note"); ok && note != nil {
		text, isText := note.(string)
		if !isText {
			return e, at.bad(ctx, "note must be a string")
		}
		e.Note = text
	}
	return e, nil
}

// retold is a state as a hook leaves it. It names the members that are not what they were: nobody's filter can be held
// against them. A state that there was not can't be made up.
func retold(state bson.Raw, v any, changed map[string]bool) (bson.Raw, error) {
	if raw, untouched := v.(bson.Raw); untouched && state != nil {
		return raw, nil
	}
	own, ok := v.(bson.D)
	if !ok || state == nil {
		return nil, nil
	}
	was, err := document.Unmarshal(state)
	if err != nil {
		return nil, errs.Wrap(err, "decode a state")
	}
	maps.Copy(changed, differences(was, own))
	return document.Marshal(own)
}

// logs says whether this call's writes of a kind go to the audit log.
func (c *Call) logs(kind store.OpKind) bool { return !c.DryRun && logged(c.Collection.Audit, kind) }

// logged says whether writes of a kind go to the audit log.
func logged(a *project.Audit, kind store.OpKind) bool {
	if a == nil {
		return false
	}
	switch kind {
	case store.Insert:
		return slices.Contains(a.Methods, access.Post)
	case store.Delete:
		return slices.Contains(a.Methods, access.Delete)
	default:
		return slices.Contains(a.Methods, access.Put)
	}
}

// Audit lists the entries about a project's records that the caller may see: those of collections that they may read,
// with the states that their filter admits, without what is hidden from them. An entry neither of whose states they may
// read is not there for them.
func (s *Service) Audit(ctx context.Context, p *project.Project, who *access.Principal, params query.Params) (query.Page[audit.Entry], error) {
	log := s.logs.Of(project.DatabaseName(p.Namespace))
	if who.Full() {
		return log.List(ctx, params, func(e *audit.Entry) bool {
			if c := p.Addressed(e.Collection); c != nil {
				renamed(e, c.FieldNames.Inverse())
				e.View = document.Without(c.Undeclared)
			}
			return true
		})
	}
	views := make(map[string]*auditView, len(p.Collections))
	for name, c := range p.Collections {
		v, err := s.auditView(ctx, &Call{Project: p, Collection: c, Principal: who})
		if err != nil {
			return query.Page[audit.Entry]{}, err
		}
		views[name] = v
		for _, before := range c.Before { // what was logged before it was renamed
			views[before] = v
		}
	}
	return log.List(ctx, params, func(e *audit.Entry) bool {
		v := views[e.Collection]
		return v != nil && v.see(e)
	})
}

// auditView is what a reader may see of the entries of one collection.
type auditView struct {
	filter *mql.Filter
	names  *document.Names // as entries have them, to those of records
	asks   []string        // the paths that filter looks at
	view   *document.View
}

// auditView gives nil for a collection that the caller may not read, or whose entries can't be held against their filter:
// that asks for what is redacted. That some records lack such a field makes no difference, since it would tell.
func (s *Service) auditView(ctx context.Context, c *Call) (*auditView, error) {
	g, ok := s.readGrant(ctx, c)
	if !ok {
		return nil, nil //nolint:nilnil // no view is an answer
	}
	asks := pathsOf(g.Filter.Root())
	if a := c.Collection.Audit; a != nil && slices.ContainsFunc(asks, a.Secret.Touches) {
		return nil, nil //nolint:nilnil // as above
	}
	view, err := query.Selection{}.View(neverNamed(g)) // what is hidden on some records is in none of their entries
	return &auditView{filter: g.Filter, asks: asks, view: view, names: c.Collection.FieldNames.Inverse()}, err
}

// see takes out of an entry what the reader may not see: of one in which a script has changed what their filter asks for,
// all.
func (v *auditView) see(e *audit.Entry) bool {
	renamed(e, v.names)
	retold := slices.ContainsFunc(v.asks, func(path string) bool {
		name, _, _ := strings.Cut(path, ".")
		return slices.Contains(e.Changed, name)
	})
	for _, state := range []*bson.Raw{&e.Before, &e.After} {
		if retold || !v.admits(*state) {
			*state = nil
		}
	}
	e.View = v.view
	e.Seq, e.Prev, e.Hash = 0, "", "" // a hash covers what is hidden, which could be guessed with it
	return e.Before != nil || e.After != nil
}

// admits says whether the reader's filter lets a state through. One that lacks what the filter asks for, because that was
// redacted by an earlier config or the whole was too large, can't be held against it. The size of what is too large is not
// for those from whom some of it is hidden.
func (v *auditView) admits(state bson.Raw) bool {
	if state == nil || v.filter == nil && v.view == nil {
		return true
	}
	if _, err := state.LookupErr(audit.Omitted); err == nil {
		return false
	}
	for _, path := range v.asks {
		if redacted(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: state}, path) {
			return false
		}
	}
	return v.filter == nil || v.filter.Match(state)
}

// redacted says whether a value was redacted, or what it has at or below a path. A text of the record's own that reads the
// same as the mark is taken for it.
func redacted(v bson.RawValue, path string) bool {
	if text, ok := v.StringValueOK(); ok {
		return text == audit.Redacted
	}
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return false
	}
	name, rest, _ := strings.Cut(path, ".")
	for it := document.NewIter(v.Value); it.Next(); {
		if (path == "" || string(it.Key()) == name) && redacted(it.Value(), rest) ||
			v.Type == bson.TypeArray && path != "" && redacted(it.Value(), path) {
			return true
		}
	}
	return false
}

// pathsOf lists the paths of records that a condition looks at.
func pathsOf(n mql.Node) (paths []string) {
	var nodes []mql.Node
	switch n := n.(type) {
	case *mql.AndNode:
		nodes = n.Nodes
	case *mql.OrNode:
		nodes = n.Nodes
	case *mql.NorNode:
		nodes = n.Nodes
	case *mql.Field:
		paths = append(paths, n.Path)
	}
	for _, n := range nodes {
		paths = append(paths, pathsOf(n)...)
	}
	return paths
}
