package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// Checked is what the snapshots of a profile were found to be.
type Checked struct {
	Snapshots int // that were checked
	Damaged   []DamagedOne
}

// DamagedOne is a snapshot that a check has found damaged.
type DamagedOne struct {
	ID       string
	Verified *Verification
}

// Problems are those of all snapshots together.
func (c *Checked) Problems() (sum int64) {
	for _, one := range c.Damaged {
		sum += one.Verified.Problems
	}
	return sum
}

// Err is ErrDamaged, and names the first of what was found; nil: all are whole.
func (c *Checked) Err() error {
	if len(c.Damaged) == 0 {
		return nil
	}
	var found []Finding
	for _, one := range c.Damaged {
		for _, f := range one.Verified.Found {
			if len(found) < maxNamed {
				found = append(found, Finding{Path: one.ID + ": " + f.Path, Text: f.Text})
			}
		}
	}
	return errs.New(ErrDamaged.Kind, ErrDamaged.Code, "%d of %d snapshots are damaged: %s", len(c.Damaged), c.Snapshots, Named(found, c.Problems()))
}

// VerifyAll checks the snapshots of a profile one after the other, the newest first, or the newest alone. What is wrong with them is no
// error. A profile without snapshots is ErrNotFound. Where a check could not be made, what those before have found is given beside the error.
func (s *Snapshots) VerifyAll(ctx context.Context, p *project.Project, profile string, newest bool, o VerifyOptions) (*Checked, error) {
	all, err := s.List(ctx, p)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i Info) bool { return i.Profile != profile })
	out := &Checked{}
	for i := range all {
		v, err := s.Verify(ctx, p, all[i].ID, o)
		if errors.Is(err, ErrNotFound) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return out, err
		}
		out.Snapshots++
		if v.Problems > 0 {
			out.Damaged = append(out.Damaged, DamagedOne{all[i].ID, v})
		}
		if newest {
			break
		}
	}
	if out.Snapshots == 0 {
		return out, errs.New(ErrNotFound.Kind, ErrNotFound.Code, "the profile %s has no snapshot to be checked: take one first", profile)
	}
	return out, nil
}
