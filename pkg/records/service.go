package records

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/hooks"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search/engine"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// Service serves the records of every project. It is safe for concurrent use.
type Service struct {
	store store.Store
	now   func() time.Time
	logs  *audit.Logs
	hooks *hooks.Runner
	files *media.Library
	feeds sync.Map // the feeds that are followed, by id

	feedIDs atomic.Int64 // how many ids they keep
	hubs    hubs         // what they are told by

	search    *engine.Engine // nil: nothing is searched
	pipelines *turns         // to run them
	pacing    pacing         // of reads that go on for long
}

// New makes a Service. now is the clock; records carry its time cut to milliseconds, as BSON dates do. logs take the
// entries of collections whose writes are logged, scripts runs those of projects. files has those of records; nil will do where
// no record has any.
func New(s store.Store, now func() time.Time, logs *audit.Logs, scripts *hooks.Runner, files *media.Library) *Service {
	return &Service{
		store: s, logs: logs, hooks: scripts, files: files, now: func() time.Time { return now().UTC().Truncate(time.Millisecond) },
		pipelines: newTurns(maxPipelines), pacing: newPacing(),
		hubs: hubs{of: map[hubKey]*hub{}, catchUps: newTurns(maxCatchUps)},
	}
}

// Call says on which collection a verb runs and for whom. Project and Collection are of one generation: a reload
// during the call does not touch it. A Call is for one request and one goroutine: it keeps what has been decided.
type Call struct {
	Project    *project.Project
	Collection *project.Collection
	Principal  *access.Principal
	Request    *hooks.Request // what scripts see of the request; nil: there is none
	Lang       string         // the language that records are read and written in; "": as they are stored

	// NewID, if set, gives the ids of the records that a create makes, by their place in it. With Again the same request may
	// have been carried out before: what is there under such an id, it has made then.
	NewID func(place int) bson.ObjectID
	Again bool

	Uploads *Uploads // files that come beside the record; nil: none

	MaxFiles   int64  // bytes of files that one write may bring; 0: as many as the collection lets it
	MaxFilesOf string // whose limit that is, in words

	DryRun      bool   // writes find out what they would do, and do nothing
	MaxAffected *int64 // the most records that one write may be to; nil: as many as the collection lets it

	decided [access.Delete + 1]decision
	bound   time.Time // what the time of now was when a filter of permissions was made last
	ops     [access.Delete + 1]*hooks.Operation
	bulk    bool // a bulk write is under way
	atomic  bool // bulk writes are all or nothing, whatever the collection says

	near   map[string]*Call        // the calls on the collections that this one's questions go into, by name; this one is among them
	filing *filing                 // of the write that is under way
	left   map[bson.ObjectID]error // of the last one: the records that were deleted whose files could not be removed

	limits *query.Limits // of queries, in place of the collection's; nil: those
}

// isAtomic says that a bulk write is all or nothing.
func (c *Call) isAtomic() bool { return c.atomic || c.Collection.Bulk.Atomic }

// decision is what a caller may do with a method. A door asks May before it reads a body, and the verb after it finds
// the same answer here.
type decision struct {
	made  bool
	grant access.Grant
	err   error
}

// Record is one record as the caller may see it: Raw holds everything, View says what goes out. Only AppendJSON reads
// it for a caller, so a hidden field can't slip out.
type Record struct {
	raw    bson.Raw
	view   *document.View
	hidden *document.PathSet // what view hides from the caller, apart from what they did not select
	rev    int64             // 0: that of raw
	made   bool              // a script had a hand in it
	found  *found            // nil: it was not searched for
}

// visible is the record as the caller may see it, for a script. It has another type than what is stored, since nothing
// that a script makes of it is stored.
func (r *Record) visible() bson.Raw { return r.view.Apply(r.raw) }

// Made says that a script made what goes out, so that it may differ though the revision is the same.
func (r Record) Made() bool { return r.made }

// AppendJSON appends the record's visible part to dst.
func (r Record) AppendJSON(dst []byte) []byte {
	dst = document.AppendJSON(dst, r.raw, r.view)
	if r.found != nil {
		dst = r.found.appendJSON(dst)
	}
	return dst
}

// Rev is the record's revision, which grows by one with each write. It is the ETag of a single read.
func (r Record) Rev() int64 {
	if r.rev == 0 { // of a list, where few ask for it
		return revOf(r.raw)
	}
	return r.rev
}

// ID is the record's id as 24 hex digits.
func (r Record) ID() string { return publicIDOf(r.raw) }

// conflictRetries bounds how often a write starts over because the record changed between read and write. Each
// round means that another writer succeeded, so many rounds mean a very hot record.
const conflictRetries = 32

