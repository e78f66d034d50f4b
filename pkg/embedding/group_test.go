package embedding_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/errs"
)

func TestDocuments(t *testing.T) {
	for _, mode := range []string{"", embedding.First, embedding.Spread} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.config.Groups[0].OnBulkWrite = mode
				for i := range w.config.Providers {
					w.config.Providers[i].DocumentPrefix, w.config.Providers[i].QueryPrefix = "passage: ", "query: "
				}
				g := w.open()
				before := map[string]int{}
				for name, f := range w.faulty {
					before[name] = f.Calls()
				}
				var texts []string
				for i := range 10*embedding.BatchSize + 1 {
					texts = append(texts, fmt.Sprint("text ", i))
				}
				texts[3], texts[40] = "", " \n"
				got, err := g.Documents(t.Context(), texts)
				if err != nil || len(got) != len(texts) {
					t.Fatalf("%d vectors, %v", len(got), err)
				}
				for i, v := range got {
					if i == 3 || i == 40 {
						if !v.IsZero() {
							t.Errorf("white space has the vector %v", v)
						}
						continue
					}
					isVector(t, v, "passage: "+texts[i])
					if c := embedding.Cosine(v, v); math.Abs(c-1) > 1e-6 || math.Abs(length(v)-1) > 1e-6 {
						t.Errorf("its length is %v", length(v))
					}
				}
				for name, f := range w.faulty {
					calls, want := f.Calls()-before[name], mode == embedding.Spread || name == "a"
					if (calls > 0) != want {
						t.Errorf("%s was asked %d times", name, calls)
					}
				}
				query, err := g.Query(t.Context(), "text")
				if err != nil {
					t.Fatal(err)
				}
				isVector(t, query, "query: text")
			})
		})
	}
}

func length(v embedding.Vector) float64 {
	var sum float64
	for _, x := range v.Dense {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func TestTextsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		g := w.open()
		for text, want := range map[string]string{
			strings.Repeat("é", 20000):           strings.Repeat("é", 16384),
			"x" + strings.Repeat("é", 20000):     "x" + strings.Repeat("é", 16383),
			"a\xffb":                             "a�b",
			strings.Repeat("word ", 4):           strings.Repeat("word ", 4),
			strings.Repeat("a", 32<<10) + "\xe9": strings.Repeat("a", 32<<10),
		} {
			if _, err := g.Documents(t.Context(), []string{text}); err != nil {
				t.Fatal(err)
			}
			if got := w.faulty["a"].Texts(); got[0] != want {
				t.Errorf("%.20q became one of %d bytes, want %d", text, len(got[0]), len(want))
			}
		}
		if _, err := g.Query(t.Context(), " "); errs.KindOf(err) != errs.Invalid {
			t.Errorf("white space to look for gave %v", err)
		}
		if got, err := g.Documents(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("no texts gave %v, %v", got, err)
		}
	})
}

func TestSparse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.config.Providers[0].Sparse, w.config.Providers[0].Dimensions = true, 0
		w.golden(`{"texts": [{"text": "two words", "vector": {"two": 3, "words": 3}}]}`)
		g := w.open()
		wantStates(t, g, "a live closed; ")
		got, err := g.Query(t.Context(), "Words words")
		if err != nil || !g.Sparse() {
			t.Fatal(err)
		}
		if diff := cmp.Diff(embedding.Vector{Sparse: map[string]float32{"words": float32(1 + math.Log(2))}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.faulty["a"].Set(embeddingtest.WrongForm)
		w.wait(interval)
		wantStates(t, g, "a quarantined closed; ")
	})
}

// TestNextMember has the first member fail: the second answers the same call, and the first is preferred after its return.
func TestNextMember(t *testing.T) {
	for _, tt := range []struct {
		fault embeddingtest.Fault
		calls int
	}{
		{embeddingtest.Down, 5}, {embeddingtest.Hanging, 5}, {embeddingtest.NoNumbers, 5}, {embeddingtest.Throttled, 1},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b")
				w.config.CheckInterval = time.Hour
				w.faulty["a"].RetryAfter = time.Minute
				g := w.open()
				w.faulty["a"].Set(tt.fault)
				before := w.faulty["a"].Calls()
				for range 20 {
					got, err := g.Query(t.Context(), "text")
					if err != nil {
						t.Fatal(err)
					}
					isVector(t, got, "text")
				}
				if got := w.faulty["a"].Calls() - before; got != tt.calls {
					t.Errorf("a was asked %d times, want %d", got, tt.calls)
				}
				w.faulty["a"].Set(embeddingtest.None)
				w.wait(time.Hour)
				before = w.faulty["b"].Calls()
				if _, err := g.Query(t.Context(), "text"); err != nil || w.faulty["b"].Calls() != before {
					t.Errorf("b was asked though a is back, %v", err)
				}
			})
		})
	}
}

func TestRace(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b embeddingtest.Fault
		took time.Duration
		code string
	}{
		{"one is slow", embeddingtest.Slow, embeddingtest.None, 0, ""},
		{"one hangs", embeddingtest.None, embeddingtest.Hanging, 0, ""},
		{"one is down", embeddingtest.Down, embeddingtest.Slow, 8 * time.Second, ""},
		{"both are down", embeddingtest.Down, embeddingtest.Down, 0, embedding.CodeOffline},
		{"both refuse", embeddingtest.Refusing, embeddingtest.Refusing, 0, embedding.CodeRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b")
				w.config.Groups[0].OnSingleQuery = embedding.Race
				g := w.open()
				w.faulty["a"].Set(tt.a)
				w.faulty["b"].Set(tt.b)
				began := time.Now()
				got, err := g.Query(t.Context(), "text")
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				if tt.code == "" && err == nil {
					isVector(t, got, "text")
				} else if code(err) != tt.code {
					t.Errorf("it gave %v, want %q", err, tt.code)
				}
			})
		})
	}
}

