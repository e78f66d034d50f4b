package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/schema"
)

// configEnv is the environment as project configs see it: without the service's own settings, of which some are
// secrets that whoever writes a config need not know.
func configEnv(name string) (string, bool) {
	for _, s := range settings() {
		if slices.Contains(s.envs(), name) {
			return "", false
		}
	}
	return os.LookupEnv(name)
}

// setting is one row of the table of settings. Its environment name is its key in upper snake case.
type setting struct {
	key    string
	typ    string // integer, number, string, list, map, size, duration, boolean, json
	def    string
	effect string
}

// settings lists every setting. Adding one is a row here and a line in config.
func settings() []setting {
	return []setting{
		{"api.port", "integer", "", "Port to listen on. Required: without it, or with one not above 0, svcd panics."},
		{"api.host", "string", "127.0.0.1", "Address to listen on; 0.0.0.0 is every address."},
		{"api.upload.maxBodySize", "size", "32MiB", "Largest request body; projects and collections can only lower it."},
		{"api.adminHosts", "list", "", "Host names of the admin front, where /api/… means /api/v1/…. Without port; case makes no difference."},
		{"api.fronts", "map", "", "Host name to namespace, such as www.example.com=blog: on that host /api/C/… means /api/v1/_/P/C/…, and /api/_/… what is below /api/v1/_/P/_/. /api/v1/… stays what it is."},
		{"api.trustedProxies", "list", "", "Networks whose Forwarded, X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host are believed, such as 10.0.0.0/8."},
		{"admin.token", "string", "generated", "The server admin token; 16 bytes or more. Without one it is made at the first start and kept in <data.dir>/admin.token."},
		{"admin.tokenFile", "string", "", "A file with the server admin token."},
		{"admin.user", "string", "", "Name of an administrator who is made at the start when there is no user at all; with admin.password."},
		{"admin.password", "string", "", "Its password, 8 to 1024 bytes. When there are users, it changes nothing."},
		{"admin.passwordFile", "string", "", "A file with its password."},
		{"auth.jwtSecret", "string", "generated", "Signs logins; 32 bytes or more. Without one it is made once and kept in the store."},
		{"auth.jwtSecretFile", "string", "", "A file with the secret that signs logins."},
		{"auth.jwtTTL", "duration", "12h", "How long a login lasts."},
		{"auth.patDefaultTTL", "duration", "90d", "How long a personal access token lasts that is made without an end."},
		{"auth.patMaxTTL", "duration", "366d", "How long one may last at most; 0 lets it last for ever, by expiresAt null."},
		{"store.uri", "string", "embedded:<data.dir>/store", "The store: embedded:<directory>, mongodb://… or mongodb+srv://…."},
		{"store.mongoListen", "string", "", "Address, such as 127.0.0.1:27018, where the embedded store answers MongoDB's wire protocol: for mongosh, Compass, mongodump and drivers, with the user admin and the admin token. Not encrypted: see security.md before it is another than a loopback address."},
		{"store.mongoReadOnly", "boolean", "true", "Whether what comes by store.mongoListen can only read. Writes by it are not checked by any schema."},
		{"store.mongoMaxTime", "duration", "1m", "How long a command that reads may take by store.mongoListen, and each batch of a cursor, where the client does not say maxTimeMS; 0 is as long as it takes."},
		{"store.cacheSize", "size", "auto", "How much of its data the embedded store may keep in memory. auto is a 32nd of what the process may use: of GOMEMLIMIT, of its control group or of the machine; 64MiB at least, 1GiB at most."},
		{"media.sweepAfter", "duration", "48m", "How old a file is that no record names, such as that of a request which was cut off, when it is removed. Let it be longer than an upload can take."},
		{"media.pictureCache", "size", "1GiB", "How much of the disk the pictures may take that image filters made, in <data.dir>/pictures; those used longest ago go first."},
		{"media.pictureMemory", "size", "512MiB", "How much memory image filters may take at once, and one alone three quarters more; who would need more waits."},
		{"snapshots.maxImportSize", "size", "1TiB", "Largest archive of a snapshot or a backup that is taken in: of all files in it together, unpacked, and of all records in it, uncompressed."},
		{"data.dir", "string", "./data", "Directory of the embedded store, of uploads and pictures, and of generated secrets."},
		{"projects.dir", "string", "./projects", "Directory that every registered config file is inside."},
		{"projects.watch", "string", "reload", "What a change on disk does: reload serves it, notify only reports it, off ignores it."},
		{"audit.retention", "duration", "0", "How long the audit log keeps entries about the service itself, such as 365d; 0 is for ever. Projects have their own."},
		{"search.smallVectors", "boolean", "false", "Whether searches of mode vector keep a byte for each dimension in memory, a quarter of what they take else. The best few hundred are compared exactly all the same."},
		{"embedding.providers", "json", "", "What makes vectors of texts: a list of objects, each with a name and a type (hash, local, ollama, openai or tei). See [embeddings](embeddings.md)."},
		{"embedding.groups", "json", "", "Groups of providers with the same vectors, which search configs name: a list of objects with name and members. See [embeddings](embeddings.md)."},
		{"embedding.goldenPath", "string", "", "Directory with <group>.json: texts, and the vectors that every member has to give for them."},
		{"embedding.cooldownAfterUnhealthy", "duration", "30s", "How long a member of a group is left alone after its calls failed."},
		{"embedding.checkInterval", "duration", "60s", "How often members are verified; 0 is at the start only, and when one that rested is wanted."},
		{"mcp.enabled", "boolean", "true", "Whether agents may use POST /api/v1/mcp. The route stays: without this it says 404, mcp disabled."},
		{"mcp.allowAdminActions", "boolean", "false", "Whether the tools of operators are listed there. They do nothing but name their REST route."},
		{"mcp.maxResultItems", "integer", "100", "Most items of a list in the result of a tool; what has more says truncated."},
		{"mcp.route", "string", "", "Ignored, with a warning: the route is fixed."},
		{"metrics.public", "boolean", "false", "Whether /metrics needs no credential from other machines."},
		{"otel.endpoint", "string", "", "Base URL of a collector that takes traces as OTLP over HTTP, such as http://127.0.0.1:4318. Without it nothing is traced. See [operations](operations.md#traces)."},
		{"otel.headers", "string", "", "Headers that it asks for: name=value,name=value, with values escaped as in URLs, such as Authorization=Bearer%20…."},
		{"otel.headersFile", "string", "", "A file with these headers."},
		{"otel.sampleRatio", "number", "1", "Of how many requests, reconciles and runs there are traces, 0 to 1. A caller can only ask for less."},
		{"otel.serviceName", "string", "svcd", "The name that the service has in traces."},
		{"log.level", "string", "info", "debug, info, warn or error. debug logs every request."},
		{"log.format", "string", "auto", "text, json, or auto: text on a terminal, else json."},
		{"shutdown.delay", "duration", "0", "How long new requests are still taken on shutdown while /readyz says 503, so that load balancers send no more."},
		{"shutdown.grace", "duration", "20s", "How long requests in flight may take to finish on shutdown."},
	}
}

