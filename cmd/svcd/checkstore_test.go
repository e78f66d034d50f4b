package main

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// filled is a svcd that has some records and has been stopped.
func filled(t *testing.T, env ...string) svcd {
	t.Helper()
	s := newSvcd(t, env...)
	srv := s.start()
	srv.register(t)
	for i := range 50 {
		rec := fmt.Sprintf(`{"title":"a title %d","n":%d}`, i, i)
		if _, err := srv.CreateRecord(t.Context(), "blog", "articles", api.Record(rec)); err != nil {
			t.Fatal(err)
		}
	}
	inUse := fmt.Sprintf("is in use by another process (pid %d): stop that one first, or use another directory\n", srv.cmd.Process.Pid)
	for _, args := range [][]string{{"check"}, {"check", "--store"}, {"check", "--store", "--repair"}} {
		if _, stderr, code := s.run(args...); env == nil && (code != exitUsage || !strings.HasSuffix(stderr, inUse)) {
			t.Errorf("%v beside a running svcd: code %d, %s", args, code, stderr)
		}
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Fatalf("code %d, %v, %s", code, err, log)
	}
	return s
}

func TestCheckStore(t *testing.T) {
	s := filled(t)
	for _, args := range [][]string{nil, {"--repair"}} {
		stdout, stderr, code := s.run(append([]string{"check", "--store"}, args...)...)
		if code != 0 || !strings.HasPrefix(stdout, "store ok: ") || !strings.HasSuffix(stdout, " collections in svc, svc_blog\n") || stderr != "" {
			t.Errorf("%v: code %d, %s%s", args, code, stdout, stderr)
		}
	}
	stdout, _, code := s.run("check", "--store", "-o", "json")
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || len(r.Databases) != 2 || r.Collections == 0 || r.Error != "" {
		t.Errorf("code %d, %v, %s", code, err, stdout)
	}
}

// What was left out can't be put back: files that are missing are no new store, and nothing is made, or deleted, in their place.
func TestCheckMissingFile(t *testing.T) {
	s := filled(t)
	dir := filepath.Join(s.dir, "data", "store")
	if err := os.Remove(newest(t, filepath.Join(dir, "marker.manifest.*"))); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "can't be opened: the file marker.manifest.* is missing: restore a backup\n"
	for _, args := range [][]string{{"check", "--store"}, {"check", "--store", "--repair"}, {"serve", "--api.port=1"}} {
		stdout, stderr, code := s.run(args...)
		if code != exitFailed || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%v: code %d, %s%s", args, code, stdout, stderr)
		}
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("there were %v, now are %v (%v)", before, after, err)
	}
}