// TestMembersDisagree has a second member whose vectors are not those of the first.
func TestMembersDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.faulty["a"].Set(embeddingtest.Down)
		g := w.open()
		wantStates(t, g, "a offline open; b live closed; ")
		w.faulty["a"].Set(embeddingtest.OtherModel)
		w.wait(interval)
		wantStates(t, g, "a quarantined closed; b live closed; ")
	})
}

// TestHealth finds a member that is down before a caller does.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.config.CheckInterval = time.Hour
		w.config.Groups[0].Health = embedding.Health{Text: "are you there?", Interval: 10 * time.Second}
		g := w.open()
		if diff := cmp.Diff([]string{"are you there?"}, w.faulty["a"].Texts()); diff != "" {
			t.Errorf("the probe (-want +got):\n%s", diff)
		}
		w.faulty["a"].Set(embeddingtest.Down)
		w.wait(50 * time.Second)
		wantStates(t, g, "a degraded open; ")
	})
}

// TestFirstVerification has callers wait for it, but not longer than they want, and not once one member is there.
func TestFirstVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.faulty["a"].Set(embeddingtest.Hanging)
		w.faulty["b"].Set(embeddingtest.Slow)
		g := w.open()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Query(ctx, "text"); !errors.Is(err, context.DeadlineExceeded) || errs.KindOf(err) != errs.Timeout {
			t.Errorf("it gave %v", err)
		}
		began := time.Now()
		if _, err := g.Query(t.Context(), "text"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 23*time.Second { // b's two calls, one second of which is over, and this one
			t.Errorf("it answered after %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.faulty["a"].Set(embeddingtest.Hanging)
		g, began := w.open(), time.Now()
		if _, err := g.Query(t.Context(), "text"); code(err) != embedding.CodeOffline || time.Since(began) != embedding.DefaultTimeout {
			t.Errorf("after %s it gave %v", time.Since(began), err)
		}
	})
}

// TestCancelled has the caller be gone before, and in the middle: what is missing is never taken for texts without vectors.
func TestCancelled(t *testing.T) {
	for name, batches := range map[string]int{"before": 0, "after the first batch": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				g := w.open()
				ctx, cancel := context.WithCancel(t.Context())
				w.faulty["a"].After(batches, cancel)
				texts := someTexts(3 * embedding.BatchSize)
				if got, err := g.Documents(ctx, texts); !errors.Is(err, context.Canceled) {
					t.Errorf("it gave %d vectors and %v", len(got), err)
				}
				wantStates(t, g, "a live closed; ")
			})
		})
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.config.Groups = append(w.config.Groups, embedding.GroupConfig{Name: "again", Members: []string{"b"}})
		w.faulty["a"].Set(embeddingtest.Hanging)
		w.open() // while it is being verified
		w.close()
		for name, f := range w.faulty {
			if f.Closed() != 1 {
				t.Errorf("%s was closed %d times", name, f.Closed())
			}
		}
	})
}

func TestStatusAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.config.Groups[0].Description = "all texts"
		g := w.open()
		start := time.Now()
		w.faulty["b"].Set(embeddingtest.Down)
		w.wait(interval)
		w.faulty["a"].Set(embeddingtest.Random)
		for range 4 {
			w.wait(interval)
		}
		_, err := g.Query(t.Context(), "text")
		if want := "the embedding group texts is offline: none of its members answers (1 degraded, 1 quarantined); svcctl embedding status says why"; errs.From(err).Message != want {
			t.Errorf("its error is %q, want %q", errs.From(err).Message, want)
		}
		for _, tt := range []struct {
			full bool
			text string
		}{{false, "the embedding provider b can't be reached"}, {true, "the embedding provider b can't be reached: the wrapper was told to"}} {
			rests, checked, checkedA := start.Add(5*interval+cooldown).UTC(), start.Add(5*interval).UTC(), start.Add(5*interval).UTC()
			want := []embedding.GroupStatus{{
				Name: "texts", Description: "all texts", Reference: `model "m", dimensions 64`, State: embedding.Degraded, Dimensions: dimensions,
				Members: []embedding.MemberStatus{
					{
						Name: "a", Type: "faulty", Model: "m", State: embedding.Quarantined, Since: start.Add(2 * interval), Breaker: embedding.BreakerClosed,
						Checked: &checkedA,
					},
					{
						Name: "b", Type: "faulty", Model: "m", State: embedding.Degraded, Since: start.Add(5 * interval), Breaker: embedding.BreakerOpen, Failures: 5,
						RestsTo: &rests, Checked: &checked, Error: tt.text,
					},
				},
			}}
			got := w.groups.Status(tt.full)
			if !strings.Contains(got[0].Members[0].Error, "cosine") {
				t.Errorf("a's error is %q", got[0].Members[0].Error)
			}
			got[0].Members[0].Error = ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("full %t (-want +got):\n%s", tt.full, diff)
			}
		}
		for _, line := range []string{
			`level=INFO msg="an embedding member is live" group=texts member=a`,
			`level=WARN msg="an embedding member is not live" group=texts member=a state=quarantined`,
			`level=WARN msg="an embedding member is not live" group=texts member=b state=degraded`,
		} {
			if n := strings.Count(w.log.String(), line); n != 1 {
				t.Errorf("the log has %d of %s:\n%s", n, line, w.log.String())
			}
		}
	})
}
