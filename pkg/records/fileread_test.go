package records_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const filesConfig = `
strictFields: true
collections:
- name: items
  permissions:
    public: {methods: {get: true}, filter: {published: true}, hiddenFields: [contract]}
    user: {methods: {get: true}, filter: {createdBy: {$var: user.id}}, hiddenFields: [gallery.image.path]}
    token:none: {methods: {post: true}}
  fields:
  - {name: published, type: boolean}
  - {name: title, type: string}
  - {name: cover, type: file}
  - {name: contract, type: file}
  - {name: pages, type: "file[]"}
  - {name: gallery, type: "object[]", subFields: [{name: image, type: file}, {name: other, type: string}]}
  - {name: secret, type: file, hidden: true}
  - {name: draft, type: file, hidden: {eval: "!ctx.doc.published"}}
  - {name: src, type: object, subFields: [{name: path, type: string}]}
- name: other
  permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  fields: [{name: cover, type: file}]
`

// keep puts a file of a record in place, and gives the value that the record has of it.
func (w *world) keep(id, field, name, content string) string {
	w.t.Helper()
	files, err := w.files.Store(w.project.Namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	staged, err := files.Stage(w.t.Context(), name, strings.NewReader(content), media.Limits{})
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := staged.Put(w.t.Context(), media.Place{Dir: "items", Record: id, Field: field})
	if err != nil {
		w.t.Fatal(err)
	}
	staged.Keep()
	return `{"src": "/x", "path": "` + info.Name + `", "type": "` + info.Type + `", "hash": "` + info.Hash + `"}`
}

// read gives the content of a file as a caller may read it.
func (w *world) read(who, id, field, name string) string {
	f, err := w.service.File(w.t.Context(), w.call(who), id, field, name)
	if err != nil {
		return show(err)
	}
	file, err := f.Open(w.t.Context())
	if err != nil {
		return show(err)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return show(err)
	}
	return string(data)
}

// TestFiles: a file belongs to whoever may read its field of its record, and to those whom anybody's right lets.
func TestFiles(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, filesConfig)
		record := func(published bool, owner bson.ObjectID) string {
			id := bson.NewObjectID()
			at := id.Hex()
			text := `{"published": false, "title": "t", "createdBy": "` + owner.Hex() + `", "_rev": 1,
				"cover": ` + w.keep(at, "cover", "a.txt", "cover") + `, "contract": ` + w.keep(at, "contract", "c.txt", "contract") + `,
				"pages": [` + w.keep(at, "pages", "1.txt", "one") + `, ` + w.keep(at, "pages", "2.txt", "two") + `],
				"gallery": [{"image": ` + w.keep(at, "gallery.image", "g.txt", "first") + `}, {"other": "x"}, {"image": ` + w.keep(at, "gallery.image", "h.txt", "second") + `}],
				"secret": ` + w.keep(at, "secret", "s.txt", "secret") + `, "draft": ` + w.keep(at, "draft", "d.txt", "draft") + `,
				"src": {"path": "a.txt"}}`
			if published {
				text = strings.Replace(text, "false", "true", 1)
			}
			w.keep(at, "cover", "stray.txt", "no record names it")
			return w.putAs(id, text)
		}
		open, closed := record(true, bob), record(false, alice)
		const missing = "not_found: not found"
		for _, tt := range []struct{ who, id, field, name, want string }{
			{"public", open, "cover", "a.txt", "cover"},
			{"public", open, "pages", "1.txt", "one"},
			{"public", open, "pages", "2.txt", "two"},
			{"public", open, "gallery.image", "g.txt", "first"},
			{"public", open, "gallery.image", "h.txt", "second"},
			{"public", open, "draft", "d.txt", "draft"},
			{"public", open, "contract", "c.txt", missing},
			{"public", open, "secret", "s.txt", missing},
			{"public", closed, "cover", "a.txt", missing},
			{"public", closed, "draft", "d.txt", missing},
			{"token:none", open, "cover", "a.txt", "cover"}, // as anybody may
			{"token:none", closed, "cover", "a.txt", missing},
			{"token:none", open, "contract", "c.txt", missing},
			{"alice", closed, "cover", "a.txt", "cover"}, // her own
			{"alice", closed, "contract", "c.txt", "contract"},
			{"alice", closed, "gallery.image", "g.txt", missing}, // its name is hidden
			{"alice", closed, "draft", "d.txt", missing},
			{"alice", closed, "secret", "s.txt", missing},
			{"alice", open, "cover", "a.txt", "cover"}, // as anybody may
			{"alice", open, "contract", "c.txt", missing},
			{"bob", open, "contract", "c.txt", "contract"},
			{"bob", open, "gallery.image", "g.txt", "first"}, // as anybody may
			{"bob", closed, "cover", "a.txt", missing},
			{"admin", closed, "secret", "s.txt", "secret"},
			{"admin", closed, "draft", "d.txt", "draft"},
			{"admin", open, "cover", "stray.txt", missing},
			{"admin", open, "cover", "", missing},
			{"admin", open, "cover", "../contract/c.txt", missing},
			{"admin", open, "cover", "A.TXT", missing},
			{"admin", open, "pages.0", "1.txt", missing},
			{"admin", open, "gallery", "g.txt", missing},
			{"admin", open, "gallery.0.image", "g.txt", missing},
			{"admin", open, "", "a.txt", missing},
			{"admin", open, "title", "t", missing},
			{"admin", open, "src", "a.txt", missing},
			{"admin", open, "none", "a.txt", missing},
			{"admin", unknownRecord, "cover", "a.txt", missing},
			{"admin", "x", "cover", "a.txt", missing},
			{"admin", "..", "cover", "a.txt", missing},
		} {
			if got := w.read(tt.who, tt.id, tt.field, tt.name); got != tt.want {
				t.Errorf("%s reads %s %s of open=%v: %s, want %s", tt.who, tt.field, tt.name, tt.id == open, got, tt.want)
			}
		}
		other := w.call("admin")
		other.Collection = w.project.Collections["other"]
		if _, err := w.service.File(t.Context(), other, open, "cover", "a.txt"); show(err) != missing {
			t.Errorf("through another collection: %s", show(err))
		}
	})
}

