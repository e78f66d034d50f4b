package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// CompareOptions say what is compared with a snapshot.
type CompareOptions struct {
	With        string   // the id of another snapshot of the project; "": what is stored now
	Collections []string // none: all that either side has
	Limit       int      // how many of the records that differ are told of each collection; 0: they are counted only
	Report      Report
}

// Diff is what became of the records of one side on the other one.
type Diff struct {
	Collections []CollectionDiff // by name
}

// Kind of a difference.
type Kind string

// The kinds. Of a collection Added and Removed say that one side has it alone.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// CollectionDiff is that of one collection. It counts records.
type CollectionDiff struct {
	Name    string
	Kind    Kind // Added or Removed: one side alone has the collection; "": both do
	Added   int64
	Removed int64
	Changed int64
	Same    int64
	Records []RecordDiff // the first of those that differ, in the order of their ids
}

// RecordDiff is that of a record.
type RecordDiff struct {
	ID    string // of an ObjectID its hex, else canonical Extended JSON
	Kind  Kind
	Paths []string // Changed: where it differs, the first 20; "" for the order of fields
	More  bool     // there are more of them
}

// Compare tells what has become of the records of a snapshot in another one, or by now: Added are those that the snapshot does not have.
// What is stored now is read as it is at one moment, for which there are a few minutes (see store.Database.View).
func (s *Snapshots) Compare(ctx context.Context, p *project.Project, id string, o CompareOptions) (Diff, error) {
	before, err := s.openSide(p, id)
	if err != nil {
		return Diff{}, err
	}
	defer before.close()
	var after side
	if o.With != "" {
		other, err := s.openSide(p, o.With)
		if err != nil {
			return Diff{}, err
		}
		defer other.close()
		after = other
	} else {
		live, err := s.liveSide(ctx, p)
		if err != nil {
			return Diff{}, ended(ctx, err)
		}
		defer live.close()
		after = live
	}
	c := &comparison{limit: o.Limit, t: newTracker(o.Report)}
	diff, err := c.sides(ctx, before, after, o.Collections)
	return diff, ended(ctx, err)
}

// side is one of the two that are compared: collections by name.
type side interface {
	// names gives those that it has, sorted, and how many records they have about.
	names() (names []string, documents int64)
	// records opens one; of one that it does not have, there are none. Whoever has read them calls end.
	records(ctx context.Context, name string) (r records, end func(), err error)
}

// savedSide is a snapshot.
type savedSide struct {
	*opened

	m *Manifest
}

func (s *Snapshots) openSide(p *project.Project, id string) (*savedSide, error) {
	o, err := s.open(p, id)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(o.dir)
	if err != nil {
		o.close()
		return nil, err
	}
	return &savedSide{o, m}, nil
}

func (s *savedSide) names() (names []string, documents int64) {
	for i := range s.m.Collections {
		names = append(names, s.m.Collections[i].Name)
		documents += s.m.Collections[i].Documents
	}
	slices.Sort(names)
	return names, documents
}

func (s *savedSide) records(ctx context.Context, name string) (records, func(), error) {
	c := s.m.collection(name)
	if c == nil {
		return noRecords{}, func() {}, nil
	}
	r, err := openExport(ctx, s.dir, s.m, c)
	if err != nil {
		return nil, nil, err
	}
	return r, r.close, nil
}

type noRecords struct{}

func (noRecords) next() (bson.Raw, error) { return nil, io.EOF }

// liveSide is what is stored, as a snapshot would have it.
type liveSide struct {
	p       *project.Project
	view    store.View
	sources map[string]source
	count   int64
}

func (s *Snapshots) liveSide(ctx context.Context, p *project.Project) (*liveSide, error) {
	db := fieldnames.Wrap(s.o.Store.Database(project.DatabaseName(p.Namespace)), p.FieldNames)
	view, err := db.View(ctx)
	if err != nil {
		return nil, err
	}
	c := &creation{s: s, p: p, tracker: newTracker(nil)}
	list, err := c.sources(ctx, db, view)
	if err != nil {
		_ = view.Close() // it was only read
		return nil, err
	}
	out := &liveSide{p: p, view: view, sources: map[string]source{}}
	for _, src := range list {
		out.sources[src.name] = src
		out.count += src.est.Documents
	}
	return out, nil
}

func (l *liveSide) close() { _ = l.view.Close() } // it was only read

