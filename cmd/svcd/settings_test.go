package main

import (
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/tracing"
)

// read reads settings from a file with that content (none if ""), an environment, and flags.
func read(t *testing.T, file string, env map[string]string, flags ...string) (app.Config, error) {
	t.Helper()
	for _, s := range settings() {
		for _, name := range s.envs() {
			t.Setenv(name, env[name]) // empty is as good as unset
		}
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "svc.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--config="+path)
	}
	fs := pflag.NewFlagSet("svcd", pflag.ContinueOnError)
	addFlags(fs)
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return readSettings(fs, io.Discard)
}

func TestDefaults(t *testing.T) {
	got, err := read(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := app.Config{
		Host: "127.0.0.1", MaxBodySize: 32 << 20, MaxImport: 1 << 40, JWTTTL: 12 * time.Hour, PATDefaultTTL: 90 * 24 * time.Hour, PATMaxTTL: 366 * 24 * time.Hour, DataDir: "data", ProjectsDir: "projects",
		Watch: "reload", ShutdownGrace: 20 * time.Second, Version: versionText(), MongoReadOnly: true, MongoMaxTime: time.Minute,
		SweepAfter: app.DefaultSweepAfter, PictureCache: app.DefaultPictureCache, PictureMemory: app.DefaultPictureMemory,
		Embedding: embedding.Config{CooldownAfterUnhealthy: 30 * time.Second, CheckInterval: time.Minute},
		MCP:       app.MCP{Enabled: true, MaxResultItems: 100},
		Tracing:   tracing.Config{SampleRatio: 1, Service: "svcd"},
	}
	ignored := cmpopts.IgnoreFields(app.Config{}, "Logger", "Now", "Env", "OnFatal")
	if d := cmp.Diff(want, got, ignored, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("config (-want +got):\n%s", d)
	}
	if got.Logger == nil || got.Now == nil || got.Env == nil || got.OnFatal == nil {
		t.Error("a part is missing")
	}
}

func TestFlagsGoBeforeEnvironmentBeforeFileBeforeDefaults(t *testing.T) {
	const file = "api: {host: file, port: 1}\nlog: {level: warn}\n"
	env := map[string]string{"API_HOST": "env", "API_PORT": "2"}
	for _, tc := range []struct {
		name  string
		file  string
		env   map[string]string
		flags []string
		host  string
		port  int
	}{
		{"defaults", "", nil, nil, "127.0.0.1", 0},
		{"file", file, nil, nil, "file", 1},
		{"environment", "", env, nil, "env", 2},
		{"environment over file", file, env, nil, "env", 2},
		{"flag over all, the rest stays", file, env, []string{"--api.host=flag"}, "flag", 2},
		{"empty flag over all", file, env, []string{"--api.port="}, "env", 0},
		{"empty environment is none", file, map[string]string{"API_HOST": ""}, nil, "file", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := read(t, tc.file, tc.env, tc.flags...)
			if err != nil || got.Host != tc.host || got.Port != tc.port {
				t.Errorf("host %q, port %d, %v; want %q and %d", got.Host, got.Port, err, tc.host, tc.port)
			}
		})
	}
}

