package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/app"
)

const fileHooksConfig = `
namespace: media
collections:
  - name: seen
    fields: [{name: title, type: string}, {name: file, type: file}, {name: files, type: "file[]"}]
    hooks:
      get: {file: [&see {type: javascript, file: see.js}], read: [*see], return: [*see]}
      post: {bind: [*see], validate: [*see], create: [*see], return: [*see]}
      put: {bind: [*see], validate: [*see], update: [*see], return: [*see]}
      delete: {delete: [*see]}
    permissions: &all {public: {methods: {post: true, get: true, put: true, delete: true}}, user: {methods: {}}}
  - name: stages
    fields: [{name: text, type: string}]
    permissions: *all
  - name: bind
    fields: &fields [{name: title, type: string}, {name: other, type: string}, {name: file, type: file}, {name: copy, type: file}]
    hooks: {post: {bind: [&change {type: javascript, file: change.js}]}, put: {bind: [*change]}}
    permissions: *all
  - name: write
    fields: *fields
    hooks: {post: {create: [*change]}, put: {update: [*change]}}
    permissions: *all
`

// seeScript notes what a stage has of files.
const seeScript = `module.exports = (ctx) => {
  const doc = ctx.data || ctx.doc || ctx.result;
  if (doc) db.collection('stages').insert({text: ctx.stage + ' ' + JSON.stringify([doc.file, doc.files])});
};`

const changeScript = `module.exports = (ctx) => {
  const doc = ctx.data || ctx.doc;
  switch (doc.title) {
  case 'forge': Object.assign(doc.file, {hash: 'f'.repeat(64), type: 'text/html', size: 1, alt: 'of a hook'}); break;
  case 'steal': doc.file = {src: doc.other, path: 'a.txt', size: 6, type: 'text/html', hash: 'f'.repeat(64)}; break;
  case 'copy': doc.copy = doc.file; break;
  case 'replace': doc.file = {src: 'data:;base64,aGk=', path: 'hook.txt'}; break;
  case 'drop': delete doc.file; break;
  }
};`

// TestS45Hooks: a script sees of a file what is stored of it, whatever stage it runs at and however the file came, and can't make
// a record name what it may not name. What a script takes out does not stay on the disk.
func TestS45Hooks(t *testing.T) {
	for _, name := range []string{"embedded", "mongodb"} {
		t.Run(name, func(t *testing.T) {
			uri := ""
			if name == "mongodb" {
				uri = emptyMongo(t, "svc_media")
			}
			s := mediaService{data: t.TempDir()}
			s.service = run(t, func(c *app.Config) { c.StoreURI, c.DataDir = uri, s.data })
			s.file("media", "see.js", seeScript)
			s.file("media", "change.js", changeScript)
			s.register("media", fileHooksConfig)
			s.stagesSeeFiles()
			for _, collection := range []string{"bind", "write"} {
				s.hooksChangeFiles(collection)
			}
		})
	}
}

const mediaPath = "/api/v1/_/media/"

