package snapshot

import (
	"context"
	"errors"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/fieldnames"
)

// side is one of the two that are compared: collections by name.
type side interface {
	// names gives those that it has, sorted, and how many records they have about.
	names() (names []string, documents int64)
	// covers says whether the side would have a collection if there were one of that name.
	covers(name string) bool
	// records opens one; of one that it does not have, there are none. Whoever has read them calls end.
	records(ctx context.Context, name string) (r records, end func(), err error)
	// hasFiles says whether the side has files of records, or may have them.
	hasFiles() bool
	// files gives those that a record of a collection names, and whether they are there.
	files(ctx context.Context, name string, doc bson.Raw) ([]sideFile, error)
}

// savedSide is a snapshot.
type savedSide struct {
	*opened

	m         *Manifest
	differing map[string]string // see Manifest.differing; nil: not asked for yet
}

func (s *Snapshots) openSide(p *project.Project, id string) (*savedSide, error) {
	o, err := s.open(p, id)
	if err != nil {
		return nil, err
	}
	m, err := o.manifest()
	if err != nil {
		o.close()
		return nil, err
	}
	return &savedSide{opened: o, m: m}, nil
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

func (s *savedSide) covers(name string) bool {
	return s.m.collection(name) != nil || (&Profile{Only: s.m.Only, Without: s.m.Without}).takes(name)
}

type noRecords struct{}

func (noRecords) next() (bson.Raw, error) { return nil, io.EOF }

// liveSide is what is stored, as a snapshot would have it.
type liveSide struct {
	liveFiles

	p       *project.Project
	view    store.View
	now     store.Database // where the records are by now
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
	out := &liveSide{liveFiles: liveFiles{library: s.o.Media}, p: p, view: view, now: db, sources: map[string]source{}}
	for _, src := range list {
		out.sources[src.name] = src
		out.count += src.est.Documents
	}
	return out, nil
}

func (l *liveSide) close() { _ = l.view.Close() } // it was only read

func (l *liveSide) covers(string) bool { return true }

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
