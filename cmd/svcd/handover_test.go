package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// handover is within what time another instance goes on with what a killed one did. It holds with SOAK set.
const handover = 15 * time.Second

// TestIndexBuildsHandOver kills the instance that builds an index, while it does: of three, one builds, and another one takes
// over from it. The embedded store has one instance.
func TestIndexBuildsHandOver(t *testing.T) {
	t.Parallel()
	mongod := startMongoDB(t, mongotest.FailPoints())
	s := newSvcd(t, "STORE_URI="+mongod.URI)
	servers := []*server{s.start(), s.start(), s.start()}
	servers[0].register(t)
	for _, srv := range servers {
		until(t, "it serves the project", func() bool {
			_, err := srv.CountRecords(t.Context(), "blog", "articles", "")
			return err == nil
		})
	}
	if _, err := servers[0].CreateRecord(t.Context(), "blog", "articles", api.Record(`{"title": "one", "n": 1}`)); err != nil {
		t.Fatal(err) // an index of nothing is built at once
	}
	conn := mongod.Dial(t)
	hang := func(mode string) {
		conn.Run(t, "admin", bson.D{{Key: "configureFailPoint", Value: "hangAfterStartingIndexBuild"}, {Key: "mode", Value: mode}})
	}
	hang("alwaysOn")
	t.Cleanup(func() { hang("off") }) // or the server would not end
	s.write("projects/blog/project.yaml", strings.Replace(config, "{name: n, type: number}", "{name: n, type: number, index: [sparse]}", 1))

	began, first := time.Now(), holder{}
	until(t, "an instance builds the index", func() bool {
		first = holderOf(t, conn)
		return first.pid != 0 && building(t, conn)
	})
	t.Logf("being built after %s", ms(time.Since(began)))
	i := instanceOf(servers, first.pid)
	if i < 0 {
		t.Fatalf("none of ours holds the lease: %+v", first)
	}
	if _, _, err := servers[i].stop(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began, second := time.Now(), holder{}
	until(t, "another instance takes over", func() bool {
		second = holderOf(t, conn)
		return second.pid != first.pid
	})
	took := time.Since(began)
	t.Logf("taken over after %s", ms(took))
	if next := instanceOf(servers, second.pid); next < 0 || next == i || second.token <= first.token {
		t.Errorf("after %+v comes %+v", first, second)
	}
	if soaking() && took > handover {
		t.Errorf("taken over after %s, want %s", took, handover)
	}
	hang("off")
	for n, srv := range servers {
		if n == i {
			continue
		}
		until(t, "the indexes are as declared", func() bool {
			list, err := srv.Projects().List(t.Context(), client.Query{})
			if err != nil || len(list.Items) != 1 {
				return false
			}
			st, err := srv.ProjectStatus(t.Context(), list.Items[0].ID)
			if err != nil || st.ObservedGeneration != 2 {
				return false
			}
			for _, c := range st.Conditions {
				if c.Type == "IndexesConverged" && c.Status == "True" && c.ObservedGeneration == 2 {
					return true
				}
			}
			return false
		})
	}
	if last := holderOf(t, conn); last.pid != 0 {
		t.Errorf("the lease is not given back: %+v", last)
	}
}

// soaking says whether the true figures are wanted.
func soaking() bool { return os.Getenv("SOAK") != "" }

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// holder is who has the lease of the project's indexes.
type holder struct {
	pid   int // 0: nobody
	token int64
}

func holderOf(t *testing.T, conn *mongotest.Conn) (h holder) {
	t.Helper()
	reply := conn.Run(t, "svc_blog", bson.D{{Key: "find", Value: "svc.leases"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: "indexes"}}}})
	var found struct {
		Cursor struct {
			FirstBatch []struct {
				Holder string
				Token  int64
			} `bson:"firstBatch"`
		}
	}
	if err := bson.Unmarshal(reply, &found); err != nil {
		t.Fatal(err)
	}
	for _, l := range found.Cursor.FirstBatch {
		h.token = l.Token
		if l.Holder != "" {
			h.pid, _ = strconv.Atoi(l.Holder[strings.LastIndexByte(l.Holder, ':')+1:])
		}
	}
	return h
}

// building says whether the server builds the index.
func building(t *testing.T, conn *mongotest.Conn) bool {
	t.Helper()
	reply := conn.Run(t, "admin", bson.D{{Key: "currentOp", Value: 1}, {Key: "command.createIndexes", Value: bson.D{{Key: "$exists", Value: true}}}})
	ops, _ := reply.Lookup("inprog").Array().Values()
	return len(ops) > 0
}

func instanceOf(servers []*server, pid int) int {
	for i, srv := range servers {
		if srv.cmd.Process.Pid == pid {
			return i
		}
	}
	return -1
}