func TestEverySettingFromEverySource(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("api-key=canary%20key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := app.Config{
		SecretFiles: []string{secret, secret, secret, headers}, AdminUser: "root", AdminPassword: strings.Repeat("s", 32),
		Host: "0.0.0.0", Port: 8080, MaxBodySize: 25_000_000, MaxImport: 3 << 30, JWTTTL: 90 * time.Second, PATDefaultTTL: 24 * time.Hour, PATMaxTTL: 0, DataDir: "/d", ProjectsDir: "/p",
		AdminHosts: []string{"admin.example.com", "b"}, Fronts: map[string]string{"www.example.com": "blog", "shop": "shop"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		MetricsPublic:  true, AdminToken: strings.Repeat("s", 32), JWTSecret: []byte(strings.Repeat("s", 32)),
		StoreURI: "embedded:/s", MongoListen: "127.0.0.1:27018", MongoMaxTime: 5 * time.Second, CacheSize: 128 << 20, SweepAfter: 2 * time.Hour, PictureCache: 2 << 30, PictureMemory: 256 << 20, Watch: "notify", ShutdownDelay: 2 * time.Second, ShutdownGrace: 1500 * time.Millisecond, AuditRetention: 48 * time.Hour, Version: versionText(),
		Tracing:      app.Tracing{Endpoint: "http://127.0.0.1:4318", Headers: "api-key=canary%20key", SampleRatio: 0.25, Service: "cms"},
		SmallVectors: true, MCP: app.MCP{AllowAdminActions: true, MaxResultItems: 7},
		Embedding: embedding.Config{
			Providers: []embedding.ProviderConfig{{Name: "demo", Type: "hash", TimeoutPerAttempt: 2 * time.Second}}, Groups: []embedding.GroupConfig{{Name: "texts", Members: []string{"demo"}}},
			GoldenPath: "/g", CooldownAfterUnhealthy: 10 * time.Second, CheckInterval: 0,
		},
	}
	text := map[string]string{
		"api.port": "8080", "api.host": "0.0.0.0", "api.upload.maxBodySize": "25MB", "snapshots.maxImportSize": "3GiB", "api.adminHosts": "admin.example.com, b",
		"api.fronts": "www.example.com=blog, shop = shop", "api.trustedProxies": "10.0.0.0/8,::1", "admin.tokenFile": secret,
		"admin.user": "root", "admin.passwordFile": secret,
		"auth.jwtSecretFile": secret, "auth.jwtTTL": "1m30s", "auth.patDefaultTTL": "1d", "auth.patMaxTTL": "0", "store.uri": "embedded:/s", "store.mongoListen": "127.0.0.1:27018", "store.mongoReadOnly": "false", "store.mongoMaxTime": "5s", "store.cacheSize": "128MiB", "media.sweepAfter": "2h", "media.pictureCache": "2GiB", "media.pictureMemory": "256MiB", "data.dir": "/d", "projects.dir": "/p/",
		"projects.watch": "notify", "metrics.public": "true", "mcp.enabled": "false", "mcp.allowAdminActions": "true", "mcp.maxResultItems": "7", "mcp.route": "/elsewhere", "log.level": "debug", "log.format": "text", "shutdown.delay": "2s", "shutdown.grace": "1500", "audit.retention": "2d", "search.smallVectors": "true",
		"embedding.providers": `[{"name": "demo", "type": "hash", "timeoutPerAttempt": "2s"}]`, "embedding.groups": `[{"name": "texts", "members": ["demo"]}]`,
		"embedding.goldenPath": "/g", "embedding.cooldownAfterUnhealthy": "10s", "embedding.checkInterval": "0",
		"otel.endpoint": "http://127.0.0.1:4318", "otel.headersFile": headers, "otel.sampleRatio": "0.25", "otel.serviceName": "cms",
	}
	env := map[string]string{}
	var lines, flags []string
	for _, s := range settings() {
		v, ok := text[s.key]
		if !ok {
			if !slices.Contains([]string{"admin.token", "admin.password", "auth.jwtSecret", "otel.headers"}, s.key) { // their files stand for them
				t.Errorf("%s is not tried", s.key)
			}
			continue
		}
		env[s.env()] = v
		flags = append(flags, "--"+s.key+"="+v)
		lines = append(lines, s.key+": '"+v+"'")
	}
	nested := `
api:
  port: 8080
  HOST: 0.0.0.0
  upload: {maxBodySize: 25000000}
  adminHosts: [admin.example.com, b]
  fronts: {www.example.com: blog, shop: shop}
  trustedProxies: [10.0.0.0/8, "::1"]
admin: {tokenFile: ` + secret + `, user: root, passwordFile: ` + secret + `}
auth: {jwtSecretFile: ` + secret + `, jwtTTL: 90000, patDefaultTTL: 24h, patMaxTTL: 0}
store: {uri: "embedded:/s", mongoListen: "127.0.0.1:27018", mongoReadOnly: false, mongoMaxTime: 5s, cacheSize: 128MiB}
media: {sweepAfter: 2h, pictureCache: 2GiB, pictureMemory: 256MiB}
data: {dir: /d}
projects: {dir: /p, watch: notify}
metrics: {public: yes}
mcp: {enabled: false, allowAdminActions: true, maxResultItems: 7, route: /elsewhere}
otel: {endpoint: "http://127.0.0.1:4318", headersFile: ` + headers + `, sampleRatio: 0.25, serviceName: cms}
log: {level: debug, format: text}
shutdown: {delay: 2s, grace: 1500ms}
audit: {retention: 48h}
search: {smallVectors: true}
snapshots: {maxImportSize: 3GiB}
embedding:
  providers: [{name: demo, type: hash, timeoutPerAttempt: 2000}]
  groups: [{name: texts, members: [demo]}]
  goldenPath: /g
  cooldownAfterUnhealthy: 10s
  checkInterval: 0
`
	nested = strings.Replace(nested, "public: yes", "public: true", 1)
	ignored := cmpopts.IgnoreFields(app.Config{}, "Logger", "Now", "Env", "OnFatal")
	for name, from := range map[string]func(t *testing.T) (app.Config, error){
		"environment": func(t *testing.T) (app.Config, error) { t.Helper(); return read(t, "", env) },
		"flags":       func(t *testing.T) (app.Config, error) { t.Helper(); return read(t, "", nil, flags...) },
		"flat file":   func(t *testing.T) (app.Config, error) { t.Helper(); return read(t, strings.Join(lines, "\n"), nil) },
		"nested file": func(t *testing.T) (app.Config, error) { t.Helper(); return read(t, nested, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			got, err := from(t)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, ignored, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
				t.Errorf("config (-want +got):\n%s", d)
			}
			if !got.Logger.Enabled(t.Context(), slog.LevelDebug) {
				t.Error("log.level has no effect")
			}
		})
	}
	if got, err := read(t, "", nil, "--metrics.public"); err != nil || !got.MetricsPublic {
		t.Errorf("--metrics.public without a value: %t, %v", got.MetricsPublic, err)
	}
}

