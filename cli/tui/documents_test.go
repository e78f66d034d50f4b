package tui_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
)

// replaceIn has an editor put a text in the place of another.
func replaceIn(file, old, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), old) {
		return fmt.Errorf("%q is not in %s", old, data)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(data), old, text, 1)), 0o600)
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	s := sample()
	s.docs = sampleDocs(250)
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(140, 30)
		term.Press("3")
		term.shows(t, "Projects › blog › Collections\n", "NAME", "▸ articles", "get (bulk), post (bulk), put, delete", "1 building")
		term.Press("enter")
		term.shows(t, "Collections › articles\n", "all records", "100 of 250  live", "TITLE", "Record "+docID(0), "▸ Title 0", `"slug": "title-0"`)
		for range 60 { // which brings the next page before it is needed
			term.Press("down")
		}
		term.shows(t, "200 of 250", "▸ Title 60")
		term.Press("home", "end") // which brings all
		term.shows(t, "250 of 250", "▸ Title 249")
		term.Press("home", "tab", "down", "down")
		term.shows(t, "(tab goes back)", "▸ Title 0")
		term.Press("tab", "p")
		term.hides(t, "Record ")
		term.Press("enter")
		term.shows(t, `  "slug": "title-0"`, "y YAML")
		term.Press("y")
		term.shows(t, "slug: title-0\n", "tags:\n")
		term.Press("esc", ":")
		term.Type("documents settings")
		term.Press("enter")
		term.shows(t, "Collections › settings\n")
		term.Press("esc")
		term.shows(t, "blog › Collections\n")
	})
}

func TestDocumentsFind(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("3", "enter", "/")
		term.shows(t, "words to look for, a filter")
		term.Type(`{"minutes": {"$gt": 1}} garden q?`)
		term.Press("enter")
		term.shows(t, `filter {"minutes": {"$gt": 1}}  words garden q?`, "How to mend the garden gate")
		if got, want := term.requests(), "GET /_/blog/articles?count=true&filter=%7B%22minutes%22%3A+%7B%22%24gt%22%3A+1%7D%7D&q=garden+q%3F"; got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
		term.Press("/")
		term.shows(t, `/ {"minutes": {"$gt": 1}} garden q?`)
		term.Press("esc")
		term.shows(t, "filter {")
		term.Press("esc")
		term.shows(t, "all records", "▸ Title 0")
		term.Press("/", "{", "enter")
		term.shows(t, "error: the filter is not JSON", "hint: a filter is as in")
		term.change(func() {
			term.fail = map[string]api.Problem{"/_/blog/articles": {Status: 400, Code: "unknown_field", Detail: "unknown field: nope"}}
		})
		term.Press("o")
		term.Type("nope")
		term.Press("enter")
		term.shows(t, "all records", "error: unknown field: nope")
		term.change(func() { term.fail = nil })
		term.Press("o")
		term.Type("-min")
		term.Press("tab", "enter")
		term.shows(t, "order -minutes")
		term.Press("C")
		term.Type("section,seo.title")
		term.Press("enter")
		term.shows(t, "SECTION", "SEO.TITLE", "cooking", "About 0")
		term.Press("q")
		if !term.Quit {
			t.Error("q does not quit")
		}
	})
}

// A collection without a search is asked for records whose texts have the words.
func TestDocumentsFindWithoutSearch(t *testing.T) {
	t.Parallel()
	s := sample()
	s.collections = append(s.collections,
		api.CollectionDescription{Name: "notes", YourPermissions: sampleRights(), Fields: []api.FieldDescription{{Name: "title", Type: "string"}, {Name: "views", Type: "number"}, {Name: "text", Type: "string"}}},
		api.CollectionDescription{Name: "numbers", YourPermissions: sampleRights(), Fields: []api.FieldDescription{{Name: "views", Type: "number"}}},
	)
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		find := func(collection, line string) {
			term.Press(":")
			term.Type("documents " + collection)
			term.Press("enter", "/")
			term.Type(line)
			term.Press("enter")
		}
		find("notes", `{"views": 1} a+b`)
		term.shows(t, `filter {"views": 1}  words a+b`)
		const texts = `{"$or":[{"title":{"$options":"i","$regex":"a\\+b"}},{"text":{"$options":"i","$regex":"a\\+b"}}]}`
		if got, want := term.requests(), "GET /_/blog/notes?count=true&filter="+url.QueryEscape(`{"$and":[`+texts+`,{"views":1}]}`); got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
		find("numbers", "a")
		term.shows(t, "error: numbers has neither a search nor texts of its own to look for words in")
	})
}

