package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// followPause is how long a follower waits before it looks again.
const followPause = 2 * time.Second

// overlap is how far back each look goes: entries of other instances may come a little later than their time says.
const overlap = 10 * time.Second

// follow prints the entries of one page, the oldest first, and then those that come.
func follow(ctx context.Context, c *client.Client, opts *listOptions, q client.Query) error {
	seen := map[string]time.Time{}
	next := q
	for {
		page, err := readPage(ctx, c, opts.st.GivenNamespace(), next)
		if err != nil {
			return err
		}
		latest := time.Time{}
		for _, e := range slices.Backward(page.Items) {
			if _, ok := seen[e.ID]; !ok {
				if err := opts.line(e); err != nil {
					return err
				}
			}
			seen[e.ID], latest = e.At.Time, e.At.Time
		}
		if !latest.IsZero() {
			from := latest.Add(-overlap)
			if next, err = since(q, from); err != nil {
				return err
			}
			for id, at := range seen { // what no look can find again
				if at.Before(from) {
					delete(seen, id)
				}
			}
		}
		timer := time.NewTimer(followPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// since is a query of what is not older than a time: as many entries as a page can have.
func since(q client.Query, from time.Time) (client.Query, error) {
	all := []json.RawMessage{}
	if q.Filter != "" {
		all = append(all, json.RawMessage(q.Filter))
	}
	bound, err := json.Marshal(map[string]any{"at": map[string]string{"$gte": from.UTC().Format(time.RFC3339Nano)}})
	if err != nil {
		return q, fmt.Errorf("make the filter: %w", err)
	}
	filter, err := json.Marshal(map[string]any{"$and": append(all, bound)})
	q.Filter, q.Limit = string(filter), maxEntries
	return q, err
}

// maxEntries is how many entries the service gives in one page.
const maxEntries = 1000

// line prints an entry of a follower.
func (opts *listOptions) line(e api.AuditEntry) error {
	p := opts.st.Printer()
	switch {
	case p.Structured():
		return output.JSONLine(p.W, e)
	case p.Format == output.FormatName:
		_, err := io.WriteString(p.W, "entry/"+output.Escape(e.ID)+"\n")
		return err
	}
	_, err := fmt.Fprintf(p.W, "%s   %-8s   %s   %s   %s\n",
		e.At.Format(time.RFC3339), output.Escape(e.Op), output.Escape(What(e)), output.Escape(Who(e)), output.Escape(e.Address))
	return err
}
