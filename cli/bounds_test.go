package cli_test

import (
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/tui/frame/frametest"
	"github.com/svcctl/svc/pkg/api"
)

// Lines of all commands that ask a service. DIR is a directory with files for them.
const askingLines = `
access explain blog articles
action call blog greet
action cancel blog greet
action describe blog greet
action list blog
action logs blog greet
action logs blog greet --run 6b01a2b3c4d5e6f708192a3b --follow
action result blog greet
action result blog greet --run 6b01a2b3c4d5e6f708192a3b
action runs blog greet
api GET /project
apply DIR/blog
apply -f DIR --prune
asset get blog pictures a.png
asset list blog
asset list -A
audit get 6b01a2b3c4d5e6f708192a3b
audit list
audit list --follow
audit verify
backup analyze blog
backup create blog
backup download blog -f DIR/out
backup download blog 20260301T031500Z-k3x9q2 -f DIR/out
backup list blog
backup restore blog DIR/archive --yes
check
check blog
collection describe blog articles
collection indexes blog
collection list blog
collection stats blog articles
diff blog
diff DIR/blog
doc count blog articles
doc create blog articles -d {}
doc create blog articles -f DIR/record.json
doc delete blog articles 6b01a2b3c4d5e6f708192a3b --yes
doc delete blog articles --filter {} --yes
doc export blog articles -f DIR/out
doc export blog articles --files DIR/files
doc facet blog articles title
doc get blog articles 6b01a2b3c4d5e6f708192a3b
doc import blog articles -f DIR/records.ndjson
doc import blog articles -f DIR/records.ndjson --files DIR
doc list blog articles
doc list blog articles --all
doc patch blog articles 6b01a2b3c4d5e6f708192a3b -d {}
doc replace blog articles 6b01a2b3c4d5e6f708192a3b -d {}
doc update blog articles 6b01a2b3c4d5e6f708192a3b -d {}
doc update blog articles --filter {} -d {} --yes
doc watch blog articles
drift blog
embedding status
embedding status blog
file download blog articles 6b01a2b3c4d5e6f708192a3b cover a.png -f DIR/out
file list blog articles 6b01a2b3c4d5e6f708192a3b
file upload blog articles 6b01a2b3c4d5e6f708192a3b cover DIR/archive
get action blog greet
get actions blog
get assets blog
get audit
get backups blog
get collection blog articles
get collections blog
get doc blog articles 6b01a2b3c4d5e6f708192a3b
get docs blog articles
get events blog
get files blog articles 6b01a2b3c4d5e6f708192a3b
get generations blog
get indexes blog
get job blog nightly
get jobs blog
get org acme
get orgs
get profiles blog
get project blog
get projects
get scopes
get searches blog
get snapshot blog 20260301T031500Z-k3x9q2
get snapshots blog
get team red
get teams
get token ci
get tokens
get user ann
get users
index diff blog
index list blog
index sync blog --yes
job cancel blog nightly
job describe blog nightly
job history blog nightly
job list blog
job logs blog nightly
job logs blog nightly --run 6b01a2b3c4d5e6f708192a3b --follow
job next blog nightly
job resume blog nightly
job run blog nightly
job run blog nightly --wait
job suspend blog nightly
login ann --password-file DIR/record.json
mcp call list_collections
mcp probe
mcp tools
metrics
openapi blog
org create acme
org delete acme --yes
org get acme
org list
org update acme --name A
project apply DIR/blog
project describe blog
project diff blog
project disable blog
project drift blog
project enable blog
project events blog
project events blog --watch
project get blog
project history blog
project list
project list --watch
project register blog
project reload blog
project reload blog --wait --timeout 0
project resume blog
project rollback blog --to 1 --yes --timeout 0
project status blog
project status blog --watch
project suspend blog
project tree blog
project unregister blog --yes
project update blog --name Blog
project wait blog
project watch blog
search query blog articles words
search regenerate blog
search regenerate blog --wait
search status blog
server rotate-keys
server shutdown --yes
snapshot attach blog
snapshot attach blog 6b01a2b3c4d5e6f708192a3b
snapshot cancel blog
snapshot create blog
snapshot create blog daily
snapshot delete blog 20260301T031500Z-k3x9q2 --yes
snapshot diff blog 20260301T031500Z-k3x9q2
snapshot drill blog 20260301T031500Z-k3x9q2
snapshot export blog 20260301T031500Z-k3x9q2 -f DIR/out
snapshot import blog DIR/archive
snapshot list blog
snapshot pin blog 20260301T031500Z-k3x9q2
snapshot profiles blog
snapshot prune blog --yes
snapshot restore blog 20260301T031500Z-k3x9q2 --yes
snapshot runs blog
snapshot show blog 20260301T031500Z-k3x9q2
snapshot unpin blog 20260301T031500Z-k3x9q2
snapshot verify blog 20260301T031500Z-k3x9q2
status
team create red
team delete red --yes
team get red
team list
team update red --name Red
token create ci --scope project.read
token delete ci --yes
token get ci
token list
token scopes
token update ci --name ci2
tree blog
types blog --lang ts
user create ann --generate
user delete ann --yes
user get ann
user list
user passwd ann --generate
user update ann --active=false
version
wait blog --timeout 0
whoami
`

