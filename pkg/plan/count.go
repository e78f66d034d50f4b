package plan

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// Records is the records of a project's collections.
type Records interface {
	// Count tells about how many records a collection has; one that does not exist has none.
	Count(ctx context.Context, collection string) (int64, error)
	// Each calls fn for each record in the order of ids and stops at its first error, which it returns. The record is
	// valid during the call only.
	Each(ctx context.Context, collection string, fn func(record bson.Raw) error) error
}

// Stored is the records in a database.
func Stored(db store.Database) Records { return stored{db} }

type stored struct{ db store.Database }

func (s stored) Count(ctx context.Context, collection string) (int64, error) {
	stats, err := s.db.Collection(collection).Stats(ctx)
	return stats.Documents, err
}

func (s stored) Each(ctx context.Context, collection string, fn func(record bson.Raw) error) error {
	return s.db.Collection(collection).Find(ctx, store.Query{Sort: mql.Sort{{Path: "_id"}}}, fn)
}

// test is what is counted for one item. At most one of its questions is asked.
type test struct {
	collection string
	names      *document.Names // what fields are stored as, for what follows

	rules *fieldtype.Tree // fails: the records that these fields refuse …
	path  string          // … at this path or below; "": anywhere
	gone  string          // the records that have this path, as it is stored
	index *project.Index  // the records that share a key of this unique index

	search bool // the index of a search has to be built

	covered string // a collection whose records come out of reach; "": none
	hidden  int64  // how many these are

	found   int64
	samples []string
	seen    map[[16]byte]string // the first record with a key
	noted   map[string]bool
	full    bool // there are more keys than are kept
}

const (
	maxSamples = 10
	maxKeys    = 250_000 // of unique indexes that are kept in memory
	maxProduct = 1000    // keys of one record
)

// errFull ends a look at records for which there is no room.
var errFull = errors.New("there are more keys than are compared")

// count finds out what the items ask of the records: one collection after the other, each read once at most, and all
// within one time. What there is no time for is told, and taken for the worst.
func count(ctx context.Context, items []*item, o Options) error {
	byCollection := map[string][]*item{}
	var names []string
	for _, it := range items {
		if it.test == nil {
			continue
		}
		if byCollection[it.test.collection] == nil {
			names = append(names, it.test.collection)
		}
		byCollection[it.test.collection] = append(byCollection[it.test.collection], it)
	}
	if len(names) == 0 {
		return nil
	}
	if o.Records == nil {
		for _, it := range items {
			if it.test != nil {
				it.uncounted("records are not counted")
			}
		}
		return nil
	}
	slices.Sort(names)
	box, cancel := context.WithTimeout(ctx, o.Box)
	defer cancel()
	for _, name := range names {
		if err := countIn(ctx, box, name, byCollection[name], o); err != nil {
			return err
		}
	}
	return nil
}

// countIn asks one collection. ctx is that of the caller; box ends when the time is over.
func countIn(ctx, box context.Context, name string, items []*item, o Options) error {
	ended := func(err error) bool { // by the time, not by the caller or a failure
		return ctx.Err() == nil && (errors.Is(err, errFull) || box.Err() != nil && errors.Is(err, context.DeadlineExceeded))
	}
	total, err := o.Records.Count(box, name)
	if err != nil {
		if !ended(err) {
			return err
		}
		for _, it := range items {
			it.uncounted("there was no time to count records")
		}
		return nil
	}
	var looked int64
	partial := false
	if total > 0 && slices.ContainsFunc(items, func(it *item) bool { return it.test.reads() }) {
		err = o.Records.Each(box, name, func(record bson.Raw) error {
			looked++
			return look(record, items, o.Now)
		})
		if partial = ended(err); err != nil && !partial {
			return err
		}
	}
	for _, it := range items {
		if it.test.covered == "" {
			continue
		}
		switch it.test.hidden, err = o.Records.Count(box, it.test.covered); {
		case err != nil && !ended(err):
			return err
		case err != nil:
			it.Detail += "; there was no time to count those that the store has by the new name"
			it.raise(api.RiskDestructive)
		}
	}
	for _, it := range items {
		it.counted(max(total, looked), looked, partial && it.test.reads())
	}
	return nil
}