func TestEnvironmentNames(t *testing.T) {
	want := map[string]string{
		"api.port": "API_PORT", "api.upload.maxBodySize": "API_UPLOAD_MAX_BODY_SIZE", "auth.jwtTTL": "AUTH_JWT_TTL",
		"auth.jwtSecretFile": "AUTH_JWT_SECRET_FILE", "store.uri": "STORE_URI", "api.adminHosts": "API_ADMIN_HOSTS",
	}
	got := map[string]string{}
	for _, s := range settings() {
		if _, ok := want[s.key]; ok {
			got[s.key] = s.env()
		}
		if !strings.Contains(settingsHelp(), "\n  "+s.key+" ("+strings.Join(s.envs(), " or ")+", "+s.typ) {
			t.Errorf("--help does not have %s", s.key)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		file string
		env  map[string]string
		want []string
	}{
		{"port", "", map[string]string{"API_PORT": "80a"}, []string{`setting api.port: "80a" is no port`}},
		{"port, space", "", map[string]string{"API_PORT": " 80"}, []string{`setting api.port: " 80" is no port`}},
		{"port, too high", "", map[string]string{"API_PORT": "65536"}, []string{`setting api.port: "65536" is no port`}},
		{"first administrator without a password", "", map[string]string{"ADMIN_USER": "root"}, []string{`setting admin.user: goes with admin.password or admin.passwordFile: give both or neither`}},
		{"password of nobody", "", map[string]string{"ADMIN_PASSWORD": "secret-of-root"}, []string{`setting admin.user: goes with admin.password or admin.passwordFile: give both or neither`}},
		{"size", "", map[string]string{"API_UPLOAD_MAX_BODY_SIZE": "big"}, []string{`setting api.upload.maxBodySize: "big" is no size such as 32MiB`}},
		{"size, zero", "", map[string]string{"API_UPLOAD_MAX_BODY_SIZE": "0"}, []string{`setting api.upload.maxBodySize: "0" is no size such as 32MiB`}},
		{"duration", "", map[string]string{"AUTH_JWT_TTL": "-1s"}, []string{`setting auth.jwtTTL: "-1s" is no duration such as 1m30s (a number alone is milliseconds)`}},
		{"boolean", "", map[string]string{"METRICS_PUBLIC": "maybe"}, []string{`setting metrics.public: "maybe" must be false or true`}},
		{"choice", "", map[string]string{"PROJECTS_WATCH": "on", "LOG_LEVEL": "loud", "LOG_FORMAT": "xml"}, []string{
			`setting log.format: "xml" must be auto or text or json`,
			`setting log.level: "loud" must be debug or info or warn or error`,
			`setting projects.watch: "on" must be reload or notify or off`,
		}},
		{"network", "", map[string]string{"API_TRUSTED_PROXIES": "10.0.0.0/8,proxy"}, []string{`setting api.trustedProxies: "proxy" is no network such as 10.0.0.0/8`}},
		{"map", "", map[string]string{"API_FRONTS": "www.example.com"}, []string{`setting api.fronts: "www.example.com" is no pair such as www.example.com=blog`}},
		{"front with a port", "", map[string]string{"API_FRONTS": "localhost:8080=blog"}, []string{`setting api.fronts: "localhost:8080" is no host name such as www.example.com: give it without scheme, port and path`}},
		{"front with a scheme", "", map[string]string{"API_FRONTS": "https://example.com=blog"}, []string{`setting api.fronts: "https://example.com" is no host name such as www.example.com: give it without scheme, port and path`}},
		{"front of no namespace", "", map[string]string{"API_FRONTS": "www.example.com=../user"}, []string{`setting api.fronts: "../user" is no namespace of a project, such as blog`}},
		{"front of two", "", map[string]string{"API_FRONTS": "www.example.com=blog,WWW.example.com.=shop"}, []string{`setting api.fronts: "www.example.com" is given twice: a host is the front of one project, or the admin front`}},
		{"front and admin front", "", map[string]string{"API_FRONTS": "a.example.com=blog", "API_ADMIN_HOSTS": "A.example.com"}, []string{`setting api.fronts: "a.example.com" is given twice: a host is the front of one project, or the admin front`}},
		{"admin front with a path", "", map[string]string{"API_ADMIN_HOSTS": "example.com/admin"}, []string{`setting api.adminHosts: "example.com/admin" is no host name such as www.example.com: give it without scheme, port and path`}},
		{"store without a directory", "", map[string]string{"STORE_URI": "embedded:"}, []string{`setting store.uri: has no directory: embedded:/var/lib/svc/store`}},
		{"store", "", map[string]string{"STORE_URI": "postgres://u:hunter2@h"}, []string{`setting store.uri: must begin with embedded:, mongodb:// or mongodb+srv://`}},
		{"short secret", "", map[string]string{"AUTH_JWT_SECRET": "hunter2"}, []string{`setting auth.jwtSecret: is 7 bytes long, it must be 32 or more`}},
		{"short admin token", "admin: {token: hunter2-hunter2}\n", nil, []string{`setting admin.token: is 15 bytes long, it must be 16 or more: openssl rand -hex 32 makes one`}},
		{"traces", "otel: {sampleRatio: 2}\n", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://root:hunter2@collector:4318", "OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, []string{
			"setting otel.sampleRatio: \"2\" is no number from 0 to 1",
			"setting otel.endpoint: has a user in it: what a collector asks for goes into otel.headers or otel.headersFile",
			"setting otel.headers: number 1 is no header such as Authorization=Bearer%20…: a name, =, and a value that is escaped as in URLs",
		}},
		{"secret twice", "", map[string]string{"ADMIN_TOKEN": "hunter2", "ADMIN_TOKEN_FILE": empty}, []string{`setting admin.tokenFile: give either admin.token or admin.tokenFile`}},
		{"secret file", "", map[string]string{"ADMIN_TOKEN_FILE": "/nonexistent"}, []string{`setting admin.tokenFile: open /nonexistent: no such file or directory`}},
		{"empty secret file", "", map[string]string{"ADMIN_TOKEN_FILE": empty}, []string{`setting admin.tokenFile: ` + empty + ` is empty`}},

		{"unknown keys", "api:\n  prot: 1\n  upload: {maxBodySise: 1}\nlogg: {level: info}\nport: 8080\nquux: 1\nstore: embedded\n", nil, []string{
			"settings file svc.yaml: unknown key api.prot; did you mean api.port?",
			"settings file svc.yaml: unknown key api.upload.maxBodySise; did you mean api.upload.maxBodySize?",
			"settings file svc.yaml: unknown key logg.level; did you mean log.level?",
			"settings file svc.yaml: unknown key port; did you mean api.port?",
			"settings file svc.yaml: unknown key quux; svcd serve --help lists all",
			"settings file svc.yaml: unknown key store; svcd serve --help lists all",
		}},
		{"types", "api: {port: [1], host: {a: b}, adminHosts: 1, fronts: {a: 1}}\nadmin: {token: 12345678901234567890}\nmetrics: {public: 1}\nauth: {jwtTTL: 1.5}\n", nil, []string{
			"settings file svc.yaml: admin.token must be a text: put it in quotes",
			"settings file svc.yaml: api.adminHosts must be of type list",
			"settings file svc.yaml: api.fronts must have a text for a",
			"settings file svc.yaml: api.host must be a text: put it in quotes",
			"settings file svc.yaml: api.port must be of type integer",
			"settings file svc.yaml: auth.jwtTTL must be of type duration",
			"settings file svc.yaml: metrics.public must be of type boolean",
		}},
		{"twice", "api: {port: 1}\napi.port: 2\n", nil, []string{"settings file svc.yaml: api.port is given twice"}},
		{"syntax", "admin: {token: hunter2\n", nil, []string{"settings file svc.yaml: [1:8] could not find flow mapping end token '}'"}},
		{"no map", "- api\n", nil, []string{"settings file svc.yaml: [1:1] sequence was used where mapping is expected"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read(t, tc.file, tc.env)
			if err == nil {
				t.Fatal("no error")
			}
			var got []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if dir, file, ok := strings.Cut(line, "svc.yaml"); ok { // without its directory
					before, _, _ := strings.Cut(dir, "/")
					line = before + "svc.yaml" + file
				}
				got = append(got, line)
			}
			if d := cmp.Diff(tc.want, got, cmpopts.SortSlices(strings.Compare)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret gets out: %v", err)
			}
		})
	}
}

