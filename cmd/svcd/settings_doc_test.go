package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/settings.md anew")

// TestSettingsDoc keeps docs/settings.md what the table of settings says.
func TestSettingsDoc(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "..", "docs", "settings.md")
	want := settingsDoc()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/settings.md is not what the settings are; make docs writes it (-want +got):\n%s", diff)
	}
}

func settingsDoc() string {
	var b strings.Builder
	b.WriteString("# Settings of svcd\n\n<!-- Written by make docs from the table in cmd/svcd/settings.go. -->\n\n" +
		"A setting is taken from its flag (`svcd serve --api.port 8080`), else from the environment (`API_PORT=8080`), else from\n" +
		"the YAML file that `--config` names, else it has its default. In the file, a dot is a level:\n\n" +
		"```yaml\napi:\n  port: 8080\n  upload:\n    maxBodySize: 25MB\nstore:\n  uri: mongodb://127.0.0.1:27017/?replicaSet=rs0\n```\n\n" +
		"A key in the file that is not in this table is an error that names the nearest one. `svcd check` reads the settings and the\n" +
		"config of every registered project and serves nothing. Lists are separated by commas in a flag or in the environment.\n" +
		"A duration is written `1m30s`; a number alone is milliseconds. A size is a number of bytes, or written `25MB`, `32MiB`.\n" +
		"What is of the type json is YAML in the file, and JSON in a flag or in the environment.\n\n" +
		"| Setting | Environment | Type | Default | Meaning |\n|---|---|---|---|---|\n")
	for _, s := range settings() {
		def := "none"
		if s.def != "" {
			def = "`" + s.def + "`"
		}
		if s.def == "generated" {
			def = "generated"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", s.key, strings.Join(s.envs(), "`, `"), s.typ, def, escape(s.effect))
	}
	b.WriteString("\nSecrets are best given by a file (`admin.tokenFile`, `admin.passwordFile`, `auth.jwtSecretFile`, `otel.headersFile`) or left to be generated. They are never logged.\n" +
		"What scripts of a project may take and reach is in its config: [Hook](config.md#hook).\n")
	return b.String()
}

// escape keeps a text inside its cell of a table.
func escape(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s) }
