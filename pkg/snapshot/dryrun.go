package snapshot

import "context"

// dryRun tells what would become of the records.
func (r *restore) dryRun(ctx context.Context) error {
	if err := r.plan(ctx); err != nil {
		return err
	}
	if err := r.look(); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	live, err := r.s.liveSide(ctx, r.p)
	if err != nil {
		return err
	}
	defer live.close()
	names := make([]string, 0, len(r.parts))
	for _, p := range r.parts {
		names = append(names, p.name)
	}
	c := &comparison{limit: r.o.Limit, merged: r.o.Mode == Merge, restored: true, t: r.t}
	diff := Diff{Collections: []CollectionDiff{}}
	if len(names) > 0 {
		if diff, err = c.sides(ctx, live, &movedSide{r}, names); err != nil {
			return err
		}
	}
	r.result.Diff = &diff
	for _, p := range r.parts {
		for _, d := range diff.Collections {
			if d.Name == p.name {
				p.out.Records, p.out.Restored = d.Added+d.Changed+d.Same, p.col.Documents
			}
		}
		r.result.Collections = append(r.result.Collections, p.out)
	}
	return nil
}

// movedSide is the snapshot as it would be in the project that it is brought into.
type movedSide struct{ r *restore }

func (s *movedSide) names() (names []string, documents int64) { return s.r.from.names() }

func (s *movedSide) covers(name string) bool { return s.r.from.covers(name) }

func (s *movedSide) records(ctx context.Context, name string) (records, func(), error) {
	from, end, err := s.r.from.records(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range s.r.parts {
		if p.name == name {
			return &moved{from, s.r.from.m, s.r.p, p}, end, nil
		}
	}
	return from, end, nil
}