func (l *liveSide) names() (names []string, documents int64) {
	for name := range l.sources {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, l.count
}

func (l *liveSide) records(ctx context.Context, name string) (records, func(), error) {
	end := func() {}
	src, ok := l.sources[name]
	if !ok {
		return noRecords{}, end, nil
	}
	from := &storeRecords{ctx: ctx, from: l.view.Collection(src.config.StoredName())}
	return &readdressing{from, l.p.Namespace, src.config}, end, nil
}

// readdressing gives records with the addresses that their files have by the names of the config, as a snapshot has them.
type readdressing struct {
	from      records
	namespace string
	config    *project.Collection
}

func (r *readdressing) next() (bson.Raw, error) {
	doc, err := r.from.next()
	if err != nil {
		return nil, err
	}
	v, _ := document.Field(doc, "_id")
	id, ok := v.ObjectIDOK()
	if !ok {
		return doc, nil
	}
	return withAddresses(doc, r.config.FileAddresses(r.namespace, id).Current), nil
}

// comparison compares two sides.
type comparison struct {
	limit  int
	merged bool // what the second side does not have stays as it is on the first one
	t      *tracker
}

// sides compares all collections that either side has, or those that are named; of these one side has to have each.
func (c *comparison) sides(ctx context.Context, before, after side, only []string) (Diff, error) {
	was, documents := before.names()
	is, others := after.names()
	names := slices.Concat(was, is)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range only {
		if !slices.Contains(names, name) {
			return Diff{}, noCollection(name)
		}
	}
	c.t.begin(Comparing, max(documents, others), 0)
	diff := Diff{Collections: []CollectionDiff{}}
	for _, name := range names {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		c.t.at(name)
		one, err := c.collection(ctx, name, before, after)
		if err != nil {
			return Diff{}, err
		}
		switch {
		case !slices.Contains(was, name):
			one.Kind = Added
		case !slices.Contains(is, name) && !c.merged:
			one.Kind = Removed
		}
		diff.Collections = append(diff.Collections, one)
	}
	c.t.tell()
	return diff, nil
}

func noCollection(name string) error {
	return errs.New(errs.NotFound, "collection_not_found", "there is no collection %q in it", name)
}

func (c *comparison) collection(ctx context.Context, name string, before, after side) (out CollectionDiff, err error) {
	out.Name = name
	a, endA, err := before.records(ctx, name)
	if err != nil {
		return out, err
	}
	defer endA()
	b, endB, err := after.records(ctx, name)
	if err != nil {
		return out, err
	}
	defer endB()
	err = together(a, b, func(was, is bson.Raw) error {
		c.t.done(1, 0)
		c.record(&out, was, is)
		return nil
	})
	return out, err
}

// record counts one record, which one of the sides may lack.
func (c *comparison) record(out *CollectionDiff, was, is bson.Raw) {
	one := RecordDiff{Kind: Changed}
	switch {
	case was == nil:
		one.Kind = Added
		out.Added++
	case is == nil && c.merged, bytes.Equal(was, is):
		out.Same++
		return
	case is == nil:
		one.Kind = Removed
		out.Removed++
	default:
		out.Changed++
	}
	if len(out.Records) >= c.limit {
		return
	}
	if one.Kind == Changed {
		one.Paths, one.More = changedPaths(was, is)
	}
	doc := is
	if doc == nil {
		doc = was
	}
	id, _ := document.Field(doc, "_id")
	one.ID = textOfID(id)
	out.Records = append(out.Records, one)
}

// textOfID says which record it is.
func textOfID(id bson.RawValue) string {
	if hex, ok := id.ObjectIDOK(); ok {
		return hex.Hex()
	}
	const name = "_id"
	doc := document.Close(document.AppendElement(make([]byte, 4), []byte(name), id), 0)
	text := document.AppendExtended(nil, doc)
	if inner, ok := bytes.CutPrefix(text, []byte(`{"`+name+`":`)); ok {
		return string(bytes.TrimSuffix(inner, []byte("}")))
	}
	return string(text)
}

// together calls fn for each id that either has, in their order, with the documents of both; nil where there is none.
func together(a, b records, fn func(a, b bson.Raw) error) error {
	left, right := &ahead{from: a}, &ahead{from: b}
	for {
		if err := errors.Join(left.look(), right.look()); err != nil {
			return err
		}
		order := 0
		switch {
		case left.doc == nil && right.doc == nil:
			return nil
		case left.doc == nil:
			order = 1
		case right.doc == nil:
			order = -1
		default:
			order = document.Compare(left.id, right.id)
		}
		var err error
		switch {
		case order < 0:
			err = fn(left.take(), nil)
		case order > 0:
			err = fn(nil, right.take())
		default:
			err = fn(left.take(), right.take())
		}
		if err != nil {
			return err
		}
	}
}

// ahead looks at the next document.
type ahead struct {
	from  records
	doc   bson.Raw // nil: at the end, or it was taken
	id    bson.RawValue
	ended bool
}

func (a *ahead) look() error {
	if a.doc != nil || a.ended {
		return nil
	}
	doc, err := a.from.next()
	if errors.Is(err, io.EOF) {
		a.ended = true
		return nil
	}
	a.doc = doc
	a.id, _ = document.Field(doc, "_id")
	return err
}

func (a *ahead) take() bson.Raw {
	doc := a.doc
	a.doc = nil
	return doc
}
