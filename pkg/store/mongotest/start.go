package mongotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	replicaSet   = "svctest"
	startTimeout = 30 * time.Second // generous: a loaded machine is no failure
	pollInterval = 20 * time.Millisecond
)

// keeper runs the server given as its arguments and outlives this process just long enough to end it: its standard
// input is a pipe from here, which the kernel closes however this process ends. Then it removes the data, too.
const keeper = `
dir=$1; stop=$2; shift 2
"$@" >"$dir/log" 2>&1 </dev/null &
server=$!
read -r _
eval "$stop"
kill -9 $server 2>/dev/null
wait $server 2>/dev/null
rm -rf "$dir"
`

// Server is a running MongoDB.
type Server struct {
	URI    string
	keeper *exec.Cmd
	pipe   io.Closer
}

// Start starts a MongoDB server with nothing in it: mongod from PATH, from a PyPI wheel that is kept in the user's
// cache folder, or docker. It ends with Stop, or when this process does.
func Start(ctx context.Context) (*Server, error) {
	mongod, err := findMongod(ctx)
	if err == nil {
		return start(ctx, func(_, dir string, port string) (string, []string) {
			return ":", append([]string{mongod, "--dbpath", dir, "--bind_ip", "127.0.0.1", "--nounixsocket"}, serverFlags(port)...)
		})
	}
	if dockerErr := exec.CommandContext(ctx, "docker", "info").Run(); dockerErr != nil {
		return nil, fmt.Errorf("%s (the wheel: %w)", howToGet, err)
	}
	return start(ctx, func(name, _ string, port string) (string, []string) {
		run := []string{"docker", "run", "--rm", "--name", name, "--publish", "127.0.0.1:" + port + ":" + port, "mongo:6.0", "mongod", "--bind_ip_all"}
		return "docker kill " + name, append(run, serverFlags(port)...)
	})
}

func serverFlags(port string) []string {
	return []string{
		"--port", port, "--replSet", replicaSet, "--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "128",
		"--setParameter", "diagnosticDataCollectionEnabled=false",
	}
}

// start runs the command that gives for a unique name, a data folder and a port, along with a shell command to stop it.
func start(ctx context.Context, command func(name, dir, port string) (stop string, argv []string)) (*Server, error) {
	dir, err := os.MkdirTemp("", "svc-mongod-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	stop, argv := command(filepath.Base(dir), dir, port)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", append([]string{"-c", keeper, "sh", dir, stop}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C is for this process; the keeper follows
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	server := &Server{
		URI:    "mongodb://127.0.0.1:" + port + "/?replicaSet=" + replicaSet,
		keeper: cmd, pipe: pipe,
	}
	if err := initiate(ctx, "127.0.0.1:"+port); err != nil {
		tail := logTail(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("starting %s: %w\n%s", argv[0], err, tail), server.Stop())
	}
	return server, nil
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	return errors.Join(s.pipe.Close(), s.keeper.Wait())
}

// initiate waits for the server, makes it a replica set of one, and waits until it takes writes.
func initiate(ctx context.Context, addr string) error {
	var dialer net.Dialer
	deadline := time.Now().Add(startTimeout)
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	for ; err != nil; conn, err = dialer.DialContext(ctx, "tcp", addr) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollInterval)
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	config := bson.D{
		{Key: "_id", Value: replicaSet},
		{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: addr}}}},
	}
	reply, err := command(conn, bson.D{{Key: "replSetInitiate", Value: config}})
	if err != nil {
		return err
	}
	if ok, _ := reply.Lookup("ok").AsInt64OK(); ok != 1 {
		return fmt.Errorf("replSetInitiate: %v", reply)
	}
	for {
		reply, err := command(conn, bson.D{{Key: "hello", Value: 1}})
		if err != nil {
			return err
		}
		if primary, _ := reply.Lookup("isWritablePrimary").BooleanOK(); primary {
			return nil
		}
		time.Sleep(pollInterval)
	}
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:errcheck // a TCP listener has a TCP address
	return strconv.Itoa(port), l.Close()
}

func logTail(file string) string {
	data, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