// stored is what a record has of its files, as a client reads it.
func (a answer) stored(t *testing.T) string {
	t.Helper()
	var doc struct{ File, Files json.RawMessage }
	if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
		t.Fatal(err, a.body)
	}
	parts := []string{"null", "null"}
	for i, v := range []json.RawMessage{doc.File, doc.Files} {
		if v != nil {
			parts[i] = string(v)
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// plain is a text of the answer.
func (a answer) plain(path string) string { return strings.Trim(a.at(path), `"`) }

func (s mediaService) stagesSeeFiles() {
	s.t.Helper()
	saw := func(step, want string, stages ...string) {
		s.t.Helper()
		res := s.do("GET", mediaPath+"stages?sort=id&limit=100")
		var list struct{ Items []struct{ ID, Text string } }
		if err := json.Unmarshal([]byte(res.body), &list); err != nil {
			s.t.Fatal(err)
		}
		got, all := []string{}, []string{}
		for _, item := range list.Items {
			got = append(got, item.Text)
			s.do("DELETE", mediaPath+"stages/"+item.ID).want(s.t, http.StatusOK)
		}
		for _, stage := range stages {
			all = append(all, stage+" "+want)
		}
		if d := cmp.Diff(all, got); d != "" {
			s.t.Errorf("%s (-want +got):\n%s", step, d)
		}
	}
	res := s.do("POST", mediaPath+"seen", text(`{"title":"a","file":{"path":"x/a.txt","alt":"A","size":7,"src":"`+dataURL("hello")+`"},"files":[`+fileJSON("b.png", pngOf(3, 2))+`]}`))
	res.want(s.t, http.StatusCreated)
	one, file := mediaPath+"seen/"+res.field("id"), res.plain("file.src")
	saw("JSON", res.stored(s.t), "post.bind", "post.validate", "post.create", "post.return")
	s.do("GET", file).want(s.t, http.StatusOK)
	saw("the file", res.stored(s.t), "get.file")
	if got := s.do("GET", one); got.stored(s.t) != res.stored(s.t) {
		s.t.Errorf("%s, was %s", got.body, res.body)
	}
	saw("the record", res.stored(s.t), "get.read", "get.return")
	s.do("DELETE", one).want(s.t, http.StatusOK)
	saw("the end", res.stored(s.t), "delete.delete")
	res = s.do("POST", mediaPath+"seen", form(part{"data", "", `{"title":"a","file":{"alt":"A"}}`}, part{"file", "a.txt", "hello"}, part{"files", "b.png", pngOf(3, 2)}))
	res.want(s.t, http.StatusCreated)
	saw("a form", res.stored(s.t), "post.bind", "post.validate", "post.create", "post.return")
	one = mediaPath + "seen/" + res.field("id")
	s.do("DELETE", one).want(s.t, http.StatusOK)
	s.disk("deleted")
}

func (s mediaService) hooksChangeFiles(collection string) {
	s.t.Helper()
	path := mediaPath + collection
	victim := s.do("POST", path, text(`{"title":"victim","file":`+fileJSON("a.txt", "secret")+`}`))
	victim.want(s.t, http.StatusCreated)
	its := collection + "/" + victim.field("id") + "/file/a.txt"
	for _, method := range []string{"POST", "PUT"} {
		for title, want := range map[string]string{"forge": "a.txt", "steal": "", "copy": "", "replace": "hook.txt", "drop": "-"} {
			step, at, status := collection+", "+method+", "+title, path, http.StatusCreated
			own := []string{its}
			if method == "PUT" {
				at, status = path+"/"+s.do("POST", path, text(`{"title":"plain"}`)).field("id"), http.StatusOK
			}
			res := s.do(method, at, text(`{"title":"`+title+`","other":"`+victim.plain("file.src")+`","file":`+fileJSON("a.txt", "hello")+`}`))
			switch {
			case want == "":
				if res.status != http.StatusBadRequest || !strings.Contains(res.field("detail"), "is no file that this field of this record has") {
					s.t.Errorf("%s: %s", step, res.body)
				}
			case res.status != status:
				s.t.Errorf("%s: %s", step, res.body)
			case want != "-":
				own = append(own, collection+"/"+res.field("id")+"/file/"+want)
				content := map[string]string{"a.txt": "hello", "hook.txt": "hi"}[want]
				if res.plain("file.hash") != contentHash(content) || res.plain("file.type") != "text/plain" || (res.plain("file.alt") == "of a hook") != (title == "forge") {
					s.t.Errorf("%s: %s", step, res.body)
				}
				if got := s.do("GET", res.plain("file.src")); got.body != content {
					s.t.Errorf("%s: the file is %s", step, got.body)
				}
			}
			s.disk(step, own...)
			if id := res.field("id"); status == res.status {
				s.do("DELETE", path+"/"+id).want(s.t, http.StatusOK)
			}
		}
	}
	s.do("DELETE", path+"/"+victim.field("id")).want(s.t, http.StatusOK)
	s.disk("the end")
}
