package system

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

// Project is a registration: it makes the project of a config file known to the service.
type Project struct {
	ID          bson.ObjectID `bson:"_id"`
	Rev         int64         `bson:"_rev"`      // grows with each write
	Namespace   string        `bson:"namespace"` // as the config file had it at registration; never changes
	Name        string        `bson:"name"`      // the namespace when none was given
	Description string        `bson:"description"`
	ConfigFile  string        `bson:"configFile"` // path as the service sees it
	OrgID       string        `bson:"orgId"`      // in hex; "": of no org
	Enabled     bool          `bson:"enabled"`
	Suspended   bool          `bson:"suspended,omitempty"` // what is served stays as it is, whatever the files say
	Founding    bool          `bson:"founding,omitempty"`  // a restore makes it: nobody is served it before Keep
	CreatedBy   Actor         `bson:"createdBy"`           // whose the first generation is, whichever instance serves it
	CreatedAt   time.Time     `bson:"createdAt"`
	UpdatedAt   time.Time     `bson:"updatedAt"`
}

// Resolver loads a config file and gives the namespace that it names. Its error is what the client gets.
type Resolver func(ctx context.Context, configFile string) (namespace string, err error)

// Projects are the registrations.
type Projects struct {
	model[Project]

	db   store.Database
	orgs *Orgs
}

// Watch calls changed with the id of each registration that is created, changed or deleted from now on, or gets another
// latest generation, by whichever instance, until ctx ends. ready is called in between: what it reads is followed without a
// gap.
func (ps *Projects) Watch(ctx context.Context, changed func(id string), ready func() error) error {
	from, err := ps.db.Position(ctx)
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	w := store.Watch{After: from, Collections: []string{projectsName, generationsName}}
	return ps.db.Watch(ctx, w, func(e store.Event) error {
		if id, ok := e.ID.ObjectIDOK(); ok {
			changed(id.Hex())
		} else if name, ok := e.ID.StringValueOK(); ok {
			if id, isHead := projectOfGeneration(name); isHead {
				changed(id)
			}
		}
		return nil
	})
}

// Create registers a project from a request body, after resolve has accepted its config file.
func (ps *Projects) Create(ctx context.Context, doc bson.D, resolve Resolver) (Project, error) {
	now := ps.now()
	p := Project{ID: bson.NewObjectID(), Rev: 1, Enabled: true, CreatedBy: ActorOf(ctx), CreatedAt: now, UpdatedAt: now}
	if err := ps.parse(ctx, &p, doc, true); err != nil {
		return Project{}, err
	}
	ns, err := resolve(ctx, p.ConfigFile)
	if err != nil {
		return Project{}, err
	}
	p.Namespace = ns
	if p.Name == "" {
		p.Name = ns
	}
	if err := ps.create(ctx, p); err != nil {
		if isDuplicate(err) {
			return Project{}, taken("namespace", ns)
		}
		return Project{}, err
	}
	return p, nil
}

// Get reads a registration that the caller may see, or gives errs.ErrNotFound.
func (ps *Projects) Get(ctx context.Context, by *access.Principal, id string) (Project, error) {
	return ps.reveal(ctx, id, func(p Project) bool { return by.InOrg(p.OrgID) })
}

// ByID reads a registration, whoever asks, or gives errs.ErrNotFound.
func (ps *Projects) ByID(ctx context.Context, id string) (Project, error) { return ps.byID(ctx, id) }

// ByNamespace reads a registration by namespace, or gives errs.ErrNotFound.
func (ps *Projects) ByNamespace(ctx context.Context, namespace string) (Project, error) {
	return first[Project](ctx, ps.coll, bson.D{{Key: "namespace", Value: namespace}})
}

// List reads one page of the registrations that the caller may see: those of their orgs, or all without a limit to orgs.
func (ps *Projects) List(ctx context.Context, by *access.Principal, params query.Params) (query.Page[Project], error) {
	return ps.list(ctx, visible(by, func() bson.A { return bson.A{anyOf("orgId", by.OrgIDs)} }), params)
}

// All reads every registration.
func (ps *Projects) All(ctx context.Context) ([]Project, error) {
	var all []Project
	err := ps.coll.Find(ctx, store.Query{Sort: mql.Sort{{Path: "_id"}}}, func(doc bson.Raw) error {
		p, err := decode[Project](doc)
		all = append(all, p)
		return err
	})
	return all, err
}

// Update changes the members of a registration that a request body gives; null resets one. A new config file has to
// pass resolve and to name the same namespace, since the data belongs to that.
func (ps *Projects) Update(ctx context.Context, id string, doc bson.D, resolve Resolver) (Project, error) {
	return ps.update(ctx, id, func(p *Project) error {
		old := *p
		if p.Founding {
			return errFounding
		}
		if err := ps.parse(ctx, p, doc, false); err != nil {
			return err
		}
		if p.ConfigFile != old.ConfigFile {
			ns, err := resolve(ctx, p.ConfigFile)
			if err != nil {
				return err
			}
			if ns != old.Namespace {
				return errs.Validation([]errs.FieldError{{
					Path: "configFile", Rule: "namespace",
					Message: "names the project " + ns + ", this registration is for " + old.Namespace + ": register it by itself",
				}})
			}
		}
		if p.Name == "" {
			p.Name = p.Namespace
		}
		p.UpdatedAt = ps.now()
		return nil
	})
}

// Delete ends a registration and gives back what it was. The project's data stays.
func (ps *Projects) Delete(ctx context.Context, id string) (Project, error) {
	p, err := ps.byID(ctx, id)
	if err != nil {
		return Project{}, err
	}
	if p.Founding {
		return Project{}, errFounding
	}
	err = ps.remove(ctx, p.ID, p)
	return p, err
}

// parse takes a body into p. It reports every problem at once. Only administrators get here, who see every org.
func (ps *Projects) parse(ctx context.Context, p *Project, doc bson.D, create bool) error {
	org := p.OrgID
	b := newBody(doc, api.ProjectWrite{}, create)
	b.text("name", &p.Name)
	b.text("description", &p.Description)
	b.text("configFile", &p.ConfigFile)
	b.text("orgId", &p.OrgID)
	b.flag("enabled", &p.Enabled, true)
	b.flag("suspended", &p.Suspended, false)
	if err := b.exists(ctx, "orgId", []string{org}, []string{p.OrgID}, ps.orgs.seenBy(&access.Principal{Kind: access.KindAdmin})); err != nil {
		return err
	}
	return b.done()
}
