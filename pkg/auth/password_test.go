package auth_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
)

// cheap are costs for tests.
var cheap = auth.Params{Memory: 64, Time: 1, Threads: 1}

func TestHashAndVerify(t *testing.T) {
	h := auth.NewHasher(cheap, 1)
	hash, err := h.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Errorf("hash is %q", hash)
	}
	again, err := h.Hash(t.Context(), "correct horse")
	if err != nil || again == hash {
		t.Errorf("two hashes are one: %q, %v", again, err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "Correct horse": false, "": false} {
		ok, outdated, err := h.Verify(hash, password)
		if ok != want || outdated || err != nil {
			t.Errorf("Verify(%q) = %t, %t, %v; want %t", password, ok, outdated, err, want)
		}
	}
	dearer := auth.NewHasher(auth.Params{Memory: 64, Time: 2, Threads: 1}, 1)
	if ok, outdated, err := dearer.Verify(hash, "correct horse"); !ok || !outdated || err != nil {
		t.Errorf("with other costs: %t, %t, %v; want a match that is outdated", ok, outdated, err)
	}
}

// The vector is that of the reference implementation.
func TestHashesOfOthersVerify(t *testing.T) {
	const hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, outdated, err := auth.NewHasher(auth.DefaultParams(), 1).Verify(hash, "password"); !ok || outdated || err != nil {
		t.Errorf("%t, %t, %v", ok, outdated, err)
	}
}

func TestMalformedHashesAreErrors(t *testing.T) {
	for _, hash := range []string{
		"", "x", "$$$$$",
		"$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q$",
		"$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ=$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=64,t=1,p=1,x=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=064,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=64,t=4294967295,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=64,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=64,t=1,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q",
		"$argon2id$v=19$m=64,t=1,p=1$$",
	} {
		ok, _, err := auth.NewHasher(cheap, 1).Verify(hash, "")
		if ok || err == nil {
			t.Errorf("Verify(%q) = %t, %v; want an error", hash, ok, err)
		}
		if len(hash) > 5 && err != nil && strings.Contains(err.Error(), hash) {
			t.Errorf("the error shows the hash: %v", err)
		}
	}
}

func FuzzPHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5Q")
	f.Add("$argon2id$v=19$m= 64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5R")
	f.Fuzz(func(t *testing.T, s string) {
		if again, err := auth.Canonical(s); err == nil && again != s {
			t.Errorf("%q is taken for %q", s, again)
		}
	})
}

func TestHashingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := auth.NewHasher(cheap, 1)
		release, err := h.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client left")
		const most = 64
		waiting := make(chan error, most)
		for range most {
			go func() {
				_, err := h.Hash(ctx, "x")
				waiting <- err
			}()
		}
		synctest.Wait() // all places are taken
		_, err = h.Hash(t.Context(), "x")
		if e := errs.From(err); e == nil || e.Kind != errs.Throttled || e.RetryAfter <= 0 {
			t.Errorf("Hash without a place = %v, want Throttled with RetryAfter", err)
		}
		cancel(gone)
		for range most {
			if err := <-waiting; !errors.Is(err, gone) {
				t.Errorf("Hash = %v, want the cause", err)
			}
		}
		release()
		if _, err := h.Hash(t.Context(), "x"); err != nil {
			t.Errorf("Hash with free slots = %v", err)
		}
	})
}