// Commands that ask no service, or are about more than one answer: the bridge of agents and the terminal UI have tests of their own.
var notAsking = []string{
	"api-resources", "completion", "config current-context", "config delete-context", "config get-contexts", "config set-context", "config use-context", "config view",
	"explain", "get contexts", "logout", "man", "mcp config", "mcp serve", "options", "plugin list", "project explain", "project fmt", "project init", "project render", "project schema", "project test",
	"project types", "project validate", "search eval", "tui", "doc edit", "help",
}

// Beginnings of lines that transfer a file, which may take any time as long as something of it comes.
var transferring = []string{"asset get ", "backup download ", "file download "}

// TestRequestTimeout: each command that asks a service ends soon after --request-timeout where that takes the request and says nothing, and where it answers
// without an end, a byte now and then; one that transfers a file, when no more of it comes.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request, _ int, over <-chan struct{}) {
		select {
		case <-r.Context().Done():
		case <-over: // who has not read the whole body is not told that the client has gone
		}
	}
	dripping := func(w http.ResponseWriter, r *http.Request, drops int, over <-chan struct{}) {
		w.Header().Set("Content-Type", api.MediaJSON)
		drop := " "
		if r.Header.Get("Accept") == api.MediaEvents {
			w.Header().Set("Content-Type", api.MediaEvents)
			drop = ":"
		}
		for ; drops > 0 && r.Context().Err() == nil; drops-- {
			if _, err := w.Write([]byte(drop)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		silent(w, r, 0, over)
	}
	root := cli.NewRootCmd(start(t, "").st)
	asked := map[string]bool{}
	for name, service := range map[string]func(http.ResponseWriter, *http.Request, int, <-chan struct{}){"silent": silent, "dripping": dripping} {
		for line := range strings.Lines(strings.TrimSpace(askingLines)) {
			line = strings.TrimSpace(line)
			found, _, err := root.Find(withoutFlags(root, strings.Fields(line)))
			if err != nil {
				t.Fatal(err)
			}
			asked[strings.TrimPrefix(found.CommandPath(), "svcctl ")] = true
			t.Run(name+" "+line, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for name, text := range map[string]string{"archive": "bytes", "record.json": "{}", "records.ndjson": "{}\n"} {
					writeFile(t, filepath.Join(dir, name), text)
				}
				writeFile(t, filepath.Join(dir, "blog", "project.yaml"), "namespace: blog\n")
				drops := math.MaxInt
				if slices.ContainsFunc(transferring, func(beginning string) bool { return strings.HasPrefix(line, beginning) }) {
					drops = 3
				}
				over := make(chan struct{})
				address := serve(t, func(w http.ResponseWriter, r *http.Request) { service(w, r, drops, over) })
				t.Cleanup(func() { close(over) })
				p := start(t, address, "SVCCTL_TOKEN=x")
				p.st.Beat = 20 * time.Millisecond
				ended := make(chan int, 1)
				go func() {
					ended <- p.run(t, append(strings.Fields(strings.ReplaceAll(line, "DIR", dir)), "--request-timeout", "50ms")...)
				}()
				select {
				case code := <-ended:
					if code != command.ExitTimeout {
						t.Errorf("exit code %d: %s", code, p.err.String())
					}
				case <-time.After(20 * time.Second):
					t.Error("it goes on waiting")
				}
			})
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if path := strings.TrimPrefix(cmd.CommandPath(), "svcctl "); !cmd.HasSubCommands() && !asked[path] && !slices.Contains(notAsking, path) {
			t.Errorf("no line is about %s", path)
		}
	}
	walk(root)
}

// TestBridgeTimeout: an agent gets an answer when the service gives none.
func TestBridgeTimeout(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	address := serve(t, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	p := start(t, address, "SVCCTL_TOKEN=x")
	p.st.In = strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n")
	if code := p.run(t, "mcp", "serve", "--request-timeout", "50ms"); code != 0 || !strings.Contains(p.out.String(), `"id":7`) || !strings.Contains(p.out.String(), `"error"`) {
		t.Errorf("exit code %d: %s, %s", code, p.out.String(), p.err.String())
	}
}

// TestSilentStream: a stream on which nothing comes, not even what tells that it is alive, is opened again behind the last event.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // so that no answer is late because the machine is slow
		s := &snapshotService{run: snapshotRun("snapshot", "succeeded", nil), silent: 2, snapshot: api.Snapshot{ID: snapshotID}}
		p := start(t, "http://svc")
		p.st.Transport = frametest.Transport{Handler: s}
		p.st.Beat = 20 * time.Millisecond
		if code := p.run(t, "snapshot", "create", "blog", "daily", "--request-timeout", "50ms"); code != 0 {
			t.Errorf("exit code %d: %s", code, p.err.String())
		}
		if got := strings.Join(s.after, ","); got != ",1,1" {
			t.Errorf("it asks for the events behind %s", got)
		}
	})
}

