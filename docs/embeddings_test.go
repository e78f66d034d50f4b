package docs_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

// The lines of embeddings.md run as they are, with the settings that it shows.
func TestEmbeddings(t *testing.T) {
	raw, err := yaml.YAMLToJSON([]byte(blocks(t, "embeddings.md", "yaml")[0]))
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(raw)), `{"embedding": `), "}")
	config, err := embedding.DecodeConfig([]byte(settings))
	if err != nil {
		t.Fatalf("%s: %v", settings, err)
	}
	d := newDeskWith(t, controllers.WatchOff, func(c *app.Config) { c.Embedding = config })
	d.prints(d.run(strings.Join(blocks(t, "embeddings.md", "sh"), "\n")), "GROUP", "texts", "demo", "spare", `"description": "for the samples"`, `"breaker":"closed"`)
}

// Every key of the settings has a row.
func TestEmbeddingKeys(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("embeddings.md")
	if err != nil {
		t.Fatal(err)
	}
	var first []string // the first columns of the tables
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			first = append(first, strings.Split(line, "|")[1])
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[embedding.ProviderConfig](), reflect.TypeFor[embedding.GroupConfig]()} {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(strings.Join(first, " "), "`"+name+"`") {
				t.Errorf("embeddings.md has no row of %s", name)
			}
		}
	}
}