// env is the environment name of a key: api.upload.maxBodySize is API_UPLOAD_MAX_BODY_SIZE, auth.jwtTTL AUTH_JWT_TTL.
func (s setting) env() string {
	var b strings.Builder
	prev := '.'
	for _, r := range s.key {
		if unicode.IsUpper(r) && !unicode.IsUpper(prev) {
			b.WriteByte('_')
		}
		if r == '.' {
			r = '_'
		}
		b.WriteRune(unicode.ToUpper(r))
		prev = r
	}
	return b.String()
}

// envAliases are environment names that settings have besides.
var envAliases = map[string]string{ //nolint:gochecknoglobals // a table
	"embedding.cooldownAfterUnhealthy": "COOLDOWN_AFTER_UNHEALTHY",
	"embedding.checkInterval":          "CHECK_INTERVAL",
	"otel.endpoint":                    "OTEL_EXPORTER_OTLP_ENDPOINT", // these are OpenTelemetry's own
	"otel.headers":                     "OTEL_EXPORTER_OTLP_HEADERS",
	"otel.sampleRatio":                 "OTEL_TRACES_SAMPLER_ARG",
}

// envs are all environment names of a setting; the first one that is set counts.
func (s setting) envs() []string {
	if alias := envAliases[s.key]; alias != "" {
		return []string{s.env(), alias}
	}
	return []string{s.env()}
}

