package system

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// Team is a group of users. They have its scopes beside their own, and the permission sets that name it.
type Team struct {
	ID          bson.ObjectID `bson:"_id"`
	Rev         int64         `bson:"_rev"` // grows with each write
	Name        string        `bson:"name"`
	Slug        string        `bson:"slug"`  // what permission sets name
	OrgID       string        `bson:"orgId"` // in hex; "": of no org
	Description string        `bson:"description"`
	Scopes      []string      `bson:"scopes"`
	CreatedAt   time.Time     `bson:"createdAt"`
	UpdatedAt   time.Time     `bson:"updatedAt"`
}

// Teams are the teams.
type Teams struct {
	model[Team]
	listeners

	orgs *Orgs
}

func newTeams(db store.Database, log *audit.Log, orgs *Orgs, now func() time.Time) *Teams {
	return &Teams{model: newModel(db, log, now, teamsName, api.Team{}, func(t *Team) *int64 { return &t.Rev }), orgs: orgs}
}

// Create adds a team from a request body. Only administrators may.
func (ts *Teams) Create(ctx context.Context, by *access.Principal, doc bson.D) (Team, error) {
	if !by.Full() {
		return Team{}, errs.ErrDenied
	}
	now := ts.now()
	t := Team{ID: bson.NewObjectID(), Rev: 1, Scopes: []string{}, CreatedAt: now, UpdatedAt: now}
	if err := ts.parse(ctx, by, &t, doc, true); err != nil {
		return Team{}, err
	}
	return t, slugTaken(ts.create(ctx, t), t.Slug)
}

// Get reads a team that the caller may see, or gives errs.ErrNotFound.
func (ts *Teams) Get(ctx context.Context, by *access.Principal, id string) (Team, error) {
	return ts.reveal(ctx, id, func(t Team) bool { return maySeeTeam(by, t) })
}

func maySeeTeam(by *access.Principal, t Team) bool {
	return by.InOrg(t.OrgID) || by != nil && slices.Contains(by.TeamIDs, t.ID.Hex())
}

// List reads one page of the teams that the caller may see: those of their orgs, or all without a limit to orgs, and
// their own.
func (ts *Teams) List(ctx context.Context, by *access.Principal, params query.Params) (query.Page[Team], error) {
	limited := func() bson.A { return bson.A{anyOf("orgId", by.OrgIDs), anyOf("_id", by.TeamIDs)} }
	return ts.list(ctx, visible(by, limited), params)
}

// Update changes the members of a team that a request body gives. Only administrators may.
func (ts *Teams) Update(ctx context.Context, by *access.Principal, id string, doc bson.D) (Team, error) {
	if !by.Full() {
		return Team{}, errs.ErrDenied
	}
	t, err := ts.update(ctx, id, func(t *Team) error {
		t.UpdatedAt = ts.now()
		return ts.parse(ctx, by, t, doc, false)
	})
	ts.changed(t.ID.Hex())
	if err != nil {
		return Team{}, slugTaken(err, t.Slug)
	}
	return t, nil
}

// Delete removes a team, also from its users. Only administrators may.
func (ts *Teams) Delete(ctx context.Context, by *access.Principal, id string) error {
	if !by.Full() {
		return errs.ErrDenied
	}
	t, err := ts.byID(ctx, id)
	if err != nil {
		return err
	}
	members := mql.MustCompile(bson.D{{Key: "teamIds", Value: t.ID.Hex()}})
	leave := mql.MustCompileUpdate(bson.D{
		{Key: "$pull", Value: bson.D{{Key: "teamIds", Value: t.ID.Hex()}}},
		{Key: "$inc", Value: bson.D{{Key: "_rev", Value: int64(1)}}},
	})
	// A user who is put into the team at the same moment keeps an id that leads nowhere, which gives nothing.
	err = ts.audited(ctx, audit.OpDelete, &t, nil, func(ctx context.Context, tx store.Tx) error {
		if err := store.WriteAll(ctx, tx.Collection(usersName), store.Op{Kind: store.Update, Filter: members, Update: leave, Many: true}); err != nil {
			return err
		}
		return store.WriteAll(ctx, tx.Collection(teamsName), store.Op{Kind: store.Delete, ID: idValue(t.ID)})
	})
	ts.changed(t.ID.Hex())
	return err
}

// seenBy looks up which teams a caller may name: those that they may see.
func (ts *Teams) seenBy(by *access.Principal) lookup {
	return func(ctx context.Context, ids []string) (seen []string, err error) {
		err = ts.each(ctx, ids, func(t Team) {
			if maySeeTeam(by, t) {
				seen = append(seen, t.ID.Hex())
			}
		})
		return seen, err
	}
}

func (ts *Teams) parse(ctx context.Context, by *access.Principal, t *Team, doc bson.D, create bool) error {
	org := t.OrgID
	b := newBody(doc, api.TeamWrite{}, create)
	b.text("name", &t.Name)
	b.text("slug", &t.Slug)
	b.text("description", &t.Description)
	b.text("orgId", &t.OrgID)
	b.scopes(&t.Scopes)
	b.slugFrom(&t.Slug, t.Name)
	if err := b.exists(ctx, "orgId", []string{org}, []string{t.OrgID}, ts.orgs.seenBy(by)); err != nil {
		return err
	}
	return b.done()
}