func TestDocumentsThatChange(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press("3", "enter")
		term.change(func() { term.docs[1] = sampleDoc(1, "Another title") })
		term.feed <- api.Change{Event: api.EventUpdate, ID: docID(1), Item: api.Record(sampleDoc(1, "Another title"))}
		term.Wait(time.Second)
		term.shows(t, "Title 0", "Another title", "Title 2")
		term.change(func() { term.docs = append(term.docs[1:], sampleDoc(9, "It is new")) })
		term.feed <- api.Change{Event: api.EventDelete, ID: docID(0)}
		term.feed <- api.Change{Event: api.EventCreate, ID: docID(9), Item: api.Record(sampleDoc(9, "It is new"))}
		term.Wait(time.Second)
		term.shows(t, "3 of 3", "▸ Another title", "Title 2", "It is new")
		term.hides(t, "Title 0")
		// A stream that breaks is opened again.
		close(term.feed)
		term.Settle()
		term.change(func() {
			term.service.feed = make(chan api.Change, 1)
			term.docs[0] = sampleDoc(1, "Once more")
		})
		term.service.feed <- api.Change{Event: api.EventUpdate, ID: docID(1), Item: api.Record(sampleDoc(1, "Once more"))}
		term.Wait(10 * time.Second)
		term.shows(t, "live", "▸ Once more")
		term.hides(t, "error")
	})
}

// TestManyDocumentsThatChange: of many records, what changes is put in, and none is read again.
func TestManyDocumentsThatChange(t *testing.T) {
	t.Parallel()
	s := sample()
	s.docs = sampleDocs(800)
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("3", "enter")
		term.Press("end")
		term.shows(t, "800 of 800", "▸ Title 799")
		term.Wait(time.Minute) // a read that was due already
		before := term.requests()
		term.feed <- api.Change{Event: api.EventUpdate, ID: docID(798), Item: api.Record(sampleDoc(798, "Another title"))}
		term.feed <- api.Change{Event: api.EventDelete, ID: docID(797)}
		term.feed <- api.Change{Event: api.EventCreate, ID: docID(900), Item: api.Record(sampleDoc(900, "It is new"))}
		term.Wait(time.Minute)
		term.shows(t, "799 of 800  1 new: ctrl+r shows them", "Title 796", "Another title", "▸ Title 799")
		if got := term.requests(); got != before {
			t.Errorf("it asks %s", strings.TrimPrefix(got, before))
		}
	})
}

func TestDocumentsWithoutFeed(t *testing.T) {
	t.Parallel()
	s := sample()
	s.fail = map[string]api.Problem{"/_/blog/articles/_changes": {Status: 400, Code: "unsupported", Detail: "a script answers reads of this collection: it has no feed of changes"}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("3", "enter")
		term.Wait(time.Second)
		term.change(func() { term.docs[1] = sampleDoc(1, "Another title") })
		term.Wait(4 * time.Second)
		term.shows(t, "3 of 3\n", "Another title")
		term.hides(t, "live", "error")
	})
}

func TestEditDocument(t *testing.T) {
	t.Parallel()
	s := sample()
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("3", "enter", "e")
		term.shows(t, "nothing was changed")
		s.editor = func(file string) error { return replaceIn(file, "title: Title 0", "title: Title of mine") }
		term.Press("e")
		term.Wait(time.Second)
		term.shows(t, "▸ Title of mine", "saved "+docID(0))
		if got, want := term.requests(), "PATCH /_/blog/articles/"+docID(0)+` if "3" {"title":"Title of mine"}`; got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}

		// What is refused opens again, with the reasons above it.
		refusal := map[string]api.Problem{"/_/blog/articles/" + docID(0): {Status: 400, Detail: "invalid", Errors: []api.FieldError{{Path: "title", Message: "is too short"}}}}
		term.change(func() { term.fail = refusal })
		times := 0
		s.editor = func(file string) error {
			if times++; times == 1 {
				return replaceIn(file, "title: Title of mine", "title: T")
			}
			term.change(func() { term.fail = nil })
			if err := replaceIn(file, "# Not saved:\n#   title: is too short\n", ""); err != nil {
				return err
			}
			return replaceIn(file, "title: T\n", "title: Long enough\n")
		}
		term.Press("e")
		term.Wait(time.Second)
		term.shows(t, "▸ Long enough", "saved")

		// Left as it is, the user has given up.
		term.change(func() { term.fail = refusal })
		s.editor = func(file string) error {
			if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "title: X") {
				return err
			}
			return replaceIn(file, "title: Long enough", "title: X")
		}
		term.Press("e")
		term.shows(t, "error: invalid", "--draft", "goes") // and, where the path of the draft has it wrap, a line on

		s.editor = func(string) error { return os.ErrPermission }
		term.Press("e")
		term.shows(t, "error: the editor (an editor): permission denied")
	})
}