// A reader that goes away does not end a check, nor change what it says by its exit code.
func TestCheckIntoClosedPipe(t *testing.T) {
	s := filled(t)
	for _, args := range [][]string{{"check"}, {"check", "--store"}, {"check", "--store", "--repair", "-o=json"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := s.command(nil, nil, args...)
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Run(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		_ = w.Close()
	}
}

// A signal ends a check with a code of its own; what -o json prints is JSON then, too.
func TestCheckInterrupted(t *testing.T) {
	for _, format := range []string{"table", "json"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var stdout, stderr bytes.Buffer
		cmd := newRootCmd(&stdout, &stderr)
		s := filled(t)
		cmd.SetArgs([]string{"check", "--store", "-o", format, "--data.dir", filepath.Join(s.dir, "data")})
		err := cmd.ExecuteContext(ctx)
		if exitCode(err) != exitInterrupt || err.Error() != "interrupted" {
			t.Errorf("%v, %s", err, &stderr)
		}
		var r report
		if format == "json" && (json.Unmarshal(stdout.Bytes(), &r) != nil || r.Error != "interrupted") {
			t.Errorf("it prints %s", &stdout)
		}
	}
}

// A byte in the log that is another one is told by its file. Nothing is served of it, and no repair hides it.
func TestCheckDamagedLog(t *testing.T) {
	s := filled(t)
	srv := s.start()
	for i := range 20 {
		if _, err := srv.CreateRecord(t.Context(), "blog", "articles", api.Record(fmt.Sprintf(`{"title":"late %d"}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _ = srv.stop(syscall.SIGKILL) // one that ends as it should leaves nothing in the log
	log := newest(t, filepath.Join(s.dir, "data", "store", "*.log"))
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("late 7"))
	if at < 0 {
		t.Fatal("the record is not in the log")
	}
	data[at] ^= 1
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--repair"}} {
		stdout, stderr, code := s.run(append([]string{"check", "--store", "-o=json"}, args...)...)
		var r report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitFailed || r.Left != 1 ||
			!strings.Contains(r.Problems[0].Text, filepath.Base(log)+" is damaged at byte") ||
			!strings.HasSuffix(stderr, "svcd: the store has problems (1): restore a backup of what can't be repaired\n") {
			t.Errorf("%v: code %d, %v, %s%s", args, code, err, stdout, stderr)
		}
	}
	if _, stderr, code := s.run("serve", "--api.port=1"); code != exitFailed || !strings.Contains(stderr, "is damaged at byte") {
		t.Errorf("serve: code %d, %s", code, stderr)
	}
}

// So is one in a table. What is elsewhere is served, and svcd does not end.
func TestCheckDamagedTable(t *testing.T) {
	s := filled(t)
	title := func(i int) string { // compression leaves it as it is
		sum := sha512.Sum512([]byte{byte(i)})
		return base64.RawURLEncoding.EncodeToString(sum[:])
	}
	srv := s.start()
	for i := range 200 {
		if _, err := srv.CreateRecord(t.Context(), "blog", "articles", api.Record(`{"title":"`+title(i)+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil { // the end writes all to a table
		t.Fatalf("code %d, %v, %s", code, err, log)
	}
	table := newest(t, filepath.Join(s.dir, "data", "store", "*.sst"))
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(title(100)))
	if at < 0 {
		t.Fatal("the record is not in the table")
	}
	data[at] ^= 1
	if err := os.WriteFile(table, data, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := s.run("check", "--store")
	if code != exitFailed || !strings.Contains(stdout, "the documents can't be read: "+filepath.Base(table)+" is damaged") ||
		!strings.Contains(stderr, "restore a backup") || strings.Contains(stdout+stderr, "stack trace") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	srv = s.start()
	for range 2 {
		if _, err := srv.Projects().List(t.Context(), client.Query{}); err != nil {
			t.Error(err)
		}
		var refused error
		for _, refused = range srv.Records(t.Context(), "blog", "articles", client.Query{}) {
			if refused != nil {
				break
			}
		}
		if refused == nil {
			t.Error("a damaged record is served")
		}
	}
	code, log, err := srv.stop(syscall.SIGTERM)
	if code != 0 || err != nil || strings.Count(log, "a file of the store is damaged") != 1 || strings.Contains(log, "stack trace") {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

func newest(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files[len(files)-1]
}

// What keeps the store from being checked says nothing about it.
func TestCheckStoreMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no store":        {[]string{"--store"}, "svcd: no store in DIR/data/store yet\n"},
		"repair no store": {[]string{"--store", "--repair"}, "svcd: no store in DIR/data/store yet\n"},
		"repair alone":    {[]string{"--repair"}, "svcd: --repair and --output go with --store\n"},
		"output alone":    {[]string{"-o", "json"}, "svcd: --repair and --output go with --store\n"},
		"unknown output":  {[]string{"--store", "-o", "yaml"}, "svcd: --output must be table or json\n"},
		"repair MongoDB":  {[]string{"--store", "--repair", "--store.uri=mongodb://127.0.0.1:1"}, "svcd: MongoDB is repaired with its own tools, such as the command reIndex: only the embedded store can be repaired here\n"},
		"MongoDB is away": {[]string{"--store", "--store.uri=mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"}, "svcd: MongoDB can't be reached: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSvcd(t)
			stdout, stderr, code := s.run(append([]string{"check"}, tc.args...)...)
			if stderr = strings.ReplaceAll(stderr, s.dir, "DIR"); code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, tc.want) {
				t.Errorf("code %d, %s%s", code, stdout, stderr)
			}
		})
	}
}

func TestCheckMongoDB(t *testing.T) {
	server := startMongoDB(t)
	s := filled(t, "STORE_URI="+server.URI)
	if stdout, stderr, code := s.run("check", "--store"); code != 0 || !strings.HasPrefix(stdout, "store ok: ") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}

// A disk that is full for the log, here by a limit on the size of files, ends svcd with a line that says so; what it had
// acknowledged is there when it is started again.
func TestLogCantBeWritten(t *testing.T) {
	s := filled(t)
	limited := svcd{T: t, dir: s.dir, env: append([]string{fileLimit + "=400"}, s.env...)}
	srv := limited.start()
	acked := 0
	for i := range 10000 {
		rec := fmt.Sprintf(`{"title":"more %d","n":%d}`, i, i)
		if _, err := srv.CreateRecord(t.Context(), "blog", "articles", api.Record(rec)); err != nil {
			break
		}
		acked++
	}
	code, log, err := srv.stop(syscall.Signal(0))
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if last := lines[len(lines)-1]; code != exitStoreLost || !strings.Contains(last, "see that its disk works and has room, then restart svcd") {
		t.Errorf("code %d, %v, last line %s", code, err, last)
	}
	srv = s.start()
	n := 0
	for _, err := range srv.Records(t.Context(), "blog", "articles", client.Query{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 50+acked || n > 51+acked || acked == 0 {
		t.Errorf("%d records, acknowledged were %d", n, 50+acked)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
	if stdout, stderr, code := s.run("check", "--store"); code != 0 || !strings.HasPrefix(stdout, "store ok: ") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
}
