package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/auth"
	"github.com/svcctl/svc/pkg/errs"
)

// S31: forged tokens are refused without a look into the store, but for one a second that a key's unknown name costs,
// however many there are.
func TestS31JWT(t *testing.T) {
	f := newAuth(t)
	good := f.login("ann")
	f.wantGood(good)
	keys, err := f.system.Secrets.SigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret, kid, now := keys[0].Secret, keys[0].ID, f.clock.Now()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forge := func(method jwt.SigningMethod, key any, header, change map[string]any) string {
		token := jwt.NewWithClaims(method, jwt.MapClaims{
			"iss": "svc", "aud": "svc-api", "sub": f.user.ID.Hex(), "ver": 0, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		})
		token.Header["kid"] = kid
		claims, _ := token.Claims.(jwt.MapClaims)
		for to, from := range map[*map[string]any]map[string]any{&token.Header: header, (*map[string]any)(&claims): change} {
			for k, v := range from {
				(*to)[k] = v
				if v == nil {
					delete(*to, k)
				}
			}
		}
		s, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	hs := jwt.SigningMethodHS256
	f.wantGood(forge(hs, secret, nil, nil)) // what the forgeries differ from
	parts := strings.Split(good, ".")
	type m = map[string]any
	for name, token := range map[string]string{
		"none":                  forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil),
		"none in another case":  forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, m{"alg": "nOnE"}, nil),
		"none, with the claims": forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, m{"alg": "HS256"}, nil),
		"no alg":                forge(hs, secret, m{"alg": nil}, nil),
		"alg of a type":         forge(hs, secret, m{"alg": []string{"HS256"}}, nil),
		"RS256":                 forge(jwt.SigningMethodRS256, rsaKey, nil, nil),
		"RS256 said HS256":      forge(jwt.SigningMethodRS256, rsaKey, m{"alg": "HS256"}, nil),
		"HS256 said RS256":      forge(hs, secret, m{"alg": "RS256"}, nil),
		"HS384":                 forge(jwt.SigningMethodHS384, secret, nil, nil),
		"HS512":                 forge(jwt.SigningMethodHS512, secret, nil, nil),
		"no kid":                forge(hs, secret, m{"kid": nil}, nil),
		"empty kid":             forge(hs, []byte{}, m{"kid": ""}, nil),
		"kid of a path":         forge(hs, []byte{}, m{"kid": "../../../dev/null"}, nil),
		"kid of a query":        forge(hs, secret, m{"kid": "' or 1=1 --"}, nil),
		"kid that is an object": forge(hs, secret, m{"kid": m{"$ne": ""}}, nil),
		"kid with a NUL":        forge(hs, secret, m{"kid": kid + "\x00"}, nil),
		"kid in another case":   forge(hs, secret, m{"kid": strings.ToUpper(kid) + "X"}, nil),
		"unknown kid":           forge(hs, secret, m{"kid": "0123456789abcdef"}, nil),
		"jku":                   forge(hs, []byte("the secret at that address, 32 by"), m{"jku": "https://evil.example/keys"}, nil),
		"jwk":                   forge(hs, []byte("the secret in the header, 32 bytes"), m{"jwk": m{"kty": "oct", "k": "AAAA"}}, nil),
		"no exp":                forge(hs, secret, nil, m{"exp": nil}),
		"exp of a type":         forge(hs, secret, nil, m{"exp": "never"}),
		"exp long past":         forge(hs, secret, nil, m{"exp": 1}),
		"exp too far":           forge(hs, secret, nil, m{"exp": 1e300}),
		"no iss":                forge(hs, secret, nil, m{"iss": nil}),
		"iss in another case":   forge(hs, secret, nil, m{"iss": "SVC"}),
		"no aud":                forge(hs, secret, nil, m{"aud": nil}),
		"aud of none":           forge(hs, secret, nil, m{"aud": []string{}}),
		"no sub":                forge(hs, secret, nil, m{"sub": nil}),
		"sub that is an object": forge(hs, secret, nil, m{"sub": m{"$ne": ""}}),
		"no iat":                forge(hs, secret, nil, m{"iat": nil}),
		"iat ahead":             forge(hs, secret, nil, m{"iat": now.Add(time.Hour).Unix()}),
		"nbf ahead":             forge(hs, secret, nil, m{"nbf": now.Add(time.Hour).Unix()}),
		"version of a type":     forge(hs, secret, nil, m{"ver": "0"}),
		"one bit changed":       good[:len(good)-2] + string(good[len(good)-2]^1) + good[len(good)-1:],
		"claims of another":     strings.Join([]string{parts[0], strings.Split(f.login("root"), ".")[1], parts[2]}, "."),
		"padded":                good + "=",
		"four parts":            good + ".x",
		"a space":               " " + good,
		"a NUL":                 good + "\x00",
		"a NUL in front":        "\x00" + good,
		"a line break":          good + "\n",
		"a megabyte of dots":    strings.Repeat(".", 1<<20),
		"2048 dots":             strings.Repeat(".", 2048),
		"nested JSON":           "eyJ" + strings.Repeat("W1tb", 400) + "." + parts[1] + "." + parts[2],
		"a megabyte of claims":  parts[0] + "." + strings.Repeat("A", 1<<20) + "." + parts[2],
	} {
		t.Run(name, func(t *testing.T) {
			f.wantGood(good)
			f.store.reads()
			for range 100 {
				for _, c := range []auth.Credentials{{XAuthToken: token}, {Cookie: token}} {
					if _, err := f.Authenticate(t.Context(), c); !errors.Is(err, errs.ErrDenied) {
						t.Fatalf("%v, want permission denied", err)
					}
				}
			}
			if n := f.store.reads(); n > 0 {
				t.Errorf("200 of them cost %d reads", n)
			}
		})
	}
	// A key that nobody here knows may be another instance's, made a moment ago: that is looked up once a second.
	for range 3 {
		f.clock.Pass(time.Second)
		f.wantGood(good)
		f.store.reads()
		for range 100 {
			f.wantVoid(forge(hs, secret, m{"kid": fmt.Sprintf("%016x", now.UnixNano())}, nil))
		}
		if n := f.store.reads(); n > 1 {
			t.Errorf("100 unknown keys cost %d reads in a second", n)
		}
	}
}

