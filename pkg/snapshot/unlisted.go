package snapshot

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
)

// withoutManifest checks what can be checked of a snapshot whose manifest can't be read: files of records have their sum for a name, and
// exports are in order, each record whole.
func (c *checking) withoutManifest(ctx context.Context) error {
	for _, dir := range []string{collectionsDir, mediaDir} {
		entries, err := c.dir.Entries(dir)
		if err != nil { // nobody can say whether it should be there
			continue
		}
		c.t.begin(Verifying, int64(len(entries)), 0)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if dir == mediaDir {
				sum, size, err := c.hasher.file(ctx, c.dir, name)
				if err == nil && sum != e.Name() {
					err = errSum
				}
				c.read(ctx, name, size, err)
			} else if strings.HasSuffix(name, jsonEnding) {
				size, err := c.readable(ctx, name)
				c.read(ctx, name, size, err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return ctx.Err()
}

// read counts a file that was read, and notes what is wrong with it.
func (c *checking) read(ctx context.Context, name string, size int64, err error) {
	if err != nil && ctx.Err() == nil {
		c.foundIn(name, problem(err), strings.HasPrefix(name, mediaDir+"/")) // which says by its name what it should be
	}
	c.v.Files++
	c.v.Bytes += size
	c.t.done(1, size)
}

// readable goes through an export.
func (c *checking) readable(ctx context.Context, name string) (size int64, err error) {
	r, err := openJSON(ctx, c.dir, name)
	if err != nil {
		return 0, err
	}
	defer r.close()
	for err == nil {
		_, err = r.next()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return r.size, err
}