func TestEditOfWhatOthersChange(t *testing.T) {
	t.Parallel()
	s := sample()
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		times := 0
		s.editor = func(file string) error {
			switch times++; times {
			case 1:
				s.docs[0] = strings.Replace(sampleDoc(0, "Title 0"), `"_rev":3,`, `"_rev":4,"views":5,`, 1)
				return replaceIn(file, "title: Title 0", "title: Title of mine")
			default:
				return replaceIn(file, "views: changed by others from nothing to 5", "")
			}
		}
		term.Press("3", "enter", "e")
		term.shows(t, "Changed meanwhile", "Nothing was saved", "title", "It was      Title 0", "Yours       Title of mine", "views", "Stored now  5")
		term.Press("e")
		term.Wait(time.Second)
		term.shows(t, "▸ Title of mine", "saved")
		if got := term.requests(); !strings.HasSuffix(got, ` if "4" {"title":"Title of mine"}`) {
			t.Errorf("it asks %s", got)
		}
		s.editor = func(file string) error {
			s.docs[0] = strings.Replace(sampleDoc(0, "Theirs"), `"_rev":3`, `"_rev":9`, 1)
			return replaceIn(file, "title: Title of mine", "title: Mine")
		}
		term.Press("e")
		term.shows(t, "Changed meanwhile")
		term.Press("esc")
		term.shows(t, "error: nothing was saved: the record is as others have changed it", "--draft", "goes") // and, where the path of the draft has it wrap, a line on
		if strings.Contains(s.docs[0], "Mine") {
			t.Errorf("the record is %s", s.docs[0])
		}
	})
}

func TestCreateDocument(t *testing.T) {
	t.Parallel()
	s := sample()
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		s.editor = func(file string) error { return replaceIn(file, "\ntitle: ", "\ntitle: It is new") }
		term.Press("3", "enter", "c")
		term.Wait(time.Second)
		term.shows(t, "4 of 4", "It is new", "created "+docID(3))
		if got, want := term.requests(), `POST /_/blog/articles {"title":"It is new"}`; got != want {
			t.Errorf("it asks %s, want %s", got, want)
		}
		s.editor = nil
		term.Press("c")
		term.shows(t, "nothing was changed")
	})
}

func TestDeleteDocuments(t *testing.T) {
	t.Parallel()
	s := sample()
	s.docs = sampleDocs(9)
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Press("3", "enter", "ctrl+d")
		term.shows(t, "Delete 1 record\n", "Delete 1 record of blog/articles, with their files", docID(0)+"  Title 0", "Type articles to delete.")
		term.Type("y")
		term.Press("enter")
		term.shows(t, "type articles to delete, esc goes back")
		term.Press("esc")
		if got := term.requests(); got != "" {
			t.Fatalf("without the word it asks %s", got)
		}
		for range 7 {
			term.Press(" ")
		}
		term.shows(t, "7 marked", " ●Title 5", " ●Title 6", "▸ Title 7")
		s.docs[2] = strings.Replace(sampleDoc(2, "Theirs"), `"_rev":3`, `"_rev":4`, 1)
		term.Press("ctrl+d")
		term.shows(t, "Delete 7 records of blog/articles", docID(4), "… and 2 more")
		term.Type("articles")
		term.Press("enter")
		term.shows(t, "3 of 3", "Theirs", "▸ Title 7", "6 records deleted, 1 not: changed by others since they were shown")
		if got := term.requests(); strings.Count(got, "DELETE") != 7 || strings.Count(got, `if "3"`) != 7 {
			t.Errorf("it asks %s", got)
		}
		term.Press("home", " ", "esc")
		term.hides(t, "marked")
	})
}

