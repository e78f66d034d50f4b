package embedding_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
)

func TestDecodeConfig(t *testing.T) {
	t.Parallel()
	got, err := embedding.DecodeConfig([]byte(`{
		"providers": [{
			"name": "near", "type": "ollama", "model": "all-minilm", "modelPath": "/models", "dimensions": 384, "baseURL": "http://127.0.0.1:11434", "apiKey": "k",
			"documentprefix": "d: ", "queryPrefix": "q: ", "timeoutPerAttempt": 5000, "slowThreshold": "1.5s", "revision": "2", "sparse": true
		}],
		"groups": [{
			"name": "texts", "description": "all", "members": ["near"], "onSingleQuery": "race", "onBulkWrite": "spread", "health": {"text": "hello", "interval": "30s"}
		}],
		"goldenPath": "golden", "cooldownAfterUnhealthy": "45s", "checkInterval": "60000"
	}`))
	want := embedding.Config{
		Providers: []embedding.ProviderConfig{{
			Name: "near", Type: "ollama", Model: "all-minilm", ModelPath: "/models", Dimensions: 384, BaseURL: "http://127.0.0.1:11434", APIKey: "k",
			DocumentPrefix: "d: ", QueryPrefix: "q: ", TimeoutPerAttempt: 5 * time.Second, SlowThreshold: 1500 * time.Millisecond, Revision: "2", Sparse: true,
		}},
		Groups: []embedding.GroupConfig{{
			Name: "texts", Description: "all", Members: []string{"near"}, OnSingleQuery: embedding.Race, OnBulkWrite: embedding.Spread,
			Health: embedding.Health{Text: "hello", Interval: 30 * time.Second},
		}},
		GoldenPath: "golden", CooldownAfterUnhealthy: 45 * time.Second, CheckInterval: time.Minute,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeConfigRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", `{"grups": []}`, `unknown field "grups"`},
		{"unknown key of a provider", `{"providers": [{"name": "a", "url": "x"}]}`, `unknown field "url"`},
		{"unknown key of a group", `{"groups": [{"name": "a", "onQuery": "first"}]}`, `unknown field "onQuery"`},
		{"unknown key of health", `{"groups": [{"name": "a", "health": {"every": 1}}]}`, `unknown field "every"`},
		{"a time", `{"checkInterval": "soon"}`, `"soon" is no duration such as 1m30s`},
		{"a negative time", `{"checkInterval": -1}`, "can't be negative"},
		{"too long a time", `{"checkInterval": 99999999999999}`, "is no duration"},
		{"no time", `{"checkInterval": true}`, "is no duration"},
		{"a provider without a name", `{"providers": [{}]}`, "embedding.providers[0].name"},
		{"a list", `[]`, "it can't be of the type array"},
		{"a number for a name", `{"providers": [{"name": 1}]}`, "name can't be of the type number"},
		{"more behind it", `{} {}`, "after its end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := embedding.DecodeConfig([]byte(tt.text))
			if e := errs.From(err); err == nil || e.Kind != errs.Invalid || !strings.Contains(e.Message, tt.want) {
				t.Errorf("it gave %v, want %q", err, tt.want)
			}
		})
	}
}