// collection gives the records of a call, within the transaction that ctx is in, if any.
func (s *Service) collection(ctx context.Context, c *Call) store.TxCollection {
	if x := sessionOf(ctx, c.Project.Namespace); x != nil {
		return fieldnames.WrapTx(x.tx, c.Project.FieldNames).Collection(c.Collection.StoredName())
	}
	db := s.store.Database(project.DatabaseName(c.Project.Namespace))
	return fieldnames.Wrap(db, c.Project.FieldNames).Collection(c.Collection.StoredName())
}

// grant gives what the caller may do with method, or errs.ErrDenied.
func (s *Service) grant(ctx context.Context, c *Call, m access.Method) (access.Grant, error) {
	d := &c.decided[m]
	if !d.made {
		s.pacing.asked.Store(time.Now().UnixNano())
		if d.grant, d.err = s.decide(ctx, c, c.Principal, m); d.err == nil {
			d.err = c.speak()
		}
		d.made = true
	}
	return d.grant, d.err
}

func (s *Service) env(ctx context.Context, c *Call, op *hooks.Operation) access.Env {
	c.bound = s.now()
	env := access.Env{
		Now: c.bound, Namespace: c.Project.Namespace, Collection: c.Collection.Name,
		AdminTokens: c.Project.AdminTokens, OrgID: c.Project.OrgID,
	}
	if len(c.Collection.Filters) > 0 {
		env.RunFilter = func(spec *schema.Script) (bson.D, error) {
			compiled, ok := c.Collection.Filters[spec]
			if !ok {
				return nil, errs.ErrDenied
			}
			return s.hooks.Filter(ctx, op, compiled)
		}
		env.BadFilter = func(spec *schema.Script, err error) {
			if compiled, ok := c.Collection.Filters[spec]; ok {
				s.hooks.BadFilter(ctx, op, compiled, err)
			}
		}
	}
	return env
}

// MayOperate is nil if the caller has a system right on a project: by their own rights, or by an admin token of the
// project, which has some.
func (s *Service) MayOperate(p *project.Project, who *access.Principal, right string) error {
	if who.Kind == access.KindToken {
		if t, ok := p.AdminTokens.Match(who.TokenHash, s.now()); ok && t.Has(right) {
			return nil
		}
	}
	return who.Require(right)
}

// TokenName is what the config calls an admin token of the project; "" of every other caller.
func (s *Service) TokenName(p *project.Project, who *access.Principal) string {
	if who.Kind == access.KindToken {
		if t, ok := p.AdminTokens.Match(who.TokenHash, s.now()); ok {
			return t.Name
		}
	}
	return ""
}

// May is nil if the caller may use a method on the collection at all, else errs.ErrDenied. A door asks it before it
// reads a body.
func (s *Service) May(ctx context.Context, c *Call, m access.Method) error {
	_, err := s.grant(ctx, c, m)
	return err
}

// readGrant gives the caller's read right, if there is one, for shaping the answer of a write.
func (s *Service) readGrant(ctx context.Context, c *Call) (access.Grant, bool) {
	g, err := s.grant(ctx, c, access.Get)
	return g, err == nil
}

// withDeadline bounds a read by the maxTime of the collection, and of another that it goes into.
func withDeadline(ctx context.Context, c *Call, near ...*Call) (context.Context, context.CancelFunc) {
	limit := c.Collection.Limits.MaxTime
	for _, other := range near {
		limit = min(limit, other.Collection.Limits.MaxTime)
	}
	return context.WithTimeoutCause(ctx, limit, errTooSlow)
}

var errTooSlow = errs.New(errs.Invalid, "query_too_slow",
	"the query takes longer than the collection's maxTime: narrow the filter, or sort and filter by an indexed field")

// storeError turns what the store says into what the caller is told.
func (s *Service) storeError(ctx context.Context, err error) error {
	// A store that is given the time may notice its end a little earlier.
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTooSlow) {
		return err
	}
	// Without a word from the store until the end of the time, either the query is slow or the store is away.
	if errs.KindOf(err) == errs.Unavailable && !s.answers(ctx) {
		return err
	}
	return errTooSlow.With(err)
}

// answers says whether the store is there, to one whose own time is over.
func (s *Service) answers(ctx context.Context) bool {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return s.store.Ping(ctx) == nil
}

func idOf(doc bson.Raw) bson.ObjectID {
	v, _ := document.Field(doc, "_id")
	id, _ := v.ObjectIDOK()
	return id
}

func revOf(doc bson.Raw) int64 {
	v, _ := document.Field(doc, "_rev")
	rev, _ := v.AsInt64OK()
	return rev
}

func idValue(id bson.ObjectID) bson.RawValue {
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}
