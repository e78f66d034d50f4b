package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// What can be wrong with a log.
const (
	Changed  = "changed"  // an entry is not what was sealed
	Missing  = "missing"  // entries are gone from the middle or the end
	Foreign  = "foreign"  // an entry was not put there by the service
	Replaced = "replaced" // the log is not the one that had a place that somebody noted
	Expired  = "expired"  // the log is kept from a later place on than the noted one, so that nobody can tell any more
)

// maxProblems bounds a report.
const maxProblems = 100

// Problem is something that Verify found.
type Problem struct {
	Problem string // Changed, Missing, Foreign, Replaced or Expired
	Seq     int64  // of the entry, or of the first one that is missing
	Through int64  // Missing: the last one that is missing
	ID      string // of the entry, when there is one
	Text    string // for operators
}

// Report is what Verify has to say. Without problems the log is intact between its ends.
type Report struct {
	Entries  int64 // that were looked at
	Unsealed int64 // that came a moment ago, or that nobody can seal just now: they have no place in the chain yet
	Anchor   Place // the entry before the oldest one: those up to it have expired
	Head     Place // the newest entry. Whoever notes it elsewhere can tell later that nobody rewrote the whole log
	Problems []Problem
	More     bool // there are more problems than are listed
}

// sealTime bounds how long Verify waits for new entries to be sealed. On MongoDB, a process that was killed while it sealed
// keeps others from it until the server ends its transaction.
const sealTime = 5 * time.Second

// Verify seals what there is, if that can be done soon, then checks the whole chain, at one point in time. noted is a head that it had earlier, which
// was kept elsewhere: the log still has to have it. nil is none.
func (l *Log) Verify(ctx context.Context, noted *Place) (*Report, error) {
	if err := l.sealSoon(ctx); err != nil {
		return nil, err
	}
	view, err := l.db.View(ctx)
	if err != nil {
		return nil, err
	}
	report, err := verify(ctx, view, noted)
	return report, errors.Join(err, view.Close())
}

func (l *Log) sealSoon(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, sealTime)
	defer cancel()
	err := l.Seal(bounded)
	if ctx.Err() == nil && (bounded.Err() != nil || errors.Is(err, context.DeadlineExceeded)) { // a store may give up just before the end
		return nil
	}
	return err
}