// S33: for a user who is not there, the same work is done and the same text answered as for one who is.
func TestS33Enumeration(t *testing.T) {
	f := newAuth(t)
	gone := f.create("gone")
	if _, err := f.system.Users.Update(t.Context(), admin, gone.ID.Hex(), bson.D{{Key: "active", Value: false}}); err != nil {
		t.Fatal(err)
	}
	var costs []auth.Params
	f.hasher.WatchDerive(func(p auth.Params) func() { costs = append(costs, p); return func() {} })
	type outcome struct {
		Text  string
		Costs []auth.Params
		Reads int
	}
	var all []outcome
	for i, name := range []string{"ann", "nobody", "gone", "ANN", "", "ann\x00", "x\u0130y", strings.Repeat("n", 2000)} {
		costs = nil
		f.store.reads()
		_, err := f.Login(t.Context(), name, "wrong", fmt.Sprintf("198.51.100.%d", i))
		all = append(all, outcome{fmt.Sprintf("%+v", *errs.From(err)), slices.Clone(costs), f.store.reads()})
	}
	for i, o := range all {
		if diff := cmp.Diff(all[0], o); diff != "" || len(o.Costs) != 1 {
			t.Errorf("try %d (-known +this):\n%s", i, diff)
		}
	}
}

// TestS33Timing measures what TestS33Enumeration counts, with the real costs. It takes minutes: SOAK=1 makes it run.
func TestS33Timing(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK=1 to measure for some minutes")
	}
	f := newAuth(t, func(f *fixture) { f.params = auth.DefaultParams() })
	took, names, ratios := map[string][]float64{}, []string{"ann", "nobody"}, []float64{}
	for range 2000 {
		pair := map[string]float64{}
		slices.Reverse(names) // nobody is always the one after a collection of garbage
		for _, name := range names {
			f.clock.Pass(2 * time.Hour) // no delays
			began := time.Now()
			if _, err := f.Login(t.Context(), name, "wrong", addr); errs.KindOf(err) != errs.Denied {
				t.Fatal(err)
			}
			pair[name] = float64(time.Since(began))
			took[name] = append(took[name], pair[name])
		}
		ratios = append(ratios, pair["nobody"]/pair["ann"]) // two that follow each other: a machine has other things to do
	}
	median := func(values []float64) float64 {
		slices.Sort(values)
		return values[len(values)/2]
	}
	known, unknown, r := median(took["ann"]), median(took["nobody"]), median(ratios)
	t.Logf("known %s, unknown %s; of each pair %+.2f %%", time.Duration(known), time.Duration(unknown), (r-1)*100)
	if r > 1.05 || r < 0.95 {
		t.Errorf("medians differ by %.2f %%", (r-1)*100)
	}
}

