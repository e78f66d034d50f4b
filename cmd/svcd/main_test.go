package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// asServer makes this test binary svcd.
const asServer = "SVCD_TEST_MAIN"

// endAtOnce is what the environment of a program needs for it to end when it is done, with the race detector too, which holds
// others for a second.
const endAtOnce = "GORACE=atexit_sleep_ms=0"

// released is the variable with svcd as it is released. scripts/test.sh sets it, and says why.
const released = "SVCD_RELEASED"

// fileLimit is how many KiB a file of that svcd can have.
const fileLimit = "SVCD_TEST_FILE_KIB"

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) { // what the lines of documents start
	case "svcctl":
		svcctl()
	case "svcd":
		main()
		return
	}
	// These start without an environment.
	alone := len(os.Args) == 2 && (os.Args[1] == hashName || os.Args[1] == workerCommand) || len(os.Args) > 2 && os.Args[1] == projectTestCommand
	if os.Getenv(asServer) != "" || alone {
		limitFiles(os.Getenv(fileLimit))
		main()
		return
	}
	os.Exit(m.Run())
}

// limitFiles keeps this process from writing files longer than that many KiB; "" sets no limit.
func limitFiles(kib string) {
	n, err := strconv.ParseUint(kib, 10, 32)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // a write then fails, as on a full disk
	limit := syscall.Rlimit{Cur: n << 10, Max: n << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
}

const (
	patience   = 2 * time.Minute // generous: a loaded machine is no failure
	adminToken = "the-admin-token-of-these-tests"
)

const config = `
namespace: blog
collections:
  - name: articles
    fields:
      - {name: title, type: string, index: [unique], validator: required}
      - {name: n, type: number}
    permissions:
      public:
        methods: {get: true}
      user: {methods: {}}
`

// svcd is a process to be, in a directory of its own.
type svcd struct {
	*testing.T
	dir string
	env []string
	// under is a command that starts the process in its own place; none starts it by itself.
	under []string
	// binary is the program: this test binary, if it is "".
	binary string
}

// newReleased is newSvcd for tests that kill it again and again: svcd as it is released, without the race detector, where there is one. What such a test
// looks for is what outlives a process. Races are found by TestKill, and by tests that run the service within their own process.
func newReleased(t *testing.T, env ...string) svcd {
	t.Helper()
	s := newSvcd(t, env...)
	s.binary = os.Getenv(released)
	return s
}

func newSvcd(t *testing.T, env ...string) svcd {
	t.Helper()
	dir := t.TempDir()
	s := svcd{T: t, dir: dir, env: append([]string{asServer + "=1", endAtOnce, "ADMIN_TOKEN=" + adminToken, "HOME=" + dir}, env...)}
	s.write("projects/blog/project.yaml", config)
	return s
}

func (s svcd) write(name, content string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s svcd) command(stdout, stderr *bytes.Buffer, args ...string) *exec.Cmd {
	line := slices.Concat(s.under, []string{cmp.Or(s.binary, os.Args[0])}, args)
	cmd := exec.CommandContext(s.Context(), line[0], line[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, stdout, stderr
	return cmd
}

// run runs svcd to its end.
func (s svcd) run(args ...string) (stdout, stderr string, code int) {
	s.Helper()
	var out, log bytes.Buffer
	cmd := s.command(&out, &log, args...)
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it serves, and should not
	defer kill.Stop()
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			s.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), log.String(), code
}

// server is a running svcd.
type server struct {
	*client.Client

	base string // its address
	cmd  *exec.Cmd
	log  *bytes.Buffer // to be read once the process has ended
}

// start starts svcd and returns when it is ready.
func (s svcd) start(args ...string) *server {
	s.Helper()
	port := freePort(s.T)
	c, err := client.New(client.Options{Server: "http://127.0.0.1:" + port, AdminToken: adminToken})
	if err != nil {
		s.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := s.command(&out, &log, append([]string{"--api.port=" + port}, args...)...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	srv := &server{Client: c, base: "http://127.0.0.1:" + port, cmd: cmd, log: &log}
	s.Cleanup(func() {
		_ = cmd.Process.Kill() // unless it has ended
		_ = cmd.Wait()
	})
	for giveUp := time.Now().Add(patience); c.Ready(s.Context()) != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(giveUp) {
			s.Fatalf("not ready after %s", patience)
		}
	}
	return srv
}

// stop sends a signal and gives the exit code and the log.
func (s *server) stop(sig os.Signal) (code int, log string, err error) {
	if err := s.cmd.Process.Signal(sig); err != nil {
		return 0, "", err
	}
	err = s.cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = nil
	}
	return s.cmd.ProcessState.ExitCode(), s.log.String(), err
}

func (s *server) register(t *testing.T) {
	t.Helper()
	_, err := s.Projects().Create(t.Context(), api.ProjectWrite{ConfigFile: new("blog")})
	if err != nil {
		t.Fatal(err)
	}
}

// freePort gives a port that nobody listens at. It is below those that the system gives out by itself, so that it is not taken before
// who asks for it listens.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		port := strconv.Itoa(10000 + rand.IntN(20000))
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

func TestNoPortIsAPanic(t *testing.T) {
	for _, tc := range [][]string{{""}, {"API_PORT="}, {"API_PORT=0"}, {"API_PORT=-1"}} {
		for _, args := range [][]string{nil, {"serve"}} {
			_, stderr, code := newSvcd(t, tc...).run(args...)
			if code != 2 || !strings.HasPrefix(stderr, "panic: api.port (API_PORT) is missing or not greater than 0") {
				t.Errorf("%v %v: code %d, %s", tc, args, code, stderr)
			}
		}
	}
}

// What an operator gets wrong is answered by one line that says what to do.
func TestMistakes(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the parallel tests
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string // the last line
	}{
		{"command", []string{"sevre"}, 2, `svcd: unknown command "sevre" for "svcd": did you mean svcd serve?`},
		{"another word", []string{"start"}, 2, `svcd: unknown command "start" for "svcd": did you mean svcd serve?`},
		{"no command", []string{"nonsense"}, 2, `svcd: unknown command "nonsense" for "svcd": svcd --help tells how it is used`},
		{"argument", []string{"serve", "now"}, 2, `svcd: unknown command "now" for "svcd serve": svcd serve --help tells how it is used`},
		{"flag", []string{"--prot=1"}, 2, `svcd: unknown flag: --prot: did you mean --api.port?`},
		{"flag without its group", []string{"--port=1"}, 2, `svcd: unknown flag: --port: did you mean --api.port?`},
		{"slip in a flag", []string{"serve", "--api.prot=1"}, 2, `svcd: unknown flag: --api.prot: did you mean --api.port?`},
		{"flag of the command", []string{"check", "--stor"}, 2, `svcd: unknown flag: --stor: did you mean --store?`},
		{"no flag", []string{"--nonsense"}, 2, `svcd: unknown flag: --nonsense: svcd --help lists the flags`},
		{"value", []string{"--api.port=1", "--shutdown.grace=soon"}, 2, `svcd: setting shutdown.grace: "soon" is no duration such as 1m30s (a number alone is milliseconds)`},
		{"no settings file", []string{"--config=svc.yaml"}, 2, `svcd: settings file: open svc.yaml: no such file or directory`},
		{"port taken", []string{"--api.port=" + port}, 1, `svcd: listen tcp 127.0.0.1:` + port + `: bind: address already in use: stop the program that uses the port, or set another api.port`},
		{"data.dir", []string{"--api.port=1", "--data.dir=file/data"}, 1, `svcd: mkdir file: not a directory: set data.dir to a directory that svcd may write`},
		{"store directory", []string{"--api.port=1", "--store.uri=embedded:file"}, 1, `svcd: the store in DIR/file can't be opened: mkdir DIR/file: not a directory: svcd must be able to read and write there; data.dir and store.uri name the place`},
		{"store URI", []string{"--api.port=1", "--store.uri=mongodb://u:hunter@2@h"}, 1, `svcd: the store's URI is not a MongoDB connection string: expected mongodb://[user:password@]host[:port][,…]/[?options], with user and password percent-encoded`},
		{"no MongoDB", []string{"--api.port=1", "--store.uri=mongodb://u:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=100"}, 1, `svcd: MongoDB can't be reached: check that it runs, that its replica set was initiated (rs.initiate()), and the setting store.uri with its user and password: `},
		{"empty token file", []string{"--api.port=1", "--admin.tokenFile=file"}, 2, `svcd: setting admin.tokenFile: file is empty`},
		{"check: no projects.dir", []string{"check", "--projects.dir=nowhere"}, 2, `svcd: open nowhere: no such file or directory: set projects.dir to the directory that holds the projects' config files`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSvcd(t)
			s.env = append(s.env, "ADMIN_TOKEN=")
			s.write("file", "")
			_, stderr, code := s.run(tc.args...)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			last := strings.ReplaceAll(lines[len(lines)-1], s.dir, "DIR")
			if code != tc.code || !strings.HasPrefix(last, tc.want) || (last != tc.want && !strings.HasSuffix(tc.want, ": ")) {
				t.Errorf("code %d, want %d; last line\n%s\nwant\n%s", code, tc.code, last, tc.want)
			}
			if strings.Contains(stderr, "goroutine") || strings.Contains(stderr, "hunter") {
				t.Errorf("a stack or a secret gets out: %s", stderr)
			}
		})
	}
}

