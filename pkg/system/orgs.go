package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Org is an organization: its users have to do with its projects, teams and users alone.
type Org struct {
	ID          bson.ObjectID `bson:"_id"`
	Rev         int64         `bson:"_rev"` // grows with each write
	Name        string        `bson:"name"`
	Slug        string        `bson:"slug"`
	Description string        `bson:"description"`
	Active      bool          `bson:"active"` // an inactive one gives its users nothing
	CreatedAt   time.Time     `bson:"createdAt"`
	UpdatedAt   time.Time     `bson:"updatedAt"`
}

// Orgs are the organizations.
type Orgs struct {
	model[Org]
	listeners

	// what an org can't be deleted for
	users, teams, projects store.Collection
}

func newOrgs(db store.Database, log *audit.Log, now func() time.Time) *Orgs {
	return &Orgs{
		model: newModel(db, log, now, orgsName, api.Org{}, func(o *Org) *int64 { return &o.Rev }),
		users: db.Collection(usersName), teams: db.Collection(teamsName), projects: db.Collection(projectsName),
	}
}

// Create adds an org from a request body. Only administrators may.
func (os *Orgs) Create(ctx context.Context, by *access.Principal, doc bson.D) (Org, error) {
	if !by.Full() {
		return Org{}, errs.ErrDenied
	}
	now := os.now()
	o := Org{ID: bson.NewObjectID(), Rev: 1, Active: true, CreatedAt: now, UpdatedAt: now}
	if err := parseOrg(&o, doc, true); err != nil {
		return Org{}, err
	}
	return o, slugTaken(os.create(ctx, o), o.Slug)
}

// Get reads an org that the caller may see, or gives errs.ErrNotFound.
func (os *Orgs) Get(ctx context.Context, by *access.Principal, id string) (Org, error) {
	return os.reveal(ctx, id, func(o Org) bool { return maySeeOrg(by, o.ID.Hex()) })
}

func maySeeOrg(by *access.Principal, id string) bool {
	return unlimited(by) || by != nil && slices.Contains(by.OrgIDs, id)
}

// List reads one page of the orgs that the caller may see: their own, or all without a limit to orgs.
func (os *Orgs) List(ctx context.Context, by *access.Principal, params query.Params) (query.Page[Org], error) {
	return os.list(ctx, visible(by, func() bson.A { return bson.A{anyOf("_id", by.OrgIDs)} }), params)
}

// Update changes the members of an org that a request body gives. Only administrators may.
func (os *Orgs) Update(ctx context.Context, by *access.Principal, id string, doc bson.D) (Org, error) {
	if !by.Full() {
		return Org{}, errs.ErrDenied
	}
	o, err := os.update(ctx, id, func(o *Org) error {
		o.UpdatedAt = os.now()
		return parseOrg(o, doc, false)
	})
	os.changed(o.ID.Hex())
	if err != nil {
		return Org{}, slugTaken(err, o.Slug)
	}
	return o, nil
}

// Delete removes an org that nothing belongs to. Only administrators may. What comes to belong to it at the same moment
// keeps an id that leads nowhere, which gives nothing and limits all the same.
func (os *Orgs) Delete(ctx context.Context, by *access.Principal, id string) error {
	if !by.Full() {
		return errs.ErrDenied
	}
	o, err := os.byID(ctx, id)
	if err != nil {
		return err
	}
	var held []string
	for _, h := range []struct {
		coll       store.Collection
		path, noun string
	}{{os.users, "orgIds", "user"}, {os.teams, "orgId", "team"}, {os.projects, "orgId", "project"}} {
		n, err := h.coll.Count(ctx, mql.MustCompile(bson.D{{Key: h.path, Value: o.ID.Hex()}}), 0)
		if err != nil {
			return err
		}
		if n > 0 {
			held = append(held, fmt.Sprintf("%d %s", n, plural(n, h.noun)))
		}
	}
	if len(held) > 0 {
		return errs.New(errs.Conflict, "org_in_use", "the organization still has %s: move or delete them first", strings.Join(held, ", "))
	}
	err = os.remove(ctx, o.ID, o)
	os.changed(o.ID.Hex())
	return err
}

// plural gives a noun as it stands behind a number.
func plural(n int64, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// active gives those of ids that are orgs and active.
func (os *Orgs) active(ctx context.Context, ids []string) (active []string, err error) {
	err = os.each(ctx, ids, func(o Org) {
		if o.Active {
			active = append(active, o.ID.Hex())
		}
	})
	return active, err
}

// seenBy looks up which orgs a caller may name: those that they may see.
func (os *Orgs) seenBy(by *access.Principal) lookup {
	return func(ctx context.Context, ids []string) (seen []string, err error) {
		err = os.each(ctx, ids, func(o Org) {
			if maySeeOrg(by, o.ID.Hex()) {
				seen = append(seen, o.ID.Hex())
			}
		})
		return seen, err
	}
}

func parseOrg(o *Org, doc bson.D, create bool) error {
	b := newBody(doc, api.OrgWrite{}, create)
	b.text("name", &o.Name)
	b.text("slug", &o.Slug)
	b.text("description", &o.Description)
	b.flag("active", &o.Active, true)
	b.slugFrom(&o.Slug, o.Name)
	return b.done()
}

// slugTaken is the 409 for a slug that is there already.
func slugTaken(err error, slug string) error {
	if isDuplicate(err) {
		return taken("slug", slug)
	}
	return err
}

// Slug makes a slug of a name: its letters and digits in lower case, with hyphens between words. Of other letters than
// a-z nothing is left.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String()[:min(b.Len(), maxSlug)], "-")
}
