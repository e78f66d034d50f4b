package snapshot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// compiler is a Founder for dry runs, which make nothing.
type compiler struct{ snapshot.Founder }

func (compiler) Compile(_ context.Context, namespace string, of *project.Project, config project.Bundle, foreign bool) (*project.Detached, error) {
	return (&project.Loader{}).Detach(config, namespace, of.Dir, foreign)
}

// never is the schedule of what has one, whatever that is.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

func (never) String() string { return "never" }

// acting is a compiler of projects that have jobs, of these names and one that runs by hand.
type acting struct {
	compiler

	jobs []string
}

func (a acting) Compile(ctx context.Context, namespace string, of *project.Project, config project.Bundle, foreign bool) (*project.Detached, error) {
	d, err := compiler{}.Compile(ctx, namespace, of, config, foreign)
	if err != nil {
		return nil, err
	}
	d.Jobs = append(d.Jobs, &project.Job{Name: "by-hand"})
	for _, name := range a.jobs {
		d.Jobs = append(d.Jobs, &project.Job{Name: name, Schedule: never{}})
	}
	return d, nil
}

// TestRestoreNewWarns: whoever restores the config of somebody else is told what it names and what it does not take along, in words that can be
// printed and are not endless.
func TestRestoreNewWarns(t *testing.T) {
	t.Parallel()
	from := newWorld(t, teststore.Memory(t))
	from.fillWith(1, 1)
	info := from.create("daily")
	change := func(holders, more string) func(*forgery) {
		return func(f *forgery) {
			f.files["config/project.yaml"] += more
			f.files["config/project.yaml"] = strings.Replace(f.files["config/project.yaml"], "{name: daily", "{permissions: ["+holders+"], name: daily", 1)
			f.files["config/.ssh/authorized_keys"] = "ssh-rsa"
			f.files["config/README.md"] = "# a shop"
		}
	}
	var many, names []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("u%02d", i))
		if i < 20 {
			names = append(names, fmt.Sprintf(`the config that came with the archive gives rights to the user or team "u%02d" of this service: snapshots daily`, i))
		}
	}
	const left = `files that are no part of the config are left out: ".ssh/authorized_keys", "README.md"`
	for what, tt := range map[string]struct {
		holders string
		more    string
		want    []string
	}{
		"one":       {"ann", "", []string{left, `the config that came with the archive gives rights to the user or team "ann" of this service: snapshots daily`}},
		"an escape": {`"\e[2Jann"`, "", []string{left, `the config that came with the archive gives rights to the user or team "\x1b[2Jann" of this service: snapshots daily`}},
		"too many":  {strings.Join(many, ", "), "", append(append([]string{left}, names...), "the config that came with the archive gives rights to 10 more by name: look at it")},
		"nobody":    {"", "", []string{left}},
		"hosts":     {"", "hook: {http: {allow: [127.0.0.1, \"*.example.com:8080\"]}}\n", []string{left, `the config that came with the archive lets its scripts call these hosts from this service: "127.0.0.1", "*.example.com:8080"`}},
	} {
		w := newWorld(t, teststore.Memory(t))
		in, err := w.imports(forged(t, from, info, change(tt.holders, tt.more)), nil)
		if err != nil {
			t.Fatal(err)
		}
		done, err := w.snaps.RestoreNew(t.Context(), w.p, in.ID, "copy", compiler{}, snapshot.RestoreOptions{Media: true, DryRun: true}, nil)
		if diff := cmp.Diff(tt.want, done.Warnings); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	// What acts by itself does so in the new project, too, whoever has written it.
	var acting acting
	for i := range 21 {
		acting.jobs = append(acting.jobs, fmt.Sprintf("job%02d", i))
	}
	jobs := `these jobs run by schedule in copy, too: "job00"`
	for i := range 19 {
		jobs += fmt.Sprintf(", %q", fmt.Sprintf("job%02d", i+1))
	}
	acts := newWorldOf(t, teststore.Memory(t), strings.Replace(config, "  - {name: daily, ", "  - {name: idle, retention: {keepLast: 1}}\n  - {name: weekly, enabled: true, schedule: \"@weekly\"}\n  - {name: daily, enabled: true, retention: {keepLast: 3}, ", 1))
	acts.fillWith(1, 1)
	told, err := acts.snaps.RestoreNew(t.Context(), acts.p, acts.create("daily").ID, "copy", acting, snapshot.RestoreOptions{Media: true, DryRun: true}, nil)
	if diff := cmp.Diff([]string{
		jobs + ", and 1 more: take what is not to be done twice out of its files, and reload it",
		`these snapshot profiles are enabled in copy, too: "weekly", "daily": have enabled: false in its files where they are not to be, and reload it`,
	}, told.Warnings); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	// What was taken here names whom the config of this service does.
	done, err := from.snaps.RestoreNew(t.Context(), from.p, info.ID, "copy", compiler{}, snapshot.RestoreOptions{Media: true, DryRun: true}, nil)
	if err != nil || len(done.Warnings) > 0 {
		t.Errorf("%v %q", err, done.Warnings)
	}
}

// keeper is a Founder whose projects are kept by the second try.
type keeper struct {
	compiler

	founding bool
	keeps    int
}

func (k *keeper) Found(_ context.Context, d *project.Detached) (*project.Project, error) {
	k.founding = true
	return d.Project, nil
}

func (k *keeper) Founding(context.Context, *project.Project) (bool, error) { return k.founding, nil }

func (k *keeper) Keep(context.Context, *project.Project) error {
	if k.keeps++; k.keeps == 1 {
		return errLost
	}
	k.founding = false
	return nil
}

func (k *keeper) Abandon(context.Context, *project.Project) error { k.founding = false; return nil }

// TestRestoreNewKeptLate: a project whose records are in their place is kept, if not by the first try; then the restore has gone well, as is noted of its run.
func TestRestoreNewKeptLate(t *testing.T) {
	t.Parallel()
	w := newTroubled(newWorld(t, teststore.Memory(t)))
	w.fillWith(1, 1)
	info := w.create("rest")
	k, namespace := &keeper{}, newNamespace()
	done, err := w.snaps.RestoreNew(t.Context(), w.p, info.ID, namespace, k, snapshot.RestoreOptions{}, nil)
	if err != nil || k.founding || k.keeps != 2 || len(done.Collections) == 0 {
		t.Errorf("%v, founding %v, kept %d times, %+v", err, k.founding, k.keeps, done)
	}
	if len(w.told) != 1 || !w.told[0].Forward || len(w.left) > 0 {
		t.Errorf("told is %+v, and %+v", w.told, w.left)
	}
}
