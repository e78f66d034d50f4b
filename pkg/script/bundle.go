package script

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/dop251/goja"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"
)

// room is the namespace that esbuild knows the project's files by: it keeps esbuild from reading the disk.
const room = "project"

// maxFile bounds a script file and what it imports.
const maxFile = 1 << 20

// maxProblems is how many problems of one script are told.
const maxProblems = 20

// loaders is which files a script may import.
func loaders(name string) (api.Loader, bool) {
	switch path.Ext(name) {
	case ".js", ".cjs", ".mjs":
		return api.LoaderJS, true
	case ".ts", ".cts", ".mts":
		return api.LoaderTS, true
	case ".json":
		return api.LoaderJSON, true
	}
	return api.LoaderNone, false
}

// suffixes are tried in this order for an import without one.
var suffixes = []string{"", ".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".json", "/index.ts", "/index.js"} //nolint:gochecknoglobals // never written

// Compile bundles the file entry with all it imports, and compiles the result. It reads through read only, which gets
// slash paths inside the project and says fs.ErrNotExist for what is not there. Problems have the files' own positions.
func Compile(entry string, read func(name string) ([]byte, error)) (*Program, Problems) {
	entry = path.Clean(entry)
	b := &bundle{read: read, texts: map[string][]byte{}}
	if !inside(entry) {
		return nil, Problems{{File: entry, Message: "the path leaves the project"}}
	}
	if _, ok := loaders(entry); !ok || strings.HasSuffix(entry, ".json") {
		return nil, Problems{{File: entry, Message: "a script's file ends in .js, .cjs, .mjs, .ts, .cts or .mts"}}
	}
	if _, err := b.file(entry); err != nil {
		return nil, Problems{{File: entry, Message: readProblem(err)}}
	}
	p := &Program{name: entry}
	if problems := b.build(p); len(problems) > 0 {
		return nil, problems
	}
	if !exported.Match(b.texts[entry]) {
		return nil, Problems{{File: entry, Line: 1, Column: 1, Message: "the script exports no function: write export default (ctx) => { … }, or module.exports = (ctx) => { … }"}}
	}
	p.files = b.files
	tree, err := goja.Parse(entry, p.text, parser.WithDisableSourceMaps)
	if err == nil && takesApart(tree, p.text) && !b.lowered { // esbuild can write it as a loop, and {...spread} with it
		b.lowered = true
		if problems := b.build(p); len(problems) > 0 {
			return nil, problems
		}
		tree, err = goja.Parse(entry, p.text, parser.WithDisableSourceMaps)
	}
	if err != nil {
		return nil, p.bundleProblems(err)
	}
	return p.finish(tree)
}

// exported is in every script that exports a function, in one form or another.
var exported = regexp.MustCompile(`\bdefault\b|\bexports\b|\bexport\s*=`)

// exports matches statements of a module of the language; export = is TypeScript's word for module.exports.
var exports = regexp.MustCompile(`(?m)^\s*export\b\s*[^=\s]`)

// exportList matches what esbuild ends a module of the language with; the first group is what it exports by default.
var exportList = regexp.MustCompile(`\nexport \{\n(?:  [^\n]+,\n)*  ([\w$]+) as default(?:,\n  [^\n]+)*\n\};\n\n\}\)\n?$`)

// build bundles the entry. What esbuild makes of a module of the language so that CommonJS can import it takes longer to
// run than a short script. Here only its default export matters, so that is all that is handed over.
func (b *bundle) build(p *Program) Problems {
	if exports.Match(b.texts[p.name]) {
		out := api.Build(b.options(p.name, api.FormatESModule))
		if problems := buildProblems(p.name, out); len(problems) > 0 {
			return problems
		}
		p.take(out.OutputFiles)
		if m := exportList.FindStringSubmatchIndex(p.text); m != nil && !strings.Contains(p.text, "var __require = ") {
			p.text = p.text[:m[0]] + "\nmodule.exports = " + p.text[m[2]:m[3]] + ";" + moduleTail
			return nil
		}
	}
	out := api.Build(b.options(p.name, api.FormatCommonJS))
	p.take(out.OutputFiles)
	return buildProblems(p.name, out)
}

// take takes what esbuild has made.
func (p *Program) take(files []api.OutputFile) {
	for _, f := range files {
		if strings.HasSuffix(f.Path, ".map") {
			p.smap = withoutSources(f.Contents)
		} else {
			p.text = string(f.Contents)
		}
	}
}

func readProblem(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	return err.Error()
}

// inside says whether a clean path stays in the project.
func inside(name string) bool {
	return fs.ValidPath(name) && name != "."
}

// bundle is what one Compile has read. esbuild calls from several goroutines at once, so read is called before it
// where that can be, and under esbuild's own order otherwise.
type bundle struct {
	read  func(name string) ([]byte, error)
	gate  sync.Mutex
	texts map[string][]byte
	files []string

	lowered bool // {...rest} and {...spread} are written in other words
}

// file reads a file once.
func (b *bundle) file(name string) ([]byte, error) {
	b.gate.Lock()
	defer b.gate.Unlock()
	if text, ok := b.texts[name]; ok {
		return text, nil
	}
	text, err := b.read(name)
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, errors.New("the file is larger than 1 MiB, which is the limit of a script")
	}
	if strings.HasSuffix(name, ".json") {
		if !json.Valid(text) { // it bounds the depth, too
			return nil, errors.New("not valid JSON")
		}
	} else if i := endless(text); i > 0 {
		return nil, errors.New("line " + strconv.Itoa(i) + ": more than 8 KiB without a comma, a semicolon or a closing brace; put data into a .json file or on lines of its own")
	}
	b.texts[name] = text
	b.files = append(b.files, name)
	return text, nil
}

