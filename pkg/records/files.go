package records

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// filing is what becomes of the files of a write. They are in place before its records are written, so that no record ever
// names one that is not there, and go when it is certain that these were not. What records name no more goes behind the
// write. Where it is not certain, such as when a store could not be asked, files stay until they are swept.
//
// A write that is part of a transaction waits for the end of that.
type filing struct {
	s       *Service
	call    *Call
	ctx     context.Context //nolint:containedctx // of the write; its end comes behind that of a transaction
	records map[bson.ObjectID]*recordFiles
	brought int   // files that data URLs have brought, of bodies and of hooks
	size    int64 // their bytes
}

// recordFiles is that of one record.
type recordFiles struct {
	staged  []*media.Staged
	placed  knownFiles          // in place, for this write
	sent    map[sentFile]bson.D // what was received already: a write can start over
	refused map[string]bool     // by src: what is wrong with it has been said
	unnamed map[string]bool     // by src: it came without a path

	tried bool    // the record may have been written
	done  *change // as it was written; nil: it was not, as far as we know
}

// cleanUpTime bounds the clean-up behind a write, which goes on without its caller.
const cleanUpTime = time.Minute

// warnFilesLeft is the warning of a delete, to the letter.
const warnFilesLeft = "the document was deleted but file cleanup partially failed"

// beginFiles begins a write, which ends with end; a second end does nothing.
func (s *Service) beginFiles(ctx context.Context, c *Call) (end func()) {
	if len(c.Collection.Uploads.Fields) == 0 || c.filing != nil {
		return func() {}
	}
	f := &filing{s: s, call: c, ctx: context.WithoutCancel(ctx), records: map[bson.ObjectID]*recordFiles{}}
	c.filing, c.left = f, nil
	return func() {
		if c.filing != f {
			return
		}
		c.filing = nil
		switch x := sessionOf(ctx, c.Project.Namespace); {
		case c.DryRun:
			f.undo()
		case x != nil:
			x.files = append(x.files, f)
		default:
			c.left = f.finish()
		}
	}
}

// of gives what is kept for a record.
func (f *filing) of(id bson.ObjectID) *recordFiles {
	rf := f.records[id]
	if rf == nil {
		rf = &recordFiles{placed: knownFiles{}, sent: map[sentFile]bson.D{}, refused: map[string]bool{}, unnamed: map[string]bool{}}
		f.records[id] = rf
	}
	return rf
}

// recordOf is the id of the record that a change is to.
func recordOf(ch change) bson.ObjectID {
	if ch.before != nil {
		return idOf(ch.before)
	}
	return idOf(ch.Doc)
}

// trying notes that changes are about to be written.
func (f *filing) trying(changes []change) {
	if f == nil {
		return
	}
	for _, ch := range changes {
		rf := f.of(recordOf(ch))
		rf.tried, rf.done = true, nil
	}
}

// wrote notes what became of changes.
func (f *filing) wrote(changes []change, results []store.Result, err error) {
	if f == nil || err != nil {
		return
	}
	for i, ch := range changes {
		rf := f.of(recordOf(ch))
		switch {
		case i < len(results) && results[i].Err != nil:
			rf.tried = false
		default:
			rf.done = &ch
		}
	}
}

// unwritten notes that a change which was written has been rolled back with what was around it, or may have been.
func (f *filing) unwritten(changes ...change) {
	if f == nil {
		return
	}
	for _, ch := range changes {
		f.of(recordOf(ch)).done = nil
	}
}

// giveUp is the end of a write in a transaction of which it is not known what became of it.
func (f *filing) giveUp() {
	for _, rf := range f.records {
		for _, st := range rf.staged {
			rf.end(st)
		}
	}
}

// end keeps a file whose record may be there. If it is not, the file is swept.
func (rf *recordFiles) end(st *media.Staged) {
	if rf.tried {
		st.Keep()
	} else {
		st.Discard()
	}
}

// undo removes what was put in place.
func (f *filing) undo() {
	for _, rf := range f.records {
		for _, st := range rf.staged {
			st.Discard()
		}
	}
}

