package records

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/store"
)

const (
	// maxKnown is how many records the reader of a feed may be able to see, unless they can see all: the feed keeps their ids.
	maxKnown = 20_000
	// maxKnownInAll is how many ids all feeds keep. One that is opened counts as maxKnown until it is known how many it keeps.
	maxKnownInAll = 2_000_000

	// tokenStep is what the length of tokens is rounded up to: places in a feed are of several lengths, and would tell of
	// changes that the reader does not see.
	tokenStep = 512
)

func idOnly() *mql.Projection {
	return mql.MustCompileProjection(bson.D{{Key: "_id", Value: int64(1)}})
}

// FeedParams say which changes a reader wants.
type FeedParams struct {
	Where  query.Where
	Select string
	After  string // the token of the event that they had last; "": from now on
	Reader string // who reads what, in the words of the door: only they go on with a token
	Owner  string // who counts as one with all of their feeds, in the words of the door
}

// The kinds of FeedEvent.
const (
	FeedCreate = "create" // a record came into the reader's sight
	FeedUpdate = "update"
	FeedDelete = "delete" // a record is gone, or out of the reader's sight
)

// FeedEvent is one change as a reader may see it.
type FeedEvent struct {
	Kind, ID string
	Record   *Record // nil of FeedDelete
}

// Errors of feeds.
var (
	// ErrFeedGone is for tokens that nothing is known about any more.
	ErrFeedGone = &errs.Error{
		Kind: errs.Conflict, Code: "changes_lost", Status: 410,
		Message: "what changed since then is not known any more: read the records anew, and connect without Last-Event-ID",
	}
	// ErrFeedReset ends a feed that can't go on: its reader has to read the records anew.
	ErrFeedReset = errs.New(errs.Conflict, "changes_reset", "the feed can't go on: read the records anew, and connect without Last-Event-ID")

	errFeedToken   = errs.New(errs.Invalid, "bad_event_id", "Last-Event-ID must be the id of an event of this feed")
	errFeedScripts = errs.New(errs.Invalid, "unsupported", "a script answers reads of this collection: it has no feed of changes")
	errFeedRoom    = &errs.Error{
		Kind: errs.Throttled, Code: "too_many_feeds", RetryAfter: 10 * time.Second,
		Message: "feeds of changes are about too many records by now: narrow the filter, or come again later",
	}
	errFeedWide = errs.New(errs.Invalid, "query_limit", "the feed would be about more than %d records: narrow the filter", maxKnown)
)

// Feed tells one reader of the changes of a collection. What leaves their sight is told of only if they had it in sight:
// so a feed keeps the ids of what its reader can see, unless that is everything.
type Feed struct {
	s      *Service
	params FeedParams
	name   string // of the collection
	key    hubKey
	db     store.Database
	aead   cipher.AEAD
	id     bson.ObjectID
	known  *known     // nil: the reader sees all records
	held   int64      // how many ids of known count among the service's
	hub    *hubReader // tells what comes behind at; nil: the feed has to catch up first

	stop    context.CancelFunc // ends Follow
	stopped context.Context    //nolint:containedctx // of Follow; it belongs to the feed
	closed  chan struct{}      // when Close is done

	mu     sync.Mutex
	at     store.Position
	count  uint64 // of the events that were told
	handed bool   // a token was given out
}

// sight is what a reader may see now.
type sight struct {
	grant  access.Grant
	filter *mql.Filter
	sel    query.Selection
}

func (s *Service) sight(ctx context.Context, c *Call, p FeedParams) (v sight, err error) {
	if v.grant, err = s.grant(ctx, c, access.Get); err != nil {
		return v, err
	}
	if len(c.Collection.Hooks[stageHandle]) > 0 {
		return v, errFeedScripts
	}
	r := newResolver(c, v.grant)
	own, err := r.Filter(p.Where)
	if err != nil {
		return v, err
	}
	v.filter = mql.And(v.grant.Filter, own)
	v.sel, err = r.Select(p.Select, nil)
	return v, err
}

// OpenFeed checks what a reader asks for, and finds where their feed begins.
func (s *Service) OpenFeed(ctx context.Context, c *Call, p FeedParams) (f *Feed, err error) {
	v, err := s.sight(ctx, c, p)
	if err != nil {
		return nil, err
	}
	f = &Feed{
		s: s, params: p, name: c.Collection.StoredName(), id: bson.NewObjectID(), closed: make(chan struct{}),
		key: hubKey{project.DatabaseName(c.Project.Namespace), c.Collection.StoredName()},
	}
	f.db = s.store.Database(f.key.database)
	if f.aead, err = f.cipher(ctx); err != nil {
		return nil, err
	}
	f.stopped, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	if p.After != "" {
		err := f.resume(ctx, v.filter != nil)
		return f, err
	}
	if err := f.join(ctx); err != nil || v.filter == nil {
		return f, err
	}
	if err := f.look(ctx, c, v.filter); err != nil { // behind join: else changes in between would be told to nobody
		f.leave()
		return nil, err
	}
	return f, nil
}

