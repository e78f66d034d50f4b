package system

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// Generations number the configs that each project has been served from, and keep the latest ones whole. They live in the
// store, so that a number means the same config on every instance, so that a project can still be served after a restart
// when its files have broken, and so that an earlier one can be served again.
//
// A project has one small document, its head, and one for the files of each generation that is kept. All that a change
// touches is written in one step.
type Generations struct {
	coll store.Collection
	now  func() time.Time
}

const (
	// KeptGenerations is how many generations of a project are told of.
	KeptGenerations = 20
	// maxGenerationSize bounds the files of one, in bytes: a document of the store holds 16 MiB.
	maxGenerationSize = 8 << 20
	// maxGenerationsSize bounds the files of all generations of a project; the oldest lose theirs first.
	maxGenerationsSize = 64 << 20
)

// Generation is one of a project's.
type Generation struct {
	Number   int64     `bson:"number"`
	Revision string    `bson:"revision"` // hash of the config's files
	Since    time.Time `bson:"since"`
	By       Actor     `bson:"by"`
	Of       int64     `bson:"of,omitempty"` // the one that it serves again, after a rollback
	Files    int       `bson:"files"`        // how many
	Size     int       `bson:"size"`         // of all files, in bytes
	Kept     bool      `bson:"kept"`         // its files are in the store
}

// Actor is who had a generation served. Of kind ActorFiles, it is nobody: the files changed.
type Actor = audit.Actor

// ActorFiles is the kind of Actor that changed files are.
const ActorFiles = "files"

// ActorOf is who makes a context's request, or the service itself.
func ActorOf(ctx context.Context) Actor { return audit.ActorOf(ctx) }

// Head is the latest generation of a project, and those before it.
type Head struct {
	Project  string    `bson:"_id"`  // id of the registration
	Rev      int64     `bson:"_rev"` // grows with each write
	Number   int64     `bson:"number"`
	Revision string    `bson:"revision"`
	Since    time.Time `bson:"since"`

	// Over is set while a rollback holds: the revision of the files that it is served in the place of, or
	// UnreadableFiles. Other files end it, or a reload.
	Over    string       `bson:"over,omitempty"`
	History []Generation `bson:"history"` // the latest KeptGenerations, oldest first

	// Heads that were written before there was a history have the files of the one generation.
	Entry string           `bson:"entry,omitempty"`
	Files []GenerationFile `bson:"files,omitempty"`
}

// UnreadableFiles stands for the revision of files that can't be served.
const UnreadableFiles = "unreadable"

// GenerationFile is one config file of a generation.
type GenerationFile struct {
	Name string `bson:"name"` // slash-separated path inside the project's directory
	Data []byte `bson:"data"`
}

// Config is what a generation is served from.
type Config struct {
	Revision string
	Entry    string            // the config's entry file
	Files    map[string][]byte // by slash-separated path inside the project's directory
}

// config is a Config as it is stored.
type config struct {
	ID    string           `bson:"_id"`
	Entry string           `bson:"entry"`
	Files []GenerationFile `bson:"files"`
}

func configKey(projectID string, number int64) string {
	return projectID + "/" + strconv.FormatInt(number, 10)
}

// ErrNoGeneration is for a number that no generation of the project has, or none that is still told of.
var ErrNoGeneration = errs.New(errs.NotFound, "generation_not_found", "generation not found")

// ErrMoved says that another instance was first: the files have to be read again.
var ErrMoved = errs.New(errs.Unavailable, "generation_moved", "the project is being served anew elsewhere; try again")

// AnyGeneration is for files that are newer than any generation.
const AnyGeneration = -1

// Head gives the head of a project, or errs.ErrNotFound.
func (g *Generations) Head(ctx context.Context, projectID string) (Head, error) {
	h, err := get[Head](ctx, g.coll, store.Name(projectID))
	if err == nil && h.History == nil { // of before there was one
		only := Generation{Number: h.Number, Revision: h.Revision, Since: h.Since, By: Actor{Kind: "service"}, Files: len(h.Files), Kept: len(h.Files) > 0}
		for _, f := range h.Files {
			only.Size += len(f.Data)
		}
		h.History = []Generation{only}
	}
	return h, err
}

