package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/api"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ got, want string }{
		{api.UserPath("65f0"), "/api/v1/user/65f0"},
		{api.ProjectPath("65f0"), "/api/v1/project/65f0"},
		{api.ProjectStatusPath("65f0"), "/api/v1/project/65f0/status"},
		{api.RecordsPath("blog", "articles"), "/api/v1/_/blog/articles"},
		{api.RecordPath("blog", "articles", "65f0"), "/api/v1/_/blog/articles/65f0"},
		{api.RecordCountPath("blog", "articles"), "/api/v1/_/blog/articles/_count"},
		{api.ReloadPath("blog"), "/api/v1/_/blog/_/admin/reload"},
		{api.CollectionsPath("blog"), "/api/v1/_/blog/_/collections"},
		{api.CollectionPath("blog", "articles"), "/api/v1/_/blog/_/collections/articles"},
		// A value never becomes a path step, a query or another placeholder.
		{api.RecordPath("a/b", "c?d#e", "{id}"), "/api/v1/_/a%2Fb/c%3Fd%23e/%7Bid%7D"},
		{api.RecordPath("..", ".", "%2F"), "/api/v1/_/%2E%2E/%2E/%252F"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

func TestTimeJSON(t *testing.T) {
	t.Parallel()
	in := time.Date(2026, 3, 1, 13, 4, 5, 60_700_000, time.FixedZone("", 3600))
	got, err := json.Marshal(struct {
		At   api.Time `json:"at"`
		Gone api.Time `json:"gone,omitzero"`
		None api.Time `json:"none"`
	}{At: api.Time{Time: in}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"at":"2026-03-01T12:04:05.060Z","none":null}`, string(got)); diff != "" {
		t.Fatal(diff)
	}
	for _, tc := range []struct {
		in   string
		want time.Time
		bad  bool
	}{
		{in: `"2026-03-01T13:04:05.06+01:00"`, want: time.Date(2026, 3, 1, 12, 4, 5, 60_000_000, time.UTC)},
		{in: `null`},
		{in: `"yesterday"`, bad: true},
		{in: `12`, bad: true},
	} {
		var v api.Time
		err := json.Unmarshal([]byte(tc.in), &v)
		if (err != nil) != tc.bad || !v.Equal(tc.want) {
			t.Errorf("%s: got %v, %v", tc.in, v, err)
		}
	}
}

// A list without items must say so: clients iterate over items without a nil check.
func TestListKeepsItsMembers(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(api.List[api.Record]{Items: []api.Record{}, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"items":[],"limit":20,"offset":0,"hasMore":false}`, string(got)); diff != "" {
		t.Fatal(diff)
	}
}
