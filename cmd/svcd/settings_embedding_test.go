package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding"
)

// The embedding settings as a file has them, with a key from the environment and one from a file, which configs of projects
// can't read.
func TestEmbeddingSettingsOfAFile(t *testing.T) {
	const canary = "embedding-key-canary"
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(canary+"-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_EMBEDDING_KEY", canary)
	got, err := read(t, `
embedding:
  providers:
    - {name: a, type: openai, model: m, baseURL: "http://127.0.0.1:1/v1", apiKey: "${env:TEST_EMBEDDING_KEY}", slowThreshold: 250, dimensions: 8}
    - {name: b, type: tei, baseURL: "http://127.0.0.1:2/$${x}", apiKey: "Key ${file:`+key+`}"}
  groups:
    - {name: texts, members: [a, b], onSingleQuery: race, onBulkWrite: spread, health: {text: hello, interval: 5s}}
  checkInterval: 0
`, map[string]string{"COOLDOWN_AFTER_UNHEALTHY": ""})
	if err != nil {
		t.Fatal(err)
	}
	want := embedding.Config{
		Providers: []embedding.ProviderConfig{
			{Name: "a", Type: "openai", Model: "m", BaseURL: "http://127.0.0.1:1/v1", APIKey: canary, SlowThreshold: 250 * time.Millisecond, Dimensions: 8},
			{Name: "b", Type: "tei", BaseURL: "http://127.0.0.1:2/${x}", APIKey: "Key " + canary + "-file"},
		},
		Groups: []embedding.GroupConfig{{
			Name: "texts", Members: []string{"a", "b"}, OnSingleQuery: "race", OnBulkWrite: "spread", Health: embedding.Health{Text: "hello", Interval: 5 * time.Second},
		}},
		CooldownAfterUnhealthy: 30 * time.Second,
	}
	if d := cmp.Diff(want, got.Embedding); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	if len(got.SecretFiles) != 1 || got.SecretFiles[0] != key {
		t.Errorf("files that configs can't read: %q", got.SecretFiles)
	}
	if _, ok := got.Env("TEST_EMBEDDING_KEY"); ok {
		t.Error("configs of projects can read the key")
	}
	if _, ok := got.Env("PATH"); !ok {
		t.Error("configs of projects can't read anything")
	}
}

func TestEmbeddingAliases(t *testing.T) {
	t.Setenv("COOLDOWN_AFTER_UNHEALTHY", "")
	for _, c := range []struct {
		env             map[string]string
		cooldown, check time.Duration
	}{
		{nil, 30 * time.Second, time.Minute},
		{map[string]string{"EMBEDDING_COOLDOWN_AFTER_UNHEALTHY": "5s", "EMBEDDING_CHECK_INTERVAL": "0"}, 5 * time.Second, 0},
		{map[string]string{"COOLDOWN_AFTER_UNHEALTHY": "1500", "CHECK_INTERVAL": "2m"}, 1500 * time.Millisecond, 2 * time.Minute},
		{map[string]string{"COOLDOWN_AFTER_UNHEALTHY": "7s", "EMBEDDING_COOLDOWN_AFTER_UNHEALTHY": "5s"}, 5 * time.Second, time.Minute},
	} {
		got, err := read(t, "", c.env)
		if err != nil || got.Embedding.CooldownAfterUnhealthy != c.cooldown || got.Embedding.CheckInterval != c.check {
			t.Errorf("%v: %v, %v, %v", c.env, got.Embedding.CooldownAfterUnhealthy, got.Embedding.CheckInterval, err)
		}
	}
}