// S34: what is counted is the account as the service knows it, in whatever form its name comes, and the address.
func TestS34BruteForceKey(t *testing.T) {
	f := newAuth(t)
	for i, name := range []string{"ann", "Ann", "ANN", "aNn"} {
		f.want(name, "wrong", f.try(name, "wrong", fmt.Sprintf("198.51.100.%d", i)))
	}
	for _, name := range []string{"ann", "ANN", "aNN"} {
		f.want(name, "1s", f.try(name, password, "198.51.100.9"))
	}
	f.start() // a restart forgets nothing
	f.want("after a restart", "1s", f.try("ann", password, "198.51.100.9"))
	f.want("on another instance", "1s", f.another().try("ann", password, "198.51.100.9"))
	// A success with another account doesn't clear this one's count, nor the address's.
	f.want("another account", "ok", f.try("root", password, "198.51.100.9"))
	f.want("still", "1s", f.try("ann", password, "198.51.100.9"))
	f.clock.Pass(999 * time.Millisecond)
	f.want("a moment too early", "1s", f.try("ann", password, "198.51.100.9"))
	f.clock.Pass(time.Millisecond)
	f.want("when it is over", "ok", f.try("ann", password, "198.51.100.9"))

	// Names that only look alike are no account, and don't make it one.
	for i, name := range []string{"аnn", "ａｎｎ", "ann\u200b", "ann ", " ann", "ann\x00", "a\u006en\u0301n"} {
		f.want(name, "wrong", f.try(name, password, fmt.Sprintf("203.0.113.%d", i)))
	}
	f.want("they haven't counted for it", "ok", f.try("ann", password, "198.51.100.9"))
}

// S36: passwords have a bounded length, which is looked at first; hashes are made a bounded number at once, those who wait
// are bounded, too, and who comes then is sent away before the store is asked.
func TestS36LoginAsDoS(t *testing.T) {
	f := newAuth(t)
	const parallel = 2
	f = f.another(func(f *fixture) { f.parallel = parallel })
	a := f.Auth
	var now, most, hashes atomic.Int64
	f.hasher.WatchDerive(func(auth.Params) func() {
		hashes.Add(1)
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return func() { now.Add(-1) }
	})
	f.store.reads()
	for _, n := range []int{1025, 1 << 20} {
		if _, err := a.Login(t.Context(), "ann", strings.Repeat("x", n), addr); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%d bytes: %v, want Invalid", n, err)
		}
	}
	if reads := f.store.reads(); reads > 0 || hashes.Load() > 0 {
		t.Errorf("long passwords cost %d reads and %d hashes", reads, hashes.Load())
	}
	if _, err := a.Login(t.Context(), "ann", strings.Repeat("x", 1024), addr); errs.KindOf(err) != errs.Denied {
		t.Errorf("1024 bytes: %v, want Denied", err)
	}

	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			_, err := a.Login(t.Context(), fmt.Sprintf("name%d", i), "x", fmt.Sprintf("2001:db8:%x::1", i))
			if k := errs.KindOf(err); k != errs.Denied && k != errs.Throttled {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > parallel || hashes.Load() < 2 {
		t.Errorf("%d hashes at once, %d in all", most.Load(), hashes.Load())
	}

	// With the queue full, a login costs nothing.
	var release []func()
	for range parallel {
		r, err := f.hasher.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, r)
	}
	for range auth.MaxQueued {
		wg.Go(func() {
			r, err := f.hasher.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			r()
		})
	}
	for f.hasher.Queued() < parallel+auth.MaxQueued && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	f.store.reads()
	for range 100 {
		_, err := a.Login(t.Context(), "ann", password, addr)
		if e := errs.From(err); e.Kind != errs.Throttled || e.Code != "too_many_logins" || e.RetryAfter != time.Second {
			t.Fatal(err)
		}
	}
	if reads := f.store.reads(); reads > 0 {
		t.Errorf("100 logins too many cost %d reads", reads)
	}
	for _, r := range release {
		r()
	}
	wg.Wait()
	if _, err := a.Login(t.Context(), "ann", password, addr); err != nil {
		t.Errorf("when it is over: %v", err)
	}
}