// Latest gives the latest generation of each of these projects that has one, by the id of the registration, with its number,
// revision and time only.
func (g *Generations) Latest(ctx context.Context, projectIDs []string) (map[string]Generation, error) {
	ids := make(bson.A, 0, len(projectIDs))
	for _, id := range projectIDs {
		ids = append(ids, id)
	}
	filter, err := mql.Compile(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
	if err != nil {
		return nil, err
	}
	headOnly := mql.MustCompileProjection(bson.D{{Key: "number", Value: 1}, {Key: "revision", Value: 1}, {Key: "since", Value: 1}})
	latest := make(map[string]Generation, len(projectIDs))
	err = g.coll.Find(ctx, store.Query{Filter: filter, Project: headOnly}, func(doc bson.Raw) error {
		h, err := decode[Head](doc)
		latest[h.Project] = Generation{Number: h.Number, Revision: h.Revision, Since: h.Since}
		return err
	})
	return latest, err
}

// find gives one of the generations that are told of.
func (h *Head) find(number int64) (Generation, error) {
	i := slices.IndexFunc(h.History, func(g Generation) bool { return g.Number == number })
	if i < 0 {
		return Generation{}, ErrNoGeneration
	}
	return h.History[i], nil
}

// Config gives what a generation was served from. It is ErrNoGeneration when there is none of that number, and a conflict
// when its files are not kept.
func (g *Generations) Config(ctx context.Context, projectID string, number int64) (Config, error) {
	h, err := g.Head(ctx, projectID)
	if errors.Is(err, errs.ErrNotFound) {
		return Config{}, ErrNoGeneration
	}
	if err != nil {
		return Config{}, err
	}
	found, err := h.find(number)
	if err != nil {
		return Config{}, err
	}
	stored := config{Entry: h.Entry, Files: h.Files}
	if h.Files == nil && found.Kept {
		if stored, err = get[config](ctx, g.coll, store.Name(configKey(projectID, number))); err != nil && !errors.Is(err, errs.ErrNotFound) {
			return Config{}, err
		}
	}
	if len(stored.Files) == 0 {
		return Config{}, errs.New(errs.Conflict, "generation_not_kept",
			"the files of generation %d are not kept: bring them back into the project's directory, and reload", number)
	}
	c := Config{Revision: found.Revision, Entry: stored.Entry, Files: make(map[string][]byte, len(stored.Files))}
	for _, f := range stored.Files {
		c.Files[f.Name] = f.Data
	}
	return c, nil
}

// Number gives the generation of a project's files: the latest one if that is its revision, else the next, which is
// recorded. A rollback is over with that. after is the latest generation when the files were about to be read, or
// AnyGeneration: behind another one they may be old, and are refused with ErrMoved.
func (g *Generations) Number(ctx context.Context, projectID string, after int64, c Config, by Actor) (int64, error) {
	return g.next(ctx, projectID, func(h *Head) (*Generation, string, error) {
		switch {
		case h.Number > 0 && h.Revision == c.Revision:
			return nil, "", nil
		case h.Number != after && after != AnyGeneration:
			return nil, "", ErrMoved
		}
		return &Generation{Revision: c.Revision, By: by}, "", nil
	}, c)
}

// RollBack has an earlier generation served again, as the next one, until there are other files than those of the revision
// over. When it is what is served already, it gives the number that it has. An error is one of Config's.
func (g *Generations) RollBack(ctx context.Context, projectID string, number int64, over string, by Actor) (int64, error) {
	c, err := g.Config(ctx, projectID, number)
	if err != nil {
		return 0, err
	}
	return g.next(ctx, projectID, func(h *Head) (*Generation, string, error) {
		found, err := h.find(number)
		if err != nil {
			return nil, "", err
		}
		latest := h.History[len(h.History)-1]
		if latest.Number == number || latest.Of == number && (h.Over == over || h.Over == "") {
			return nil, h.Over, nil
		}
		next := &Generation{Revision: c.Revision, By: by, Of: number}
		if found.Of != 0 { // the one whose files it has
			next.Of = found.Of
		}
		return next, over, nil
	}, c)
}

// next records what choose wants to follow on the head of a project: a generation, which is served from c and gets the next
// number, or none, when the latest one stays. With it comes what Head.Over is to be.
func (g *Generations) next(ctx context.Context, projectID string, choose func(h *Head) (next *Generation, over string, err error), c Config) (int64, error) {
	var number int64
	err := retry(ctx, func() error {
		h, err := g.Head(ctx, projectID)
		missing := errors.Is(err, errs.ErrNotFound)
		if err != nil && !missing {
			return err
		}
		h.Project = projectID
		next, over, err := choose(&h)
		if err != nil {
			return err
		}
		number = h.Number
		if next == nil && h.Over == over {
			return nil
		}
		var ops []store.Op
		if next != nil {
			next.Number, next.Since = h.Number+1, g.now()
			number = next.Number
			if ops, err = h.push(*next, c); err != nil {
				return err
			}
		}
		rev := h.Rev
		h.Rev, h.Over = h.Rev+1, over
		op, err := replaceOp(h, rev)
		if err != nil {
			return err
		}
		if missing {
			op = store.Op{Kind: store.Insert, Doc: op.Doc}
		}
		if err = store.WriteAll(ctx, g.coll, append([]store.Op{op}, ops...)...); isDuplicate(err) {
			return store.ErrStale // another instance was first
		}
		return err
	})
	return number, err
}

// push makes a generation the latest one, and gives the writes that keep its files and let go of others.
func (h *Head) push(gen Generation, c Config) ([]store.Op, error) {
	var ops []store.Op
	keep := func(number int64, entry string, files []GenerationFile) error {
		doc, err := encode(config{ID: configKey(h.Project, number), Entry: entry, Files: files})
		ops = append(ops, store.Op{Kind: store.Replace, Doc: doc, Upsert: true})
		return err
	}
	if len(h.Files) > 0 {
		if err := keep(h.Number, h.Entry, h.Files); err != nil {
			return nil, err
		}
	}
	h.Entry, h.Files = "", nil

	gen.Files = len(c.Files)
	for _, data := range c.Files {
		gen.Size += len(data)
	}
	if gen.Kept = gen.Size <= maxGenerationSize; gen.Kept {
		var files []GenerationFile
		for _, name := range slices.Sorted(maps.Keys(c.Files)) {
			files = append(files, GenerationFile{Name: name, Data: c.Files[name]})
		}
		if err := keep(gen.Number, c.Entry, files); err != nil {
			return nil, err
		}
	}
	h.Number, h.Revision, h.Since = gen.Number, gen.Revision, gen.Since
	h.History = append(h.History, gen)
	room := maxGenerationsSize
	first := max(len(h.History)-KeptGenerations, 0)
	for i, old := range slices.Backward(h.History) {
		if old.Kept {
			room -= old.Size
		}
		if old.Kept && (i < first || room < 0) {
			h.History[i].Kept = false
			ops = append(ops, forgetConfig(h.Project, old.Number))
		}
	}
	h.History = h.History[first:]
	return ops, nil
}

// forgetConfig deletes the files of a generation, if they are there.
func forgetConfig(projectID string, number int64) store.Op {
	return store.Op{Kind: store.Delete, Filter: mql.MustCompile(bson.D{{Key: "_id", Value: configKey(projectID, number)}})}
}

// Remove forgets the generations of a project whose registration is gone. Where there are none, it does nothing.
func (g *Generations) Remove(ctx context.Context, projectID string) error {
	return retry(ctx, func() error {
		h, err := g.Head(ctx, projectID)
		if errors.Is(err, errs.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		ops := []store.Op{{Kind: store.Delete, ID: store.Name(projectID), If: atRev(h.Rev)}}
		for _, gen := range h.History {
			if gen.Kept && h.Files == nil {
				ops = append(ops, forgetConfig(projectID, gen.Number))
			}
		}
		if err = store.WriteAll(ctx, g.coll, ops...); errors.Is(err, errs.ErrNotFound) {
			return store.ErrStale // another instance does the same: look again
		}
		return err
	})
}

// projectOfGeneration tells which project's head a document is.
func projectOfGeneration(id string) (projectID string, ok bool) {
	return id, !strings.Contains(id, "/")
}
