package app

import (
	"context"
	"errors"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/system"
)

// ErrCantRepair is that of CheckStore for a store that can't be repaired here.
var ErrCantRepair = errs.New(errs.Invalid, "cant_repair",
	"MongoDB is repaired with its own tools, such as the command reIndex: only the embedded store can be repaired here")

// StoreProblem is something that CheckStore has found: see store.Problem.
type StoreProblem struct {
	Collection string `json:"collection,omitempty"` // with its database: svc_blog/articles
	Index      string `json:"index,omitempty"`
	Text       string `json:"text"`
	Repairable bool   `json:"repairable"`
	Repaired   bool   `json:"repaired"`
}

func newStoreProblem(p store.Problem) StoreProblem {
	return StoreProblem{Collection: p.Collection, Index: p.Index, Text: p.Text, Repairable: p.Repairable}
}

// StoreCheck says what CheckStore does.
type StoreCheck struct {
	// Repair makes anew what is derived from documents and not as it should be. Documents are never changed.
	Repair bool
	// Report is called for each problem: what was repaired, then what is wrong still.
	Report func(StoreProblem)
	// Progress is called every now and then: about done of total keys, or databases, are checked. A check after a repair
	// begins anew.
	Progress func(done, total int64)
}

// StoreContents is what a store was found to have.
type StoreContents struct {
	Databases   []string // that were checked; of MongoDB also such as have no collections yet
	Collections int      // in all of them
}

// CheckStore validates everything in the store that the settings name, and tells what there is. It changes nothing, unless it
// is to repair. Nobody else may have an embedded store open. Where svcd has never run on one, the error is ErrNoStore; one
// that is too damaged to be opened is a problem, not an error.
func CheckStore(ctx context.Context, cfg Config, check StoreCheck) (has StoreContents, err error) {
	if _, ok := cfg.embeddedDir(); !ok && check.Repair {
		return has, ErrCantRepair
	}
	st, err := openStore(ctx, cfg, embedded.Options{ReadOnly: !check.Repair, Existing: true})
	if e := errs.From(err); e != nil && e.Code == embedded.CodeDamaged {
		check.Report(StoreProblem{Text: e.Message})
		return has, nil
	}
	if err != nil {
		return has, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if own, ok := st.(*embedded.Store); ok {
		has.Databases, has.Collections = own.Contents()
		return has, checkEmbedded(ctx, own, check)
	}
	return checkDatabases(ctx, st, cfg, check)
}

func checkEmbedded(ctx context.Context, st *embedded.Store, check StoreCheck) error {
	progress := func(p embedded.Progress) { check.Progress(p.Done, p.Total) }
	if check.Repair {
		err := st.Repair(ctx, func(p store.Problem) {
			if p.Repairable {
				found := newStoreProblem(p)
				found.Repaired = true
				check.Report(found)
			}
		}, progress)
		if err != nil {
			return err
		}
	}
	return st.Validate(ctx, func(p store.Problem) { check.Report(newStoreProblem(p)) }, progress)
}

// checkDatabases asks each database that belongs to the service. There may be others on the server.
func checkDatabases(ctx context.Context, st store.Store, cfg Config, check StoreCheck) (has StoreContents, err error) {
	projects, err := system.New(st, system.Options{Now: cfg.Now}).Projects.All(ctx)
	if err != nil {
		return has, err
	}
	has.Databases = []string{system.DatabaseName}
	for _, p := range projects {
		has.Databases = append(has.Databases, project.DatabaseName(p.Namespace))
	}
	for i, name := range has.Databases {
		check.Progress(int64(i), int64(len(has.Databases)))
		collections, err := st.Database(name).CollectionNames(ctx)
		if err != nil {
			return has, err
		}
		has.Collections += len(collections)
		err = st.Database(name).Validate(ctx, func(p store.Problem) {
			p.Collection = name + "/" + p.Collection
			check.Report(newStoreProblem(p))
		})
		if err != nil {
			return has, err
		}
	}
	return has, nil
}
