package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// Drift compares what a project declares with what there is: its files with those that are served, and what is served with the
// indexes in the store and the jobs that run. It changes nothing.
func (c *Control) Drift(ctx context.Context, p *project.Project) (*api.Drift, error) {
	leave, err := place(ctx, c.drifting) // to compile files takes as much as to plan with them
	if err != nil {
		return nil, err
	}
	defer leave()
	out := newDrift(p)
	for _, look := range []func(context.Context, *project.Project, *api.Drift) error{c.driftOfFiles, c.indexes.drift, c.driftOfJobs, c.driftOfMedia} {
		if err := look(ctx, p, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newDrift(p *project.Project) *api.Drift {
	return &api.Drift{Namespace: p.Namespace, Generation: p.Generation, Items: []api.DriftItem{}, Pending: []api.DriftItem{}}
}

// driftOfJobs tells of schedules that are not followed, or would not be.
func (c *Control) driftOfJobs(ctx context.Context, p *project.Project, out *api.Drift) error {
	left, err := c.Jobs.Left(ctx, p)
	if err != nil {
		return err
	}
	for _, name := range left {
		out.Items = append(out.Items, api.DriftItem{
			Kind: api.DriftJob, Object: name, Action: api.DriftUnexpected,
			Detail: "suspended, and no longer declared: a job that gets this name would not run; svcctl job resume forgets that",
		})
	}
	states, err := c.Jobs.List(ctx, p)
	for _, s := range states {
		if s.Suspended && s.Job.Schedule != nil {
			out.Items = append(out.Items, api.DriftItem{
				Kind: api.DriftJob, Object: s.Job.Name, Action: api.DriftDiffers,
				Detail: "declared to run by its schedule, and suspended; svcctl job resume starts it again",
			})
		}
	}
	return err
}

// SyncIndexes makes a project's indexes as they are declared, in mode observe, too, and tells of those that are not then. What
// another instance is building is waited for. Nothing changes if it would drop indexes whose loss is above the risk that is allowed; "": if it
// would drop any.
func (c *Control) SyncIndexes(ctx context.Context, p *project.Project, allow api.Risk) (*api.Drift, error) {
	if now := c.Registry.ByID(p.ID); now != nil {
		p = now
	}
	if err := c.indexes.mayDrop(ctx, p, allow); err != nil {
		return nil, err
	}
	c.indexes.request(p.ID, p.Generation)
	for {
		if err := c.Manager.ReconcileNow(ctx, indexController, p.ID); err != nil {
			return nil, err
		}
		if now := c.Registry.ByID(p.ID); now != nil {
			p = now
		}
		out := newDrift(p)
		if err := c.indexes.drift(ctx, p, out); err != nil || len(out.Pending) == 0 {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(indexLook):
		}
	}
}

// orphanTime is how long files are looked at.
const orphanTime = 5 * time.Second

// orphans are files of one folder that no record names.
type orphans struct {
	files, records int
	bytes          int64
	last           string // record
}

// driftOfMedia tells of files that no record names, as many as are found in orphanTime. What they are called is told to nobody: who
// may see the project's drift may not be one who may read the records that named them.
func (c *Control) driftOfMedia(ctx context.Context, p *project.Project, out *api.Drift) error {
	if c.Media == nil {
		return nil
	}
	timed, cancel := context.WithTimeout(ctx, orphanTime)
	defer cancel()
	found := map[string]*orphans{} // by folder
	err := c.Media.Orphans(timed, p, func(dir, record string, bytes int64) error {
		o := found[dir]
		if o == nil {
			o = &orphans{}
			found[dir] = o
		}
		if record != o.last { // those of one record come together
			o.records, o.last = o.records+1, record
		}
		o.files, o.bytes = o.files+1, o.bytes+bytes
		return nil
	})
	more := ""
	switch {
	case err != nil && ctx.Err() == nil && timed.Err() != nil:
		more = ", and not all were looked at"
	case err != nil:
		return err
	}
	next := "the next sweep removes them"
	switch {
	case p.Suspended:
		next = "they are left alone while the project is suspended"
	case p.Observe:
		next = "they are left alone as mode is observe"
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		o := found[dir]
		out.Items = append(out.Items, api.DriftItem{
			Kind: api.DriftMedia, Object: collectionsOf(p, dir), Action: api.DriftUnexpected, Detail: fmt.Sprintf(
				"%s (%s) that no record names, in the folders of %s%s; %s",
				counted(o.files, "file", "files"), counted(int(o.bytes), "byte", "bytes"), counted(o.records, "record", "records"), more, next),
		})
	}
	return nil
}

// collectionsOf names the collections whose files are in a folder: mostly one.
func collectionsOf(p *project.Project, dir string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Collections)) {
		if p.Collections[name].Uploads.Dir == dir {
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, ","), dir)
}

// driftOfFiles compares the files on disk with those that are served.
func (c *Control) driftOfFiles(ctx context.Context, p *project.Project, out *api.Drift) error {
	reg, err := c.Projects.ByID(ctx, p.ID)
	if err != nil {
		return err
	}
	item := api.DriftItem{Kind: api.DriftConfig, Object: reg.ConfigFile, Action: api.DriftDiffers}
	next, err := c.next(reg, nil, nil)
	bad, invalid := errors.AsType[*project.ConfigError](err)
	switch {
	case invalid:
		item.Detail = fmt.Sprintf("the files on disk are not valid (%s); svcctl project status %s tells more", publicText(bad), p.Namespace)
	case err != nil && errs.From(err).Code == "namespace_changed":
		item.Kind, item.Detail = api.DriftRegistry, publicText(err)
	case errs.KindOf(err) == errs.Limit || errs.KindOf(err) == errs.Denied: // what project.Locate has against the registration
		item.Kind, item.Action = api.DriftRegistry, api.DriftMissing
		item.Detail = publicText(err) + "; what was served before still is: bring the files back, or svcctl project update says where they are"
	case err != nil:
		return err
	case next.Revision == p.Revision:
		return nil
	default:
		item.Detail = fmt.Sprintf("the files on disk are others than those that are served; svcctl diff %s tells what they change", p.Namespace)
	}
	out.Items = append(out.Items, item)
	return nil
}

// drift tells what a run over a project's indexes would do, and which indexes it leaves alone as others made them.
func (r *indexReconciler) drift(ctx context.Context, p *project.Project, out *api.Drift) error {
	_, before := r.atWork(p.ID)
	found, err := r.differences(ctx, p)
	if err != nil {
		return err
	}
	// A run that was under way before the look, or is behind it, may be what made the difference.
	_, behind := r.atWork(p.ID)
	for _, d := range found {
		if d.repaired && (before || behind) {
			d.Detail = "the service is at it"
			out.Pending = append(out.Pending, d.DriftItem)
		} else {
			out.Items = append(out.Items, d.DriftItem)
		}
	}
	return nil
}

// mayDrop refuses what would drop indexes whose loss is above a risk.
func (r *indexReconciler) mayDrop(ctx context.Context, p *project.Project, allow api.Risk) error {
	found, err := r.differences(ctx, p)
	if err != nil {
		return err
	}
	allow = cmp.Or(allow, api.RiskSafe)
	needed := allow
	var above []string
	for _, d := range found {
		if d.Risk == "" || !d.Risk.Above(allow) {
			continue
		}
		above = append(above, fmt.Sprintf("%s (%s)", d.Object, d.Risk))
		if d.Risk.Above(needed) {
			needed = d.Risk
		}
	}
	if len(above) == 0 {
		return nil
	}
	const most = 10
	if more := len(above) - most; more > 0 {
		above = append(above[:most], fmt.Sprintf("and %d more", more))
	}
	return errs.New(errs.Conflict, "drops_not_allowed",
		"nothing was changed: to make the indexes as declared drops %s; do it with allow=%s, or declare what is to stay", strings.Join(above, ", "), needed)
}

// indexDifference is a difference between declared indexes and those in the store.
type indexDifference struct {
	api.DriftItem

	repaired bool // a run does away with it
}

// differences compares all indexes of a project with the declared ones.
func (r *indexReconciler) differences(ctx context.Context, p *project.Project) ([]indexDifference, error) {
	refused, _ := r.atWork(p.ID)
	db := r.records(p)
	var out []indexDifference
	err := eachCollection(ctx, db, p, func(name, stored string, declared *project.Collection) error {
		actual, err := db.Collection(stored).Indexes(ctx)
		if err != nil {
			return err
		}
		if declared == nil { // who made other indexes of what is no collection of the project is not its affair
			actual = slices.DeleteFunc(actual, func(ix store.Index) bool { return !isOurs(ix) })
		}
		out = append(out, indexDifferences(name, actual, desiredIndexes(declared), refused)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// indexDifferences compares a collection's indexes with the declared ones.
func indexDifferences(collection string, actual []store.Index, desired map[string]store.Index, refused *refusals) []indexDifference {
	var out []indexDifference
	tell := func(stored, action, detail string, risk api.Risk, repaired bool) {
		out = append(out, indexDifference{api.DriftItem{
			Kind: api.DriftIndex, Object: collection + "/" + strings.TrimPrefix(stored, indexPrefix), Action: action, Detail: detail, Risk: risk,
		}, repaired})
	}
	plan := planIndexes(actual, desired)
	old := map[string][]string{} // of declared names: indexes of another definition
	for _, name := range plan.drop {
		old[firstName(name)] = append(old[firstName(name)], name)
	}
	building := map[string]bool{}
	for _, b := range plan.build {
		building[b.declared] = true
		action, detail := api.DriftMissing, "declared, and not in the store"
		goes := slices.Concat(old[b.declared], b.replaces)
		if len(goes) > 0 {
			action, detail = api.DriftDiffers, "the one in the store has another key, or is unique or sparse where it should not be, or the reverse"
		}
		why, failed := refused.of(collection, b.declared)
		if failed {
			detail += "; it can't be built: " + why.text
		}
		tell(b.declared, action, detail, riskOfDrops(actual, goes, b.index.Unique), !failed)
	}
	for _, name := range plan.drop {
		if !building[firstName(name)] {
			tell(name, api.DriftUnexpected, "no longer declared", riskOfDrops(actual, []string{name}, false), true)
		}
	}
	for _, ix := range actual {
		if !isOurs(ix) && !slices.ContainsFunc(slices.Collect(maps.Values(desired)), func(want store.Index) bool { return sameIndex(ix, want) }) {
			tell(ix.Name, api.DriftUnexpected, "made by other hands; it is left alone", "", false)
			out[len(out)-1].Foreign = true
		}
	}
	return out
}

// riskOfDrops judges that indexes go, as a plan does: the queries that they made fast are slow, and what is not unique any more may
// come twice.
func riskOfDrops(actual []store.Index, names []string, stillUnique bool) api.Risk {
	risk := api.Risk("")
	for _, ix := range actual {
		switch {
		case !slices.Contains(names, ix.Name):
		case ix.Unique && !stillUnique:
			return api.RiskBreaking
		default:
			risk = api.RiskSlow
		}
	}
	return risk
}
