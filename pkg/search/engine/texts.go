package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/search"
)

// What is searched of a record is the text of its fields, or what the script of the search (eval) makes of them. A script is run before
// its records are taken in, once for each language that they can be read in; what it says is one column. A record for which
// it fails is in the index without that, and tried again: see park.go.

// Scripts runs the scripts of searches.
type Scripts interface {
	// Texts gives what runs the script of a search about a record, as hooks.Runner does.
	Texts(p *project.Project, c *project.Collection, search string) func(ctx context.Context, lang string, at time.Time, doc bson.Raw) ([]string, error)
}

// Scripted has the engine run the scripts of searches by s. It comes before the first Serve.
func (e *Engine) Scripted(s Scripts) { e.scripts = s }

// evalColumn is what the column of a script is called in explanations.
const evalColumn = "eval"

// scripted is the script of a search, with what it takes to run it.
type scripted struct {
	run       func(ctx context.Context, lang string, at time.Time, doc bson.Raw) ([]string, error) // nil: it is not run
	in        *project.Collection
	given     *document.View
	id        bool     // it is given the id, too, which every view has
	languages []string // that it is asked for; "": the records' own
}

// evalOf says how an index of a config before goes on, whose form had a script: it stands for all the fields of that, so that the script of
// now speaks for it only if it is given no others. own has the fields of the form.
func evalOf(f form, own, now *search.Config) *search.Eval {
	if f.Eval == "" {
		return nil
	}
	out := &search.Eval{Print: f.Eval}
	other := func(g search.Field) bool {
		return !slices.ContainsFunc(own.Fields, func(h search.Field) bool {
			return g.Path == h.Path && !slices.ContainsFunc(g.Translations, func(lang string) bool { return !slices.Contains(h.Translations, lang) })
		})
	}
	if now.Eval != nil && !slices.ContainsFunc(now.Fields, other) {
		out.Paths = now.Eval.Paths
	}
	return out
}

// binds has the index be searched as a config says. The caller holds the shelf's mu.
func (b *built) binds(c *search.Config, in *project.Collection) {
	script := b.scripted(c, in)
	b.bound.Store(newBound(c, in.FieldNames, script))
	if script != nil && !b.retrying {
		b.retrying = true
		b.s.goes(b.retry)
	}
}

var errNoScripts = errs.New(errs.Internal, "internal", "this service runs no scripts")

// scripted gives the script of a config; nil: it has none. The caller holds the shelf's mu.
func (b *built) scripted(c *search.Config, in *project.Collection) *scripted {
	if c.Eval == nil {
		return nil
	}
	out := &scripted{in: in, languages: []string{""}}
	for _, f := range c.Fields {
		for _, lang := range f.Translations {
			if !slices.Contains(out.languages, lang) {
				out.languages = append(out.languages, lang)
			}
		}
	}
	if len(c.Eval.Paths) == 0 {
		return out
	}
	view, err := document.NewView(c.Eval.Paths, nil, in.Undeclared)
	if scripts := b.s.t.e.scripts; err == nil && scripts != nil {
		out.given, out.id, out.run = view, slices.Contains(c.Eval.Paths, "_id"), scripts.Texts(b.s.project, in, c.Name)
	}
	if out.run == nil {
		out.run = func(context.Context, string, time.Time, bson.Raw) ([]string, error) {
			return nil, errors.Join(errNoScripts, err)
		}
	}
	return out
}

// columns gives those of what a script says: one for each language, which only those look into who see all that it was made of.
func (s *scripted) columns(b *bound) {
	for _, lang := range s.languages {
		col := column{field: b.next(), path: evalColumn, lang: lang, weight: 1}
		language := b.Fields[0].Language
		if lang != "" {
			language, _ = search.Language(lang)
		}
		for _, f := range b.Fields {
			col.of = append(col.of, f.Path)
			if slices.Contains(f.Translations, lang) {
				col.of = append(col.of, fieldtype.I18n+"."+lang+"."+f.Path)
			}
		}
		col.cut = b.cutter(language)
		b.columns = append(b.columns, col)
	}
}

// doc is a record as the script is given it: its fields alone, as who reads in a language sees them.
func (s *scripted) doc(record bson.Raw, lang string) bson.Raw {
	record = document.Without(s.in.Undeclared).Apply(record)
	if lang != "" {
		own, _ := record.Lookup(fieldtype.I18n, lang).DocumentOK()
		record = s.in.Tree.Translate(record, own, lang)
	}
	out := make([]byte, 4, len(record))
	for it := document.NewIter(s.given.Apply(record)); it.Next(); {
		if s.id || string(it.Key()) != "_id" {
			out = document.AppendElement(out, it.Key(), it.Value())
		}
	}
	return document.Close(out, 0)
}

// saying is what the script of a search says of a record.
type saying struct {
	texts  map[string][]string // by language; "": the record's own
	failed error               // it says nothing, for this
}

// size is how many bytes of text it is.
func (s saying) size() (n int64) {
	for _, texts := range s.texts {
		for _, text := range texts {
			n += int64(len(text))
		}
	}
	return n
}

// say asks the script of a search about records that can be found, up to the one with which the texts are as many as are taken in at once:
// about n of ids, which are all if there is no script. It fails only as a whole, when ctx ends.
func (b *bound) say(ctx context.Context, ids []bson.ObjectID, docs map[bson.ObjectID]bson.Raw) (said map[bson.ObjectID]saying, n int, err error) {
	if b.script == nil || b.script.run == nil {
		return nil, len(ids), nil
	}
	all := make([]saying, len(ids))
	var work sync.WaitGroup
	var next, size atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(ids)) { // of which each waits for its turn among the project's scripts
		work.Go(func() {
			for ctx.Err() == nil && size.Load() < chunkBytes {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return
				}
				if doc := docs[ids[i]]; doc != nil && b.Filter.Match(doc) {
					all[i] = b.script.say(ctx, doc)
					size.Add(all[i].size())
				}
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	n = min(int(next.Load()), len(ids))
	said = make(map[bson.ObjectID]saying, n)
	for i, id := range ids[:n] {
		said[id] = all[i]
	}
	return said, n, nil
}

func (s *scripted) say(ctx context.Context, doc bson.Raw) saying {
	at := time.Unix(0, 0)
	if v, _ := document.Field(doc, "updatedAt"); v.Type == bson.TypeDateTime {
		at = v.Time()
	}
	out := saying{texts: make(map[string][]string, len(s.languages))}
	for _, lang := range s.languages {
		texts, err := s.run(ctx, lang, at, s.doc(doc, lang))
		if err != nil {
			return saying{failed: err}
		}
		out.texts[lang] = texts
	}
	return out
}

// textsOf calls fn for the texts of a record in a column, or of a field in a language: those that a script says, where there is one.
func (b *bound) textsOf(doc bson.Raw, said saying, path, lang string, fn func(text string)) {
	if b.script == nil {
		texts(doc, path, lang, fn)
		return
	}
	for _, text := range said.texts[lang] {
		fn(text)
	}
}
