package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

// slow is a body that ends when it is told to.
func slow(body io.Reader) option {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", "application/zstd")
		r.Body, r.ContentLength = io.NopCloser(body), -1
	}
}

// A run can be followed from its beginning, left, and followed on from where one was, by its own id and by its snapshot's.
func TestSnapshotEvents(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		streamed := s.do("POST", snaps, admin, text(`{"profile": "daily"}`), header("Accept", "text/event-stream"))
		streamed.contains(t, http.StatusOK, "event: progress\n", `"operation":"snapshot","name":"daily"`, `"phase":"collections"`, `"phase":"media"`, `"linked":3`,
			"event: done\n", `"status":"succeeded"`)
		at := streamed.header.Get("Location")
		if got := s.do("GET", at, admin); !strings.Contains(got.body, `"phases":[{"phase":"plan"`) || !strings.Contains(got.body, `{"phase":"collections","done":12,"total":12,`) {
			t.Error(got.body)
		}
		var run api.Run
		unmarshal(t, s.do("GET", at, admin).body, &run)
		if run.Cancellable {
			t.Error("it has ended, and can be cancelled")
		}
		if p := run.Progress; p.Linked != 3 || p.Written == 0 || p.Phase != "manifest" {
			t.Errorf("%+v", p)
		}
		id := resultOf(t, run).Snapshot
		if run.Subject != id {
			t.Errorf("it is about %q, and took %q", run.Subject, id)
		}
		whole := s.do("GET", snaps+"/"+run.ID+"/events", admin)
		if events(whole.body) != events(streamed.body) {
			t.Errorf("%s\n\n%s", whole.body, streamed.body)
		}
		last := run.Events[len(run.Events)-1].ID
		rest := s.do("GET", snaps+"/"+id+"/events", admin, header("Last-Event-ID", fmt.Sprint(last-1)))
		if rest.contains(t, http.StatusOK, fmt.Sprintf("id: %d\nevent: done\n", last)); strings.Count(rest.body, "event: ") != 1 {
			t.Error(rest.body)
		}
		s.do("GET", snaps+"/"+id+"/events", admin, header("Last-Event-ID", fmt.Sprint(last))).want(t, http.StatusNoContent)
		s.do("GET", snaps+"/"+id+"/events", admin, header("Last-Event-ID", "x")).want(t, http.StatusBadRequest)
		if got := s.do("POST", snaps, admin, text(`{"profile": "daily"}`), header("Accept", "text/event-stream"), header("Idempotency-Key", "k")).String(); !strings.HasPrefix(got, "400 unsupported: ") {
			t.Error(got)
		}
	})
}

// events leaves out the comments of a stream.
func events(stream string) string {
	var out strings.Builder
	for line := range strings.Lines(stream) {
		if !strings.HasPrefix(line, ":") && strings.TrimSpace(line) != "" {
			out.WriteString(line)
		}
	}
	return out.String()
}

// A start with a key is one start.
func TestSnapshotOnce(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		first := s.do("POST", snaps, admin, text(`{"profile": "daily"}`), header("Idempotency-Key", "k"))
		first.contains(t, http.StatusAccepted, `"cancellable":true`)
		again := s.do("POST", snaps, admin, text(`{"profile": "daily"}`), header("Idempotency-Key", "k"))
		if again.field("id") != first.field("id") || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %s", again, again.body)
		}
		s.ended(first.header.Get("Location"), admin)
		if got := s.do("GET", snaps+"/runs", admin).body; strings.Count(got, `"kind":"snapshot"`) != 1 {
			t.Error(got)
		}
		if got := s.do("POST", snaps+"/import", admin, archived("x"), header("Idempotency-Key", "i")).String(); !strings.HasPrefix(got, "400 unsupported: ") {
			t.Error(got)
		}
	})
}

