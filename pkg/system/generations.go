package system

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// Generations number the configs that each project has been served from, and keep the latest one whole. They live in the
// store, so that a number means the same config on every instance, and so that a project can still be served after a
// restart when its files have broken.
type Generations struct {
	coll store.Collection
	now  func() time.Time
}

// Generation is the latest one of a project.
type Generation struct {
	Project  string    `bson:"_id"`  // id of the registration
	Rev      int64     `bson:"_rev"` // grows with each write
	Number   int64     `bson:"number"`
	Revision string    `bson:"revision"` // hash of the config's files
	Since    time.Time `bson:"since"`

	Entry string           `bson:"entry"` // the config's entry file
	Files []GenerationFile `bson:"files"` // empty when together they are above maxGenerationSize
}

// GenerationFile is one config file of a generation.
type GenerationFile struct {
	Name string `bson:"name"` // slash-separated path inside the project's directory
	Data []byte `bson:"data"`
}

// maxGenerationSize bounds the files that are kept, in bytes: a document of the store holds 16 MiB.
const maxGenerationSize = 8 << 20

// Latest gives the latest generation of a project, or errs.ErrNotFound.
func (g *Generations) Latest(ctx context.Context, projectID string) (Generation, error) {
	return get[Generation](ctx, g.coll, store.Name(projectID))
}

// Number gives the generation of a project's revision: the latest one if that is its revision, else the next, which is
// recorded with the files of its config, by name.
func (g *Generations) Number(ctx context.Context, projectID, revision, entry string, files map[string][]byte) (int64, error) {
	var number int64
	err := retry(ctx, func() error {
		latest, err := get[Generation](ctx, g.coll, store.Name(projectID))
		missing := errors.Is(err, errs.ErrNotFound)
		switch {
		case err != nil && !missing:
			return err
		case !missing && latest.Revision == revision:
			number = latest.Number
			return nil
		}
		next := Generation{Project: projectID, Rev: latest.Rev + 1, Number: latest.Number + 1, Revision: revision, Since: g.now(), Entry: entry}
		next.keep(files)
		number = next.Number
		if missing {
			if err = insert(ctx, g.coll, next); isDuplicate(err) {
				return store.ErrStale // another instance was first
			}
			return err
		}
		op, err := replaceOp(next, latest.Rev)
		if err != nil {
			return err
		}
		return store.WriteAll(ctx, g.coll, op)
	})
	return number, err
}

// keep takes the files of a config, unless they are too large.
func (g *Generation) keep(files map[string][]byte) {
	size := 0
	for _, data := range files {
		size += len(data)
	}
	if size > maxGenerationSize {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		g.Files = append(g.Files, GenerationFile{Name: name, Data: files[name]})
	}
}

// Remove forgets the generations of a project whose registration is gone. Where there are none, it does nothing.
func (g *Generations) Remove(ctx context.Context, projectID string) error {
	return drop(ctx, g.coll, projectID)
}
