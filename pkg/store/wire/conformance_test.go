package wire_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/storetest"
)

// TestConformance runs the adapter for MongoDB against this endpoint: what is promised of a store holds through the protocol, too.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.RunAround(t, func(t *testing.T) store.Store {
		t.Helper()
		s := serve(t, nil)
		s.AllowBookkeeping()
		st, err := mongo.Open(t.Context(), mongo.Options{URI: s.uri()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return protocol{st}
	})
}

// protocol is a store that is reached through the endpoint.
type protocol struct{ store.Store }

// Lacks says what does not come through.
func (protocol) Lacks(test string) string {
	for _, c := range []struct{ part, why string }{
		{"/views/", "the adapter reads at the time of an earlier answer; here a snapshot begins with the first read that asks for one"},
		{"/transactions/transfers", "it reads a view"},
		{"/feed/every_kind_of_write", "what a transaction has written to one document is one event"},
		{"/page_ends", "it reads a view"},
		{"/aggregate/failures", "it reads a view"},
		{"/aggregate/views", "it reads a view"},
		{"/aggregate/explain", "the endpoint tells how documents of the pipeline's own collection are found, and not those of others"},
		{"/filters/strings_and_patterns", "the adapter sends a server patterns that look behind, which are refused here"},
		{"/random_queries", "the adapter sends a server patterns that look behind, which are refused here"},
	} {
		if strings.Contains(test+"/", c.part) {
			return c.why
		}
	}
	return ""
}
