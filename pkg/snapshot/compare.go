package snapshot

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
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

// The kinds. Of a collection Added and Removed say that one side has it alone, and Uncovered that one side was not taken of it: it is not compared.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"

	Uncovered Kind = "uncovered"
)

// CollectionDiff is that of one collection. It counts records.
type CollectionDiff struct {
	Name    string
	Kind    Kind // Added or Removed: one side alone has the collection; Uncovered: it is not compared; "": both have it
	Added   int64
	Removed int64
	Changed int64
	Same    int64
	Records []RecordDiff // the first of those that differ, in the order of their ids

	Files     int64      // of records that both sides have, whether they are the same or not
	FileDiffs []FileDiff // the first of them
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

// comparison compares two sides.
type comparison struct {
	limit  int
	merged bool // records that the second side does not have stay as they are on the first one
	t      *tracker

	restored bool // so do files: the second side is what a restore brings
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
		if !c.merged && !(before.covers(name) && after.covers(name)) {
			if len(only) > 0 {
				return Diff{}, noCollection(name)
			}
			diff.Collections = append(diff.Collections, CollectionDiff{Name: name, Kind: Uncovered})
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
	return errs.New(errs.NotFound, "collection_not_found", "the snapshot has no collection %q: look at the snapshot for those that it has", name)
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
		if was == nil || is == nil {
			return nil
		}
		return c.files(ctx, &out, before, after, was, is)
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
