package controllers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/controllers"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

const uniqueTitle = "{name: t, key: [title], unique: true}"

// insert stores records of articles, past what the config says.
func (w *world) insert(titles ...string) {
	w.Helper()
	var ops []store.Op
	for _, title := range titles {
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "title", Value: title}})
		if err != nil {
			w.Fatal(err)
		}
		ops = append(ops, store.Op{Kind: store.Insert, Doc: raw})
	}
	if err := store.WriteAll(w.Context(), w.store.Database("svc_blog").Collection("articles"), ops...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) plan(id string, bundle *project.Bundle) *api.Plan {
	w.Helper()
	p, err := w.Plan(w.Context(), id, bundle, true)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func planLines(p *api.Plan) []string {
	out := []string{}
	for _, it := range p.Items {
		out = append(out, fmt.Sprintf("%s %s %s %s", it.Action, it.Kind, it.Object, it.Risk))
	}
	return out
}

// wantRefused says that a reload was refused with a code, and nothing changed.
func (w *world) wantRefused(err error, code string, generation int64) {
	w.Helper()
	if err == nil || errs.From(err).Code != code || w.served("blog") != generation {
		w.Errorf("%v, generation %d; want %s, %d", err, w.served("blog"), code, generation)
	}
}

// A reload does what was planned, or nothing, whatever the watch mode; afterwards there is nothing to do.
func TestPlannedReload(t *testing.T) {
	onStores(t, func(t *testing.T, s *spy) {
		t.Helper()
		for i, mode := range []controllers.WatchMode{controllers.WatchOff, controllers.WatchNotify} {
			w := newWorld(t, s, t.TempDir(), watching(mode))
			w.edit(config("blog", "title", ""))
			id := w.register()
			if i == 0 {
				w.insert("a", "b", "a")
			}
			if p := w.plan(id, nil); !p.Empty || p.Generation != 1 || p.Revision != p.Next {
				t.Errorf("nothing has changed: %+v", p)
			}

			w.edit(config("blog", "title", uniqueTitle))
			p := w.plan(id, nil)
			diff(t, "items", []string{"create index articles.t breaking"}, planLines(p))
			if it := p.Items[0]; *it.Records != 3 || *it.Failing != 2 || len(it.Samples) != 2 || p.Risk != api.RiskBreaking || p.Counts[api.RiskBreaking] != 1 {
				t.Errorf("%+v", p)
			}
			if again := w.plan(id, nil); again.Hash != p.Hash {
				t.Errorf("planned again: %s, %s", again.Hash, p.Hash)
			}

			err := w.ReloadPlanned(t.Context(), id, strings.Repeat("0", 32), "")
			w.wantRefused(err, "plan_changed", 1)
			err = w.ReloadPlanned(t.Context(), id, p.Hash, api.RiskSlow)
			w.wantRefused(err, "plan_above_risk", 1)
			if want := "create index articles.t (breaking)"; !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
			w.edit(config("blog", "titel", ""))
			err = w.ReloadPlanned(t.Context(), id, p.Hash, api.RiskDestructive)
			w.wantRefused(err, "plan_changed", 1)

			w.edit(config("blog", "title", uniqueTitle))
			if err = w.ReloadPlanned(t.Context(), id, p.Hash, api.RiskBreaking); err != nil || w.served("blog") != 2 {
				t.Fatalf("%v, generation %d", err, w.served("blog"))
			}
			done := w.plan(id, nil)
			if !done.Empty || done.Hash == p.Hash {
				t.Errorf("after the apply: %+v", done)
			}
			if err = w.ReloadPlanned(t.Context(), id, done.Hash, api.RiskSafe); err != nil || w.served("blog") != 2 { // nothing is what was planned
				t.Errorf("%v, generation %d", err, w.served("blog"))
			}
			w.edit(broken)
			if _, err := w.Plan(t.Context(), id, nil, true); !errors.As(err, new(*project.ConfigError)) {
				t.Errorf("broken files: %v", err)
			}
			if err := w.ReloadPlanned(t.Context(), id, "", api.RiskDestructive); !errors.As(err, new(*project.ConfigError)) || w.served("blog") != 2 {
				t.Errorf("broken files: %v, generation %d", err, w.served("blog"))
			}
			if err := w.Unregister(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A bundle is planned as the same files on disk would be. Nothing of it stays.
func TestPlanOfABundle(t *testing.T) {
	asked := map[string]bool{}
	w := newWorld(t, newEmbedded(t), t.TempDir(), func(d *controllers.Deps) {
		d.Watch = controllers.WatchOff
		d.Env = func(name string) (string, bool) {
			asked[name] = true
			return "value-of-" + name, true
		}
	})
	meta := func(text string) string { return "meta: {description: '" + text + "'}\n" }
	w.edit(config("blog", "title", "") + meta("${env:KNOWN}"))
	id := w.register()
	w.insert("a", "a")
	bundle := func(text string) *project.Bundle {
		return &project.Bundle{Files: map[string][]byte{"project.yaml": []byte(text)}}
	}
	next := config("blog", "title", uniqueTitle) + meta("${env:KNOWN} and more")
	uploaded := w.plan(id, bundle(next))
	w.edit(next)
	onDisk := w.plan(id, nil)
	if want := []string{"update project meta safe", "create index articles.t breaking"}; uploaded.Hash != onDisk.Hash || !slices.Equal(planLines(uploaded), want) {
		t.Errorf("%v, on disk %v", planLines(uploaded), planLines(onDisk))
	}
	if w.served("blog") != 1 {
		t.Errorf("generation %d", w.served("blog"))
	}

	blind, err := w.Plan(t.Context(), id, bundle(next), false)
	if err != nil || blind.Hash != uploaded.Hash || blind.Items[1].Records != nil || len(blind.Items[1].Samples) > 0 || blind.Items[1].Risk != api.RiskBreaking {
		t.Errorf("without counting: %+v, %v", blind, err)
	}

	clear(asked)
	secret := w.plan(id, bundle(config("blog", "'${env:OTHER}'", "")+meta("${env:KNOWN}${file:/run/secrets/other}")))
	if asked["OTHER"] || !asked["KNOWN"] || slices.Contains(planLines(secret), "create field articles.value-of-OTHER safe") {
		t.Errorf("asked for %v: %v", asked, planLines(secret))
	}

	for text, code := range map[string]string{broken: "invalid_config", config("other", "title", ""): "namespace_changed"} {
		if _, err := w.Plan(t.Context(), id, bundle(text), true); err == nil || errs.From(err).Code != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
	if _, err := w.Plan(t.Context(), bson.NewObjectID().Hex(), nil, true); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("of no registration: %v", err)
	}
}
