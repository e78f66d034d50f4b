package embedding

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What settings that are left out mean.
const (
	DefaultTimeout       = 10 * time.Second // of timeoutPerAttempt
	DefaultSlowThreshold = 5 * time.Second
	DefaultCooldown      = 30 * time.Second // of cooldownAfterUnhealthy
)

// Config is the embedding settings of the service.
type Config struct {
	Providers  []ProviderConfig `json:"providers,omitempty"`
	Groups     []GroupConfig    `json:"groups,omitempty"`
	GoldenPath string           `json:"goldenPath,omitempty"` // the directory of golden files, one for each group that has one

	CooldownAfterUnhealthy time.Duration `json:"cooldownAfterUnhealthy,omitempty"` // what a member rests after its breaker opened
	CheckInterval          time.Duration `json:"checkInterval,omitempty"`          // between verifications; 0: only at the start
}

// ProviderConfig is one provider of the settings.
type ProviderConfig struct {
	Name       string `json:"name"`
	Type       string `json:"type,omitempty"`
	Model      string `json:"model,omitempty"`
	ModelPath  string `json:"modelPath,omitempty"`  // a folder, for types that compute in this process
	Dimensions int    `json:"dimensions,omitempty"` // 0: those of the model
	BaseURL    string `json:"baseURL,omitempty"`
	APIKey     string `json:"apiKey,omitempty"`

	DocumentPrefix string `json:"documentPrefix,omitempty"` // put before each text, as a model wants it
	QueryPrefix    string `json:"queryPrefix,omitempty"`

	TimeoutPerAttempt time.Duration `json:"timeoutPerAttempt,omitempty"`
	SlowThreshold     time.Duration `json:"slowThreshold,omitempty"` // for each text of a call; slower calls count as failed

	Revision string `json:"revision,omitempty"` // changed by hand when a model changes behind its name
	Sparse   bool   `json:"sparse,omitempty"`
}

// Timeout is what one call may take.
func (c ProviderConfig) Timeout() time.Duration { return cmp.Or(c.TimeoutPerAttempt, DefaultTimeout) }

func (c ProviderConfig) slow() time.Duration { return cmp.Or(c.SlowThreshold, DefaultSlowThreshold) }

// GroupConfig is one group of the settings.
type GroupConfig struct {
	Name          string   `json:"name"`
	Description   string   `json:"description,omitempty"`
	Members       []string `json:"members"`                 // names of providers, the preferred first
	OnSingleQuery string   `json:"onSingleQuery,omitempty"` // First or Race
	OnBulkWrite   string   `json:"onBulkWrite,omitempty"`   // First or Spread
	Health        Health   `json:"health,omitzero"`
}

// How the members of a group share its calls.
const (
	First  = "first"  // the first live one, the next when it fails
	Race   = "race"   // all live ones at once; the first answer counts
	Spread = "spread" // batches in turn
)

// Health is how live members are asked whether they still are, beside the calls that they get.
type Health struct {
	Text     string        `json:"text,omitempty"`
	Interval time.Duration `json:"interval,omitempty"` // 0: they are not asked
}

// defaultProbe is the text of probes where the settings have none.
const defaultProbe = "The quick brown fox jumps over the lazy dog."

// Check says what is wrong with settings that no service can start with. What is wrong with a single group or provider
// makes that one offline instead, and is in its status.
func (c Config) Check() error {
	seen := map[string]bool{}
	for i, p := range c.Providers {
		if err := checkName("providers", i, p.Name, seen); err != nil {
			return err
		}
	}
	clear(seen)
	for i, g := range c.Groups {
		if err := checkName("groups", i, g.Name, seen); err != nil {
			return err
		}
	}
	if c.CooldownAfterUnhealthy < 0 || c.CheckInterval < 0 {
		return Misconfigured("embedding.cooldownAfterUnhealthy and embedding.checkInterval can't be negative")
	}
	return nil
}

// nameForm is what may be part of a file's name everywhere.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

func checkName(list string, i int, name string, seen map[string]bool) error {
	if !nameForm.MatchString(name) {
		return Misconfigured("embedding.%s[%d].name %q: give a name of letters, digits, dots, dashes and underscores", list, i, name)
	}
	if seen[name] {
		return Misconfigured("embedding.%s[%d].name: %s is there twice", list, i, name)
	}
	seen[name] = true
	return nil
}

// check says what is wrong with a provider's settings of any type.
func (c ProviderConfig) check() error {
	switch {
	case c.Dimensions < 0 || c.Dimensions > maxDimensions:
		return Misconfigured("embedding provider %s: dimensions is 0 to %d", c.Name, maxDimensions)
	case c.TimeoutPerAttempt < 0 || c.SlowThreshold < 0:
		return Misconfigured("embedding provider %s: timeoutPerAttempt and slowThreshold can't be negative", c.Name)
	}
	return nil
}

// maxDimensions bounds what a vector takes.
const maxDimensions = 1 << 16

// check says what is wrong with a group's own settings.
func (c GroupConfig) check() error {
	switch {
	case len(c.Members) == 0:
		return Misconfigured("it has no members: name providers of embedding.providers")
	case !slices.Contains([]string{"", First, Race}, c.OnSingleQuery):
		return Misconfigured("onSingleQuery is %s or %s, not %q", First, Race, c.OnSingleQuery)
	case !slices.Contains([]string{"", First, Spread}, c.OnBulkWrite):
		return Misconfigured("onBulkWrite is %s or %s, not %q", First, Spread, c.OnBulkWrite)
	case c.Health.Interval < 0:
		return Misconfigured("health.interval can't be negative")
	}
	for i, name := range c.Members {
		if slices.Contains(c.Members[:i], name) {
			return Misconfigured("its member %s is there twice", name)
		}
	}
	return nil
}

// model is the model's name within references. That of hash can't be taken for another's.
func (c ProviderConfig) model() string {
	model := c.Model
	if model == "" && c.ModelPath != "" {
		model = filepath.Base(c.ModelPath)
	}
	if c.Type == "hash" || model == "" {
		model = strings.TrimSuffix(c.Type+"/"+model, "/")
	}
	return model
}

// reference names the vectors of a provider by what the settings say: whatever changes them is in it.
func (c ProviderConfig) reference() string {
	parts := []string{"model " + strconv.Quote(c.model())}
	if c.Sparse {
		parts = append(parts, "sparse")
	} else if c.Dimensions > 0 {
		parts = append(parts, "dimensions "+strconv.Itoa(c.Dimensions))
	}
	for _, p := range []struct{ name, value string }{
		{"documentPrefix", c.DocumentPrefix}, {"queryPrefix", c.QueryPrefix}, {"revision", c.Revision},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+strconv.Quote(p.value))
		}
	}
	return strings.Join(parts, ", ")
}
