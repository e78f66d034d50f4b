package storetest

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/store"
)

// permutations gives no index, and then every kind of index that could have a say in an answer about paths, one at a
// time: ascending, descending, sparse, partial, unique, and compound ones in which a path comes first or last. Without
// SOAK it is every second of them, for one path these and for the next the others: they are most of the time of the
// suite, and the differential tests make random ones.
func permutations(paths ...string) []store.Index {
	all := []store.Index{{}}
	for _, path := range paths {
		all = append(
			all, on(path), on("-"+path), sparse(on(path)), unique(on(path)), unique(sparse(on(path))),
			on(path+" other"), on("other "+path), on("-"+path+" -_id"), sparse(on(path+" other")),
			partial(on(path), `{"`+path+`":{"$exists":true}}`), partial(on("-"+path), `{"`+path+`":{"$gt":1}}`),
			partial(on(path), `{"$or":[{"`+path+`":{"$type":"string"}},{"`+path+`":{"$lte":2}}]}`),
			partial(unique(on(path)), `{"other":{"$exists":true}}`),
		)
	}
	if len(paths) > 1 {
		all = append(all, on(strings.Join(paths, " ")), on("-"+strings.Join(paths, " ")), on(strings.Join(paths, " -")))
	}
	for i := range all {
		all[i].Name = fmt.Sprintf("p%d", i)
	}
	if soaking() {
		return all
	}
	share := []store.Index{all[0]}
	for i := 1; i < len(all); i += 2 {
		share = append(share, all[i])
	}
	return share
}

// soaking says whether all the time in the world is there: SOAK is set (see rounds).
func soaking() bool { return os.Getenv("SOAK") != "" }

// admitting gives indexes with the _id behind the keys of unique ones, so that these take any document.
func admitting(indexes []store.Index) []store.Index {
	for i := range indexes {
		if indexes[i].Unique {
			indexes[i].Keys = append(indexes[i].Keys, store.IndexKey{Path: "_id"})
		}
	}
	return indexes
}

// underIndexes runs check under each of indexes, one at a time: what it reads and writes must not depend on them. Indexes
// that the documents do not admit (unique ones, and those on two lists) are left out.
func (f *fixture) underIndexes(t *testing.T, indexes []store.Index, check func(f *fixture)) {
	t.Helper()
	if _, ok := around.Load(f.store); ok && !soaking() {
		indexes = few(t, indexes)
	}
	for _, index := range indexes {
		t.Run(describeIndex(index), func(t *testing.T) {
			f := f.in(t)
			if len(index.Keys) > 0 {
				if err := f.CreateIndex(t.Context(), index); err != nil {
					if _, violated := asViolation(err); violated || outcome(err) == "invalid" {
						return
					}
					t.Fatalf("CreateIndex: %v", err)
				}
				defer f.drop(index)
			}
			check(f)
		})
	}
}

// few gives the first, which is mostly none, and two others, which are other ones for each check.
func few(t *testing.T, indexes []store.Index) []store.Index {
	t.Helper()
	if len(indexes) <= 3 {
		return indexes
	}
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name())) // it never fails
	others := indexes[1:]
	at := int(name.Sum32() % uint32(len(others))) //nolint:gosec // there are some twenty
	return []store.Index{indexes[0], others[at], others[(at+len(others)/2)%len(others)]}
}

func describeIndex(index store.Index) string {
	if len(index.Keys) == 0 {
		return "no index"
	}
	var words []string
	for _, k := range index.Keys {
		direction := ""
		if k.Desc {
			direction = "-"
		}
		words = append(words, direction+k.Path)
	}
	if index.Unique {
		words = append(words, "unique")
	}
	if index.Sparse {
		words = append(words, "sparse")
	}
	if index.Partial != nil {
		words = append(words, "where", index.Partial.Raw().String())
	}
	return strings.Join(words, " ")
}

// partial limits an index to some documents.
func partial(index store.Index, where string) store.Index {
	index.Partial = filter(where)
	return index
}
