package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/records"
)

// How many feeds of changes are open at once, in all, of callers without a credential, and of one reader: a caller, or an
// address of callers without a name.
const (
	maxFeeds        = 512
	maxUnnamedFeeds = maxFeeds / 2
	maxReaderFeeds  = 32

	feedGrace = 5 * time.Second // to keep what the reader of a feed has seen
)

var errTooManyFeeds = &errs.Error{
	Kind: errs.Throttled, Code: "too_many_feeds", RetryAfter: 10 * time.Second,
	Message: "too many feeds of changes are open: close some, or come again later",
}

// feedPlaces are the places for feeds. The zero value has all of them free.
type feedPlaces struct {
	mu      sync.Mutex
	all     int
	unnamed int
	of      map[string]int
}

// take takes a place for a reader. leave gives it back.
func (p *feedPlaces) take(reader string, named bool) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxFeeds || !named && p.unnamed >= maxUnnamedFeeds || p.of[reader] >= maxReaderFeeds {
		return nil, errTooManyFeeds
	}
	unnamed := 0
	if !named {
		unnamed = 1
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.all++
	p.unnamed += unnamed
	p.of[reader]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		p.unnamed -= unnamed
		if p.of[reader]--; p.of[reader] == 0 {
			delete(p.of, reader)
		}
	}, nil
}

// followChanges answers with a feed of the changes of a collection.
func (s *Server) followChanges(w http.ResponseWriter, r *request) error {
	p, err := r.feedParams()
	if err != nil {
		return err
	}
	p.Owner = r.whose()
	named := r.principal.Kind != access.KindAnonymous
	if !named {
		p.Owner = r.addr().String()
	}
	leave, err := s.feeds.take(p.Owner, named)
	if err != nil {
		return err
	}
	defer leave()
	feed, err := s.cfg.Records.OpenFeed(r.Context(), r.call(), p)
	if err != nil {
		return err
	}
	st := s.newStream(w, r)
	defer feed.OnTaken(func() { st.cancel(errTaken) })()
	begun := false
	err = feed.Follow(st.ctx, func() (*records.Call, error) {
		now, err := r.again()
		if err != nil {
			st.cancel(errRefused)
			return nil, err
		}
		return now.call(), nil
	}, func() error {
		begun = true
		if r.Method == http.MethodHead { // whose answer has no body to wait for
			return errHeadOnly
		}
		check := func() error { _, err := r.again(); return err }
		if err := st.begin(check, func() string { return aComment + "id: " + feed.Token() + "\n\n" }); err != nil {
			return err
		}
		return st.out.write("id: " + feed.Token() + "\nevent: " + api.EventReady + "\ndata: {}\n\n")
	}, func(e records.FeedEvent) error { return st.out.write(changeOut(feed.Token(), e)) })
	closing, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), feedGrace)
	defer cancel()
	if err := feed.Close(closing); err != nil {
		s.log.WarnContext(closing, "what the reader of a feed has seen is not kept: they have to begin anew", "request_id", r.id, "error", err)
	}
	switch {
	case errors.Is(err, errHeadOnly):
		w.Header().Set("Content-Type", api.MediaEvents)
		return st.end(nil)
	case begun && errors.Is(err, records.ErrFeedReset):
		return st.end(st.out.write("event: " + api.EventReset + "\ndata: " + `{"message":` + strconv.Quote(records.ErrFeedReset.Message) + "}\n\n"))
	case begun && context.Cause(st.ctx) == nil && errs.KindOf(err) != errs.Internal: // the filter no longer holds, or a script refuses: who connects again is told
		return st.end(nil)
	}
	return st.end(err)
}

// errTaken ends a feed whose reader has connected again.
var errTaken = errors.New("the reader has connected again")

var errHeadOnly = errors.New("the answer to HEAD has no body")

// feedParams reads what a feed is to tell of.
func (r *request) feedParams() (p records.FeedParams, err error) {
	if p.Where, err = r.filter(); err != nil {
		return p, err
	}
	if p.Select, err = r.one(api.ParamSelect); err != nil {
		return p, err
	}
	p.After, p.Reader = r.Header.Get(api.HeaderLastEventID), r.reader()
	return p, nil
}

// reader names who reads what: a caller, and their filter.
func (r *request) reader() string {
	parts := [][]byte{[]byte(r.whose())}
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		if name == api.ParamFilter || strings.HasPrefix(name, api.ParamFilter+"[") {
			parts = append(parts, []byte(name), []byte(strings.Join(r.query[name], "\x00")))
		}
	}
	sum := digest(parts...)
	return hex.EncodeToString(sum[:])
}

// changeOut is an event as it goes out.
func changeOut(token string, e records.FeedEvent) string {
	out := append([]byte("id: "+token+"\nevent: "+e.Kind+"\ndata: {\"id\":\""), e.ID...)
	out = append(out, '"')
	if e.Record != nil {
		out = e.Record.AppendJSON(append(out, `,"item":`...))
	}
	return string(append(out, "}\n\n"...))
}