const unknownRecord = "650102030405060708090a0b"

// putAs stores a document with that id as it is, past all rules.
func (w *world) putAs(id bson.ObjectID, text string) string {
	w.t.Helper()
	raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: id}}, doc(w.t, text)...))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.putRaw(raw)
}

// TestFilesOfTranslations: the files of a field's translations have the field's own address.
func TestFilesOfTranslations(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s, `
collections:
- name: items
  meta: {i18n: {languages: [en, de, fr]}}
  permissions: {public: {methods: {get: true}, hiddenFields: [_i18n.fr.hero.image, hero.proof]}, user: {methods: {get: true}}}
  fields: [{name: hero, type: object, subFields: [{name: image, type: file}, {name: proof, type: file}, {name: secret, type: file, hidden: true}, {name: draft, type: file, hidden: {eval: "true"}}]}]
`)
		id := bson.NewObjectID()
		at := id.Hex()
		w.putAs(id, `{"hero": {"image": `+w.keep(at, "hero.image", "en.txt", "cover")+`}, "_i18n": {
			"de": {"hero": {"image": `+w.keep(at, "hero.image", "de.txt", "Titelbild")+`, "proof": `+w.keep(at, "hero.proof", "de.txt", "Beleg")+`,
				"secret": `+w.keep(at, "hero.secret", "de.txt", "geheim")+`, "draft": `+w.keep(at, "hero.draft", "de.txt", "Entwurf")+`}},
			"fr": {"hero": {"image": `+w.keep(at, "hero.image", "fr.txt", "couverture")+`}}}}`)
		for _, tt := range []struct{ who, field, name, want string }{
			{"public", "hero.image", "en.txt", "cover"},
			{"public", "hero.image", "de.txt", "Titelbild"},
			{"public", "hero.image", "fr.txt", "not_found: not found"},
			{"public", "hero.proof", "de.txt", "not_found: not found"},
			{"public", "_i18n.de.hero.image", "de.txt", "not_found: not found"},
			{"alice", "hero.image", "fr.txt", "couverture"},
			{"alice", "hero.proof", "de.txt", "Beleg"},
			{"alice", "hero.secret", "de.txt", "not_found: not found"},
			{"alice", "hero.draft", "de.txt", "not_found: not found"},
		} {
			if got := w.read(tt.who, at, tt.field, tt.name); got != tt.want {
				t.Errorf("%s, %s %s: %s, want %s", tt.who, tt.field, tt.name, got, tt.want)
			}
		}
	})
}

// TestFileWithoutItsHash: what is made of a file is kept by its hash, so that one that has none is not there.
func TestFileWithoutItsHash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, teststore.Memory(t), filesConfig)
	for _, hash := range []string{"", "x", strings.Repeat("0", 63), strings.Repeat("g", 64)} {
		id := bson.NewObjectID()
		w.keep(id.Hex(), "cover", "a.txt", "cover")
		w.putAs(id, `{"published": true, "cover": {"src": "/x", "path": "a.txt", "hash": "`+hash+`"}}`)
		if got := w.read("public", id.Hex(), "cover", "a.txt"); got != "not_found: not found" {
			t.Errorf("%q: %s", hash, got)
		}
	}
}

