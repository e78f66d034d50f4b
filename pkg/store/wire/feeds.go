package wire

import (
	"bytes"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
)

// Feeds tells of the feeds of all databases of a store, for change streams of all of them.
type Feeds interface {
	// Positions gives the end of the feed of each database in which anything was ever written, those that are gone included.
	Positions(ctx context.Context) (map[string]store.Position, error)
	// Beginning is the place in the feed of a database before all that was ever written to it.
	Beginning(database string) store.Position
}

const (
	// newFeedsEvery is how often a stream of all databases looks for new ones.
	newFeedsEvery = 500 * time.Millisecond
	// maxFeeds is how many databases there may be in a stream: each event has the place in all of them in its resume token.
	maxFeeds = 1000
)

// places are where a stream stands in the feeds of the databases that it is of, by the store's name.
type places map[string]store.Position

// token is places as a client keeps them: the position itself where the stream is of one database.
type token []byte

func (t token) value() bson.D {
	return bson.D{{Key: "_data", Value: strings.ToUpper(hex.EncodeToString(t))}}
}

func (s *stream) token() bson.D { return s.at.value() }

func (p places) token(all bool) (token, error) {
	if !all {
		for _, at := range p {
			return token(at), nil
		}
	}
	d := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		d = append(d, bson.E{Key: name, Value: bson.Binary{Data: p[name]}})
	}
	return bson.Marshal(d)
}

// ends is where the feeds stand of all databases that a client may reach.
func (s *Server) ends(ctx context.Context) (places, error) {
	all, err := s.opts.Feeds.Positions(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(name string, _ store.Position) bool { return !s.reachable(name) })
	return all, checkFeeds(all)
}

func checkFeeds(p places) error {
	if len(p) > maxFeeds {
		return fail(codeExceededMemory, "there are more than %d databases: watch those that matter one by one", maxFeeds)
	}
	return nil
}

// resumed reads a resume token. Of a stream of all databases it names them: those are left out that can't be reached.
func (k *call) resumed(s *stream, t bson.Raw) (places, error) {
	bad := fail(codeInvalidResumeToken, "the resume token is not one that this server gave")
	text, ok := t.Lookup("_data").StringValueOK()
	data, err := hex.DecodeString(text)
	if !ok || err != nil || len(data) == 0 {
		return nil, bad
	}
	if !s.all {
		return places{k.server.storeName(k.db): data}, nil
	}
	if bson.Raw(data).Validate() != nil {
		return nil, bad
	}
	p := places{}
	for it := document.NewIter(data); it.Next(); {
		_, at, ok := it.Value().BinaryOK()
		if !ok || len(at) == 0 {
			return nil, bad
		}
		if name := string(it.Key()); k.server.reachable(name) {
			p[name] = slices.Clone(at)
		}
	}
	return p, checkFeeds(p)
}

// start has the stream watch. It ends with close, or by itself if it can't go on.
func (s *stream) start() {
	ctx, cancel := context.WithCancel(s.server.life)
	s.cancel = cancel
	first := maps.Clone(s.places)
	if s.all { // there may be nothing yet that would give a sign
		s.events <- streamed{at: s.at} // it has room
	}
	s.server.running.Go(func() {
		defer cancel()
		defer close(s.events)
		if s.all {
			s.err = s.watchAll(ctx, first)
			return
		}
		for name, at := range first {
			s.err = s.watch(ctx, name, at)
		}
	})
}

// watch tells what happens in one database.
func (s *stream) watch(ctx context.Context, database string, after store.Position) error {
	w := store.Watch{After: after, Documents: true, OnIdle: func(p store.Position) error { return s.idle(ctx, database, p) }}
	if s.collection != "" {
		w.Collections = []string{s.collection}
	}
	return s.server.opts.Store.Database(database).Watch(ctx, w, func(e store.Event) error { return s.tell(ctx, database, e) })
}

// idle tells that there is nothing new up to a position.
func (s *stream) idle(ctx context.Context, database string, p store.Position) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.all && bytes.Equal(s.places[database], p) {
		return nil
	}
	s.places[database] = slices.Clone(p)
	at, err := s.places.token(s.all)
	if err != nil {
		return err
	}
	return s.send(ctx, streamed{at: at})
}

// watchAll tells what happens in all databases, those included that come into being meanwhile. What happens in one comes in the order in
// which it happened; two databases have none between them.
func (s *stream) watchAll(ctx context.Context, first places) error {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	failed := make(chan error, 1)
	watch := func(name string, after store.Position) {
		watches.Go(func() {
			err := s.watch(ctx, name, after)
			select {
			case failed <- err:
			default: // the first one counts
			}
		})
	}
	for name, after := range first {
		watch(name, after)
	}
	look := time.NewTicker(newFeedsEvery)
	defer look.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return store.Ended(ctx)
		case <-look.C:
		}
		added, err := s.newFeeds(ctx)
		if err != nil {
			return err
		}
		for _, name := range added {
			watch(name, s.server.opts.Feeds.Beginning(name))
		}
	}
}

// newFeeds takes up the databases that have come into being, from their beginning on.
func (s *stream) newFeeds(ctx context.Context) (added []string, err error) {
	now, err := s.server.ends(ctx)
	if err != nil {
		return nil, err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	for name := range now {
		if _, known := s.places[name]; !known {
			s.places[name] = s.server.opts.Feeds.Beginning(name)
			added = append(added, name)
		}
	}
	return added, checkFeeds(s.places)
}

// begun waits for the first sign of the Watch: that of one which refuses where it is to begin is its end.
func (s *stream) begun(ctx context.Context) error {
	select {
	case e, ok := <-s.events:
		if !ok {
			return s.err
		}
		s.pending = &e
		return nil
	case <-ctx.Done():
		return store.Ended(ctx)
	}
}
