package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
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

// Drill restores a snapshot into a database that is made for that, looks whether what is there then is what the snapshot has, reads the
// files of its records, and removes the database. What is wrong with the snapshot is no error. One drill of a project goes on at a time
// (ErrBusy); nothing else waits for it.
func (s *Snapshots) Drill(ctx context.Context, p *project.Project, id string, report Report) (result DrillResult, err error) {
	from, err := s.openSide(p, id)
	if err != nil {
		if e := errs.From(err); e.Code == ErrDamaged.Code {
			return s.drillFound(DrillResult{}, err), nil
		}
		return DrillResult{}, err
	}
	defer from.close()
	err = s.aloneIn(ctx, p.Namespace, drillLease, func(ctx context.Context) error {
		if err := s.sweepDrills(ctx, p); err != nil {
			return err
		}
		result, err = s.drill(ctx, p, from, newTracker(report))
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
		s: s, from: from, t: t, short: short, raw: s.o.Store.Database(name), o: RestoreOptions{Mode: Replace, Media: true},
		p: &project.Project{Namespace: from.m.Namespace, Revision: from.m.Revision},
	}
	result.At = millisecond(s.o.Now())
	for _, step := range []func(context.Context) error{r.plan, r.check, r.load} {
		err := step(ctx)
		switch code := errs.From(err); {
		case err == nil:
		case code.Code == ErrDamaged.Code, code.Code == errDiffers.Code, code.Code == errViolates.Code:
			return s.drillFound(result, err), nil
		default:
			return result, err
		}
	}
	result.Files = int64(len(r.media))
	for _, one := range r.parts {
		if one.shadow != "" {
			if err := r.raw.RenameCollection(ctx, one.shadow, one.stored(), false); err != nil {
				return result, err
			}
		}
		result.Records += one.out.Records
		result.Bytes += one.out.Bytes
	}
	return result, nil
}

func (s *Snapshots) drillFound(result DrillResult, err error) DrillResult {
	if result.At.IsZero() {
		result.At = millisecond(s.o.Now())
	}
	text := strings.TrimPrefix(errs.From(err).Message, ErrDamaged.Message+": ")
	name, _, _ := strings.Cut(text, ": ")
	result.Problems++
	result.Found = append(result.Found, Finding{Path: name, Text: text})
	return result
}

func (s *Snapshots) dropScratch(ctx context.Context, p *project.Project, note, database string) error {
	if !strings.HasPrefix(database, scratchBase) { // somebody else has written the note
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
