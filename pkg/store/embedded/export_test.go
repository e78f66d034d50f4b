package embedded

import (
	"slices"

	"github.com/svcctl/svc/pkg/store"
)

// MarkIndex begins an index build and leaves it there, as an end of the process does.
func MarkIndex(c store.Collection, def store.Index) error {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	_, _, err := coll.s.markIndex(coll.name, coll.s.cat.get(coll.name), def)
	return err
}

// Building names the indexes that are not ready.
func Building(c store.Collection) []string {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	set := coll.currentIndexes()
	var names []string
	for _, x := range set.all {
		if !slices.Contains(set.ready, x) {
			names = append(names, x.def.Name)
		}
	}
	return names
}

// Waiters says how many calls wait for a build.
func Waiters(c store.Collection, name string) int {
	coll := c.(*Collection)
	coll.s.commit.Lock()
	defer coll.s.commit.Unlock()
	if x := coll.currentIndexes().find(name); x != nil && x.build != nil {
		return x.build.waiters
	}
	return 0
}

// HoldBuilds lets no build run until release is called.
func HoldBuilds(s *Store) (release func()) {
	s.building <- struct{}{}
	return func() { <-s.building }
}