// reads says that the records themselves have to be looked at.
func (t *test) reads() bool {
	return t.rules != nil || t.gone != "" || t.index != nil && t.index.Unique
}

// look holds one record against every test.
func look(record bson.Raw, items []*item, now time.Time) error {
	id := idText(record)
	var problems map[*fieldtype.Tree][]string
	for _, it := range items {
		t := it.test
		switch {
		case t.rules != nil:
			found, done := problems[t.rules]
			if !done {
				var err error
				if found, err = failing(t.rules, t.names.Inverse().Document(record), now); err != nil {
					return err
				}
				if problems == nil {
					problems = map[*fieldtype.Tree][]string{}
				}
				problems[t.rules] = found
			}
			if slices.ContainsFunc(found, func(p string) bool { return isAt(p, t.path) }) {
				t.note(id)
			}
		case t.gone != "":
			if has(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: record}, strings.Split(t.gone, ".")) {
				t.note(id)
			}
		case t.index != nil && t.index.Unique:
			if t.keys(record, id); t.full {
				return errFull
			}
		}
	}
	return nil
}

// note counts a record, once.
func (t *test) note(id string) {
	if t.noted[id] {
		return
	}
	if t.index != nil { // what only looks at each record in turn never sees one twice
		t.noted[id] = true
	}
	t.found++
	if len(t.samples) < maxSamples {
		t.samples = append(t.samples, id)
	}
}

// failing gives the paths at which a record does not fit fields, without positions in lists.
func failing(tree *fieldtype.Tree, record bson.Raw, now time.Time) ([]string, error) {
	doc, err := document.Unmarshal(record)
	if err != nil {
		return nil, err
	}
	_, own := fieldtype.SplitSystem(doc)
	check := fieldtype.Check{Now: now}
	tree.Check(own, &check)
	var paths []string
	for _, p := range check.Problems {
		paths = append(paths, withoutPositions(p.Path))
	}
	return paths, nil
}

// withoutPositions gives the path of a field, of one in a record.
func withoutPositions(path string) string {
	segments := slices.DeleteFunc(strings.Split(path, "."), func(s string) bool { return strings.Trim(s, "0123456789") == "" })
	return strings.Join(segments, ".")
}

// isAt says that a path is another, or below it; the translations of a field are its values, too.
func isAt(path, at string) bool {
	if rest, ok := strings.CutPrefix(path, fieldtype.I18n+"."); ok {
		_, path, _ = strings.Cut(rest, ".")
	}
	return at == "" || path == at || strings.HasPrefix(path, at+".")
}

// has says that a value has something at a path, in a list in any of its elements.
func has(v bson.RawValue, path []string) bool {
	if len(path) == 0 {
		return v.Type != bson.TypeNull
	}
	if v.Type == bson.TypeEmbeddedDocument {
		inner, ok := document.Field(v.Value, path[0])
		return ok && has(inner, path[1:])
	}
	if v.Type == bson.TypeArray {
		for it := document.NewIter(v.Value); it.Next(); {
			if has(it.Value(), path) {
				return true
			}
		}
	}
	return false
}

// keys notes a record's keys in a unique index, and both records where two share one.
func (t *test) keys(record bson.Raw, id string) {
	if t.seen == nil {
		t.seen, t.noted = map[[16]byte]string{}, map[string]bool{}
	}
	root := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: record}
	keys, lacking := [][]byte{nil}, true
	for _, k := range t.index.Keys {
		values := keyValues(root, strings.Split(t.names.Path(k.Path), "."), nil)
		if len(values) > 0 {
			lacking = false
		} else {
			values = [][]byte{document.AppendKey(nil, bson.RawValue{Type: bson.TypeNull}, false)}
		}
		if len(keys)*len(values) > maxProduct {
			values = values[:1]
		}
		var joined [][]byte
		for _, key := range keys {
			for _, v := range values {
				joined = append(joined, append(slices.Clip(key), v...))
			}
		}
		keys = joined
	}
	if lacking && t.index.Sparse {
		return
	}
	for _, key := range keys {
		sum := sha256.Sum256(key)
		short := [16]byte(sum[:16])
		first, taken := t.seen[short]
		switch {
		case !taken && len(t.seen) >= maxKeys:
			t.full = true
			return
		case !taken:
			t.seen[short] = id
		case first != id: // a record may have one key twice
			t.note(first)
			t.note(id)
		}
	}
}