// join has the feed be told of what comes from now on.
func (f *Feed) join(ctx context.Context) error {
	now, err := f.db.Position(ctx)
	if err != nil {
		return err
	}
	if f.at == nil {
		f.at = now
	}
	f.hub = f.s.hubs.join(ctx, f.db, f.key, now)
	return nil
}

func (f *Feed) leave() {
	if f.hub != nil {
		f.hub.leave()
		f.hub = nil
	}
}

// look finds out what the reader has in sight.
func (f *Feed) look(ctx context.Context, c *Call, filter *mql.Filter) error {
	if err := f.hold(maxKnown); err != nil {
		return err
	}
	f.known = newKnown()
	ctx, cancel := withDeadline(ctx, c)
	defer cancel()
	err := f.s.collection(ctx, c).Find(ctx, store.Query{Filter: filter, Limit: maxKnown + 1, Project: idOnly()}, func(doc bson.Raw) error {
		f.known.present[idOf(doc)] = 0
		return nil
	})
	if err == nil && len(f.known.present) > maxKnown {
		err = errFeedWide
	}
	if err != nil {
		_ = f.hold(0)
		return f.s.storeError(ctx, err)
	}
	return f.hold(int64(len(f.known.present)))
}

// hold has n ids count as this feed's, if there is room for more than there were.
func (f *Feed) hold(n int64) error {
	more := n - f.held
	if sum := f.s.feedIDs.Add(more); more > 0 && sum > maxKnownInAll {
		f.s.feedIDs.Add(-more)
		return errFeedRoom
	}
	f.held = n
	return nil
}

// OnTaken has fn called when the reader connects again in place of this feed, until stop is called.
func (f *Feed) OnTaken(fn func()) (stop func() bool) { return context.AfterFunc(f.stopped, fn) }

// Follow tells of changes until ctx ends, again fails or the feed can't go on. again finds out anew who reads, and what
// they may: each event is as of the moment in which it is told. begin is called before the first event, as soon as it is clear that there
// are any to come. Errors of before that are answers.
func (f *Feed) Follow(ctx context.Context, again func() (*Call, error), begin func() error, tell func(FeedEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.stopped, cancel)()
	f.s.feeds.Store(f.id, f)
	begun := false
	start := func() error {
		if begun {
			return nil
		}
		begun = true
		return begin()
	}
	told := func(e store.Event) error {
		if err := start(); err != nil {
			return err
		}
		return f.pass(ctx, e, again, tell)
	}
	defer f.leave()
	err := f.follow(ctx, start, told)
	switch {
	case !errors.Is(err, store.ErrHistoryLost) && !errors.Is(err, store.ErrBadPosition): // of a store that was there before this one
		return err
	case begun:
		return ErrFeedReset
	}
	return ErrFeedGone
}

// follow reads by itself what the feed lacks, and then what its hub tells, again and again if that is too fast for the reader.
func (f *Feed) follow(ctx context.Context, start func() error, told func(store.Event) error) error {
	for {
		if f.hub == nil {
			if err := f.catchUp(ctx, told); err != nil {
				return err
			}
		}
		if err := start(); err != nil {
			return err
		}
		if err := f.live(ctx, told); !errors.Is(err, errBehind) {
			return err
		}
		f.leave()
	}
}

func (f *Feed) live(ctx context.Context, told func(store.Event) error) error {
	for {
		events, err := f.hub.take(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if ctx.Err() != nil {
				return store.Ended(ctx)
			}
			if e.Kind == 0 {
				f.moveTo(e.Position, 0)
			} else if err := told(e); err != nil {
				return err
			}
		}
	}
}

var errCaughtUp = errors.New("caught up")

// catchUp joins the hub and then reads what came before.
func (f *Feed) catchUp(ctx context.Context, told func(store.Event) error) error {
	leave, err := f.s.hubs.catchUps.take(ctx, f.params.Owner)
	if err != nil {
		return err
	}
	defer leave()
	if err := f.join(ctx); err != nil {
		return err
	}
	var last [maxQueued]string // the places of the last events; the hub may tell of them, too
	n := 0
	err = f.db.Watch(ctx, store.Watch{After: f.at, Collections: []string{f.name}, Documents: true, OnIdle: func(p store.Position) error {
		f.moveTo(p, 0)
		return errCaughtUp
	}}, func(e store.Event) error {
		last[n%maxQueued] = string(e.Position)
		n++
		return told(e)
	})
	if !errors.Is(err, errCaughtUp) {
		return err
	}
	known := map[string]bool{}
	for _, p := range last[:min(n, maxQueued)] {
		known[p] = true
	}
	f.hub.skip(known)
	return nil
}

