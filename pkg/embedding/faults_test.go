package embedding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/errs"
)

// TestR11Calls is row R11 of the fault list at the level of groups: a provider that fails is asked five times at most,
// its error says which group is offline, and after its return everything is embedded.
func TestR11Calls(t *testing.T) {
	for _, tt := range []struct {
		fault embeddingtest.Fault
		calls int    // before the member rests
		then  string // its states after the cool-down and a check, the fault being there still
	}{
		{embeddingtest.Down, 5, "a degraded open; "},
		{embeddingtest.Hanging, 5, "a degraded open; "},
		{embeddingtest.TooFew, 5, "a degraded open; "},
		{embeddingtest.NoNumbers, 5, "a degraded open; "},
		{embeddingtest.NoDirection, 5, "a degraded open; "},
		{embeddingtest.Throttled, 1, "a degraded open; "},
		{embeddingtest.WrongForm, 5, "a quarantined closed; "},
		{embeddingtest.WrongDimension, 5, "a quarantined closed; "},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				w.faulty["a"].RetryAfter = 2 * time.Minute
				g := w.open()
				wantStates(t, g, "a live closed; ")
				w.faulty["a"].Set(tt.fault)
				before := w.faulty["a"].Calls()
				for range 20 {
					if _, err := g.Documents(t.Context(), []string{"one", "two"}); code(err) != embedding.CodeOffline ||
						!strings.HasPrefix(errs.From(err).Message, "the embedding group texts is offline: ") {
						t.Fatalf("it gave %v", err)
					}
				}
				if got := w.faulty["a"].Calls() - before; got > tt.calls {
					t.Errorf("it was asked %d times, want %d at most", got, tt.calls)
				}
				wantStates(t, g, "a degraded open; ")
				_, err := g.Query(t.Context(), "one")
				if e := errs.From(err); e.Kind != errs.Unavailable || e.RetryAfter <= 0 {
					t.Errorf("the error's kind is %d, and one may try again in %s", e.Kind, e.RetryAfter)
				}
				w.wait(interval + cooldown)
				wantStates(t, g, tt.then)
				w.faulty["a"].Set(embeddingtest.None)
				w.wait(2 * (interval + cooldown))
				wantStates(t, g, "a live closed; ")
				if got, err := g.Documents(t.Context(), []string{"one", "two"}); err != nil {
					t.Error(err)
				} else {
					isVector(t, got[1], "two")
				}
			})
		})
	}
}

// TestR11Start has the provider fail when its vectors are verified for the first time.
func TestR11Start(t *testing.T) {
	golden := ""
	synctest.Test(t, func(t *testing.T) {
		raw, err := newWorld(t, "a").open().Golden(t.Context(), []string{"one", "two"}, []string{"three"})
		if err != nil {
			t.Fatal(err)
		}
		golden = string(raw)
	})
	for _, tt := range []struct {
		fault embeddingtest.Fault
		want  string
	}{
		{embeddingtest.None, "a live closed; "},
		{embeddingtest.Slow, "a live closed; "},
		{embeddingtest.Down, "a offline open; "},
		{embeddingtest.Hanging, "a offline open; "},
		{embeddingtest.Throttled, "a offline open; "},
		{embeddingtest.Refusing, "a offline open; "},
		{embeddingtest.TooFew, "a offline open; "},
		{embeddingtest.NoNumbers, "a offline open; "},
		{embeddingtest.NoDirection, "a offline open; "},
		{embeddingtest.WrongForm, "a quarantined closed; "},
		{embeddingtest.WrongDimension, "a quarantined closed; "},
		{embeddingtest.OtherModel, "a quarantined closed; "},
		{embeddingtest.Random, "a quarantined closed; "},
	} {
		for name, every := range map[string]time.Duration{"with checks": interval, "without checks": 0} {
			t.Run(string(tt.fault)+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, "a")
					w.golden(golden)
					w.config.CheckInterval = every
					w.faulty["a"].Set(tt.fault)
					g := w.open()
					w.wait(25 * time.Second) // of which the slow ones need much
					wantStates(t, g, tt.want)
					if _, err := g.Query(t.Context(), "one"); (err == nil) != (g.State() == embedding.Live) {
						t.Errorf("it is %s and gave %v", g.State(), err)
					}
					w.faulty["a"].Set(embeddingtest.None)
					w.wait(2 * interval)
					_, err := g.Query(t.Context(), "one")
					if lost := every == 0 && strings.Contains(tt.want, "quarantined"); (err != nil) != lost {
						t.Errorf("after its return it gave %v; %s", err, states(g))
					}
				})
			})
		}
	}
}

