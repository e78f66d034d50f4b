package tui

import (
	"testing"

	"github.com/svcctl/svc/pkg/api"
)

func TestWordsFilter(t *testing.T) {
	t.Parallel()
	of := &api.CollectionDescription{Name: "notes", Fields: []api.FieldDescription{{Name: "title", Type: "string"}, {Name: "views", Type: "number"}, {Name: "text", Type: "string"}}}
	for _, tc := range []struct{ filter, words, want string }{
		{"", "a+b", `{"$and":[{"$or":[{"title":{"$options":"i","$regex":"a\\+b"}},{"text":{"$options":"i","$regex":"a\\+b"}}]}]}`},
		{`{"views": 1}`, "x", `{"$and":[{"$or":[{"title":{"$options":"i","$regex":"x"}},{"text":{"$options":"i","$regex":"x"}}]},{"views":1}]}`},
	} {
		if got, err := wordsFilter(of, tc.filter, tc.words); err != nil || got != tc.want {
			t.Errorf("filter %q, words %q: %s, %v; want %s", tc.filter, tc.words, got, err, tc.want)
		}
	}
	if got, err := wordsFilter(&api.CollectionDescription{Name: "numbers", Fields: of.Fields[1:2]}, "", "x"); err == nil {
		t.Errorf("without texts: %s, want an error", got)
	}
}