// settingsHelp is the table for --help.
func settingsHelp() string {
	var b strings.Builder
	b.WriteString("Settings come from flags, then the environment, then the file of --config, then defaults:\n")
	for _, s := range settings() {
		def := s.def
		if def == "" {
			def = "none"
		}
		fmt.Fprintf(&b, "\n  %s (%s, %s; default %s)\n      %s", s.key, strings.Join(s.envs(), " or "), s.typ, def, plain(s.effect))
	}
	return b.String()
}

var docsLink = regexp.MustCompile(`\[[^]]*\]\(([^)]*)\)`)

// plain is the effect of a setting as a terminal shows it, with the paths of pages.
func plain(effect string) string { return docsLink.ReplaceAllString(effect, "docs/$1") }

// addFlags gives each setting a flag of its key.
func addFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "settings file (YAML), such as svc.yaml")
	for _, s := range settings() {
		fs.String(s.key, "", plain(s.effect))
		if s.typ == "boolean" {
			fs.Lookup(s.key).NoOptDefVal = "true"
		}
	}
}

// reader reads settings and gathers what is wrong with them. Viper finds out which source wins. It has every value as
// text, under the setting's whole key: noDelimiter keeps it from taking keys apart.
type reader struct {
	secretFiles []string // files that secrets were read from
	secretEnv   []string // environment variables that they were read from
	v           *viper.Viper
	errs        []error
}

const noDelimiter = "::"

func (r *reader) fail(key, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("setting %s: %s", key, fmt.Sprintf(format, args...)))
}

// readSettings makes the app's config from flags, environment, file and defaults, in this order.
func readSettings(fs *pflag.FlagSet, stderr io.Writer) (app.Config, error) {
	r := &reader{v: viper.NewWithOptions(viper.KeyDelimiter(noDelimiter))}
	for _, s := range settings() {
		if s.def != "" && !strings.Contains(s.def, "<") && s.def != "generated" {
			r.v.SetDefault(s.key, s.def)
		}
		if err := r.v.BindEnv(append([]string{s.key}, s.envs()...)...); err != nil {
			return app.Config{}, err
		}
		if f := fs.Lookup(s.key); f != nil && f.Changed {
			r.v.Set(s.key, f.Value.String())
		}
	}
	if path, err := fs.GetString("config"); err == nil && path != "" {
		values, problems := readFile(path)
		r.errs = problems
		if err := r.v.MergeConfigMap(values); err != nil {
			return app.Config{}, err
		}
	}
	cfg := r.config(stderr)
	return cfg, errors.Join(r.errs...)
}

