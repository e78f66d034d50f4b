package mql_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
)

// recorded is one update and what MongoDB 6.0.5 made of it, in canonical Extended JSON.
type recorded struct {
	Doc          json.RawMessage   // none for an upsert
	Update       json.RawMessage   //
	Filter       json.RawMessage   // none: by _id
	ArrayFilters []json.RawMessage //
	Upsert       bool
	After        json.RawMessage // the document then; without _id where the server has made one
	Error        int             // the server's code, or 0
	Refused      string          // why it does not compile here, though a server takes it
}

func TestUpdateAsRecorded(t *testing.T) {
	data, err := os.ReadFile("testdata/updates.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []recorded }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 300 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		want := c.After
		got, err := c.run(t)
		switch {
		case c.Refused != "":
			if errs.From(err).Code != "bad_update" {
				t.Errorf("%s %s: taken, though %s", c.Doc, c.Update, c.Refused)
			}
		case (err != nil) != (c.Error != 0):
			t.Errorf("%s %s %s %s: server %d, here %v", c.Doc, c.Update, c.Filter, c.ArrayFilters, c.Error, err)
		case err != nil && errs.KindOf(err) != errs.Invalid:
			t.Errorf("%s %s: %v", c.Doc, c.Update, err)
		case err == nil && !bytes.Equal(got, raw(t, parse(t, string(want)))):
			t.Errorf("%s %s %s %s:\n  server %s\n  here   %v", c.Doc, c.Update, c.Filter, c.ArrayFilters, want, got)
		}
	}
}

// run does the update with what it compiles to, and with what that is for a server.
func (c *recorded) run(t *testing.T) (bson.Raw, error) {
	t.Helper()
	var filters []bson.D
	for _, f := range c.ArrayFilters {
		filters = append(filters, parse(t, string(f)))
	}
	u, err := mql.CompileUpdate(parse(t, string(c.Update)), filters)
	if err != nil {
		return nil, err
	}
	var filter *mql.Filter
	if c.Filter != nil {
		filter = compile(t, string(c.Filter))
	}
	var before bson.Raw
	if c.Upsert {
		if before, err = mql.UpsertBase(filter); err != nil {
			return nil, err
		}
	} else {
		before = raw(t, parse(t, string(c.Doc)))
	}
	how := mql.Applying{Filter: filter, Insert: c.Upsert}
	after, err := u.Apply(before, how)
	if again := recompile(t, u); again != nil {
		if second, secondErr := again.Apply(before, how); (err == nil) != (secondErr == nil) || !bytes.Equal(after, second) {
			t.Errorf("%s: %v, but what a server is sent makes %v", c.Update, after, second)
		}
	}
	return after, err
}

// recompile compiles what a server would be sent. Regular expressions are sent in another syntax; with one the result
// may be nil.
func recompile(tb testing.TB, u *mql.Update) *mql.Update {
	tb.Helper()
	var doc bson.D
	if err := bson.Unmarshal(u.Raw(), &doc); err != nil {
		tb.Fatal(err)
	}
	var filters []bson.D
	for _, f := range u.ArrayFilters() {
		var d bson.D
		if err := bson.Unmarshal(f, &d); err != nil {
			tb.Fatal(err)
		}
		filters = append(filters, d)
	}
	again, err := mql.CompileUpdate(doc, filters)
	if err != nil && !hasRegex(u) {
		tb.Fatalf("%v compiles, what a server is sent does not: %v", doc, err)
	}
	if err != nil || hasRegex(u) {
		return nil
	}
	if !bytes.Equal(again.Raw(), u.Raw()) {
		tb.Errorf("%v becomes %v", u.Raw(), again.Raw())
	}
	return again
}

// hasRegex is true at least where there is a regular expression.
func hasRegex(u *mql.Update) bool {
	for _, doc := range slices.Concat(u.ArrayFilters(), []bson.Raw{u.Raw()}) {
		if bytes.Contains(doc, []byte{byte(bson.TypeRegex)}) || bytes.Contains(doc, []byte("$regex")) {
			return true
		}
	}
	return false
}
