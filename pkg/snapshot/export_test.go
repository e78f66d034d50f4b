package snapshot

import (
	"bytes"
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

// ChangedPaths is how records that differ are told of.
func ChangedPaths(a, b bson.Raw) (found []string, more bool) { return changedPaths(a, b) }

// Forged gives the text of a manifest that adds up, and whose root is that of its files, and of its sum.
func Forged(m *Manifest) (manifest, sum []byte, err error) {
	is := m.listed()
	is.Missing, is.Warnings = m.Counts.Missing, m.Counts.Warnings
	m.Counts = is
	m.Root = m.root()
	text, err := m.encode()
	return text, sumLine(text), err
}

// Kept is a state as it is read again.
func Kept(root *folder.Folder, at string, state State) (State, error) {
	if err := writeState(root, at, state); err != nil {
		return State{}, err
	}
	return readState(root, at), nil
}

// Spoil takes in what another check has found of a snapshot's files.
func (s *State) Spoil(at time.Time, found ...Finding) (changed bool) { return s.spoil(at, found) }

// Compressed is what a creation compresses some files to, one after the other.
func Compressed(texts ...[]byte) (files [][]byte, err error) {
	c := &creation{}
	for _, text := range texts {
		var out bytes.Buffer
		zip, err := c.compressor(&out)
		if err == nil {
			_, err = zip.Write(text)
		}
		if err == nil {
			err = zip.Close()
		}
		if err != nil {
			return nil, err
		}
		files = append(files, out.Bytes())
	}
	return files, nil
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

// Need is how many bytes the safety snapshot of a restore would take at most.
func (s *Snapshots) Need(ctx context.Context, p *project.Project, id string) (need int64, err error) {
	_, err = s.restoreFrom(ctx, p, id, RestoreOptions{}, nil, func(r *restore) error {
		r.into(p)
		err := r.plan(ctx)
		if err == nil {
			need, err = r.need(ctx)
		}
		return err
	})
	return need, err
}

// RoomFor is how many bytes an export takes at most, if one of so many became so many on the disk.
func RoomFor(bytes, wereBytes, disk int64) int64 { return compression{wereBytes, disk}.of(bytes) }
