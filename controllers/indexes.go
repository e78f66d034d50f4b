package controllers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
)

// indexPrefix marks the indexes that the service made, so that it never drops one made by other hands.
const indexPrefix = "svc_"

// isOurs says whether the service made an index.
func isOurs(ix store.Index) bool { return strings.HasPrefix(ix.Name, indexPrefix) }

// desiredIndexes gives the indexes that a collection declares by their names in the store; nil declares none.
func desiredIndexes(c *project.Collection) map[string]store.Index {
	out := map[string]store.Index{}
	if c == nil {
		return out
	}
	for _, ix := range c.Indexes {
		s := store.Index{Name: indexPrefix + ix.Name, Unique: ix.Unique, Sparse: ix.Sparse}
		for _, k := range ix.Keys {
			s.Keys = append(s.Keys, store.IndexKey(k))
		}
		out[s.Name] = s
	}
	return out
}

// secondName is the name in the store of an index that is built while its own name is still that of its predecessor.
func secondName(ix store.Index) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %t %t", keyNames(ix.Keys), ix.Unique, ix.Sparse))
	return ix.Name + secondMark + hex.EncodeToString(sum[:4])
}

const secondMark = "~" // declared names have none

// firstName gives the first name of an index of ours, whichever it is stored under.
func firstName(name string) string {
	first, _, _ := strings.Cut(name, secondMark)
	return first
}

// indexPlan is what has to be done to a collection's indexes.
type indexPlan struct {
	drop  []string // at first
	build []indexBuild
}

// indexBuild is an index to be built.
type indexBuild struct {
	declared string // the name that it is declared by
	index    store.Index
	replaces []string // to be dropped when it is ready
}

// planIndexes compares a collection's indexes with those that are to be.
func planIndexes(actual []store.Index, desired map[string]store.Index) indexPlan {
	var plan indexPlan
	missing := map[string]store.Index{}
	stands := map[string]bool{}
	for name, want := range desired {
		if by := standsFor(actual, want); by != "" {
			stands[by] = true
		} else {
			missing[name] = want
		}
	}
	taken := map[string]bool{}
	replaces := map[string][]string{}
	for _, ix := range actual {
		if !isOurs(ix) || stands[ix.Name] {
			taken[ix.Name] = true
			continue
		}
		// MongoDB does not keep two indexes that differ in no more than their names: what has the keys of one to come
		// goes before.
		inTheWay := slices.ContainsFunc(slices.Collect(maps.Values(missing)), func(want store.Index) bool {
			return slices.Equal(ix.Keys, want.Keys)
		})
		first := firstName(ix.Name)
		if _, waits := missing[first]; waits && !inTheWay {
			taken[ix.Name] = true
			replaces[first] = append(replaces[first], ix.Name)
			continue
		}
		plan.drop = append(plan.drop, ix.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		ix := missing[name]
		if taken[name] {
			ix.Name = secondName(ix)
		}
		plan.build = append(plan.build, indexBuild{declared: name, index: ix, replaces: replaces[name]})
	}
	return plan
}

// standsFor gives the name of the index that does what want is to do, or "". The best is that of its own name; one that had
// another name in a config before will do, so that an index which is renamed is not built anew, and so will one made by other hands:
// MongoDB does not keep two equal ones.
func standsFor(actual []store.Index, want store.Index) string {
	by := ""
	for _, ix := range actual {
		switch {
		case !sameIndex(ix, want):
		case ix.Name == want.Name:
			return ix.Name
		case by == "" || isOurs(ix) && !strings.HasPrefix(by, indexPrefix):
			by = ix.Name
		}
	}
	return by
}

func sameIndex(a, b store.Index) bool {
	return a.Unique == b.Unique && a.Sparse == b.Sparse && slices.Equal(a.Keys, b.Keys)
}

func keyNames(keys []store.IndexKey) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		name := k.Path
		if k.Desc {
			name = "-" + name
		}
		out = append(out, name)
	}
	return out
}

// describe tells how each index of a collection stands: the declared ones, then those made by other hands.
func (r *indexReconciler) describe(ctx context.Context, p *project.Project, c *project.Collection) ([]api.IndexDescription, error) {
	actual, err := r.records(p).Collection(c.StoredName()).Indexes(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	refused := r.refused[p.ID]
	r.mu.Unlock()
	desired := desiredIndexes(c)
	out := make([]api.IndexDescription, 0, len(desired))
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		state, message := api.IndexBuilding, ""
		by := standsFor(actual, desired[name])
		switch why, failed := refused.of(c.Name, name); {
		case by != "" && !strings.HasPrefix(by, indexPrefix):
			state, message = api.IndexReady, "the index "+by+", made by other hands, does its work"
		case by != "":
			state = api.IndexReady
		case failed:
			state, message = api.IndexFailed, why.text
		}
		out = append(out, describeIndex(desired[name], state, message))
	}
	for _, ix := range actual {
		if !isOurs(ix) { // of ours, what is not declared is about to go
			out = append(out, describeIndex(ix, api.IndexForeign, ""))
		}
	}
	return out, nil
}

// stats tells how large a collection is, and each index of it.
func (r *indexReconciler) stats(ctx context.Context, p *project.Project, collection string) (api.CollectionStats, error) {
	stored := collection
	if c := p.Collections[collection]; c != nil {
		stored = c.StoredName()
	}
	coll := r.records(p).Collection(stored)
	stats, err := coll.Stats(ctx)
	if err != nil {
		return api.CollectionStats{}, err
	}
	actual, err := coll.Indexes(ctx)
	if err != nil {
		return api.CollectionStats{}, err
	}
	out := api.CollectionStats{
		Name: collection, Records: stats.Documents, Bytes: stats.Bytes, DiskBytes: stats.DiskBytes, Indexes: []api.IndexStats{},
	}
	names := map[string]string{} // that are declared, of indexes that are stored by others
	if c := p.Collections[collection]; c != nil {
		for name, want := range desiredIndexes(c) {
			if by := standsFor(actual, want); strings.HasPrefix(by, indexPrefix) {
				names[by] = name
			}
		}
	}
	for _, ix := range actual {
		if size, ok := stats.IndexBytes[ix.Name]; ok {
			ix.Name = cmp.Or(names[ix.Name], ix.Name)
			d := describeIndex(ix, "", "")
			out.Indexes = append(out.Indexes, api.IndexStats{Name: d.Name, Key: d.Key, DiskBytes: size})
		}
	}
	return out, nil
}

func describeIndex(ix store.Index, state, message string) api.IndexDescription {
	return api.IndexDescription{
		Name: strings.TrimPrefix(ix.Name, indexPrefix), Key: keyNames(ix.Keys), Unique: ix.Unique, Sparse: ix.Sparse,
		State: state, Message: message,
	}
}
