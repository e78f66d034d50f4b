package snapshot

import (
	"context"
	"errors"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
)

// VerifyAll checks the snapshots of a profile one after the other, the newest first, or the newest alone, and says how many. If some are
// damaged, the error is ErrDamaged and names them, when all were looked at. A profile without snapshots is ErrNotFound.
func (s *Snapshots) VerifyAll(ctx context.Context, p *project.Project, profile string, newest bool, o VerifyOptions) (checked int, err error) {
	all, err := s.List(ctx, p)
	if err != nil {
		return 0, err
	}
	var bad []string
	for i := range all {
		if all[i].Profile != profile {
			continue
		}
		v, err := s.Verify(ctx, p, all[i].ID, o)
		if errors.Is(err, ErrNotFound) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return checked, err
		}
		checked++
		if v.Problems > 0 {
			bad = append(bad, all[i].ID+" ("+v.Found[0].Path+": "+v.Found[0].Text+")")
		}
		if newest {
			break
		}
	}
	switch {
	case len(bad) > 0:
		return checked, damagedOnes(bad)
	case checked == 0:
		return 0, errs.New(ErrNotFound.Kind, ErrNotFound.Code, "the profile %s has no snapshot to be checked: take one first", profile)
	}
	return checked, nil
}

// maxNamed is how many damaged snapshots a message names.
const maxNamed = 5

func damagedOnes(bad []string) error {
	text, more := "", ""
	if len(bad) > maxNamed {
		bad, more = bad[:maxNamed], " and others"
	}
	text = strings.Join(bad, ", ") + more
	return errs.New(ErrDamaged.Kind, ErrDamaged.Code, "damaged: %s; take a snapshot anew, and look at the disk", text)
}
