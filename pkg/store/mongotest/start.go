package mongotest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	replicaSet   = "svctest"
	dockerImage  = "mongo:6.0"
	startTimeout = 2 * time.Minute // generous: a loaded machine is no failure
	pollInterval = 20 * time.Millisecond
)

// keeper runs the server given as its arguments and outlives this process just long enough to end it: its standard
// input is a pipe from here, which the kernel closes however this process ends. Then it removes the data, too. Until then
// each line it reads is the name of a signal for the server, or says to start it again.
const keeper = `
dir=$1; stop=$2; shift 2
start() {
	"$@" >>"$dir/log" 2>&1 </dev/null &
	server=$!
}
start "$@"
while read -r order; do
	case $order in
	start) start "$@" ;;
	*) kill -s "$order" $server ;;
	esac
	[ "$order" != KILL ] || wait $server 2>/dev/null
done
eval "$stop"
kill -9 $server 2>/dev/null
wait $server 2>/dev/null
rm -rf "$dir"
`

// Server is a running MongoDB. It listens on this machine only, and anybody here may use it unless it is
// secured.
type Server struct {
	URI    string
	addr   string
	dir    string
	keeper *exec.Cmd
	pipe   io.WriteCloser

	secrets *secrets // nil: anybody may do anything
}

// Start starts a MongoDB server with nothing in it: mongod from PATH, from a PyPI wheel that is kept in the user's
// cache folder, or docker. It ends with Stop, or when this process does.
func Start(ctx context.Context, options ...Option) (*Server, error) {
	s := defaults()
	for _, option := range options {
		option(&s)
	}
	server, err := launch(ctx, s, "--replSet", replicaSet)
	if err != nil {
		return nil, err
	}
	return server.whenReady(server.initiate(ctx, server.addr))
}

// Option changes how a server is started.
type Option func(*settings)

// FailPoints lets tests make commands fail (configureFailPoint).
func FailPoints() Option { return func(s *settings) { s.failPoints = true } }

func defaults() settings {
	return settings{oplogMB: 128, cacheGB: 0.25, checkpoints: time.Minute, transaction: time.Minute}
}

type settings struct {
	oplogMB     int
	cacheGB     float64
	checkpoints time.Duration
	transaction time.Duration
	secured     bool
	failPoints  bool
}

// TransactionTime is how long a transaction may last, in place of a minute: one whose program was killed goes on until then.
func TransactionTime(d time.Duration) Option { return func(s *settings) { s.transaction = d } }

// OplogMB is about how many MB of changes the server remembers.
func OplogMB(n int) Option { return func(s *settings) { s.oplogMB = n } }

// CacheGB is how much of its data the server keeps in memory, in GB: 0.25 unless this is given, and half of the machine's where MongoDB is
// left to choose.
func CacheGB(gb float64) Option { return func(s *settings) { s.cacheGB = gb } }

// CheckpointEvery is how often the server writes a checkpoint. It remembers all changes since the last but one.
func CheckpointEvery(d time.Duration) Option { return func(s *settings) { s.checkpoints = d } }

// Secured makes the server take TLS connections only, and users with a password. Its URI has what that needs.
func Secured() Option { return func(s *settings) { s.secured = true } }

// StartStandalone starts a server that is in no replica set, as a user may have by mistake.
func StartStandalone(ctx context.Context) (*Server, error) {
	server, err := launch(ctx, defaults())
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, server.addr)
	if err == nil {
		err = conn.Close()
	}
	return server.whenReady(err)
}

// launch starts a server process, which may not take connections yet.
func launch(ctx context.Context, s settings, flags ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "svc-mongod-")
	if err != nil {
		return nil, err
	}
	server, err := launchIn(ctx, dir, s, flags)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return server, nil
}

func launchIn(ctx context.Context, dir string, s settings, flags []string) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	stop, argv, err := serverCommand(ctx, dir, port, s)
	if err != nil {
		return nil, err
	}
	server := &Server{addr: "127.0.0.1:" + port, dir: dir}
	server.URI = "mongodb://" + server.addr + "/"
	if s.secured {
		if server.secrets, err = newSecrets(dir); err != nil {
			return nil, err
		}
		flags = append(flags, server.secrets.flags()...)
	}
	argv = append(argv, "--port", port, "--wiredTigerCacheSizeGB", strconv.FormatFloat(s.cacheGB, 'f', -1, 64), "--oplogSize", strconv.Itoa(s.oplogMB),
		"--syncdelay", strconv.Itoa(int(s.checkpoints/time.Second)), "--setParameter", "diagnosticDataCollectionEnabled=false",
		"--setParameter", "transactionLifetimeLimitSeconds="+strconv.Itoa(int(s.transaction/time.Second)))
	if s.failPoints {
		flags = append(flags, "--setParameter", "enableTestCommands=1")
	}
	argv = append(argv, flags...)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", append([]string{"-c", keeper, "sh", dir, stop}, argv...)...)
	cmd.SysProcAttr = ownSession()
	server.keeper = cmd
	if server.pipe, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return server, cmd.Start()
}