func TestStandaloneMongoDBIsRefused(t *testing.T) {
	standalone, err := mongotest.StartStandalone(t.Context())
	if err != nil {
		t.Skipf("no MongoDB can be started here: %v", err)
	}
	t.Cleanup(func() { _ = standalone.Stop() })
	_, stderr, code := newSvcd(t).run("--api.port=1", "--store.uri="+standalone.URI)
	want := "svcd: the MongoDB server is a standalone, which has no transactions: start mongod with --replSet rs0, and run rs.initiate() on it once\n"
	if code != 1 || !strings.HasSuffix(stderr, want) {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestUnusableProjectsDirectoryIsAWarning(t *testing.T) {
	s := newSvcd(t)
	code, log, err := s.start("--projects.dir=nowhere").stop(syscall.SIGTERM)
	if code != 0 || err != nil || !strings.Contains(log, "set projects.dir to the directory that holds") {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

func TestVersion(t *testing.T) {
	stdout, stderr, code := newSvcd(t).run("version")
	if code != 0 || stderr != "" || strings.TrimSpace(stdout) == "" || stdout != versionText()+"\n" {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}

func TestHelp(t *testing.T) {
	stdout, stderr, code := newSvcd(t).run("serve", "--help")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "AUTH_JWT_TTL") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}

func TestLogFormats(t *testing.T) {
	for _, format := range []string{"auto", "json", "text"} {
		var out bytes.Buffer
		log := newLogger(&out, slog.LevelInfo, format)
		log.DebugContext(t.Context(), "unseen")
		log.InfoContext(t.Context(), "hello", "n", 1)
		var line map[string]any
		if isJSON := json.Unmarshal(out.Bytes(), &line) == nil; isJSON == (format == "text") || !strings.Contains(out.String(), "hello") ||
			strings.Contains(out.String(), "unseen") {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

// S28: a log holds nothing that a terminal would obey, whatever is logged and in whatever form; what was logged can
// be told from it.
func TestS28LogsAreEscaped(t *testing.T) {
	const evil = "a\x1b[31mb\nlevel=ERROR\r\x07\x7f\u009b2J\u202ec\u2028d\ufeff"
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := newLogger(&out, slog.LevelInfo, format)
		log.InfoContext(t.Context(), evil, "value", evil, "error", errors.New(evil), slog.Group("g", "k", evil), "list", []string{evil})
		line, rest, _ := strings.Cut(out.String(), "\n")
		if rest != "" || strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' }) >= 0 {
			t.Errorf("%s: %q", format, out.String())
		}
		var got map[string]any
		if format == "json" && (json.Unmarshal(out.Bytes(), &got) != nil || got["msg"] != evil || got["error"] != evil) {
			t.Errorf("the meaning is lost: %q", got)
		}
	}
}

func TestCheck(t *testing.T) {
	s := newSvcd(t)
	for range 2 { // without a directory, then with an empty one
		stdout, stderr, code := s.run("check")
		stdout = strings.ReplaceAll(stdout, s.dir, "DIR")
		if code != 0 || stdout != "no store in DIR/data/store yet: nothing is registered\nsettings ok\n" {
			t.Fatalf("code %d, %s%s", code, stdout, stderr)
		}
		if files, _ := filepath.Glob(filepath.Join(s.dir, "data", "*", "*")); len(files) > 0 {
			t.Errorf("check made %v", files)
		}
		if err := os.MkdirAll(filepath.Join(s.dir, "data", "store"), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	srv := s.start()
	srv.register(t)
	if _, stderr, code := s.run("check"); code != 2 || !strings.Contains(stderr, "is in use by another process") {
		t.Errorf("beside a running svcd: code %d, %s", code, stderr)
	}
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil {
		t.Fatalf("code %d, %v, %s", code, err, log)
	}
	if stdout, _, code := s.run("check"); code != 0 || stdout != "blog: ok, 1 collections\nsettings ok, 1 registered projects ok\n" {
		t.Errorf("code %d, %s", code, stdout)
	}

	s.write("projects/blog/project.yaml", "namespace: blog\ncollections:\n  - nam: articles\n    fields: 5\n")
	stdout, stderr, code := s.run("check")
	if code != 1 || stderr != "svcd: 1 of 1 registered projects have errors\n" ||
		!strings.Contains(stdout, "blog: project.yaml:3:5: ") || !strings.Contains(stdout, "blog: project.yaml:4:13: ") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "projects", "blog")); err != nil {
		t.Fatal(err)
	}
	if stdout, _, code := s.run("check"); code != 1 || !strings.HasPrefix(stdout, "blog: configFile does not exist") {
		t.Errorf("code %d, %s", code, stdout)
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		srv := newSvcd(t).start()
		if code, log, err := srv.stop(sig); code != 0 || err != nil || !strings.Contains(log, `"msg":"stopped","reason":"`+sig.String()+" signal received\"") {
			t.Errorf("%s: code %d, %v, %s", sig, code, err, log)
		}
	}
}

// hang begins a request that never ends.
func (s *server) hang(t *testing.T) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.Server(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprint(conn, "POST /api/v1/login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	// The service asks for the body once its handler reads it.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatal(line, err)
	}
}

// A request that hangs is cut off at the end of the grace time, and does not keep svcd from ending.
func TestGraceTimeEnds(t *testing.T) {
	srv := newSvcd(t).start("--shutdown.grace=100ms")
	srv.hang(t)
	if code, log, err := srv.stop(syscall.SIGTERM); code != 0 || err != nil || !strings.Contains(log, "cut off") {
		t.Errorf("code %d, %v, %s", code, err, log)
	}
}

// again signals a server that is stopping until it ends at once.
func (s *server) again(t *testing.T) {
	t.Helper()
	ended := make(chan struct{})
	var signals sync.WaitGroup
	signals.Go(func() { // over and over: one may come before the process is listening for it
		for {
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	code, _, err := s.stop(syscall.SIGTERM)
	close(ended)
	signals.Wait()
	if code != exitInterrupt || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
}

// The second signal ends svcd at once, whatever the grace time.
func TestSecondSignal(t *testing.T) {
	srv := newSvcd(t).start("--shutdown.grace=1h")
	srv.hang(t)
	srv.again(t)
}

// ownMongoDB starts a MongoDB that is the test's own, and gives the variable by which svcd uses it. What a process that was
// killed has open stays open in the server for as long as a transaction may take.
func ownMongoDB(t *testing.T, transaction time.Duration) (env string) {
	t.Helper()
	return "STORE_URI=" + startMongoDB(t, mongotest.TransactionTime(transaction)).URI
}

// startMongoDB gives a server that only this test has.
func startMongoDB(t *testing.T, options ...mongotest.Option) *mongotest.Server {
	t.Helper()
	mongotest.URI(t) // says loudly when there is none
	server, err := mongotest.Start(t.Context(), options...)
	if err != nil {
		t.Skipf("no MongoDB can be started here: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server
}
