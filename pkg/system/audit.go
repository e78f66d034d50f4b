package system

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// secretMembers are those of system records that the audit log does not keep.
func secretMembers() *document.PathSet { return document.NewPathSet("passwordHash", "hash") }

// create inserts a record, with its entry in the audit log.
func (m model[T]) create(ctx context.Context, v T) error {
	doc, err := encode(v)
	if err != nil {
		return err
	}
	return m.commit(ctx, audit.OpCreate, nil, &v, store.Op{Kind: store.Insert, Doc: doc})
}

// remove deletes a record, with its entry in the audit log.
func (m model[T]) remove(ctx context.Context, id bson.ObjectID, v T) error {
	return m.commit(ctx, audit.OpDelete, &v, nil, store.Op{Kind: store.Delete, ID: idValue(id)})
}

// commit applies ops to the model's records, together with an entry in the audit log: op has turned before into after.
func (m model[T]) commit(ctx context.Context, op string, before, after *T, ops ...store.Op) error {
	return m.audited(ctx, op, before, after, func(ctx context.Context, tx store.Tx) error {
		return store.WriteAll(ctx, tx.Collection(m.name), ops...)
	})
}

// audited makes a change in one step with its entry in the audit log: op has turned before into after.
func (m model[T]) audited(ctx context.Context, op string, before, after *T, change func(ctx context.Context, tx store.Tx) error) error {
	entry, err := m.entry(op, before, after)
	if err != nil {
		return err
	}
	return m.log.Write(ctx, change, entry)
}

// entry describes a change. Only what creates, changes or deletes a record has its states: a login, say, has none.
func (m model[T]) entry(op string, before, after *T) (audit.Entry, error) {
	e := audit.Entry{Kind: audit.System, Op: op, Collection: m.name}
	for _, state := range []struct {
		record *T
		to     *bson.Raw
	}{{before, &e.Before}, {after, &e.After}} {
		if state.record == nil {
			continue
		}
		doc, err := encode(*state.record)
		if err != nil {
			return e, err
		}
		if id, ok := doc.Lookup("_id").ObjectIDOK(); ok {
			e.RecordID = id.Hex()
		}
		e.Namespace, _ = doc.Lookup("namespace").StringValueOK()
		if op != audit.OpCreate && op != audit.OpUpdate && op != audit.OpDelete {
			continue
		}
		if *state.to, err = audit.State(doc, secretMembers()); err != nil {
			return e, err
		}
	}
	return e, nil
}

// LoginFailed notes that a password was found wrong, or the user's of no use; id is zero for a name that no user has.
// The name itself is not noted: it may be a mistyped password.
func (s *System) LoginFailed(ctx context.Context, id bson.ObjectID) error {
	e := audit.Entry{Kind: audit.System, Op: audit.OpLoginFailed, Collection: usersName}
	if !id.IsZero() {
		e.RecordID = id.Hex()
	}
	return s.log.Append(ctx, e)
}

// Reloaded notes that somebody has a project's config read again.
func (s *System) Reloaded(ctx context.Context, projectID, namespace string) error {
	return s.log.Append(ctx, audit.Entry{
		Kind: audit.System, Op: audit.OpReload, Collection: projectsName, RecordID: projectID, Namespace: namespace,
	})
}

// RolledBack notes that somebody has an earlier generation of a project served.
func (s *System) RolledBack(ctx context.Context, projectID, namespace string, generation int64) error {
	after, err := encode(bson.D{{Key: "generation", Value: generation}})
	if err != nil {
		return err
	}
	return s.log.Append(ctx, audit.Entry{
		Kind: audit.System, Op: audit.OpRollback, Collection: projectsName, RecordID: projectID, Namespace: namespace, After: after,
	})
}

// Operated notes that somebody has a project's job run, suspended or resumed, or a run of a job or an action cancelled. scope
// names the job or action, run is "" where there is none yet.
func (s *System) Operated(ctx context.Context, op, namespace, scope, run string) error {
	return s.log.Append(ctx, audit.Entry{Kind: audit.System, Op: op, Namespace: namespace, Collection: scope, RecordID: run})
}

// Snapshotted notes that somebody does something with snapshots of a profile: with the one of that id, "" where there is none yet.
func (s *System) Snapshotted(ctx context.Context, op, namespace, profile, id string, how bson.D) error {
	e := audit.Entry{Kind: audit.System, Op: op, Namespace: namespace, Collection: access.SnapshotScope(profile), RecordID: id}
	if len(how) > 0 {
		var err error
		if e.After, err = encode(how); err != nil {
			return err
		}
	}
	return s.log.Append(ctx, e)
}

// ShutDown notes that somebody has the service stop.
func (s *System) ShutDown(ctx context.Context) error {
	return s.log.Append(ctx, audit.Entry{Kind: audit.System, Op: audit.OpShutdown})
}
