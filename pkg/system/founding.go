package system

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

var errFounding = errs.New(errs.Conflict, "project_founding",
	"a restore is making this project: wait until the run has ended, or cancel it; what it leaves is taken away by itself")

// Found registers a project that a restore makes. It takes the namespace, and nobody is served it before Keep: should the restore not come to
// that, whoever finds it ends it, by Keep or Abandon. Config file and namespace are those of the caller, who has looked at them.
func (ps *Projects) Found(ctx context.Context, namespace, configFile, orgID string) (Project, error) {
	now := ps.now()
	p := Project{
		ID: bson.NewObjectID(), Rev: 1, Namespace: namespace, Name: namespace, ConfigFile: configFile, OrgID: orgID,
		Founding: true, CreatedBy: ActorOf(ctx), CreatedAt: now, UpdatedAt: now,
	}
	err := ps.create(ctx, p)
	if isDuplicate(err) {
		return Project{}, taken("namespace", namespace)
	}
	return p, err
}

// Keep has a project that was founded be like any other, enabled. One that is like that already stays so.
func (ps *Projects) Keep(ctx context.Context, id string) (Project, error) {
	return ps.update(ctx, id, func(p *Project) error {
		if p.Founding {
			p.Founding, p.Enabled, p.UpdatedAt = false, true, ps.now()
		}
		return nil
	})
}

// Abandon ends the registration of a project that was founded, and never kept. One that is gone already is no error.
func (ps *Projects) Abandon(ctx context.Context, id string) error {
	p, err := ps.byID(ctx, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	founding := mql.MustCompile(bson.D{{Key: "founding", Value: true}})
	err = ps.commit(ctx, audit.OpDelete, &p, nil, store.Op{Kind: store.Delete, ID: idValue(p.ID), If: founding})
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}
