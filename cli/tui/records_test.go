package tui_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/svcctl/svc/pkg/api"
)

// sampleDocs are the records of a collection.
func sampleDocs(n int) (docs []string) {
	for i := range n {
		docs = append(docs, sampleDoc(i, "Title "+strconv.Itoa(i)))
	}
	return docs
}

func docID(i int) string { return fmt.Sprintf("65f0c2a1b3d4e5f6%08x", i) }

func sampleDoc(i int, title string) string {
	return fmt.Sprintf(`{"id":%q,"_rev":3,"createdAt":"1999-12-30T10:00:00Z","updatedAt":"1999-12-31T10:00:00Z","title":%q,"slug":"title-%d","section":"cooking","minutes":%d,"tags":["bread","soup"],"seo":{"title":"About %d"}}`,
		docID(i), title, i, i%10, i)
}

// pageOfDocs is how many records a page has.
const pageOfDocs = 100

// listDocs gives a page of records.
func (s *service) listDocs(r *http.Request) any {
	from, _ := strconv.Atoi(r.URL.Query().Get(api.ParamAfter)) // none is the beginning
	docs := s.docs[min(from, len(s.docs)):]
	list := api.List[api.Record]{Items: []api.Record{}, Limit: pageOfDocs, HasMore: len(docs) > pageOfDocs}
	for _, one := range docs[:min(len(docs), pageOfDocs)] {
		list.Items = append(list.Items, api.Record(one))
	}
	if list.HasMore {
		list.Next = strconv.Itoa(from + pageOfDocs)
	}
	if r.URL.Query().Get(api.ParamCount) == "true" {
		list.Total = new(int64(len(s.docs)))
	}
	return list
}

// giveRecords answers what is asked of single records, and tells of their changes.
func (s *service) giveRecords(mux *http.ServeMux, give func(pattern string, fn func(r *http.Request) any)) {
	give("GET /_/{p}/_/collections/{c}", func(r *http.Request) any {
		for _, c := range s.collections {
			if strings.HasPrefix(c.Name, r.PathValue("c")) { // behind which there may be evil
				return c
			}
		}
		return api.CollectionDescription{}
	})
	give("GET /_/{p}/{c}/_count", func(*http.Request) any { return api.CountResult{Count: int64(len(s.docs))} })
	one := func(fn func(r *http.Request, i int) (status int, answer any)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.note(r)
			i := slices.IndexFunc(s.docs, func(one string) bool { return strings.Contains(one, `"id":"`+r.PathValue("id")+`"`) })
			status, answer := http.StatusNotFound, any(api.Problem{Status: http.StatusNotFound, Detail: "not found"})
			problem, refused := s.fail[strings.TrimPrefix(r.URL.Path, api.Prefix)]
			switch {
			case refused && r.Method != http.MethodGet:
				status, answer = problem.Status, problem
			case i >= 0 || r.PathValue("id") == "":
				status, answer = fn(r, i)
			}
			w.Header().Set("Content-Type", api.MediaJSON)
			if status >= http.StatusBadRequest {
				w.Header().Set("Content-Type", api.MediaProblem)
			}
			if i >= 0 {
				w.Header().Set("ETag", `"`+revOf(s.docs[i])+`"`)
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(answer) // the client may have gone
		}
	}
	stale := func(r *http.Request, i int) bool {
		match := r.Header.Get(api.HeaderIfMatch)
		return match != "" && match != `"`+revOf(s.docs[i])+`"`
	}
	changed := api.Problem{Status: http.StatusPreconditionFailed, Detail: "the record has changed"}
	body := func(r *http.Request) string {
		raw, _ := io.ReadAll(r.Body) // it is the client's
		s.asked[len(s.asked)-1] += " " + strings.TrimSpace(string(raw))
		return string(raw)
	}
	mux.HandleFunc("GET "+api.Prefix+"/_/{p}/{c}/{id}", one(func(_ *http.Request, i int) (int, any) { return http.StatusOK, api.Record(s.docs[i]) }))
	mux.HandleFunc("PATCH "+api.Prefix+"/_/{p}/{c}/{id}", one(func(r *http.Request, i int) (int, any) {
		change := body(r)
		if stale(r, i) {
			return http.StatusPreconditionFailed, changed
		}
		var now map[string]any
		for _, raw := range []string{s.docs[i], change} {
			if err := json.Unmarshal([]byte(raw), &now); err != nil {
				return http.StatusBadRequest, api.Problem{Status: http.StatusBadRequest, Detail: err.Error()}
			}
		}
		rev, _ := strconv.Atoi(revOf(s.docs[i])) // it is ours
		now["_rev"] = rev + 1
		raw, _ := json.Marshal(now) // it was JSON
		s.docs[i] = string(raw)
		return http.StatusOK, api.Record(s.docs[i])
	}))
	mux.HandleFunc("POST "+api.Prefix+"/_/{p}/{c}", one(func(r *http.Request, _ int) (int, any) {
		record := strings.TrimSpace(body(r))
		s.docs = append(s.docs, `{"id":"`+docID(len(s.docs))+`","_rev":1,`+record[1:])
		return http.StatusCreated, api.Record(s.docs[len(s.docs)-1])
	}))
	mux.HandleFunc("DELETE "+api.Prefix+"/_/{p}/{c}/{id}", one(func(r *http.Request, i int) (int, any) {
		if stale(r, i) {
			return http.StatusPreconditionFailed, changed
		}
		s.docs = slices.Delete(s.docs, i, i+1)
		return http.StatusOK, api.DeleteResult{ID: r.PathValue("id")}
	}))
	mux.HandleFunc("GET "+api.Prefix+"/_/{p}/{c}/_changes", func(w http.ResponseWriter, r *http.Request) {
		if s.refuses(w, r) {
			return
		}
		w.Header().Set("Content-Type", api.MediaEvents)
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "id: 0\nevent: ready\ndata: {}\n\n")
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		s.mu.Lock()
		feed := s.feed
		s.mu.Unlock()
		stream(w, r, feed, func(c api.Change) (string, any) { return c.Event, c })
	})
}

func revOf(record string) string {
	var about struct {
		Rev json.Number `json:"_rev"`
	}
	_ = json.Unmarshal([]byte(record), &about) // it is ours
	return about.Rev.String()
}

// testEditor does what a test has its user do in the editor.
type testEditor struct{ *service }

// Editor implements the editor of the program.
func (e testEditor) Editor() (string, error) { return "an editor", nil }

// Begun implements the editor of the program.
func (testEditor) Begun(string, string) {}

// Process implements the editor of the program.
func (e testEditor) Process(_, file string) tea.ExecCommand { return editing{e.service, file} }

type editing struct {
	s    *service
	file string
}

// Run implements tea.ExecCommand.
func (e editing) Run() error {
	if e.s.editor == nil {
		return nil
	}
	return e.s.editor(e.file)
}

// SetStdin implements tea.ExecCommand.
func (editing) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (editing) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (editing) SetStderr(io.Writer) {}
