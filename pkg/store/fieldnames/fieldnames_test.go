package fieldnames_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
	"github.com/svcctl/svc/pkg/store/mongo"
	"github.com/svcctl/svc/pkg/store/mongotest"
	"github.com/svcctl/svc/pkg/store/storetest"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// renamed is a store in which the fields that the suite of package storetest uses have other names.
type renamed struct{ store.Store }

// Lacks leaves out what counts bytes: those of the names that are stored.
func (r renamed) Lacks(test string) string {
	if strings.HasSuffix(test, "/stats") {
		return "documents are as long as they are stored"
	}
	return ""
}

func (r renamed) Database(name string) store.Database {
	names := map[string]*document.Names{}
	for _, collection := range []string{"things", "others", "other", "a", "b", "c", "d", "e", "x.y", "new", "sums", "old", "from", "to"} {
		inner := otherNames(map[string]*document.Names{"a": nil, "b": nil, "c": nil, "d": nil, "n": nil, "x": nil})
		names[collection] = otherNames(map[string]*document.Names{
			"a": nil, "b": nil, "c": nil, "d": inner, "k": nil, "n": nil, "s": nil, "t": nil, "v": nil, "x": inner, "y": inner,
			"tags": nil, "title": nil,
		})
	}
	return fieldnames.Wrap(r.Store.Database(name), names)
}

// otherNames has fields stored by other names, with what is below them. The order of names stays: objects are compared by it,
// and updates append new fields in it.
func otherNames(below map[string]*document.Names) *document.Names {
	stored := map[string]string{}
	for name := range below {
		stored[name] = name + "!"
	}
	return document.NewNames(stored, below)
}

// Whatever the suite asks of a store holds of one whose records have renamed fields.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		storetest.RunAround(t, func(t *testing.T) store.Store {
			t.Helper()
			return renamed{teststore.Memory(t)}
		})
	})
	t.Run("mongodb", func(t *testing.T) {
		t.Parallel()
		uri := mongotest.URI(t)
		storetest.RunAround(t, func(t *testing.T) store.Store {
			t.Helper()
			s, err := mongo.Open(t.Context(), mongo.Options{URI: uri})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return renamed{s}
		})
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