func verify(ctx context.Context, view store.View, noted *Place) (*Report, error) {
	ends, err := readEnds(ctx, view.Collection(headName))
	if err != nil {
		return nil, err
	}
	v := &verifier{
		last:  Place{Seq: ends.AnchorSeq, Hash: ends.AnchorHash},
		noted: noted,
		report: &Report{
			Anchor: Place{Seq: ends.AnchorSeq, Hash: ends.AnchorHash}, Head: Place{Seq: ends.Seq, Hash: ends.Hash},
		},
	}
	q := store.Query{Sort: mql.Sort{{Path: "seq"}, {Path: "_id"}}}
	var same []bson.Raw // entries that claim one place
	var seq int64
	err = view.Collection(entriesName).Find(ctx, q, func(doc bson.Raw) error {
		if sealable(doc) {
			v.report.Unsealed++
			return nil
		}
		n, ok := doc.Lookup("seq").AsInt64OK()
		if !ok || n < 1 {
			v.foreign(doc, n, "it has no place in the chain")
			return nil
		}
		if n != seq {
			v.place(seq, same)
			same, seq = nil, n
		}
		same = append(same, bytes.Clone(doc))
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.place(seq, same)
	v.end()
	v.hold()
	return v.report, nil
}

// verifier follows a chain.
type verifier struct {
	report *Report
	last   Place // the place before the next entry
	lastID string

	noted *Place // what the log had earlier; nil: nobody says
	found Place  // what it has there
}

func (v *verifier) add(p Problem) {
	if len(v.report.Problems) == maxProblems {
		v.report.More = true
		return
	}
	v.report.Problems = append(v.report.Problems, p)
}

func (v *verifier) foreign(doc bson.Raw, seq int64, why string) {
	v.report.Entries++
	v.add(Problem{Problem: Foreign, Seq: seq, ID: idOf(doc), Text: "the entry was not put there by the service: " + why})
}

func (v *verifier) missing(from, through int64, where string) {
	v.add(Problem{Problem: Missing, Seq: from, Through: through, Text: fmt.Sprintf("%d entries are missing %s", through-from+1, where)})
}

// place looks at the entries that claim the place seq.
func (v *verifier) place(seq int64, docs []bson.Raw) {
	if len(docs) == 0 {
		return
	}
	if seq <= v.report.Anchor.Seq || seq > v.report.Head.Seq {
		for _, doc := range docs {
			v.foreign(doc, seq, "its place is outside of the chain")
		}
		return
	}
	if seq > v.last.Seq+1 {
		v.missing(v.last.Seq+1, seq-1, "before this one")
		v.last = Place{Seq: seq - 1} // what it was is not known
	}
	own := 0 // the one that belongs there
	for i, doc := range docs {
		if follows(doc, v.last) {
			own = i
			break
		}
	}
	for i, doc := range docs {
		if i != own {
			v.foreign(doc, seq, "its place is another entry's")
		}
	}
	v.entry(seq, docs[own])
}

// entry checks the entry of a place.
func (v *verifier) entry(seq int64, doc bson.Raw) {
	v.report.Entries++
	id := idOf(doc)
	sum, err := hashOf(doc)
	if v.noted != nil && v.noted.Seq == seq {
		v.found = Place{Seq: seq, Hash: sum}
	}
	switch {
	case err != nil || sum != text(doc, "hash"):
		v.add(Problem{Problem: Changed, Seq: seq, ID: id, Text: "the entry was changed: its hash is another one"})
		sum = text(doc, "hash") // as the next one has it, if only the rest was changed
	case text(doc, "prev") != v.last.Hash && v.last.Hash != "":
		v.add(Problem{
			Problem: Changed, Seq: v.last.Seq, ID: v.lastID,
			Text: fmt.Sprintf("the entry, or the one after it (%s), was replaced: the hashes of the two don't fit", id),
		})
	case seq == 1 && text(doc, "prev") != "":
		v.add(Problem{Problem: Changed, Seq: seq, ID: id, Text: "the entry was replaced: the first one follows none"})
	}
	v.last, v.lastID = Place{Seq: seq, Hash: sum}, id
}

// end holds the last entry against the head.
func (v *verifier) end() {
	switch head := v.report.Head; {
	case v.last.Seq < head.Seq:
		v.missing(v.last.Seq+1, head.Seq, "at the end")
	case v.last.Hash != head.Hash && v.last.Hash != "":
		v.add(Problem{Problem: Changed, Seq: v.last.Seq, ID: v.lastID, Text: "the newest entry was replaced: its hash is not the chain's"})
	}
}

// hold holds the log against what was noted of it. A whole log that others wrote is a chain, too.
func (v *verifier) hold() {
	if v.noted == nil {
		return
	}
	found := v.found
	if v.noted.Seq == v.report.Anchor.Seq {
		found = v.report.Anchor
	}
	switch n := *v.noted; {
	case n.Seq > v.report.Head.Seq:
		v.add(Problem{Problem: Replaced, Seq: n.Seq, Text: fmt.Sprintf(
			"entry %d was noted as the newest one, and the log ends with %d: it was cut off or replaced", n.Seq, v.report.Head.Seq)})
	case n.Seq < v.report.Anchor.Seq:
		v.add(Problem{Problem: Expired, Seq: n.Seq, Text: fmt.Sprintf(
			"the entries up to %d have expired, so that the one that was noted can't be held against the log: note a newer one", v.report.Anchor.Seq)})
	case found != n:
		v.add(Problem{Problem: Replaced, Seq: n.Seq, Text: "the entry has another hash than was noted: the log was replaced or written anew"})
	}
}

func text(doc bson.Raw, name string) string {
	s, _ := doc.Lookup(name).StringValueOK()
	return s
}

func idOf(doc bson.Raw) string {
	id := doc.Lookup("_id")
	if oid, ok := id.ObjectIDOK(); ok {
		return oid.Hex()
	}
	return id.String()
}