// TestFileBehindRestore: who has found a file by a record is not given the one that has taken its place meanwhile, nor what a filter makes of that.
func TestFileBehindRestore(t *testing.T) {
	t.Parallel()
	g := gate.New(teststore.Memory(t))
	w := newWorld(t, g, filesConfig)
	id := bson.NewObjectID()
	w.putAs(id, `{"published": true, "_rev": 1, "cover": `+w.keep(id.Hex(), "cover", "a.txt", "cover")+`}`)
	f, err := w.service.File(g.Moment(t.Context()), w.call("public"), id.Hex(), "cover", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	before := g.Moment(t.Context())
	file, err := f.Open(before)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	shut, err := g.Shut(t.Context(), project.DatabaseName(w.project.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"while records are replaced", "behind that"} {
		if err := shut.Reads(t.Context()); err != nil {
			t.Fatal(err)
		}
		if when == "behind that" {
			shut.Open()
		}
		if _, err := f.Open(before); !errors.Is(err, gate.ErrShut) {
			t.Errorf("%s: %v", when, err)
		}
	}
	if got := w.read("public", id.Hex(), "cover", "a.txt"); got != "cover" {
		t.Errorf("a request that begins behind that is given %s", got)
	}
}

// TestFileHook: the stage get.file sees the record as it is stored, and what it refuses is not there.
func TestFileHook(t *testing.T) {
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newScripted(t, s, filesConfig+`
- name: hooked
  permissions: {public: {methods: {get: true}}, user: {methods: {get: true}}}
  uploadPath: items
  fields: [{name: title, type: string}, {name: cover, type: file}]
  hooks:
    get: {file: {type: javascript, file: file.js}, read: {type: javascript, file: read.js}}
`, map[string]string{
			"file.js": `module.exports = (ctx) => {
  const seen = [ctx.method, ctx.stage, ctx.id === ctx.doc._id.toString(), ctx.field, ctx.path, ctx.doc.cover.path, ctx.user && ctx.user.name].join(' ');
  switch (ctx.doc.title) {
    case 'refused': throw ctx.error(403, seen);
    case 'missing': throw ctx.error(404, 'no');
    case 'throttled': throw ctx.error(429, 'slow down');
    case 'closed': throw ctx.error(503, 'come back later');
    case 'broken': null.x;
    case 'changed': ctx.doc.cover.path = 'other.txt'; return {cover: null};
    case 'seen': if (seen !== 'GET get.file true cover a.txt a.txt bob') throw ctx.error(500, seen);
  }
};`,
			"read.js": "module.exports = (ctx) => { throw ctx.error(418, 'this is no read of a record') }",
		})
		read := func(who, title string) (string, bool) {
			id := bson.NewObjectID()
			value := w.keep(id.Hex(), "cover", "a.txt", "cover")
			raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: id}}, doc(t, `{"title": "`+title+`", "cover": `+value+`}`)...))
			if err != nil {
				t.Fatal(err)
			}
			res, err := w.collection("hooked").Write(t.Context(), []store.Op{{Kind: store.Insert, Doc: raw}}, false)
			if err != nil || res[0].Err != nil {
				t.Fatal(err, res)
			}
			c := w.call(who)
			c.Collection = w.project.Collections["hooked"]
			f, err := w.service.File(t.Context(), c, id.Hex(), "cover", "a.txt")
			return show(err), f.Shared
		}
		for title, want := range map[string]string{
			"fine": "ok", "changed": "ok", "refused": "not_found: not found", "missing": "not_found: not found", "throttled": "not_found: not found",
			"closed": "script_error: come back later", "broken": "script_failed: a script of the project failed",
		} {
			if got, shared := read("public", title); !strings.HasPrefix(got, want) || shared {
				t.Errorf("%s: %s, shared %v", title, got, shared)
			}
		}
		if got, _ := read("bob", "seen"); got != "ok" {
			t.Error(got)
		}
	})
}

// TestFilesShared: caches may share what depends on nothing but the credential.
func TestFilesShared(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{"": true, `, hidden: {eval: "ctx.headers.x === '1'"}`: false} {
		w := newWorld(t, teststore.Memory(t), `
collections:
- name: items
  permissions: {public: {methods: {get: true}}, user: {methods: {}}}
  fields: [{name: cover, type: file`+expression+`}]
`)
		id := bson.NewObjectID()
		w.putAs(id, `{"cover": `+w.keep(id.Hex(), "cover", "a.txt", "cover")+`}`)
		f, err := w.service.File(t.Context(), w.call("public"), id.Hex(), "cover", "a.txt")
		if err != nil || f.Shared != want {
			t.Errorf("%s: %v, shared %v", expression, err, f.Shared)
		}
	}
}
