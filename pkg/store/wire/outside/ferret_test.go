package outside_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/wire"
)

// runFerret runs the integration tests of FerretDB v1 with a MongoDB beside the endpoint. Each is a process of its own, since
// one that panics would take the others along.
func runFerret(t *testing.T, dir string) (results []result) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "..", ".git")); err != nil {
		t.Fatalf("%s is no clone of FerretDB's branch main-v1: its tests look for .git", filepath.Dir(dir))
	}
	binary := buildTests(t, dir, ".")
	uri := serve(t, wire.Testing{
		NoTimes: true,
		// It looks for what only FerretDB tells of its own plans.
		Explain: bson.D{{Key: "filterPushdown", Value: false}, {Key: "sortPushdown", Value: false}, {Key: "limitPushdown", Value: false}},
	})
	compare, control := &reference{}, &reference{} // failed tests leave something behind: those of the control are not to be compared with
	chosen := regexp.MustCompile(*tests)
	for _, name := range listTests(t, dir, binary) {
		if !chosen.MatchString(name) {
			continue
		}
		args := []string{
			"-test.run", "^" + name + "$", "-test.parallel", "4", "-test.timeout", "10m", "-log-level", "ERROR", "-target-backend", "mongodb", "-target-url",
		}
		run := func(more ...string) []result {
			return runTests(t, dir, binary, 11*time.Minute, nil, append(args, more...)...)
		}
		found := run(uri, "-compat-url", compare.uri(t))
		if !compare.up() {
			found = run(uri, "-compat-url", compare.uri(t))
		}
		if !compare.up() {
			found = []result{{Name: name, Outcome: skipped, Text: mongodDown}}
		}
		suite := "FerretDB: compared with a MongoDB"
		if !strings.Contains(name, "Compat") {
			suite = "FerretDB: what it expects"
			if slices.ContainsFunc(found, func(r result) bool { return r.Outcome == failed }) {
				leaveOut(found, run(control.uri(t)))
			}
		}
		for _, r := range found {
			r.Suite = suite
			results = append(results, r)
		}
	}
	return results
}

// leaveOut has those tests count as skipped that have failed in the control as well.
func leaveOut(results, control []result) {
	fails := map[string]bool{}
	for _, r := range control {
		fails[r.Suite+r.Name] = r.Outcome == failed
	}
	for i := range results {
		if r := &results[i]; r.Outcome == failed && fails[r.Suite+r.Name] {
			r.Outcome, r.Text = skipped, mongodFails
		}
	}
}

const mongodDown = "the MongoDB that it is compared with has gone down"

// reference is the MongoDB that the endpoint is compared with. One that goes down is replaced.
type reference struct{ server *mongotest.Server }

func (r *reference) uri(t *testing.T) string {
	t.Helper()
	if !r.up() {
		server, err := mongotest.Start(t.Context())
		if err != nil {
			t.Fatalf("a MongoDB to compare with: %v", err)
		}
		t.Cleanup(func() { _ = server.Stop() }) // it may have gone down
		r.server = server
	}
	return r.server.URI
}

func (r *reference) up() bool {
	if r.server == nil {
		return false
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(r.server.URI, "mongodb://"), "/")
	conn, err := net.DialTimeout("tcp", address, 5*time.Second) //nolint:noctx // a look whether it is there
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
