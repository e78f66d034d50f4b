package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/svcctl/svc/pkg/folder"
	"github.com/svcctl/svc/pkg/project"
)

// State is what is known of a snapshot beside what is in it.
type State struct {
	Pinned   bool          `json:"pinned"`             // it is not to be deleted
	Verified *Verification `json:"verified,omitempty"` // the last one; nil: it was never checked
	// WholeAt is when a check of everything has last found it whole, and none since has found damage.
	WholeAt time.Time `json:"wholeAt,omitzero"`
	// Damage is the last check that has found damage, if none of everything has found it whole since: one of a part may miss it.
	Damage *Verification `json:"damage,omitempty"`

	// ImportedAt is when it has come in as an archive: what its manifest says of links is of where it was taken. Zero: it was taken here.
	ImportedAt time.Time `json:"importedAt,omitzero"`
	// LostAt is when this was written anew because what was there could not be read any more. Where the snapshot has come from is not known since then, unless
	// ImportedAt says it, and it counts as one that has come in.
	LostAt time.Time `json:"lostAt,omitzero"`

	Damaged bool `json:"-"` // the state can't be read, so the snapshot counts as pinned
}

// Verification is how a check has ended.
type Verification struct {
	At       time.Time `json:"at"`
	Sample   float64   `json:"sample,omitempty"` // the part of the files that was looked at; 0: all
	Files    int64     `json:"files"`            // that were looked at
	Bytes    int64     `json:"bytes"`
	Problems int64     `json:"problems"`
	Found    []Finding `json:"found,omitempty"`    // the first hundred problems, or less where their names are very long
	Dangling int64     `json:"dangling,omitempty"` // files that records name and that are not in it
	Without  []Finding `json:"without,omitempty"`  // the first hundred of these
}

// Whole says that the check has looked at everything, and found no damage.
func (v *Verification) Whole() bool { return v != nil && v.Problems == 0 && v.Sample == 0 }

// names says that a file is among the first hundred problems.
func (v *Verification) names(file string) bool {
	return slices.ContainsFunc(v.Found, func(f Finding) bool { return f.Path == file })
}

// Whole says that all of the snapshot was once found whole, and no damage since: a check of a part takes nothing from that.
func (s *State) Whole() bool { return !s.Damaged && !s.WholeAt.IsZero() }

// Foreign says that the snapshot has come in as an archive, which anybody may have made, or that nobody knows whether it has.
func (s *State) Foreign() bool { return s.Damaged || !s.ImportedAt.IsZero() || !s.LostAt.IsZero() }

// note takes in how a check has ended.
func (s *State) note(v *Verification) {
	s.Verified = v
	switch {
	case v.Whole():
		s.WholeAt, s.Damage = v.At, nil
	case v.Problems > 0:
		s.WholeAt, s.Damage = time.Time{}, v
	}
}

const (
	stateEnding = ".state.json"
	maxState    = 1 << 20
)

// stored is a state with the sum by which damage is seen.
type stored struct {
	State  json.RawMessage `json:"state"`
	SHA256 string          `json:"sha256"`
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readState reads the state of a snapshot. One that was never written is the zero value; one that is damaged, or can't be read, is the safe one.
func readState(root *folder.Folder, at string) State {
	state, err := tryState(root, at)
	if err != nil {
		return State{Pinned: true, Damaged: true}
	}
	return state
}

// tryState is readState for who writes it again: the error is for a disk that fails, which says nothing of what is on it.
func tryState(root *folder.Folder, at string) (State, error) {
	text, err := root.Read(at+stateEnding, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if _, failed := errors.AsType[syscall.Errno](err); failed {
		return State{}, err
	}
	var s stored
	var out State
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.SHA256 != sumOf(s.State) {
		err = errors.New("it is not what was written")
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(s.State))
		d.DisallowUnknownFields()
		err = d.Decode(&out)
	}
	if err != nil {
		return State{Pinned: true, Damaged: true, ImportedAt: importedIn(text)}, nil //nolint:nilerr // what else it was is lost
	}
	return out, nil
}

var importedMark = regexp.MustCompile(`"importedAt":"([^"]{1,40})"`)

// importedIn is when a snapshot has come in by a state that is damaged, where that can still be made out: in doubt it has.
func importedIn(text []byte) time.Time {
	found := importedMark.FindSubmatch(text)
	if found == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, string(found[1]))
	if err != nil {
		return time.Time{}
	}
	return at
}

func writeState(root *folder.Folder, at string, state State) error {
	text, err := state.encode()
	if err == nil {
		err = root.Write(at+stateEnding, text)
	}
	return unwritten(err, "write the state of a snapshot")
}