func TestSettingsFileMayBeEmptyInParts(t *testing.T) {
	for _, file := range []string{"# nothing\n", "api:\n  # port: 8080\nlog:\n  level:\n"} {
		if got, err := read(t, file, map[string]string{"API_PORT": "1"}); err != nil || got.Port != 1 {
			t.Errorf("%q: port %d, %v", file, got.Port, err)
		}
	}
}

func TestGivenSecretsWin(t *testing.T) {
	got, err := read(t, "admin: {token: from-the-settings-file}\n", map[string]string{"AUTH_JWT_SECRET": strings.Repeat("x", 32)})
	if err != nil || got.AdminToken != "from-the-settings-file" || string(got.JWTSecret) != strings.Repeat("x", 32) {
		t.Errorf("%q, %q, %v", got.AdminToken, got.JWTSecret, err)
	}
}

func FuzzSettingsFile(f *testing.F) {
	f.Add("api: {port: 8080, fronts: {a: b}}")
	f.Add("api.port: 1\nlog:\n")
	f.Add("? [a]\n: b")
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(t.TempDir(), "svc.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		values, _ := readFile(path)
		for key, v := range values {
			if _, ok := v.(string); !ok {
				t.Errorf("%s is %T", key, v)
			}
		}
	})
}

func TestConfigsDoNotSeeTheServicesSecrets(t *testing.T) {
	for _, name := range []string{"ADMIN_TOKEN", "STORE_URI", "AUTH_JWT_SECRET"} {
		t.Setenv(name, "secret")
		if v, ok := configEnv(name); ok || v != "" {
			t.Errorf("a config can read %s", name)
		}
	}
	t.Setenv("BLOG_TOKEN", "x")
	if v, ok := configEnv("BLOG_TOKEN"); !ok || v != "x" {
		t.Errorf("a config can't read BLOG_TOKEN: %q %v", v, ok)
	}
}