// pass tells of one change what its reader may know.
func (f *Feed) pass(ctx context.Context, e store.Event, again func() (*Call, error), tell func(FeedEvent) error) error {
	c, err := again()
	if err != nil {
		return err
	}
	v, err := f.s.sight(ctx, c, f.params)
	switch {
	case err != nil:
		return err
	case e.Kind == store.Dropped || e.Kind == store.Renamed, f.known == nil && v.filter != nil:
		return ErrFeedReset
	}
	id, ok := e.ID.ObjectIDOK()
	if !ok { // no record of ours
		f.moveTo(e.Position, 0)
		return nil
	}
	if e.Doc != nil {
		e.Doc = c.Collection.FieldNames.Inverse().Document(e.Doc) // the hub has it as it is stored
	}
	seen := e.Doc != nil && v.filter.Match(e.Doc)
	out := FeedEvent{ID: id.Hex(), Kind: f.kind(e.Kind, id, seen)}
	if out.Kind == "" {
		f.moveTo(e.Position, 0)
		return nil
	}
	if out.Kind != FeedDelete {
		rec, err := f.s.fed(ctx, c, v, bytes.Clone(e.Doc))
		if err != nil {
			return err
		}
		out.Record = &rec
	}
	f.moveTo(e.Position, 1)
	if f.known != nil {
		f.known.note(id, seen, f.count)
		if len(f.known.present) > 2*maxKnown {
			return ErrFeedReset
		}
	}
	return tell(out)
}

// kind is what a change is to the reader; "" for nothing.
func (f *Feed) kind(kind store.EventKind, id bson.ObjectID, seen bool) string {
	var had bool
	if f.known != nil {
		_, had = f.known.present[id]
	} else {
		had = kind != store.Inserted
		if !seen && kind != store.Deleted { // it is gone by now: another event tells of that
			return ""
		}
	}
	switch {
	case seen && had:
		return FeedUpdate
	case seen:
		return FeedCreate
	case had:
		return FeedDelete
	}
	return ""
}

// fed is a record as a read of it would give it.
func (s *Service) fed(ctx context.Context, c *Call, v sight, doc bson.Raw) (Record, error) {
	items := []Record{{raw: doc, rev: revOf(doc)}}
	if err := s.readHook(ctx, c, &items[0]); err != nil {
		return Record{}, err
	}
	if err := s.mask(ctx, c, v.grant, items, v.sel); err != nil {
		return Record{}, err
	}
	return s.returnOne(ctx, c, idOf(doc).Hex(), items[0])
}

func (f *Feed) moveTo(p store.Position, told uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = bytes.Clone(p)
	f.count += told
}

// Token stands for everything that was told so far. It is sealed: where the store's feed is tells how much others write.
func (f *Feed) Token() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed = true
	plain := binary.BigEndian.AppendUint64(nil, f.count)
	plain = append(append(plain, f.id[:]...), f.at...)
	plain = append(plain, 1) // and then zeros, which nothing ends with otherwise
	plain = append(plain, make([]byte, tokenStep-len(plain)%tokenStep)...)
	nonce := make([]byte, f.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(f.aead.Seal(nonce, nonce, plain, []byte(f.name)))
}

// resume goes on behind a token.
func (f *Feed) resume(ctx context.Context, partial bool) error {
	sealed, err := base64.RawURLEncoding.DecodeString(f.params.After)
	n := f.aead.NonceSize()
	if err != nil || len(sealed) < n {
		return errFeedToken
	}
	plain, err := f.aead.Open(nil, sealed[:n], sealed[n:], []byte(f.name))
	plain = bytes.TrimSuffix(bytes.TrimRight(plain, "\x00"), []byte{1})
	if err != nil || len(plain) < 8+len(f.id) {
		return errFeedToken
	}
	before := bson.ObjectID(plain[8 : 8+len(f.id)])
	f.count, f.at = binary.BigEndian.Uint64(plain), plain[8+len(f.id):]
	if !partial {
		return nil
	}
	if err := f.s.endFeed(ctx, before, f); err != nil {
		return err
	}
	if f.known, err = f.load(ctx, before); err != nil {
		return err
	}
	return f.hold(int64(len(f.known.present)))
}

// cipher gives what seals tokens of the database. The first call ever makes its key.
func (f *Feed) cipher(ctx context.Context) (cipher.AEAD, error) {
	coll := f.db.Collection(feedsName)
	doc, err := coll.Get(ctx, store.Name(feedKeyName))
	if errors.Is(err, errs.ErrNotFound) {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		made, err := bson.Marshal(bson.D{{Key: "_id", Value: feedKeyName}, {Key: "key", Value: key}})
		if err != nil {
			return nil, errs.Wrap(err, "make the key of feeds")
		}
		results, err := coll.Write(ctx, []store.Op{{Kind: store.Insert, Doc: made}}, false)
		if err != nil {
			return nil, err
		}
		if _, taken := errors.AsType[*store.DuplicateKeyError](results[0].Err); results[0].Err != nil && !taken {
			return nil, results[0].Err
		}
		if doc, err = coll.Get(ctx, store.Name(feedKeyName)); err != nil { // another instance may have been first
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	_, key, _ := doc.Lookup("key").BinaryOK()
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errs.Wrap(err, "read the key of feeds")
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, errs.Wrap(err, "seal tokens of feeds")
	}
	return aead, nil
}
