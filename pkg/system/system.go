package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// DatabaseName is the database of the system models. No project's database has this name.
const DatabaseName = "svc"

// maxTries bounds how often a write is repeated that lost against another one.
const maxTries = 32

// Options are what the models need from outside.
type Options struct {
	// HashPassword makes the hash that is stored for a password. Required.
	HashPassword func(ctx context.Context, password string) (string, error)
	// Now is the clock. Required.
	Now func() time.Time
	// PATDefaultTTL is how long a personal access token lasts that is made without an end; 0 is as long as it may.
	PATDefaultTTL time.Duration
	// PATMaxTTL is how long one may last; 0: for ever.
	PATMaxTTL time.Duration
	// Audit has the log that changes go to; nil: one that nobody seals, for tools.
	Audit *audit.Logs
}

// System is the system models of one store. It and its parts are safe for concurrent use.
type System struct {
	Users    *Users
	Orgs     *Orgs
	Teams    *Teams
	Projects *Projects
	Tokens   *Tokens
	Secrets  *Secrets
	Logins   *Logins

	Generations *Generations
	Events      *Events

	log *audit.Log
}

// The collections of the models that others refer to.
const (
	usersName    = "users"
	orgsName     = "orgs"
	teamsName    = "teams"
	projectsName = "projects"
	tokensName   = "tokens"
	secretsName  = "secrets"

	generationsName = "generations"
	eventsName      = "events"
)

// New makes the models over st. Call EnsureIndexes before the first write.
func New(st store.Store, opts Options) *System {
	db := st.Database(DatabaseName)
	now := func() time.Time { return opts.Now().UTC().Truncate(time.Millisecond) } // what a date in the store can hold
	if opts.Audit == nil {
		opts.Audit = audit.New(audit.Options{Store: st, Now: opts.Now, SystemDatabase: DatabaseName})
	}
	log := opts.Audit.System()
	orgs := newOrgs(db, log, now)
	teams := newTeams(db, log, orgs, now)
	secrets := &Secrets{coll: db.Collection(secretsName), log: log, now: now}
	tokens := &Tokens{
		model:   newModel(db, log, now, tokensName, api.Token{}, func(t *Token) *int64 { return &t.Rev }),
		secrets: secrets, defaultTTL: opts.PATDefaultTTL, maxTTL: opts.PATMaxTTL,
	}
	return &System{
		Users: &Users{
			model: newModel(db, log, now, usersName, api.User{}, func(u *User) *int64 { return &u.Rev }),
			hash:  opts.HashPassword, orgs: orgs, teams: teams, tokens: tokens,
		},
		Orgs:  orgs,
		Teams: teams,
		Projects: &Projects{
			model: newModel(db, log, now, projectsName, api.Project{}, func(p *Project) *int64 { return &p.Rev }),
			db:    db,
			orgs:  orgs,
		},
		Tokens:  tokens,
		Secrets: secrets,
		Logins:  &Logins{coll: db.Collection("login_failures"), now: now},

		Generations: &Generations{coll: db.Collection(generationsName), now: now},
		Events:      &Events{db: db, coll: db.Collection(eventsName), now: now},

		log: log,
	}
}

// EnsureIndexes creates the indexes that the models rely on. It may be called at every start.
func (s *System) EnsureIndexes(ctx context.Context) error {
	for _, want := range []struct {
		coll   store.Collection
		path   string
		unique bool
	}{
		{s.Users.coll, "username", true},
		{s.Users.coll, "orgIds", false},
		{s.Users.coll, "teamIds", false},
		{s.Orgs.coll, "slug", true},
		{s.Teams.coll, "slug", true},
		{s.Teams.coll, "orgId", false},
		{s.Projects.coll, "namespace", true},
		{s.Projects.coll, "orgId", false},
		{s.Tokens.coll, "userId", false},
		{s.Logins.coll, "last", false},
	} {
		err := want.coll.CreateIndex(ctx, store.Index{
			Name:   want.path,
			Keys:   []store.IndexKey{{Path: want.path}},
			Unique: want.unique,
		})
		if err != nil {
			return fmt.Errorf("system index on %s: %w", want.path, err)
		}
	}
	return s.log.Prepare(ctx)
}

// get reads the record with an id.
func get[T any](ctx context.Context, coll store.Collection, id bson.RawValue) (T, error) {
	doc, err := coll.Get(ctx, id)
	if err != nil {
		var zero T
		return zero, err
	}
	return decode[T](doc)
}

// first reads the first match in the order of creation, or errs.ErrNotFound.
func first[T any](ctx context.Context, coll store.Collection, filter bson.D) (T, error) {
	var found T
	f, err := mql.Compile(filter)
	if err != nil {
		return found, err
	}
	err = errs.ErrNotFound
	findErr := coll.Find(ctx, store.Query{Filter: f, Sort: mql.Sort{{Path: "_id"}}, Limit: 1}, func(doc bson.Raw) error {
		found, err = decode[T](doc)
		return err
	})
	if findErr != nil {
		return found, findErr
	}
	return found, err
}

func decode[T any](doc bson.Raw) (T, error) {
	var v T
	if err := bson.Unmarshal(doc, &v); err != nil {
		return v, errs.Wrap(err, "decode a system record")
	}
	return v, nil
}

func encode(v any) (bson.Raw, error) {
	doc, err := bson.Marshal(v)
	if err != nil {
		return nil, errs.Wrap(err, "encode a system record")
	}
	return doc, nil
}

// insert adds a record.
func insert(ctx context.Context, coll store.Writer, v any) error {
	doc, err := encode(v)
	if err != nil {
		return err
	}
	return store.WriteAll(ctx, coll, store.Op{Kind: store.Insert, Doc: doc})
}

// replaceOp replaces a record if its revision is still rev.
func replaceOp(v any, rev int64) (store.Op, error) {
	doc, err := encode(v)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Replace, Doc: doc, If: atRev(rev)}, nil
}

func atRev(rev int64) *mql.Filter { return mql.MustCompile(bson.D{{Key: "_rev", Value: rev}}) }

// drop deletes the document with a key, if there is one.
func drop(ctx context.Context, coll store.Collection, key string) error {
	err := store.WriteAll(ctx, coll, store.Op{Kind: store.Delete, ID: store.Name(key)})
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

// retry calls fn until it does not lose against another writer.
func retry(ctx context.Context, fn func() error) error {
	for range maxTries {
		err := fn()
		if !errors.Is(err, store.ErrStale) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	e := errs.New(errs.Unavailable, "contention", "the record is being changed by others; try again")
	e.RetryAfter = time.Second
	return e
}

func isDuplicate(err error) bool {
	var d *store.DuplicateKeyError
	return errors.As(err, &d)
}

// taken is the 409 for a unique field.
func taken(path, value string) error {
	e := errs.New(errs.Conflict, "unique_conflict", "%s %q is already taken", path, value)
	e.Fields = []errs.FieldError{{Path: path, Rule: "unique", Message: "is already taken"}}
	return e
}

func idValue(id bson.ObjectID) bson.RawValue {
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}
