package auth_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/auth"
)

// hashArg makes this test binary what makes a hash.
const hashArg = "hash"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == hashArg {
		if err := auth.ServeHash(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m) // R19: no goroutine outlives the tests
}

func TestHashesOfAProcess(t *testing.T) {
	var log bytes.Buffer // a hash that is made here is a warning
	outside := auth.NewProcessHasher(cheap, 1, []string{os.Args[0], hashArg}, slog.New(slog.NewTextHandler(&log, nil)))
	here := auth.NewHasher(cheap, 1)
	for _, password := range []string{"", "correct horse", "\x00\xff no UTF-8 \xc3", strings.Repeat("x", 1024)} {
		for _, h := range [][2]*auth.Hasher{{outside, here}, {here, outside}, {outside, outside}} {
			hash, err := h[0].Hash(t.Context(), password)
			if err != nil {
				t.Fatal(err)
			}
			if ok, outdated, err := h[1].Verify(hash, password); !ok || outdated || err != nil {
				t.Errorf("Verify(%q) = %t, %t, %v", password, ok, outdated, err)
			}
			if ok, _, err := h[1].Verify(hash, password+"."); ok || err != nil {
				t.Errorf("Verify of another than %q = %t, %v", password, ok, err)
			}
		}
	}
	const hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc" // of password
	if ok, outdated, err := outside.Verify(hash, "password"); !ok || !outdated || err != nil {
		t.Errorf("with other costs: %t, %t, %v; want a match that is outdated", ok, outdated, err)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// Without a process that works, hashes are made all the same, and the log says so once.
func TestHashesWithoutAProcess(t *testing.T) {
	for name, command := range map[string][]string{
		"none":              {"/nowhere/svcd", hashArg},
		"one that fails":    {"false"},
		"one that is wrong": {"echo", "k"},
		"one that is idle":  {"true"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h := auth.NewProcessHasher(cheap, 1, command, slog.New(slog.NewTextHandler(&log, nil)))
			hash, err := h.Hash(t.Context(), "the password")
			if err != nil {
				t.Fatal(err)
			}
			ok, _, err := auth.NewHasher(cheap, 1).Verify(hash, "the password")
			if !ok || err != nil {
				t.Errorf("%t, %v", ok, err)
			}
			if ok, _, err = h.Verify(hash, "another"); ok || err != nil {
				t.Errorf("another password: %t, %v", ok, err)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 || strings.Contains(log.String(), "the password") {
				t.Errorf("%d warnings: %s", n, log.String())
			}
		})
	}
}

func TestServeHashRefuses(t *testing.T) {
	for _, job := range []string{
		"", "x", "{}",
		`{"Memory":64,"Time":1,"Threads":1,"Salt":"c29tZXNhbHQ=","Size":0}`,
		`{"Memory":64,"Time":0,"Threads":1,"Salt":"c29tZXNhbHQ=","Size":32}`,
		`{"Memory":4294967295,"Time":1,"Threads":1,"Salt":"c29tZXNhbHQ=","Size":32}`,
	} {
		var out bytes.Buffer
		if err := auth.ServeHash(t.Context(), strings.NewReader(job), &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes", job, err, out.Len())
		}
	}
}