// TestDocumentsOfReaders: what a user may not do is not offered, and help says what it takes.
func TestDocumentsOfReaders(t *testing.T) {
	t.Parallel()
	s := sample()
	s.collections[0].YourPermissions = map[string]api.MethodRights{"get": {Allow: true}}
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		term.Resize(140, 60)
		term.Press("3", "enter")
		term.shows(t, "3 shown", "enter open  / find  space mark")
		for key, right := range map[string]string{"e": "update", "c": "create", "ctrl+d": "delete"} {
			term.Press(key)
			term.shows(t, "you lack the right "+right+" of articles")
		}
		term.Press("?")
		term.shows(t, "edit, when you have the right update of this collection", "create, when you have the right create of this collection", "delete, when you have the right delete of this collection")
		if got := term.requests(); got != "" {
			t.Errorf("it asks %s", got)
		}
	})
}

// TestCompletion completes what is typed behind ":", with projects and collections.
func TestCompletion(t *testing.T) {
	t.Parallel()
	inTerminal(t, sample(), "blog", false, func(t *testing.T, term terminal) {
		term.Press(":")
		term.Type("docum")
		term.Press("tab")
		term.Type(" au")
		term.Press("tab", "enter")
		term.shows(t, "blog › Collections › authors\n")
		term.Press(":")
		term.Type("coll")
		term.Press("tab")
		term.Type(" sh")
		term.Press("tab", "enter")
		term.shows(t, "Projects › shop › Collections\n")
		term.Press(":")
		term.Type("documents a b c")
		term.Press("enter")
		term.shows(t, "error: there is too much behind :documents", "hint: it is :documents [[NAMESPACE] COLLECTION]")
	})
}

// TestEditPressedTwice has one editor at a time, however fast keys are pressed: the second one would have taken the place of the first, whose text was not saved.
func TestEditPressedTwice(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, keys := range [][]string{{"e", "e"}, {"e", "c"}, {"c", "e"}, {"c", "c"}, {"e", "down", "e", "e"}} {
		s := sample()
		inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
			times := 0
			s.editor = func(file string) error {
				times++
				if strings.Contains(file, "-new") {
					return replaceIn(file, "\ntitle: ", "\ntitle: It is mine")
				}
				return replaceIn(file, "title: Title ", "title: It is mine")
			}
			term.Press("3", "enter")
			term.PressAtOnce(keys...)
			term.Wait(time.Second)
			if got := term.requests(); times != 1 || strings.Count(got, "It is mine") != 1 {
				t.Errorf("%v: %d editors, and it asks %s", keys, times, got)
			}
			term.Press("1", "3", "enter")
			term.PressAtOnce("e", "1") // it is left before the record has come
			term.Wait(time.Second)
			if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "svcctl-edit-*")); err != nil || len(left) > 0 {
				t.Errorf("%v: left %v, %v", keys, left, err)
			}
		})
	}
}

// TestLeftConflict has a draft be told of that others' changes have kept from being saved, and that was left by a key that leads elsewhere.
func TestLeftConflict(t *testing.T) {
	t.Parallel()
	s := sample()
	inTerminal(t, s, "blog", false, func(t *testing.T, term terminal) {
		s.editor = func(file string) error {
			s.docs[0] = strings.Replace(sampleDoc(0, "Theirs"), `"_rev":3`, `"_rev":9`, 1)
			return replaceIn(file, "title: Title 0", "title: Mine")
		}
		term.Press("3", "enter", "e")
		term.shows(t, "Changed meanwhile")
		term.Type(":documents blog articles")
		term.Press("enter")
		term.shows(t, "error: nothing was saved: the record is as others have changed it", "--draft", "goes") // and, where the path of the draft has it wrap, a line on
		s.editor = func(file string) error { return replaceIn(file, "title: Theirs", "title: Ours") }
		term.Press("ctrl+r", "e")
		term.Wait(time.Second)
		term.shows(t, "▸ Ours", "saved")
	})
}