func (b *bundle) options(entry string, format api.Format) api.BuildOptions {
	no := map[string]bool{ // what goja does not have
		"async-generator": false, "for-await": false, "decorators": false, "dynamic-import": false, "import-meta": false,
		"top-level-await": false, "exponent-operator": false, "using": false, "regexp-set-notation": false, "import-attributes": false, "import-assertions": false,
	}
	if b.lowered {
		no["object-rest-spread"] = false
	}
	return api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Write: false, Outfile: "/script.js",
		Format: format, Platform: api.PlatformNeutral, Target: api.ES2022, Supported: no,
		Banner: map[string]string{"js": moduleHead}, Footer: map[string]string{"js": moduleTail},
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude,
		TsconfigRaw: "{}", LogLevel: api.LogLevelSilent, LegalComments: api.LegalCommentsNone, Charset: api.CharsetUTF8,
		Plugins: []api.Plugin{{Name: room, Setup: b.setup}},
	}
}

// setup answers every question of esbuild about files.
func (b *bundle) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		if a.Kind == api.ResolveEntryPoint {
			return api.OnResolveResult{Path: a.Path, Namespace: room}, nil
		}
		if !strings.HasPrefix(a.Path, "./") && !strings.HasPrefix(a.Path, "../") {
			return api.OnResolveResult{}, errors.New("a script can only import files of its project, by a path that begins with ./ or ../: " +
				"\"" + a.Path + "\" does not; db, http, crypto and the like are there without an import")
		}
		want := path.Join(path.Dir(a.Importer), a.Path)
		if !inside(want) {
			return api.OnResolveResult{}, errors.New("\"" + a.Path + "\" leaves the project")
		}
		name, err := b.find(want)
		if err != nil {
			return api.OnResolveResult{}, errors.New("\"" + a.Path + "\": " + readProblem(err))
		}
		return api.OnResolveResult{Path: name, Namespace: room}, nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text, err := b.file(a.Path)
		if err != nil {
			return api.OnLoadResult{}, errors.New(readProblem(err))
		}
		loader, ok := loaders(a.Path)
		if !ok {
			return api.OnLoadResult{}, errors.New("a script imports .js, .cjs, .mjs, .ts, .cts, .mts and .json")
		}
		contents := string(text)
		if loader != api.LoaderJSON {
			contents += noSourceMap
		}
		return api.OnLoadResult{Contents: &contents, Loader: loader}, nil
	})
}

// noSourceMap is the last word about the source map of a file: esbuild would read the one that a comment names from the
// disk, wherever that is.
const noSourceMap = "\n//# sourceMappingURL=none:"

// endless gives the line at which a text begins to nest or to chain without end, 0 if it does not: compilers recurse, and
// end the process when that is too deep. It looks for what ends a statement, a member or a block.
func endless(text []byte) int {
	line, start, run := 1, 1, 0
	for _, b := range text {
		switch b {
		case ',', ';', '}':
			run = 0
		case '\n':
			line++
		case ' ', '\t', '\r':
		default:
			if run == 0 {
				start = line
			}
			if run++; run > maxRun {
				return start
			}
		}
	}
	return 0
}

// maxRun is how much text may come without an end of anything.
const maxRun = 8 << 10

// find looks for the file that an import means. TypeScript writes ./x.js for ./x.ts.
func (b *bundle) find(want string) (string, error) {
	problem := fs.ErrNotExist
	for _, suffix := range suffixes {
		_, err := b.file(want + suffix)
		if err == nil {
			return want + suffix, nil
		}
		if errors.Is(problem, fs.ErrNotExist) { // what can't be read, such as a directory, is told of if nothing else is there
			problem = err
		}
	}
	if stem, ok := strings.CutSuffix(want, ".js"); ok {
		if _, err := b.file(stem + ".ts"); err == nil {
			return stem + ".ts", nil
		}
	}
	return "", problem
}

func buildProblems(entry string, out api.BuildResult) Problems {
	messages := out.Errors
	for _, w := range out.Warnings { // in TypeScript it might be a type, so that esbuild only warns
		if w.ID == "import-is-undefined" {
			messages = append(messages, w)
		}
	}
	var problems Problems
	for _, m := range messages[:min(len(messages), maxProblems)] {
		p := Problem{File: entry, Message: strings.ReplaceAll(m.Text, room+":", "")}
		if m.Location != nil {
			p.File = strings.TrimPrefix(m.Location.File, room+":")
			p.Line, p.Column = m.Location.Line, m.Location.Column+1
		}
		problems = append(problems, p)
	}
	return problems
}

// bundleProblems gives what goja does not parse its place in the script's own files.
func (p *Program) bundleProblems(err error) Problems {
	problems := parseProblems(p.name, err)
	for i, problem := range problems {
		at := p.position(file.Position{Line: problem.Line, Column: problem.Column})
		problems[i].File, problems[i].Line, problems[i].Column = at.Filename, at.Line, at.Column
	}
	return problems
}

// withoutSources takes the texts out of a source map: failures need positions only.
func withoutSources(m []byte) []byte {
	var parts struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
		Names    []string `json:"names"`
	}
	if json.Unmarshal(m, &parts) != nil {
		return nil
	}
	parts.Names = []string{}
	out, err := json.Marshal(parts)
	if err != nil {
		return nil
	}
	return out
}

// mapped looks a place up in the source map, which is decoded on failures only.
func (p *Program) mapped(at file.Position) file.Position {
	own := file.Position{Filename: p.name}
	m, err := sourcemap.Parse("", p.smap)
	if err != nil {
		return own
	}
	source, _, line, column, ok := m.Source(at.Line, at.Column-1)
	if !ok {
		return own
	}
	own.Filename, own.Line, own.Column = path.Clean(strings.TrimPrefix(source, room+":")), line, column+1
	return own
}
