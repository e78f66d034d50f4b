package tui

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// searchRow is a search of a collection.
type searchRow struct {
	collection, name, mode string

	indexed bool // it has an index, of which state and queue tell
	state   api.SearchState
	queue   api.SearchQueue // of the collection
	pending int             // of the collection, without who waits for a vector

	described bool // of what comes now something is known
	about     api.SearchDescription
}

// id is that of the row.
func (r *searchRow) id() string { return "search/" + r.place() }

// place is what the row is called.
func (r *searchRow) place() string { return r.collection + "/" + r.name }

// searchRead is what the service says of searches.
type searchRead struct {
	rows   []searchRow
	groups []api.EmbeddingGroup
	// redacted: what providers said is left out of groups; refused: who asks may not see groups at all.
	redacted, refused bool
}

func (s *searchRead) row(id string) *searchRow {
	return first(s.rows, func(r *searchRow) bool { return r.id() == id })
}

// busy says that an index is being made, or records wait.
func (s *searchRead) busy() bool {
	return slices.ContainsFunc(s.rows, func(r searchRow) bool {
		return r.building() || r.queue.Pending+r.queue.InFlight > 0
	})
}

// building says that an index is being made.
func (r *searchRow) building() bool {
	return r.state.State == "building" || r.state.State == "rebuilding"
}

// descriptionsFor is how long descriptions of collections are good for: they change with the config alone.
const descriptionsFor = 30 * time.Second

// searchReader asks for what searches are, and remembers which routes refuse it. It is used by one read at a time.
type searchReader struct {
	client    *client.Client
	namespace string
	now       func() time.Time

	collections   []api.CollectionDescription
	collectionsAt time.Time // zero: not asked yet
	noWorker      bool      // the queue of the whole project is refused
	redacted      bool      // what is for who runs the service is refused
}

func (s *searchReader) read(ctx context.Context) (*searchRead, error) {
	if err := s.describe(ctx); err != nil {
		return nil, err
	}
	queues, err := s.queues(ctx)
	if err != nil {
		return nil, err
	}
	out := &searchRead{rows: rowsOf(queues, s.collections)}
	return out, s.embedding(ctx, out)
}

// describe asks which searches there are. Who may not know that sees those with an index.
func (s *searchReader) describe(ctx context.Context) error {
	if !s.collectionsAt.IsZero() && s.now().Sub(s.collectionsAt) < descriptionsFor {
		return nil
	}
	list, err := s.client.ListCollections(ctx, s.namespace)
	switch {
	case client.IsStatus(err, http.StatusForbidden):
		s.collections = nil
	case err != nil:
		return err
	default:
		s.collections = list.Items
	}
	s.collectionsAt = s.now()
	return nil
}

// queues asks how the indexes stand: those of the project, or of each collection where only that is allowed.
func (s *searchReader) queues(ctx context.Context) ([]api.CollectionQueue, error) {
	if !s.noWorker {
		worker, err := s.client.SearchWorker(ctx, s.namespace)
		if err == nil {
			return worker.Collections, nil
		}
		if !client.IsStatus(err, http.StatusForbidden) || s.collections == nil {
			return nil, err
		}
		s.noWorker = true
	}
	var out []api.CollectionQueue
	for _, c := range s.collections {
		if len(c.Search) == 0 {
			continue
		}
		queue, err := s.client.SearchQueue(ctx, s.namespace, c.Name)
		if client.IsStatus(err, http.StatusNotFound) { // another config is served meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, api.CollectionQueue{Collection: c.Name, SearchQueue: *queue})
	}
	return out, nil
}

// embedding asks for the groups, with what providers said as far as the caller may know it.
func (s *searchReader) embedding(ctx context.Context, out *searchRead) error {
	if !s.redacted {
		status, err := s.client.EmbeddingStatus(ctx)
		if err == nil {
			out.groups = status.Groups
			return nil
		}
		if !client.IsStatus(err, http.StatusForbidden) {
			return err
		}
		s.redacted = true
	}
	out.redacted = true
	status, err := s.client.ProjectEmbeddingStatus(ctx, s.namespace)
	switch {
	case client.IsStatus(err, http.StatusForbidden):
		out.refused = true
	case err != nil:
		return err
	default:
		out.groups = status.Groups
	}
	return nil
}

// rowsOf puts together what is known of searches, in the order of the config as far as that is known.
func rowsOf(queues []api.CollectionQueue, collections []api.CollectionDescription) (rows []searchRow) {
	for _, c := range collections {
		queue := api.CollectionQueue{Collection: c.Name}
		if i := slices.IndexFunc(queues, func(q api.CollectionQueue) bool { return q.Collection == c.Name }); i >= 0 {
			queue = queues[i]
		}
		for _, about := range c.Search {
			row := rowOf(queue, about.Name)
			row.mode, row.described, row.about = about.Mode, true, about
			rows = append(rows, row)
		}
		for _, state := range queue.Searches { // such as find nothing for the caller
			if !slices.ContainsFunc(c.Search, func(d api.SearchDescription) bool { return d.Name == state.Name }) {
				rows = append(rows, rowOf(queue, state.Name))
			}
		}
	}
	for _, queue := range queues {
		if !slices.ContainsFunc(collections, func(c api.CollectionDescription) bool { return c.Name == queue.Collection }) {
			for _, state := range queue.Searches {
				rows = append(rows, rowOf(queue, state.Name))
			}
		}
	}
	return rows
}

func rowOf(queue api.CollectionQueue, name string) searchRow {
	row := searchRow{collection: queue.Collection, name: name, queue: queue.SearchQueue, pending: queue.Pending}
	for _, state := range queue.Searches {
		row.pending -= state.Waiting
		if state.Name == name {
			row.indexed, row.state, row.mode = true, state, state.Mode
		}
	}
	row.pending = max(row.pending, 0)
	return row
}

// searchValue is a search, with how its index stands.
type searchValue struct {
	Collection string                 `json:"collection"`
	Search     *api.SearchDescription `json:"search,omitempty"`
	Index      *api.SearchState       `json:"index,omitempty"`
}

func (s *search) valueOf(id string) any {
	if s.read == nil {
		return nil
	}
	if row := s.read.row(id); row != nil {
		v := searchValue{Collection: row.collection}
		if row.described {
			v.Search = &row.about
		}
		if row.indexed {
			v.Index = &row.state
		}
		return v
	}
	for _, g := range s.read.groups {
		if id == groupID(g) {
			return g
		}
		for _, m := range g.Members {
			if id == memberID(g, m) {
				return m
			}
		}
	}
	return nil
}
