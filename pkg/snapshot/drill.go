package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// DrillResult is how a drill has ended.
type DrillResult struct {
	At       time.Time
	Records  int64 // that came back
	Bytes    int64
	Files    int64     // of records, that were read
	Problems int64     // 0: the snapshot can be restored
	Found    []Finding // the first hundred of them
}

// found notes something that is wrong; what a check has named already is not counted twice.
func (r *DrillResult) found(f Finding) {
	if slices.ContainsFunc(r.Found, func(known Finding) bool { return known.Path == f.Path }) {
		return
	}
	if r.Problems++; len(r.Found) < maxWarnings {
		r.Found = append(r.Found, f)
	}
}

// Drill restores a snapshot into a database that is made for that, looks whether what is there then is what the snapshot has, reads the
// files of its records, and removes the database. What is wrong with the snapshot is no error: where something is, all of it is checked as
// Verify does, which notes it, and what is not damaged is restored all the same. One drill of a project goes on at a time (ErrBusy); nothing
// else waits for it.
func (s *Snapshots) Drill(ctx context.Context, p *project.Project, id string, report Report) (result DrillResult, err error) {
	t := newTracker(report)
	from, err := s.openSide(p, id)
	if err != nil {
		if errs.From(err).Code == ErrDamaged.Code {
			result.At = millisecond(s.o.Now())
			return result, s.drillDamaged(ctx, p, id, &result, err, t)
		}
		return DrillResult{}, err
	}
	defer from.close()
	err = s.aloneIn(ctx, p.Namespace, drillLease, func(ctx context.Context) error {
		if err := s.sweepDrills(ctx, p); err != nil {
			return err
		}
		result, err = s.drill(ctx, p, from, t)
		if err == nil && result.Problems == 0 && readState(from.root, from.at).Damage != nil { // of before: it may be mended
			_, err = s.verifyWith(ctx, p, id, 0, t)
		}
		return err
	})
	return result, ended(ctx, err)
}

// Scratch databases are noted before they are made, so that those of a process that dies are removed.
const (
	drillLease  = "drills"
	scratchMark = "drill." // begins the ids of the notes
	scratchBase = "svc-drill-"
)

// IsScratch says that a database is one that a drill restores into.
func IsScratch(database string) bool { return strings.HasPrefix(database, scratchBase) }

func (s *Snapshots) drill(ctx context.Context, p *project.Project, from *savedSide, t *tracker) (result DrillResult, err error) {
	short := strings.ToLower(rand.Text()[:12])
	name := scratchBase + short
	note, err := bson.Marshal(bson.D{{Key: "_id", Value: scratchMark + short}, {Key: "database", Value: name}})
	if err != nil {
		return result, errs.Wrap(err, "note a drill")
	}
	if err := store.WriteAll(ctx, s.journals(p), store.Op{Kind: store.Insert, Doc: note}); err != nil {
		return result, err
	}
	defer func() {
		if left := s.dropScratch(context.WithoutCancel(ctx), p, scratchMark+short, name); err == nil {
			err = left
		}
	}()
	r := &restore{
		s: s, from: from, t: t, short: short, trial: true, raw: s.o.Store.Database(name), o: RestoreOptions{Mode: Replace, Media: true},
		p: &project.Project{Namespace: from.m.Namespace, Revision: from.m.Revision},
	}
	result.At = millisecond(s.o.Now())
	for _, step := range []func(context.Context) error{r.plan, r.check} {
		switch err := step(ctx); {
		case err == nil:
			continue
		case errs.From(err).Code != ErrDamaged.Code:
			return result, err
		default:
			if err := s.drillDamaged(ctx, p, from.m.ID, &result, err, t); err != nil {
				return result, err
			}
		}
		break // without a plan there is nothing to load, and the check is the last one
	}
	if result.Problems == 0 { // else not all were read
		result.Files = int64(len(r.media))
	}
	for _, one := range r.parts {
		if err := s.drillPart(ctx, r, one, &result); err != nil {
			return result, err
		}
	}
	return result, nil
}

// drillPart restores a collection whose file is whole.
func (s *Snapshots) drillPart(ctx context.Context, r *restore, one *part, result *DrillResult) error {
	file := r.from.m.exportOf(one.col)
	if slices.ContainsFunc(result.Found, func(f Finding) bool { return f.Path == file || f.Path == indexesFile }) {
		return nil
	}
	if one.shadow != "" {
		err := r.loadPart(ctx, one)
		switch e := errs.From(err); {
		case err == nil:
		case e.Code == ErrDamaged.Code, e.Code == errDiffers.Code, e.Code == errViolates.Code:
			text := strings.TrimPrefix(strings.TrimPrefix(e.Message, ErrDamaged.Message+": "), file+": ")
			result.found(Finding{Path: file, Text: text})
			return nil
		default:
			return err
		}
		if err := r.raw.RenameCollection(ctx, one.shadow, one.stored(), false); err != nil {
			return err
		}
	}
	result.Records += one.out.Records
	result.Bytes += one.out.Bytes
	return nil
}

// drillDamaged has all damage of a snapshot found, of which a drill has come upon the first.
func (s *Snapshots) drillDamaged(ctx context.Context, p *project.Project, id string, result *DrillResult, first error, t *tracker) error {
	v, err := s.verifyWith(ctx, p, id, 0, t)
	if err != nil {
		return err
	}
	result.Problems, result.Found = v.Problems, slices.Clone(v.Found)
	text := strings.TrimPrefix(errs.From(first).Message, ErrDamaged.Message+": ")
	if name, rest, ok := strings.Cut(text, ": "); ok {
		result.found(Finding{Path: name, Text: rest})
	} else if result.Problems == 0 {
		result.found(Finding{Path: manifestFile, Text: text})
	}
	return nil
}

func (s *Snapshots) dropScratch(ctx context.Context, p *project.Project, note, database string) error {
	if !IsScratch(database) { // somebody else has written the note
		return errs.Wrap(errors.New("the note of a drill names the database "+database), "remove what a drill has left")
	}
	if err := s.o.Store.DropDatabase(ctx, database); err != nil {
		return err
	}
	err := store.WriteAll(ctx, s.journals(p), store.Op{Kind: store.Delete, ID: store.Name(note)})
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	return err
}

// sweepDrills removes what drills have left that were ended by a crash.
func (s *Snapshots) sweepDrills(ctx context.Context, p *project.Project) error {
	left := map[string]string{}
	notes := mql.MustCompile(bson.D{{Key: "database", Value: bson.D{{Key: "$exists", Value: true}}}})
	err := s.journals(p).Find(ctx, store.Query{Filter: notes}, func(doc bson.Raw) error {
		id, _ := doc.Lookup("_id").StringValueOK()
		left[id], _ = doc.Lookup("database").StringValueOK()
		return nil
	})
	for id, database := range left {
		if err == nil {
			err = s.dropScratch(ctx, p, id, database)
		}
	}
	return err
}