// TestWorkTakesItsTime: what is work of the service may take longer than --request-timeout, as long as the service answers beside.
func TestWorkTakesItsTime(t *testing.T) {
	t.Parallel()
	for line, body := range map[string]string{
		"project reload blog":    `{"generation":2,"changed":true}`,
		"index sync blog --yes":  `{"namespace":"blog","items":[],"pending":[]}`,
		"action call blog greet": `{"text":"hello"}`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				p := start(t, "http://svc")
				p.st.Transport = frametest.Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case strings.HasSuffix(r.URL.Path, "/version"):
						asked.Add(1)
						answer(http.StatusOK, `{"version":"v"}`)(w, r)
					case r.Method == http.MethodPost:
						for asked.Load() < 3 { // so it takes longer
							time.Sleep(time.Millisecond)
						}
						fallthrough
					default:
						answer(http.StatusOK, body)(w, r)
					}
				})}
				if code := p.run(t, append(strings.Fields(line), "--request-timeout", "100ms")...); code != 0 {
					t.Errorf("exit code %d: %s", code, p.err.String())
				}
			})
		})
	}
}

// TestSnapshotTimeout: --timeout bounds what comes before the run, too, where --request-timeout does not.
func TestSnapshotTimeout(t *testing.T) {
	t.Parallel()
	for line, silent := range map[string]string{
		"snapshot create blog":       http.MethodGet + " /profiles",
		"snapshot create blog daily": http.MethodPost + " ",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			s := &snapshotService{run: snapshotRun("snapshot", "succeeded", nil)}
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method+" "+strings.TrimPrefix(r.URL.Path, inSnaps) == silent {
					<-over
					return
				}
				s.ServeHTTP(w, r)
			})
			t.Cleanup(func() { close(over) })
			p := start(t, address)
			ended := make(chan int, 1)
			go func() {
				ended <- p.run(t, append(strings.Fields(line), "--timeout", "50ms", "--request-timeout", "0")...)
			}()
			select {
			case code := <-ended:
				if code != command.ExitTimeout {
					t.Errorf("exit code %d: %s", code, p.err.String())
				}
			case <-time.After(20 * time.Second):
				t.Error("it goes on waiting")
			}
		})
	}
}

