package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	adminToken   = "bench-admin-token-of-no-worth-0000"
	articlesPath = "/api/v1/_/bench/articles"
	startLimit   = 30 * time.Second
)

// server is svcd as a process of its own, on a directory that remove takes away.
type server struct {
	svcd, dir, addr string
	cmd             *exec.Cmd  // nil while it does not run
	ended           chan error // gives how cmd ended, once
}

func newServer(ctx context.Context, o options) (*server, error) {
	svcd, err := filepath.Abs(o.svcd)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(svcd); err != nil {
		return nil, fmt.Errorf("%w; make build makes it", err)
	}
	dir, err := os.MkdirTemp("", "svc-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{svcd: svcd, dir: dir}
	if err := os.CopyFS(s.projectDir(), os.DirFS(o.project)); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // a port that is free now
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	s.addr = l.Addr().String()
	return s, l.Close()
}

func (s *server) projectDir() string { return filepath.Join(s.dir, "projects", "bench") }

// addCollection adds to the project, which is not served yet, a collection like another one. change, which may be nil, is
// what its config has other.
func (s *server) addCollection(like, name string, change func(config string) string) error {
	config, err := os.ReadFile(filepath.Join(s.projectDir(), like+".yaml"))
	if err != nil {
		return err
	}
	text := strings.Replace(string(config), "name: "+like, "name: "+name, 1)
	if change != nil {
		text = change(text)
	}
	if err := os.WriteFile(filepath.Join(s.projectDir(), name+".yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	project, err := os.ReadFile(filepath.Join(s.projectDir(), "project.yaml"))
	if err != nil {
		return err
	}
	listed := strings.Replace(string(project), "collections:\n", "collections:\n  - "+name+".yaml\n", 1)
	return os.WriteFile(filepath.Join(s.projectDir(), "project.yaml"), []byte(listed), 0o644)
}

// store names the kind of store, without its address.
func (s *server) store() string {
	if strings.HasPrefix(os.Getenv("STORE_URI"), "mongodb") {
		return "mongodb"
	}
	return "embedded"
}

// start runs svcd and returns as soon as a path answers 200.
func (s *server) start(ctx context.Context, path string) error {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	s.cmd = exec.CommandContext(ctx, s.svcd, "serve")
	s.cmd.Env = append(os.Environ(), "API_HOST=127.0.0.1", "API_PORT="+port, "DATA_DIR="+filepath.Join(s.dir, "data"),
		"PROJECTS_DIR="+filepath.Join(s.dir, "projects"), "ADMIN_TOKEN="+adminToken, "LOG_LEVEL=warn",
		"API_TRUSTED_PROXIES=127.0.0.1")
	s.cmd.Stderr = &log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	deadline := time.Now().Add(startLimit)
	for {
		select {
		case err := <-s.ended:
			s.cmd = nil
			return fmt.Errorf("svcd ended: %w\n%s", err, log.String())
		case <-time.After(time.Millisecond):
		}
		if status, _, err := s.call(ctx, http.MethodGet, path, nil); err == nil && status == http.StatusOK {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("svcd is not ready after " + startLimit.String())
		}
	}
}

// stop ends svcd and waits until it has let go of its store.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.ended:
		return err
	case <-time.After(startLimit):
		return errors.Join(errors.New("svcd does not stop"), cmd.Process.Kill())
	}
}

func (s *server) remove() error { return errors.Join(s.stop(), os.RemoveAll(s.dir)) }

// call makes one request as the administrator.
func (s *server) call(ctx context.Context, method, path string, body any) (status int, answer []byte, err error) {
	return s.callAs(ctx, "X-Admin-Token: "+adminToken, method, path, body)
}

// callAs makes one request with a header line for who is calling.
func (s *server) callAs(ctx context.Context, as, method, path string, body any) (status int, answer []byte, err error) {
	var data []byte
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	name, value, _ := strings.Cut(as, ": ")
	req.Header.Set(name, value)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// want is call for an answer of one status, decoded into out.
func (s *server) want(ctx context.Context, method, path string, body any, status int, out any) error {
	return s.wantAs(ctx, "X-Admin-Token: "+adminToken, method, path, body, status, out)
}

func (s *server) wantAs(ctx context.Context, as, method, path string, body any, status int, out any) error {
	got, answer, err := s.callAs(ctx, as, method, path, body)
	switch {
	case err != nil:
		return err
	case got != status:
		return fmt.Errorf("%s %s: status %d: %.500s", method, path, got, answer)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (s *server) version(ctx context.Context) (string, error) {
	var v struct {
		Version string `json:"version"`
	}
	err := s.want(ctx, http.MethodGet, "/api/v1/version", nil, http.StatusOK, &v)
	return v.Version, err
}

// usage is what the process has taken of the machine.
type usage struct {
	cpuSeconds float64
	mib        float64
}

// usage reads the service's own metrics, which every system has.
func (s *server) usage(ctx context.Context) (usage, error) {
	status, answer, err := s.call(ctx, http.MethodGet, "/metrics", nil)
	if err != nil || status != http.StatusOK {
		return usage{}, fmt.Errorf("/metrics: status %d: %w", status, err)
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(answer)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = n
		}
	}
	return usage{values["process_cpu_seconds_total"], values["process_resident_memory_bytes"] / (1 << 20)}, nil
}