// config turns the settings into what the app is told.
func (r *reader) config(stderr io.Writer) app.Config {
	cfg := app.Config{
		Port:           r.port("api.port"),
		Host:           r.text("api.host"),
		MaxBodySize:    r.size("api.upload.maxBodySize"),
		AdminHosts:     r.list("api.adminHosts"),
		Fronts:         r.pairs("api.fronts"),
		TrustedProxies: r.networks("api.trustedProxies"),
		AdminToken:     r.secret("admin.token", "admin.tokenFile"),
		AdminUser:      r.text("admin.user"),
		AdminPassword:  r.secret("admin.password", "admin.passwordFile"),
		JWTSecret:      []byte(r.secret("auth.jwtSecret", "auth.jwtSecretFile")),
		JWTTTL:         r.duration("auth.jwtTTL"),
		PATDefaultTTL:  r.duration("auth.patDefaultTTL"),
		PATMaxTTL:      r.durationOrNone("auth.patMaxTTL"),
		StoreURI:       r.text("store.uri"),
		MongoListen:    r.text("store.mongoListen"),
		MongoReadOnly:  r.boolean("store.mongoReadOnly"),
		MongoMaxTime:   r.durationOrNone("store.mongoMaxTime"),
		CacheSize:      r.sizeOrAuto("store.cacheSize"),
		SweepAfter:     r.duration("media.sweepAfter"),
		PictureCache:   r.size("media.pictureCache"),
		PictureMemory:  r.size("media.pictureMemory"),
		MaxImport:      r.size("snapshots.maxImportSize"),
		DataDir:        filepath.Clean(r.text("data.dir")),
		ProjectsDir:    filepath.Clean(r.text("projects.dir")),
		Watch:          controllers.WatchMode(r.oneOf("projects.watch", "reload", "notify", "off")),
		MetricsPublic:  r.boolean("metrics.public"),
		MCP: app.MCP{
			Enabled: r.boolean("mcp.enabled"), AllowAdminActions: r.boolean("mcp.allowAdminActions"), MaxResultItems: r.count("mcp.maxResultItems"),
		},
		ShutdownDelay:  r.durationOrNone("shutdown.delay"),
		ShutdownGrace:  r.duration("shutdown.grace"),
		SmallVectors:   r.boolean("search.smallVectors"),
		AuditRetention: r.durationOrNone("audit.retention"),
		Embedding:      r.embedding(),
		Tracing: app.Tracing{
			Endpoint: r.text("otel.endpoint"), Headers: r.secret("otel.headers", "otel.headersFile"), SampleRatio: r.ratio("otel.sampleRatio"), Service: r.text("otel.serviceName"),
		},
		Version: versionText(),
		Now:     time.Now,
		Env:     configEnv,
	}
	cfg.SecretFiles = r.secretFiles
	if len(r.secretEnv) > 0 {
		cfg.Env = func(name string) (string, bool) {
			if slices.Contains(r.secretEnv, name) {
				return "", false
			}
			return configEnv(name)
		}
	}
	if (cfg.AdminUser == "") != (cfg.AdminPassword == "") {
		r.fail("admin.user", "goes with admin.password or admin.passwordFile: give both or neither")
	}
	if n := len(cfg.AdminToken); n > 0 && n < app.MinAdminToken {
		r.fail("admin.token", "is %d bytes long, it must be %d or more: openssl rand -hex 32 makes one", n, app.MinAdminToken)
	}
	if n := len(cfg.JWTSecret); n > 0 && n < 32 {
		r.fail("auth.jwtSecret", "is %d bytes long, it must be 32 or more", n)
	}
	if s := cfg.StoreURI; s != "" && !strings.HasPrefix(s, "embedded:") && !strings.HasPrefix(s, "mongodb://") && !strings.HasPrefix(s, "mongodb+srv://") {
		r.fail("store.uri", "must begin with embedded:, mongodb:// or mongodb+srv://")
	} else if s == "embedded:" {
		r.fail("store.uri", "has no directory: embedded:/var/lib/svc/store")
	}
	if err := cfg.CheckAdminHosts(); err != nil {
		r.fail("api.adminHosts", "%v", err)
	} else if err := cfg.CheckFronts(); err != nil {
		r.fail("api.fronts", "%v", err)
	}
	if err := cfg.CheckMongoListen(); err != nil {
		r.fail("store.mongoListen", "%v", err)
	}
	if err := cfg.Tracing.CheckEndpoint(); err != nil {
		r.fail("otel.endpoint", "%v", err)
	}
	if err := cfg.Tracing.CheckHeaders(); err != nil {
		r.fail("otel.headers", "%v", err)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(r.oneOf("log.level", "debug", "info", "warn", "error"))); err != nil {
		level = slog.LevelInfo
	}
	cfg.Logger = newLogger(stderr, level, r.oneOf("log.format", "auto", "text", "json"))
	if r.text("mcp.route") != "" {
		cfg.Logger.Warn("mcp.route is ignored: the endpoint for agents is always /api/v1/mcp")
	}
	cfg.OnFatal = func(err error) {
		cfg.Logger.Error("the store can't write and has to stop: see that its disk works and has room, then restart svcd; all that was acknowledged is there", "error", err)
		os.Exit(exitStoreLost)
	}
	return cfg
}

