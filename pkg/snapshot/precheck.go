package snapshot

import "context"

// check reads what is about to be restored, before anything is changed.
func (r *restore) check(ctx context.Context) error {
	m := r.from.m
	var documents int64
	for _, p := range r.parts {
		documents += p.col.Documents
	}
	r.t.begin(Verifying, documents, 0)
	r.media = map[string]bool{}
	differing := m.differing()
	for _, p := range r.parts {
		r.t.at(p.name)
		from, err := openExport(ctx, r.from.dir, m, p.col)
		if err != nil {
			return err
		}
		err = each(from, func(doc []byte) error {
			r.t.done(1, int64(len(doc)))
			if !r.o.Media || !m.Media {
				return nil
			}
			eachReference(m, p.col, doc, differing, func(at Differing) {
				if m.hasMedia(at.SHA256) {
					r.media[at.SHA256] = true
				}
			})
			return nil
		})
		from.close()
		if err != nil {
			return err
		}
	}
	return r.checkMedia(ctx)
}

// checkMedia reads the files that are about to be brought.
func (r *restore) checkMedia(ctx context.Context) error {
	var bytes int64
	for hash := range r.media {
		bytes += r.from.m.file(mediaDir + "/" + hash).Size
	}
	r.t.begin(Verifying, int64(len(r.media)), bytes)
	var h hasher
	for hash := range r.media {
		name := mediaDir + "/" + hash
		sum, size, err := h.file(ctx, r.from.dir, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return damaged("%s: %s", name, cause(err))
		case sum != hash:
			return damaged("%s: %s", name, errSum)
		}
		r.t.done(1, size)
	}
	r.t.tell()
	return nil
}
