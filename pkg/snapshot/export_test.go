package snapshot

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
)

// ChangedPaths is how records that differ are told of.
func ChangedPaths(a, b bson.Raw) (found []string, more bool) { return changedPaths(a, b) }

// Forged gives the text of a manifest whose root is that of its files, and of its sum.
func Forged(m *Manifest) (manifest, sum []byte, err error) {
	m.Root = m.root()
	text, err := m.encode()
	return text, sumLine(text), err
}

// Rests are those of a reading of records each of which takes some time, by a clock of its own.
func Rests(records int, each time.Duration, busy bool) (rests []time.Duration) {
	now := time.Unix(0, 0)
	p := startPace(func() bool { return busy }, func() time.Time { return now }, func(_ context.Context, d time.Duration) {
		rests = append(rests, d)
		now = now.Add(d)
	})
	for range records {
		now = now.Add(each)
		p.step(context.Background())
	}
	return rests
}

// PacedBy says what the pace of a project's snapshots takes from busy.
func (s *Snapshots) PacedBy(p *project.Project, busy func(database string) bool) bool {
	s.o.Busy = busy
	at := s.newPace(p)
	return at.busy()
}