// What is wrong says where and what to write; a secret is in no error.
func TestEmbeddingSettingsRefused(t *testing.T) {
	const canary = "embedding-key-canary"
	for name, c := range map[string]struct{ file, want string }{
		"unknown key":      {`{providers: [{name: a, mdel: x, apiKey: ` + canary + `}]}`, "setting embedding.providers: a: unknown key mdel; did you mean model?"},
		"far key":          {`{groups: [{name: a, members: [b], qqqqqqqqq: 1}]}`, "unknown key qqqqqqqqq; it can have name, "},
		"unknown health":   {`{groups: [{name: a, members: [b], health: {every: 1s}}]}`, `setting embedding.groups: a: unknown field "every"`},
		"no name":          {`{providers: [{type: hash}]}`, "embedding.providers[0].name"},
		"twice":            {`{providers: [{name: a}, {name: a}]}`, "a is there twice"},
		"no list":          {`{providers: {name: a, apiKey: ` + canary + `}}`, "embedding.providers"},
		"list of texts":    {`{providers: [` + canary + `]}`, "is no list of objects"},
		"wrong type":       {`{providers: [{name: a, dimensions: many, apiKey: ` + canary + `}]}`, "dimensions can't be of the type string"},
		"wrong duration":   {`{providers: [{name: a, slowThreshold: soon}]}`, "is no duration such as 1m30s"},
		"no variable":      {`{providers: [{name: a, apiKey: "` + canary + `${env:TEST_NO_SUCH}"}]}`, "a, apiKey: the environment variable TEST_NO_SUCH is not set"},
		"no file":          {`{providers: [{name: a, apiKey: "${file:/no/such/file}"}]}`, "no such file"},
		"other reference":  {`{providers: [{name: a, apiKey: "${` + `key}"}]}`, "only ${env:NAME} and ${file:PATH} are replaced"},
		"unknown setting":  {`{cooldown: 3s}`, "unknown key embedding.cooldown"},
		"no cooldown":      {`{cooldownAfterUnhealthy: 0}`, "setting embedding.cooldownAfterUnhealthy"},
		"bad check":        {`{checkInterval: often}`, "setting embedding.checkInterval"},
		"name of a folder": {`{groups: [{name: ../x, members: [a]}]}`, "embedding.groups[0].name"},
	} {
		_, err := read(t, "embedding: "+c.file+"\n", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if name == "unknown key" && err != nil && strings.Contains(err.Error(), "give a name") {
			t.Errorf("%s: %v tells of an object that was not read", name, err)
		}
	}
}

// svcd check finds what keeps a group offline, and prints no secret.
func TestCheckOfEmbedding(t *testing.T) {
	t.Parallel()
	const canary = "embedding-key-canary"
	s := newSvcd(t, `EMBEDDING_PROVIDERS=[{"name":"a","type":"hash"},{"name":"b","type":"nope","apiKey":"`+canary+`"}]`,
		`EMBEDDING_GROUPS=[{"name":"fine","members":["a"]},{"name":"bad","members":["a","gone"]}]`)
	stdout, stderr, code := s.run("check")
	for _, want := range []string{`embedding provider b: there is no type "nope": it is one of hash, local, ollama, openai, tei`, "embedding group bad: there is no embedding provider gone"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}
	if code != exitFailed || strings.Contains(stdout+stderr, canary) || strings.Contains(stdout, "fine") {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
}

// The golden file of a group is one that its members then have to agree with.
func TestGolden(t *testing.T) {
	var out strings.Builder
	cfg, err := read(t, "", nil, "--log.level=error", `--embedding.providers=[{"name":"a","type":"hash","dimensions":4},{"name":"b","type":"openai","model":"other","baseURL":"http://127.0.0.1:1"}]`,
		`--embedding.groups=[{"name":"texts","members":["a","b"]}]`)
	if err != nil {
		t.Fatal(err)
	}
	if err := golden(t.Context(), cfg, "texts", strings.NewReader("one text\n\nquery: what is it\n"), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"text":"one text","vector":[`, `{"text":"what is it","kind":"query","vector":[`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
	for name, in := range map[string]string{"none": "x", "texts": "\n"} {
		if err := golden(t.Context(), cfg, name, strings.NewReader(in), &out); exitCode(err) != exitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
