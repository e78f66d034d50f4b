package snapshot

import (
	"context"
	"slices"

	"github.com/svcctl/svc/pkg/errs"
)

// room refuses a restore for whose safety snapshot there is no space: better now than when much is done.
func (r *restore) room(ctx context.Context) error {
	need, err := r.need(ctx)
	if err != nil || need == 0 {
		return err
	}
	root, err := r.s.folder(r.p, true)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written by it
	free, err := root.Free()
	if err != nil {
		return unwritten(err, "look for space")
	}
	if free >= 0 && free < need {
		return errs.New(errs.Full, "snapshots_full",
			"a restore first takes a snapshot of what it replaces, and the disk has no room for that, up to %d MB: nothing was changed; make room on it first, such as by deleting snapshots", need>>20+1)
	}
	return nil
}

// need is how many bytes the records of the safety snapshot take at most, as far as that can be known before it is taken.
func (r *restore) need(ctx context.Context) (sum int64, err error) {
	live := map[string]int64{}
	for _, p := range r.parts {
		if !p.live {
			continue
		}
		stats, err := r.raw.Collection(p.stored()).Stats(ctx)
		if err != nil {
			return 0, err
		}
		live[p.name] = max(0, stats.Bytes)
	}
	if len(live) == 0 {
		return 0, nil
	}
	known, err := r.compressed(ctx, live)
	for name, bytes := range live {
		sum += known[name].of(bytes)
	}
	return sum, err
}

// compression is what an export of a collection has come to.
type compression struct{ bytes, disk int64 } // of the records, uncompressed, and of the file; zero: not known

// of is how much an export takes at most that is made now, of so many bytes. As many as there were then are taken to become half as much again as they did then, the
// rest, and all where nothing is known, to become no smaller. Where that is not enough, since the records are others, the safety snapshot fails, and nothing is changed.
func (c compression) of(bytes int64) int64 {
	all := bytes + bytes/20
	if c.bytes <= 0 || c.disk <= 0 {
		return all
	}
	before := min(bytes, c.bytes)
	est := int64(float64(before)*1.5*float64(c.disk)/float64(c.bytes)) + (bytes-before)*21/20
	if c.disk < c.bytes {
		est = min(est, all)
	}
	return est
}

// maxLooked is how many snapshots are read to know how well records are compressed.
const maxLooked = 5

// compressed tells what the exports of collections have come to in the newest snapshots that were taken here.
func (r *restore) compressed(ctx context.Context, of map[string]int64) (map[string]compression, error) {
	all, err := r.s.List(ctx, r.p)
	if err != nil {
		return nil, err
	}
	out := map[string]compression{}
	looked := 0
	for i := range all {
		info := &all[i]
		wanted := func(c Collection) bool {
			_, is := of[c.Name]
			_, has := out[c.Name]
			return is && !has
		}
		if info.Damaged() || info.State.Foreign() || info.Mode == DB || !slices.ContainsFunc(info.Collections, wanted) {
			continue
		}
		if looked++; looked > maxLooked {
			break
		}
		full, err := r.s.Show(ctx, r.p, info.ID)
		if err != nil { // it is damaged, or gone meanwhile
			continue
		}
		for _, c := range full.Collections {
			f := full.file(collectionsDir + "/" + c.File + jsonEnding)
			if f != nil && wanted(c) {
				out[c.Name] = compression{c.Bytes, f.Size}
			}
		}
	}
	return out, nil
}