// serverCommand gives how to run a server with its data in dir, and a shell command to stop it beside killing it.
func serverCommand(ctx context.Context, dir, port string, s settings) (stop string, argv []string, err error) {
	mongod, err := findMongod(ctx)
	if err == nil {
		return ":", []string{mongod, "--dbpath", dir, "--bind_ip", "127.0.0.1", "--nounixsocket"}, nil
	}
	if s.secured {
		return "", nil, fmt.Errorf("a secured server needs a mongod on this machine (the wheel: %w)", err)
	}
	if dockerErr := exec.CommandContext(ctx, "docker", "info").Run(); dockerErr != nil {
		return "", nil, fmt.Errorf("%s (the wheel: %w)", howToGet, err)
	}
	name := filepath.Base(dir)
	return "docker kill " + name, []string{
		"docker", "run", "--rm", "--name", name, "--publish", "127.0.0.1:" + port + ":" + port, dockerImage, "mongod", "--bind_ip_all",
	}, nil
}

// whenReady gives the server, or stops it if it came to nothing, and then says what it logged last.
func (s *Server) whenReady(err error) (*Server, error) {
	if err == nil {
		return s, nil
	}
	tail := logTail(filepath.Join(s.dir, "log"))
	return nil, errors.Join(fmt.Errorf("starting MongoDB: %w\n%s", err, tail), s.Stop())
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	return errors.Join(s.pipe.Close(), s.keeper.Wait())
}

// dial waits until the server takes connections.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	var dialer net.Dialer
	for giveUp := time.Now().Add(startTimeout); ; time.Sleep(pollInterval) {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil || ctx.Err() != nil || time.Now().After(giveUp) {
			return conn, err
		}
	}
}

// initiate waits for the server, makes it the first of a replica set, and waits until it takes writes.
func (s *Server) initiate(ctx context.Context, addrs ...string) error {
	conn, err := dial(ctx, s.addr)
	if err != nil {
		return err
	}
	if s.secrets != nil {
		conn = tls.Client(conn, s.secrets.client)
	}
	defer conn.Close() //nolint:errcheck // the answers have come
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	if err := mustCommand(conn, bson.D{{Key: "replSetInitiate", Value: config(addrs)}}); err != nil {
		return err
	}
	for {
		reply, err := command(conn, bson.D{{Key: "hello", Value: 1}})
		if err != nil {
			return err
		}
		if primary, _ := reply.Lookup("isWritablePrimary").BooleanOK(); primary {
			break
		}
		time.Sleep(pollInterval)
	}
	s.URI += "?replicaSet=" + replicaSet
	if s.secrets == nil {
		return nil
	}
	s.URI = s.secrets.uri(s.addr, replicaSet)
	return mustCommand(conn, s.secrets.createUser()) // the server allows the first one to whoever is on its machine
}

// config is that of a replica set, whose first member becomes primary first.
func config(addrs []string) bson.D {
	members := bson.A{}
	for i, addr := range addrs {
		members = append(members, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: addr}})
	}
	patience := 1000 // tests let it step down
	if len(addrs) > 1 {
		patience = 2500 // others than tests should not make a busy machine elect all the time
	}
	return bson.D{
		{Key: "_id", Value: replicaSet},
		{Key: "members", Value: members},
		{Key: "settings", Value: bson.D{{Key: "electionTimeoutMillis", Value: patience}, {Key: "heartbeatIntervalMillis", Value: 500}}},
	}
}

func mustCommand(conn net.Conn, cmd bson.D) error {
	reply, err := command(conn, cmd)
	if err != nil {
		return err
	}
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok != 1 {
		message, _ := reply.Lookup("errmsg").StringValueOK()
		return fmt.Errorf("%s: %s", cmd[0].Key, message)
	}
	return nil
}

// freePort gives a port that nobody listens at. It is below those that systems give out by themselves, so that it is not taken before
// the server listens.
func freePort(ctx context.Context) (string, error) {
	const tries = 100
	var refused error
	for range tries {
		port := strconv.Itoa(10000 + rand.IntN(20000))
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:"+port)
		if err == nil {
			return port, l.Close()
		}
		refused = err
	}
	return "", refused
}

func logTail(file string) string {
	data, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
