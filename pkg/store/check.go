package store

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
)

// What every adapter refuses, before it looks at what is stored.

// MaxIndexKeys is how many keys an index can have.
const MaxIndexKeys = 32

// MaxSortFields is how many fields a sort can have.
const MaxSortFields = 32

// maxPathNames is how many names a path can have: documents are no deeper.
const maxPathNames = 100

// MaxIndexes is how many indexes a collection can have beside the one on _id.
const MaxIndexes = 63

// CheckDatabaseName refuses what can't be the name of a database (ErrBadName).
func CheckDatabaseName(name string) error {
	ok := name != "" && len(name) <= 60 && name != "admin" && name != "local" && name != "config"
	for i := 0; ok && i < len(name); i++ { // every operation comes by here: no regular expression
		c := name[i]
		ok = 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
	}
	if !ok {
		return ErrBadName
	}
	return nil
}

// CheckCollectionName refuses what can't be the name of a collection (ErrBadName).
func CheckCollectionName(name string) error {
	if name == "" || len(name) > 120 || strings.ContainsAny(name, "$ \x00") || !utf8.ValidString(name) ||
		strings.HasPrefix(name, "system.") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return ErrBadName
	}
	return nil
}

// CheckRenames refuses renames in which a name comes twice (ErrBadName).
func CheckRenames(renames []Rename) error {
	seen := map[string]bool{}
	for _, r := range renames {
		for _, name := range []string{r.From, r.To} {
			if seen[name] {
				return ErrBadName
			}
			seen[name] = true
		}
	}
	return nil
}

// IsBookkeeping says whether a collection is one that is not listed, and that no feed tells of.
func IsBookkeeping(collection string) bool { return strings.HasPrefix(collection, "svc.") }

// CheckID refuses what can't be an _id (ErrBadID).
func CheckID(id bson.RawValue) error {
	switch id.Type { //nolint:exhaustive // all others can
	case 0, bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return ErrBadID
	}
	if !document.WellFormed(id) || document.OperatorName(id) != nil {
		return ErrBadID
	}
	return nil
}

// CheckPath refuses what can't lead to a field (ErrBadPath).
func CheckPath(path string) error {
	if !plainText(path) || strings.Count(path, ".") >= maxPathNames {
		return ErrBadPath
	}
	for more := true; more; {
		var name string
		if name, path, more = strings.Cut(path, "."); name == "" || name[0] == '$' {
			return ErrBadPath
		}
	}
	return nil
}

func checkSort(s mql.Sort) error {
	if len(s) > MaxSortFields {
		return ErrBadSort
	}
	for i := range s {
		if CheckPath(s[i].Path) != nil {
			return ErrBadSort
		}
	}
	return nil
}

// Check refuses an op whose parts don't go together, or can't be stored (ErrBadWrite, ErrBadSort, ErrBadDocument,
// ErrDocumentSize, ErrBadID).
func (o *Op) Check() error {
	if !o.combines() {
		return ErrBadWrite
	}
	if err := checkSort(o.Sort); err != nil {
		return err
	}
	if o.Kind == Insert || o.Kind == Replace {
		if len(o.Doc) > document.MaxSize {
			return ErrDocumentSize
		}
		if err := o.checkDoc(); err != nil {
			return err
		}
	}
	id := o.TargetID()
	if o.Filter != nil && (id.Type == 0 || o.Kind != Replace) {
		return nil
	}
	return CheckID(id)
}

func (o *Op) checkDoc() error {
	if document.TooDeep(o.Doc) || !document.WellFormed(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: o.Doc}) {
		return ErrBadDocument
	}
	hasID := false
	for it := document.NewIter(o.Doc); it.Next(); {
		switch name := it.Key(); {
		case string(name) == "_id":
			if hasID {
				return ErrBadDocument
			}
			hasID = true
		case o.Kind == Replace && len(name) > 0 && name[0] == '$': // a server takes it for an update
			return ErrBadDocument
		}
	}
	return nil
}

// TargetID is the _id that the op names: that of Doc of an Insert or Replace, else ID. Its Type is 0 if there is none.
func (o *Op) TargetID() bson.RawValue {
	if o.Kind == Insert || o.Kind == Replace {
		id, _ := document.Lookup(o.Doc, "_id")
		return id
	}
	return o.ID
}

func (o *Op) combines() bool {
	changes := o.Kind == Replace || o.Kind == Update
	switch {
	case o.Kind < Insert || o.Kind > Update,
		(o.Kind == Update) != (o.Update != nil),
		o.Kind == Insert && (o.Filter != nil || o.If != nil),
		o.Filter != nil && o.If != nil,
		o.Filter == nil && (o.Many || len(o.Sort) > 0),
		o.Many && (o.Kind == Replace || len(o.Sort) > 0 || o.Return != ReturnNone),
		o.Upsert && (!changes || o.If != nil || o.Many),
		o.Return == ReturnAfter && o.Project.Positional(), // the filter has matched the document before
		o.Return == ReturnAfter && o.Kind == Delete:
		return false
	}
	return true
}

// Check refuses a query by what can't be sorted by (ErrBadSort), and one whose After does not fit its Sort, or has a
// value in it that is none (ErrBadPage). The zero value stands for null.
func (q *Query) Check() error {
	if len(q.After) > 0 && len(q.After) != len(q.Sort) {
		return ErrBadPage
	}
	for _, v := range q.After {
		if missing := v.Type == 0 && len(v.Value) == 0; !missing && !document.WellFormed(v) {
			return ErrBadPage
		}
	}
	return checkSort(q.Sort)
}

// Check refuses a definition that no index can have (ErrBadIndex, or what mql.CheckPartial says).
func (i Index) Check() error {
	if !plainText(i.Name) || i.Name == "*" || strings.HasPrefix(i.Name, "_id") ||
		len(i.Keys) == 0 || len(i.Keys) > MaxIndexKeys || (len(i.Keys) == 1 && i.Keys[0].Path == "_id") {
		return ErrBadIndex
	}
	for n, k := range i.Keys {
		same := func(o IndexKey) bool { return o.Path == k.Path }
		if CheckPath(k.Path) != nil || slices.ContainsFunc(i.Keys[:n], same) {
			return ErrBadIndex
		}
	}
	switch e := i.ExpireAfter; {
	case e < 0, e%time.Second != 0, e > math.MaxInt32*time.Second, e > 0 && len(i.Keys) != 1, i.Sparse && i.Partial != nil:
		return ErrBadIndex
	default:
		return mql.CheckPartial(i.Partial)
	}
}

func plainText(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