// encode gives the bytes of a state, which are no more than are read: of what was found it leaves out the last ones where their names are so long, and all stay counted.
func (s State) encode() ([]byte, error) {
	for most := maxWarnings; ; {
		if most == 0 || s.Verified.length()+s.Damage.length() < maxState { // what is longer need not be written to see it
			text, err := json.Marshal(s)
			if err == nil {
				text, err = json.Marshal(stored{text, sumOf(text)})
			}
			if err != nil || len(text) < maxState || most == 0 {
				return append(text, '\n'), err
			}
		}
		most /= 2
		s.Verified, s.Damage = s.Verified.first(most), s.Damage.first(most)
	}
}

// length is how many bytes the names and texts of what was found are, which is less than what they are as JSON.
func (v *Verification) length() (bytes int) {
	if v == nil {
		return 0
	}
	for _, found := range [][]Finding{v.Found, v.Without} {
		for _, f := range found {
			bytes += len(f.Path) + len(f.Text)
		}
	}
	return bytes
}

// first is a check of which so many findings are named.
func (v *Verification) first(most int) *Verification {
	if v == nil {
		return nil
	}
	out := *v
	out.Found, out.Without = out.Found[:min(most, len(out.Found))], out.Without[:min(most, len(out.Without))]
	return &out
}

// Pin keeps a snapshot from being deleted, or lets it be again.
func (s *Snapshots) Pin(ctx context.Context, p *project.Project, id string, pinned bool) error {
	return s.change(ctx, p, id, func(state *State) { state.Pinned = pinned })
}

// change changes the state of a snapshot, while nobody else does.
func (s *Snapshots) change(ctx context.Context, p *project.Project, id string, fn func(*State)) error {
	o, err := s.open(p, id)
	if err != nil {
		return err
	}
	defer o.close()
	unlock, err := s.lockStates(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	if ctx.Err() != nil {
		return ended(ctx, ctx.Err())
	}
	if _, err := o.root.Stat(o.at); errors.Is(err, fs.ErrNotExist) { // another process has removed it meanwhile
		return ErrNotFound
	}
	state, err := tryState(o.root, o.at)
	if err != nil {
		return unwritten(err, "read the state of a snapshot")
	}
	before := state
	if state.Damaged {
		state.Damaged, state.LostAt = false, millisecond(s.o.Now())
	}
	fn(&state)
	if err := writeState(o.root, o.at, state); err != nil {
		return err
	}
	if before.Whole() != state.Whole() || (before.Damage == nil) != (state.Damage == nil) || (before.Verified == nil) != (state.Verified == nil) || !before.LostAt.Equal(state.LostAt) {
		s.changed(p)
	}
	return nil
}

// opened is a snapshot that is read.
type opened struct {
	root *folder.Folder // of the project's snapshots
	dir  *folder.Folder
	at   string // path of dir in root
	end  func()
}

func (o *opened) close() {
	o.end()
	_ = o.dir.Close()  // it was only read
	_ = o.root.Close() // what was written by it is on disk
}

// manifest reads that of the snapshot. One whose folder somebody has given another name is damaged, as a list and a check say of it.
func (o *opened) manifest() (*Manifest, error) {
	m, err := readManifest(o.dir)
	if err == nil {
		err = m.isOf(path.Base(o.at))
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// open finds a snapshot of the project.
func (s *Snapshots) open(p *project.Project, id string) (*opened, error) {
	if !snapshotID.MatchString(id) {
		return nil, ErrNotFound
	}
	root, err := s.folder(p, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, unwritten(err, "open the folder of snapshots")
	}
	at, err := find(root, id)
	var dir *folder.Folder
	if err == nil {
		dir, err = root.Sub(at)
	}
	if err != nil {
		_ = root.Close() // it was only read
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNotFound
		}
		return nil, unwritten(err, "open a snapshot")
	}
	end, ok := s.use(path.Join(p.Namespace, at))
	if !ok {
		_, _ = dir.Close(), root.Close() // they were only read
		return nil, ErrNotFound
	}
	return &opened{root: root, dir: dir, at: at, end: end}, nil
}

// find gives the path of a snapshot.
func find(root *folder.Folder, id string) (string, error) {
	profiles, err := profileDirs(root)
	if err != nil {
		return "", err
	}
	for _, profile := range profiles {
		at := path.Join(profile, id)
		info, err := root.Stat(at)
		if err == nil && info.IsDir() {
			return at, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", ErrNotFound
}