// finish keeps the files of the records that were written, and cleans up. It gives what could not be removed of records that
// were deleted.
func (f *filing) finish() (left map[bson.ObjectID]error) {
	ctx, cancel := context.WithTimeout(f.ctx, cleanUpTime)
	defer cancel()
	for id, rf := range f.records {
		for _, st := range rf.staged {
			rf.end(st)
		}
		if rf.done == nil || rf.done.before == nil && len(rf.placed) == 0 {
			continue
		}
		err := f.cleanUp(ctx, id, *rf.done) // the log has it
		if err == nil || rf.done.Kind != store.Delete {
			continue
		}
		if left == nil {
			left = map[bson.ObjectID]error{}
		}
		left[id] = err
	}
	return left
}

// cleanUp removes the files that a record named before a change and does not now, and those that came with the change and
// that a hook took out of it.
func (f *filing) cleanUp(ctx context.Context, id bson.ObjectID, ch change) error {
	gone := f.call.gone(id, ch.before, ch.Doc, f.records[id].placed)
	if ch.Kind != store.Delete && len(gone) == 0 {
		return nil
	}
	files, err := f.s.filesOf(f.call.Project)
	if err != nil {
		return err
	}
	live, dir := f.s.LiveFiles(f.call.Project), f.call.Collection.Uploads.Dir
	if ch.Kind == store.Delete {
		return files.RemoveRecord(ctx, dir, id.Hex(), live)
	}
	return files.Remove(ctx, dir, id.Hex(), gone, live)
}

// gone lists the files that a record named and names no more, and those of placed that it does not name.
func (c *Call) gone(id bson.ObjectID, before, after bson.Raw, placed knownFiles) []string {
	addresses := c.Collection.FileAddresses(c.Project.Namespace, id)
	was, is := map[string]bool{}, map[string]bool{}
	if before != nil {
		addresses.Keys(before, was)
	}
	for at := range placed {
		if key, ok := addresses.Key(at[1]); ok {
			was[key] = true
		}
	}
	if after != nil {
		addresses.Keys(after, is)
	}
	var out []string
	for key := range was {
		if !is[key] {
			out = append(out, key)
		}
	}
	return out
}

// checkGone refuses an update that takes all files of a record away when they can't be removed: it stays as it is.
func (s *Service) checkGone(c *Call, id bson.ObjectID, before, after bson.Raw) error {
	if c.filing == nil {
		return nil
	}
	gone := c.gone(id, before, after, nil)
	if len(gone) == 0 {
		return nil
	}
	left := map[string]bool{}
	if c.Collection.FileAddresses(c.Project.Namespace, id).Keys(after, left); len(left) > 0 {
		return nil
	}
	files, err := s.filesOf(c.Project)
	if err != nil {
		return err
	}
	return files.CheckRemove(c.Collection.Uploads.Dir, id.Hex(), gone)
}

// filesOf gives the files of a project.
func (s *Service) filesOf(p *project.Project) (*media.Store, error) {
	if s.files == nil {
		return nil, errs.Wrap(errors.New("there is no place for files"), "store a file")
	}
	return s.files.Store(p.Namespace)
}

// LiveFiles gives the files that records of a project name, as they are stored now. It can't say what is in folders of
// collections that the project does not have.
func (s *Service) LiveFiles(p *project.Project) media.Live {
	return func(ctx context.Context, dir, record string) (map[string]bool, error) {
		id, err := bson.ObjectIDFromHex(record)
		if err != nil {
			return nil, nil //nolint:nilnil,nilerr // it can't say: no record has that name
		}
		var named map[string]bool
		for _, c := range p.Collections { // two of them can have one folder
			if c.Uploads.Dir != dir {
				continue
			}
			if named == nil {
				named = map[string]bool{}
			}
			raw, err := s.store.Database(project.DatabaseName(p.Namespace)).Collection(c.StoredName()).Get(ctx, idValue(id))
			if errors.Is(err, errs.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			c.FileAddresses(p.Namespace, id).Keys(raw, named)
		}
		return named, nil
	}
}

// leftOf is the warning about a record that was deleted, "" for none.
func (c *Call) leftOf(id string) string {
	oid, err := bson.ObjectIDFromHex(id)
	if err != nil || c.left[oid] == nil {
		return ""
	}
	return warnFilesLeft
}

// bothWarnings joins two, of which each can be "".
func bothWarnings(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