func (r *reader) text(key string) string { return r.v.GetString(key) }

func (r *reader) port(key string) int {
	text := r.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > math.MaxUint16 {
		r.fail(key, "%q is no port", text)
	}
	return n
}

// count is a number above 0.
func (r *reader) count(key string) int {
	n, err := strconv.Atoi(r.text(key))
	if err != nil || n < 1 {
		r.fail(key, "%q is no whole number above 0", r.text(key))
		return 1
	}
	return n
}

// ratio is a number from 0 to 1.
func (r *reader) ratio(key string) float64 {
	f, err := strconv.ParseFloat(r.text(key), 64)
	if err != nil || !(0 <= f && f <= 1) {
		r.fail(key, "%q is no number from 0 to 1", r.text(key))
		return 0
	}
	return f
}

func (r *reader) list(key string) []string {
	var out []string
	for part := range strings.SplitSeq(r.text(key), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// pairs reads a map, written name=value,name=value.
func (r *reader) pairs(key string) map[string]string {
	out := map[string]string{}
	for _, item := range r.list(key) {
		name, value, ok := strings.Cut(item, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || value == "" {
			r.fail(key, "%q is no pair such as www.example.com=blog", item)
			continue
		}
		out[name] = value
	}
	return out
}

func (r *reader) networks(key string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range r.list(key) {
		if addr, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			r.fail(key, "%q is no network such as 10.0.0.0/8", text)
			continue
		}
		out = append(out, p)
	}
	return out
}

// secret reads a value from one setting or from the file that the other names, not both.
func (r *reader) secret(valueKey, fileKey string) string {
	value, path := r.text(valueKey), r.text(fileKey)
	switch {
	case path == "":
		return value
	case value != "":
		r.fail(fileKey, "give either %s or %s", valueKey, fileKey)
		return ""
	}
	data, err := os.ReadFile(path) //nolint:gosec // whoever sets the service up names it
	if err != nil {
		r.fail(fileKey, "%v", err)
		return ""
	}
	r.secretFiles = append(r.secretFiles, path)
	value = strings.TrimSpace(string(data))
	if value == "" {
		r.fail(fileKey, "%s is empty", path)
	}
	return value
}

func (r *reader) size(key string) int64 {
	n, err := schema.ParseSize(r.text(key))
	if err != nil || n <= 0 {
		r.fail(key, "%q is no size such as 32MiB", r.text(key))
	}
	return n
}

// sizeOrAuto is 0 for auto.
func (r *reader) sizeOrAuto(key string) int64 {
	if r.text(key) == "auto" {
		return 0
	}
	return r.size(key)
}

func (r *reader) duration(key string) time.Duration {
	d, err := schema.ParseDuration(r.text(key))
	if err != nil || d <= 0 {
		r.fail(key, "%q is no duration such as 1m30s (a number alone is milliseconds)", r.text(key))
	}
	return d
}

// durationOrNone reads a duration of which 0 is none.
func (r *reader) durationOrNone(key string) time.Duration {
	if r.text(key) == "0" {
		return 0
	}
	return r.duration(key)
}

func (r *reader) boolean(key string) bool {
	return r.oneOf(key, "false", "true") == "true"
}

func (r *reader) oneOf(key string, allowed ...string) string {
	text := r.text(key)
	if !slices.Contains(allowed, text) {
		r.fail(key, "%q must be %s", text, strings.Join(allowed, " or "))
		return allowed[0]
	}
	return text
}