// TestR11Slow counts calls that succeed, but take longer than slowThreshold for each of their texts.
func TestR11Slow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		texts int
		calls int
		want  string
	}{
		{"four", 1, 4, "a live closed; "},
		{"five", 1, 5, "a degraded open; "},
		{"five with more texts each", 2, 5, "a live closed; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				g := w.open()
				w.faulty["a"].Set(embeddingtest.Slow) // 8s, which is between 5s and twice as much
				for range tt.calls {
					if _, err := g.Documents(t.Context(), someTexts(tt.texts)); err != nil {
						t.Fatal(err)
					}
				}
				wantStates(t, g, tt.want)
				if tt.want == "a live closed; " {
					return
				}
				w.wait(2 * interval)
				wantStates(t, g, "a degraded open; ") // as slow as before
				w.faulty["a"].Set(embeddingtest.None)
				w.wait(2 * interval)
				wantStates(t, g, "a live closed; ")
			})
		})
	}
}

func someTexts(n int) []string {
	return strings.Split(strings.Repeat("text,", n)+"text", ",")[:n]
}

// TestR11CallersGiveUp has callers wait for less than the provider needs: that it is slow is seen only if it is.
func TestR11CallersGiveUp(t *testing.T) {
	for _, tt := range []struct {
		name     string
		patience time.Duration
		want     string
	}{
		{"soon", 3 * time.Second, "a live closed; "},
		{"late", 7 * time.Second, "a degraded open; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				w.config.CheckInterval = time.Hour
				g := w.open()
				w.faulty["a"].Set(embeddingtest.Hanging)
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), tt.patience)
					_, err := g.Query(ctx, "text")
					cancel()
					if e := errs.From(err); !errors.Is(err, context.DeadlineExceeded) || e.Kind != errs.Timeout || !strings.Contains(e.Message, "group texts") {
						t.Fatalf("it gave %v", err)
					}
				}
				wantStates(t, g, tt.want)
			})
		})
	}
}

// TestR11Throttled rests as long as the provider says, and when it doesn't say, longer each time.
func TestR11Throttled(t *testing.T) {
	for _, tt := range []struct {
		name  string
		asked time.Duration
		rests []time.Duration
	}{
		{"for 7 seconds", 7 * time.Second, []time.Duration{7 * time.Second, 7 * time.Second}},
		{"for a day", 24 * time.Hour, []time.Duration{10 * time.Minute, 10 * time.Minute}},
		{"without a time", 0, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				w.config.CheckInterval = time.Hour
				w.faulty["a"].RetryAfter = tt.asked
				g := w.open()
				w.faulty["a"].Set(embeddingtest.Throttled)
				for i, rest := range tt.rests {
					_, err := g.Query(t.Context(), "text")
					if got := errs.From(err).RetryAfter; got != rest {
						t.Fatalf("after %d calls it rests %s, want %s", i+1, got, rest)
					}
					w.wait(rest - time.Millisecond)
					wantStates(t, g, "a degraded open; ")
					w.wait(time.Millisecond)
					wantStates(t, g, "a live closed; ")
				}
				w.faulty["a"].Set(embeddingtest.None)
				if _, err := g.Query(t.Context(), "text"); err != nil {
					t.Error(err)
				}
				w.faulty["a"].Set(embeddingtest.Throttled) // as for the first time
				if _, err := g.Query(t.Context(), "text"); errs.From(err).RetryAfter != tt.rests[0] {
					t.Errorf("after a success it gave %v, in %s", err, errs.From(err).RetryAfter)
				}
			})
		})
	}
}

// TestR11ModelSwapped has another model behind the same name: it is found by the next check, also without golden files.
func TestR11ModelSwapped(t *testing.T) {
	for _, fault := range []embeddingtest.Fault{embeddingtest.OtherModel, embeddingtest.Random} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b")
				g := w.open()
				w.faulty["a"].Set(fault)
				w.wait(interval)
				wantStates(t, g, "a quarantined closed; b live closed; ")
				got, err := g.Query(t.Context(), "text")
				if err != nil {
					t.Fatal(err)
				}
				isVector(t, got, "text")
				w.faulty["a"].Set(embeddingtest.None)
				w.wait(interval)
				wantStates(t, g, "a live closed; b live closed; ")
			})
		})
	}
}

