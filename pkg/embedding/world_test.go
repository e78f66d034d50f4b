package embedding_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/embedding/embeddingtest"
	"github.com/svcctl/svc/pkg/embedding/hash"
	"github.com/svcctl/svc/pkg/errs"
)

// The settings of tests.
const (
	cooldown   = 30 * time.Second
	interval   = time.Minute
	dimensions = 64
)

// world is groups whose providers fail on demand. Tests run it in a synctest bubble.
type world struct {
	*testing.T

	config embedding.Config
	faulty map[string]*embeddingtest.Faulty
	groups *embedding.Groups
	log    bytes.Buffer
}

// newWorld has the providers a, b and so on, and a group of them all, named texts.
func newWorld(t *testing.T, members ...string) *world {
	t.Helper()
	w := &world{T: t, faulty: map[string]*embeddingtest.Faulty{}}
	w.config = embedding.Config{CooldownAfterUnhealthy: cooldown, CheckInterval: interval, Groups: []embedding.GroupConfig{{Name: "texts", Members: members}}}
	for _, name := range members {
		w.faulty[name] = &embeddingtest.Faulty{Delay: 8 * time.Second}
		w.config.Providers = append(w.config.Providers, embedding.ProviderConfig{Name: name, Type: "faulty", Model: "m", Dimensions: dimensions})
	}
	return w
}

// open starts the groups, and waits until they were verified.
func (w *world) open() *embedding.Group {
	w.Helper()
	types := embedding.Types{"hash": hash.New, "faulty": func(c embedding.ProviderConfig) (embedding.Provider, error) {
		p, err := hash.New(c)
		f := w.faulty[c.Name]
		f.Provider = p
		return f, err
	}}
	groups, err := embedding.Open(w.Context(), w.config, types, embedding.Options{Log: slog.New(slog.NewTextHandler(&w.log, nil))})
	if err != nil {
		w.Fatal(err)
	}
	w.groups = groups
	w.Cleanup(w.close)
	group, err := groups.Group("texts")
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	return group
}

func (w *world) close() {
	if err := w.groups.Close(); err != nil {
		w.Error(err)
	}
}

// wait lets time pass, and what is due then happen.
func (w *world) wait(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

// golden writes the group's golden file.
func (w *world) golden(text string) {
	w.Helper()
	w.config.GoldenPath = w.TempDir()
	if err := os.WriteFile(filepath.Join(w.config.GoldenPath, "texts.json"), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// states are those of the members.
func states(g *embedding.Group) string {
	var out strings.Builder
	for _, m := range g.Status(true).Members {
		_, _ = fmt.Fprintf(&out, "%s %s %s; ", m.Name, m.State, m.Breaker)
	}
	return out.String()
}

func wantStates(t *testing.T, g *embedding.Group, want string) {
	t.Helper()
	if got := states(g); got != want {
		t.Errorf("members are %q, want %q; %+v", got, want, g.Status(true))
	}
}

// code is that of an error, "" of none.
func code(err error) string {
	if err == nil {
		return ""
	}
	return errs.From(err).Code
}

// hashed is what the provider hash makes of a text.
func hashed(t *testing.T, text string) embedding.Vector {
	t.Helper()
	p, err := hash.New(embedding.ProviderConfig{Name: "hash", Dimensions: dimensions})
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Embed(t.Context(), []string{text}, embedding.Document)
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

func isVector(t *testing.T, got embedding.Vector, text string) {
	t.Helper()
	if c := embedding.Cosine(got, hashed(t, text)); c < 0.9999 {
		t.Errorf("the vector has a cosine of %v to that of %.40q", c, text)
	}
}
