package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/svcctl/svc/pkg/client"
)

// Password hashes are made by processes that svcd starts and waits for.
func TestHashesAreMadeByProcesses(t *testing.T) {
	t.Parallel()
	const password = "the-password-of-these-tests"
	s := newSvcd(t, "ADMIN_USER=root", "ADMIN_PASSWORD="+password).start()
	before := s.faultsOfChildren(t)
	if _, err := s.Login(t.Context(), "root", password); err != nil {
		t.Error(err)
	}
	if _, err := s.Login(t.Context(), "root", "wrong"); !client.IsStatus(err, http.StatusForbidden) {
		t.Errorf("a wrong password: %v", err)
	}
	if n := s.faultsOfChildren(t) - before; n < 2*(64<<20)/(2<<20) { // pages of 2 MiB at most
		t.Errorf("processes that have ended had %d page faults: too few for two hashes of 64 MiB", n)
	}
	code, log, err := s.stop(syscall.SIGTERM)
	if code != 0 || err != nil || strings.Contains(log, "password hashes") {
		t.Errorf("code %d, %v\n%s", code, err, log)
	}
}

// faultsOfChildren gives the page faults of the processes that svcd has waited for.
func (s *server) faultsOfChildren(t *testing.T) (n int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if os.IsNotExist(err) {
		t.Skip("this system has no /proc")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name: state ppid pgrp session tty tpgid flags minflt cminflt
	var state string
	var skip [7]int64
	if _, err := fmt.Sscan(rest, &state, &skip[0], &skip[1], &skip[2], &skip[3], &skip[4], &skip[5], &skip[6], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The command tells who runs it by hand what it is for.
func TestHashByHand(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := newSvcd(t).run(hashName)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "is for svcd itself") {
		t.Errorf("code %d, %q, %s", code, stdout, stderr)
	}
}