// TestR11HalfOpen has one verification decide whether the breaker closes; calls don't wait for it.
func TestR11HalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		g := w.open()
		w.faulty["a"].Set(embeddingtest.Down)
		for range 5 {
			_, _ = g.Query(t.Context(), "text") // which fails
		}
		w.faulty["a"].Set(embeddingtest.Hanging)
		w.wait(interval)
		wantStates(t, g, "a degraded half-open; ")
		before, began := w.faulty["a"].Calls(), time.Now()
		if _, err := g.Query(t.Context(), "text"); code(err) != embedding.CodeOffline || time.Since(began) != 0 {
			t.Errorf("after %s it gave %v", time.Since(began), err)
		}
		if got := w.faulty["a"].Calls(); got != before {
			t.Errorf("it was asked %d times", got-before)
		}
		w.wait(10 * time.Second)
		wantStates(t, g, "a degraded open; ")
		if rests := g.Status(false).Members[0].RestsTo; rests == nil || time.Until(*rests) != cooldown {
			t.Errorf("it rests until %v, which is not its whole cool-down", rests)
		}
	})
}

// TestR11RetryAfter has the error of a group say when its first member returns.
func TestR11RetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.faulty["a"].RetryAfter = 7 * time.Second
		g := w.open()
		w.faulty["a"].Set(embeddingtest.Throttled)
		w.faulty["b"].Set(embeddingtest.Down)
		for range 5 {
			_, _ = g.Query(t.Context(), "text") // which fails
		}
		wantStates(t, g, "a degraded open; b degraded open; ")
		if _, err := g.Query(t.Context(), "text"); errs.From(err).RetryAfter != 7*time.Second {
			t.Errorf("one may try again in %s", errs.From(err).RetryAfter)
		}
	})
}

// TestChecksAreBrief asks live members for one vector: golden texts are for those that come back.
func TestChecksAreBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, err := newWorld(t, "a").open().Golden(t.Context(), []string{"one", "two"}, []string{"three"})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, "a")
		w.golden(string(raw))
		w.open()
		for _, want := range []int{3, 4, 5} { // the probe, documents, queries; the probe
			if got := w.faulty["a"].Calls(); got != want {
				t.Errorf("it was asked %d times, want %d", got, want)
			}
			w.wait(interval)
		}
	})
}

// TestR11WithoutChecks has calls bring a member back where there is no interval of checks.
func TestR11WithoutChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.config.CheckInterval = 0
		g := w.open()
		fail := func() {
			for range 5 {
				_, _ = g.Query(t.Context(), "text") // of which some fail
			}
		}
		w.faulty["a"].Set(embeddingtest.Down)
		fail()
		wantStates(t, g, "a degraded open; b live closed; ")
		w.faulty["a"].Set(embeddingtest.None)
		w.wait(cooldown)
		wantStates(t, g, "a degraded open; b live closed; ") // nobody asked
		w.faulty["a"].Set(embeddingtest.Hanging)
		began := time.Now()
		if _, err := g.Query(t.Context(), "text"); err != nil || time.Since(began) != 0 { // b answers beside the verification
			t.Errorf("after %s it gave %v", time.Since(began), err)
		}
		w.wait(10 * time.Second)
		w.faulty["a"].Set(embeddingtest.None)
		w.wait(cooldown)
		if _, err := g.Query(t.Context(), "text"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantStates(t, g, "a live closed; b live closed; ")

		w.faulty["a"].Set(embeddingtest.Down)
		w.faulty["b"].Set(embeddingtest.Down)
		fail()
		wantStates(t, g, "a degraded open; b degraded open; ")
		w.faulty["b"].Set(embeddingtest.None)
		w.wait(cooldown)
		if _, err := g.Query(t.Context(), "text"); err != nil { // waits for the verification
			t.Fatal(err)
		}
		wantStates(t, g, "a degraded open; b live closed; ")
	})
}

// TestR11Refused keeps a provider that takes all texts but one.
func TestR11Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.config.CheckInterval = time.Hour
		g := w.open()
		w.faulty["a"].Set(embeddingtest.Refusing)
		before := w.faulty["b"].Calls()
		for range 20 {
			_, err := g.Documents(t.Context(), []string{"text"})
			if e := errs.From(err); e.Kind != errs.Invalid || e.Code != embedding.CodeRefused || !strings.Contains(e.Message, "group texts") {
				t.Fatalf("it gave %v", err)
			}
		}
		if w.faulty["b"].Calls() != before {
			t.Error("another member was asked the same")
		}
		wantStates(t, g, "a live closed; b live closed; ")
		w.wait(6 * time.Hour) // what is refused in checks is every text
		wantStates(t, g, "a degraded open; b live closed; ")
	})
}