// deadlines notes until when requests may take that begin something, or follow it.
type deadlines struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

func (d *deadlines) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/events") {
		until, _ := r.Context().Deadline()
		d.mu.Lock()
		d.seen[r.Method+" "+r.URL.Path] = until
		d.mu.Unlock()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestTimeoutIsOneBound: what a command begins and its wait for the end of that have one --timeout together.
func TestTimeoutIsOneBound(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "archive")
	writeFile(t, archive, "bytes")
	for line, kind := range map[string]string{
		"snapshot create blog daily":                  "snapshot",
		"snapshot restore blog " + snapshotID + " -y": "restore",
		"snapshot verify blog " + snapshotID:          "verify",
		"snapshot drill blog " + snapshotID:           "drill",
		"snapshot prune blog -y":                      "prune",
		"backup create blog":                          "snapshot",
		"backup restore blog " + archive + " -y":      "restore",
		"job run blog nightly --wait":                 "job",
		"action call blog greet --wait":               "action",
		"search regenerate blog --wait":               "search",
	} {
		t.Run(kind+" "+line, func(t *testing.T) {
			t.Parallel()
			s := &snapshotService{run: snapshotRun(kind, "succeeded", nil)}
			p := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && kind == "action" {
					w.Header().Set(api.HeaderLocation, "/run")
					answer(http.StatusAccepted, `{"id":"`+runID+`"}`)(w, r)
					return
				}
				s.ServeHTTP(w, r)
			}))
			d := &deadlines{seen: map[string]time.Time{}}
			p.st.Transport = d
			if code := p.run(t, append(strings.Fields(line), "--timeout", "1h", "--request-timeout", "0")...); code != 0 {
				t.Errorf("exit code %d: %s", code, p.err.String())
			}
			all := slices.Collect(maps.Values(d.seen))
			if len(all) != 2 || all[0].IsZero() || !all[0].Equal(all[1]) {
				t.Errorf("its requests may take until %v", d.seen)
			}
		})
	}
}

// TestTimeoutBeforeTheRun: where --timeout is over before the service has said that the run is started, the error says how to learn it.
func TestTimeoutBeforeTheRun(t *testing.T) {
	t.Parallel()
	for line, hint := range map[string]string{
		"snapshot create blog daily":    "svcctl snapshot runs blog shows whether it goes on",
		"backup create blog":            "svcctl snapshot runs blog shows whether it goes on",
		"job run blog nightly --wait":   "svcctl job runs blog nightly shows whether it goes on",
		"search regenerate blog --wait": "svcctl search status blog shows whether it goes on",
		"action call blog greet":        "svcctl action runs blog greet shows whether a run goes on",
		"action call blog greet --wait": "svcctl action runs blog greet shows whether a run goes on",
		"action call blog greet --get":  "svcctl action runs blog greet shows whether a run goes on",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			p := start(t, serve(t, func(http.ResponseWriter, *http.Request) { <-over }))
			t.Cleanup(func() { close(over) })
			if code := p.run(t, append(strings.Fields(line), "--timeout", "50ms")...); code != command.ExitTimeout || !strings.Contains(p.err.String(), hint) {
				t.Errorf("exit code %d: %s", code, p.err.String())
			}
		})
	}
}