// One run goes on at a time: others are told which. Cancelled, it leaves nothing, and the next one goes.
func TestSnapshotBusyAndCancel(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		id := s.take("daily").ID
		whole := s.download(id, admin)
		s.do("DELETE", snaps+"/"+id, admin).want(t, http.StatusNoContent)
		files := len(s.snapshotFiles("media"))

		from, to := io.Pipe()
		answered := make(chan answer)
		go func() { answered <- s.do("POST", snaps+"/import", admin, slow(from)) }()
		if _, err := io.WriteString(to, whole[:len(whole)/2]); err != nil {
			t.Error(err)
		}
		var run string
		eventually(t, func() string {
			var list api.List[api.Run]
			unmarshal(t, s.do("GET", snaps+"/runs?status=running", admin).body, &list)
			if len(list.Items) != 1 {
				return fmt.Sprint(list)
			}
			run = list.Items[0].ID
			return ""
		})
		busy := "409 snapshots_busy: the project is busy with another run of its snapshots, the import run " + run + ": try again when that has ended, or cancel it"
		for _, rt := range [][2]string{{snaps, `{"profile": "daily"}`}, {"/api/v1/_/media/_/admin/backup", ``}} {
			if got := s.do("POST", rt[0], admin, text(rt[1])).String(); got != busy {
				t.Error(got)
			}
		}
		if got := s.do("GET", "/api/v1/_/media/_/admin/backup/download", admin).String(); got != busy {
			t.Error(got)
		}
		s.do("POST", snaps+"/"+run+"/cancel", admin).contains(t, http.StatusAccepted, `"cancelRequested":true`)
		defer to.Close() // it waits for more, and need not
		if got := (<-answered).String(); got != "409 run_cancelled: the run was cancelled" {
			t.Error(got)
		}
		s.do("GET", snaps+"/"+run+"/events", admin).contains(t, http.StatusOK, "event: error\n", `"status":"cancelled"`)
		if got := s.snapshotFiles("media"); len(got) != files {
			t.Errorf("it has left %q", got)
		}
		s.do("POST", snaps+"/import", admin, archived(whole)).want(t, http.StatusCreated)
	})
}

// hangOn opens a connection, and sends a request on it.
func (s *service) hangOn(head, body string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head+" HTTP/1.1\r\nHost: x\r\nX-Admin-Token: "+adminToken+"\r\n"+body); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// A sender who goes in the middle of an import, and a reader who goes in the middle of a download, leave nothing behind.
func TestSnapshotClientsGo(t *testing.T) {
	onSnapshots(t, func(t *testing.T, s mediaService) {
		big := strings.Repeat("0123456789abcdef", 1<<14)
		for i := range 40 { // so that it does not fit into what connections buffer
			body := fmt.Sprintf("%d %s", i, scrambled(big, i))
			s.do("POST", "/api/v1/_/media/open", admin, form(part{name: "data", content: `{}`}, part{name: "file", file: "a.bin", content: body})).want(t, http.StatusCreated)
		}
		id := s.take("daily").ID
		whole := s.download(id, admin)

		conn := s.hangOn("GET "+snaps+"/"+id+"/download", "\r\n")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Errorf("%q, %v", line, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, func() string { // the reader is gone: it can be deleted
			if got := s.do("DELETE", snaps+"/"+id, admin); got.status != http.StatusNoContent {
				return got.String()
			}
			return ""
		})
		files := len(s.snapshotFiles("media"))

		half := whole[:len(whole)/2]
		conn = s.hangOn("POST "+snaps+"/import", fmt.Sprintf("Content-Type: application/zstd\r\nContent-Length: %d\r\n\r\n%s", len(whole), half))
		eventually(t, func() string {
			if got := s.do("GET", snaps+"/runs?status=running", admin).body; !strings.Contains(got, `"kind":"import"`) {
				return got
			}
			return ""
		})
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, func() string {
			var list api.List[api.Run]
			unmarshal(t, s.do("GET", snaps+"/runs?limit=1", admin).body, &list)
			if run := list.Items[0]; run.Kind != "import" || run.Status != "cancelled" && run.Status != "failed" {
				return fmt.Sprintf("%+v", run)
			}
			if got := s.snapshotFiles("media"); len(got) != files {
				return fmt.Sprintf("it has left %q", got)
			}
			return ""
		})
	})
}

// scrambled is a text that hardly compresses, another for each n.
func scrambled(text string, n int) string {
	out, x := []byte(text), uint32(n+1)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return string(out)
}