// keyValues gives the parts of keys that a value has at a path: of a list one for each element.
func keyValues(v bson.RawValue, path []string, out [][]byte) [][]byte {
	if v.Type == bson.TypeArray {
		n := 0
		for it := document.NewIter(v.Value); it.Next(); n++ {
			if inner := it.Value(); len(path) == 0 {
				out = append(out, document.AppendKey(nil, inner, false))
			} else {
				out = keyValues(inner, path, out)
			}
		}
		if n == 0 && len(path) == 0 {
			out = append(out, document.AppendUndefinedKey(nil, false))
		}
		return out
	}
	if len(path) == 0 {
		return append(out, document.AppendKey(nil, v, false))
	}
	if v.Type == bson.TypeEmbeddedDocument {
		if inner, ok := document.Field(v.Value, path[0]); ok {
			return keyValues(inner, path[1:], out)
		}
	}
	return out
}

func idText(record bson.Raw) string {
	v, _ := document.Field(record, "_id")
	if id, ok := v.ObjectIDOK(); ok {
		return id.Hex()
	}
	if s, ok := v.StringValueOK(); ok {
		return s
	}
	return v.String()
}

// counted writes down what was found.
func (it *item) counted(total, looked int64, partial bool) {
	t := it.test
	it.Records = &total
	if t.reads() {
		it.Failing, it.Samples = &t.found, t.samples
	}
	told := fmt.Sprintf("%d of %d", t.found, total)
	if partial {
		it.Looked = &looked
		told = fmt.Sprintf("at least %d of %d records, of which %d were looked at, ", t.found, total, looked)
	} else if t.reads() {
		told += " records "
	}
	some := t.found > 0 || partial // what was not looked at may well be
	switch {
	case t.rules != nil:
		it.Detail += "; " + told + "fail"
		if it.Kind == "collection" && it.Action == api.PlanCreate && total > 0 {
			it.Detail += "; they are of an earlier config, and in reach again"
			some = true
		}
		if some {
			it.raise(api.RiskBreaking)
		}
	case t.gone != "":
		it.goes(told, some)
	case t.index != nil:
		it.Detail += fmt.Sprintf("; records: %d", total)
		if total > 0 {
			it.raise(api.RiskSlow)
		}
		if t.index.Unique {
			it.Detail += "; " + told + "share a value"
			if some {
				it.raise(api.RiskBreaking)
			}
		}
	case t.search:
		it.Detail += fmt.Sprintf("; records: %d", total)
		if total > 0 {
			it.raise(api.RiskSlow)
		}
	default: // a collection that goes, or comes back
		it.Detail += fmt.Sprintf("; records: %d", total)
		if total > 0 && it.Action == api.PlanDelete {
			it.raise(api.RiskDestructive)
		}
		if t.hidden > 0 {
			it.Detail += fmt.Sprintf("; out of reach are then those that the store has by the new name from an earlier config: %d", t.hidden)
			it.raise(api.RiskDestructive)
		}
	}
}

// goes tells how many records have what goes out of reach.
func (it *item) goes(told string, some bool) {
	if some {
		it.raise(api.RiskDestructive)
	}
	switch {
	case it.Action != api.PlanRename:
		it.Detail += "; " + told + "have it"
	case some:
		it.Detail += "; " + told + "have something by the new name from an earlier config, which is out of reach then"
	}
}

// uncounted takes the worst for what there was no time to ask.
func (it *item) uncounted(why string) {
	it.Looked = new(int64)
	it.Detail += "; " + why
	switch {
	case it.test.gone != "", it.test.covered != "", it.Action == api.PlanDelete && it.Kind == "collection":
		it.raise(api.RiskDestructive)
	case it.test.search:
		it.raise(api.RiskSlow)
	default:
		it.raise(api.RiskBreaking)
	}
}
