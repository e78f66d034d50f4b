package tui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// documentsQuery says which records are shown, and how. It is compared.
type documentsQuery struct {
	filter  string // JSON; "": all
	words   string // to look for, by the first search of the collection
	sort    string // such as -publishedAt,title; "": as the collection says
	columns string // that are shown, such as title,seo.title; "": the first plain ones
}

// parseFind takes a line apart: a filter in JSON, and words, each of which may be left out.
func parseFind(line string) (filter, words string, err error) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "{") {
		return "", line, nil
	}
	dec := json.NewDecoder(strings.NewReader(line))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return "", "", &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: "the filter is not JSON: " + err.Error(), Hint: `as in {"status": "published", "views": {"$gte": 10}}`,
		}
	}
	return string(raw), strings.TrimSpace(line[dec.InputOffset():]), nil
}

// find is what parseFind takes apart.
func (q documentsQuery) find() string { return strings.TrimSpace(q.filter + " " + q.words) }

// How many records are shown.
const (
	// rereadRecords is how many are read anew at most when some of them change: where there are more, changes are put in, and those that come are counted.
	rereadRecords = 500
	mostRecords   = 10_000
	cheapToCount  = 100_000 // records in all that are counted again and again
	smallLimit    = 10      // of a collection that by itself gives none
)

// documentReader asks for records. It is for several goroutines, and says to each what is to be asked for now.
type documentReader struct {
	client *client.Client
	of     api.CollectionDescription // Name alone, until it is described
	ns     string

	mu    sync.Mutex
	query documentsQuery
	want  int    // records; 0: a page
	token string // of the last change
	count bool   // how many there are in all is to be asked for

	described *api.CollectionDescription
}

func (r *documentReader) now() (q documentsQuery, want int, count bool, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.query, r.want, r.count, r.token
}

func (r *documentReader) set(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
}

// documentsPage is a part of what a query gives.
type documentsPage struct {
	query   documentsQuery
	offset  int // of its first record; 0 begins anew
	records []api.Record
	next    string
	more    bool
	total   *int64                     // nil: it was not asked for
	about   *api.CollectionDescription // nil: who asks may not know it
}

// read asks for all that is shown.
func (r *documentReader) read(ctx context.Context) (*documentsPage, error) {
	q, want, count, _ := r.now()
	if r.described == nil {
		about, err := r.client.DescribeCollection(ctx, r.ns, r.of.Name)
		if err != nil && !client.IsStatus(err, http.StatusForbidden) {
			return nil, err
		}
		if err == nil {
			r.described = about
		}
	}
	page, err := r.page(ctx, q, nil, count)
	for err == nil && len(page.records) < want && page.more {
		var next *documentsPage
		if next, err = r.page(ctx, q, page, false); err == nil {
			page.records, page.next, page.more = append(page.records, next.records...), next.next, next.more && len(next.records) > 0
		}
	}
	return page, err
}

// wordsFilter is what words mean where a collection has no search: one of its texts has them, in whatever case. Texts in objects and lists
// are not looked at.
func wordsFilter(of *api.CollectionDescription, filter, words string) (string, error) {
	var texts []map[string]any
	for _, f := range of.Fields {
		if f.Type == "string" {
			texts = append(texts, map[string]any{f.Name: map[string]any{"$regex": regexp.QuoteMeta(words), "$options": "i"}})
		}
	}
	if len(texts) == 0 {
		return "", &command.Error{
			Exit: command.ExitUsage, Code: "usage", Message: of.Name + " has neither a search nor texts of its own to look for words in", Hint: `give a filter, such as {"views": {"$gte": 10}}`,
		}
	}
	all := []any{map[string]any{"$or": texts}}
	if filter != "" {
		all = append(all, json.RawMessage(filter))
	}
	out, err := json.Marshal(map[string]any{"$and": all})
	return string(out), err
}

// page asks for the first page, or for the one behind another.
func (r *documentReader) page(ctx context.Context, q documentsQuery, behind *documentsPage, count bool) (*documentsPage, error) {
	by := client.Query{Filter: q.filter, Q: q.words, Sort: q.sort}
	if q.words != "" && r.described != nil && len(r.described.Search) == 0 {
		filter, err := wordsFilter(r.described, q.filter, q.words)
		if err != nil {
			return nil, err
		}
		by.Q, by.Filter = "", filter
	}
	offset := 0
	if behind != nil {
		if offset = behind.offset + len(behind.records); behind.next != "" {
			by.After = behind.next
		} else {
			by.Offset = offset
		}
	} else if count && (r.described == nil || r.described.YourPermissions["get"].Count) {
		by.Count = true
	}
	list, err := r.client.ListRecords(ctx, r.ns, r.of.Name, by)
	if err == nil && list.Limit == 0 {
		by.Limit = smallLimit
		list, err = r.client.ListRecords(ctx, r.ns, r.of.Name, by)
	}
	if err != nil {
		return nil, err
	}
	return &documentsPage{query: q, offset: offset, records: list.Items, next: list.Next, more: list.HasMore, total: list.Total, about: r.described}, nil
}

// What is heard of changes.
type (
	documentsLive  struct{ live bool } // whether changes are told from now on
	documentsReset struct{}            // which ones there were is not known any more
	documentChange struct{ api.Change }
)

// follow listens to changes, until ctx ends. Where a collection tells of none, it says so and rests.
func (r *documentReader) follow(ctx context.Context, emit func(tea.Msg)) error {
	for {
		q, _, _, token := r.now()
		err := r.client.FollowChanges(ctx, r.ns, r.of.Name, client.Query{Filter: q.filter}, token, func(c api.Change) error {
			if c.Token != "" {
				r.set(func() { r.token = c.Token })
			}
			if c.Event == api.EventReady {
				emit(documentsLive{true})
			} else {
				emit(documentChange{c})
			}
			return nil
		})
		if ctx.Err() != nil {
			return err
		}
		refused, ok := errors.AsType[*client.Error](err)
		switch {
		case errors.Is(err, client.ErrReset), ok && refused.Status == http.StatusGone:
			r.set(func() { r.token = "" })
			emit(documentsReset{})
		case ok && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests:
			emit(documentsLive{false})
			<-ctx.Done()
			return nil
		default:
			return err
		}
	}
}

// restBeforeRead is how long changes are let come before records are read anew.
const restBeforeRead = 500 * time.Millisecond
