package snapshot

import (
	"maps"
	"reflect"
	"slices"

	"github.com/svcctl/svc/pkg/schema"
)

// drifts says that the config is another one than that of the snapshot.
func (r *restore) drifts() bool { return !r.own && r.from.m.Revision != r.p.Revision }

func (r *restore) drift(collection, kind, text string) {
	r.result.Drift = append(r.result.Drift, Drift{Collection: collection, Kind: kind, Text: text})
}

// declared reads what the configs of then and of now say of collections, where they are not the same. If one of them can't be read, it tells so: then nobody
// knows what has changed.
func (r *restore) declared() {
	r.was, r.is = nil, nil
	if !r.drifts() {
		return
	}
	if config, err := r.configOf(); err == nil {
		was, known := config.Collections()
		is, ok := r.p.Bundle.Collections()
		if known && ok {
			r.was, r.is = was, is
			return
		}
	}
	r.drift("", DriftConfig, "the snapshot was taken with another config than is served, which can't be compared with it: look whether fields have changed")
}

// fieldDrift tells of fields that the config declares otherwise than when the snapshot was taken.
func (r *restore) fieldDrift(one *part) {
	renamed := one.names != nil && r.drifts()
	if was, is := r.was[one.name], r.is[one.name]; was != nil && is != nil {
		other := otherFields(was, is)
		if len(other) > 0 {
			r.drift(one.name, DriftConfig, "the config declares these fields otherwise than when the snapshot was taken: "+some("%.80q", other))
		}
		renamed = renamed && len(other) > 0
	} else if r.is != nil {
		r.drift(one.name, DriftConfig, "the config did not have the collection when the snapshot was taken")
	}
	if renamed {
		r.drift(one.name, DriftFields, "fields of the collection were renamed: what the snapshot has by names of before keeps these")
	}
}

// otherFields are the fields of a collection that were added, changed or removed, by name.
func otherFields(was, is *schema.Collection) []string {
	byName := func(c *schema.Collection) map[string]*schema.Field {
		out := map[string]*schema.Field{}
		for _, f := range c.Fields {
			out[f.Name] = f
		}
		return out
	}
	before, now := byName(was), byName(is)
	other := map[string]bool{}
	for name, f := range before {
		other[name] = !reflect.DeepEqual(f, now[name])
	}
	for name := range now {
		if before[name] == nil {
			other[name] = true
		}
	}
	maps.DeleteFunc(other, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(other))
}
