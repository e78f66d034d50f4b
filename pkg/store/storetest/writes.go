package storetest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/store"
)

// writeCase is one call of Write: what is there, what is asked, the outcome of each op, and what is there then.
type writeCase struct {
	name    string
	indexes []store.Index
	given   []string
	atomic  bool
	ops     []store.Op
	want    []string
	then    []string
}

func (c writeCase) run(t *testing.T, s store.Store) {
	f := newFixture(t, s)
	for _, index := range c.indexes {
		f.index(index)
	}
	f.given(c.given...)
	if diff := cmp.Diff(c.want, f.write(c.atomic, c.ops...)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	then := make([]string, len(c.then))
	for i, d := range c.then {
		then[i] = doc(d).String()
	}
	if diff := cmp.Diff(strings.Join(then, "\n"), f.contents()); diff != "" {
		t.Errorf("documents afterwards (-want +got):\n%s", diff)
	}
}

func testWrites(t *testing.T, s store.Store) {
	for _, c := range append(singleWrites(), batchWrites()...) {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
	t.Run("no ops", func(t *testing.T) {
		f := newFixture(t, s)
		for _, atomic := range []bool{false, true} {
			if got := f.write(atomic); len(got) != 0 {
				t.Errorf("atomic %v: outcomes %v", atomic, got)
			}
		}
	})
	t.Run("many ops", func(t *testing.T) {
		for _, atomic := range []bool{false, true} {
			testManyOps(t, s, atomic)
		}
	})
}

func singleWrites() []writeCase {
	one := []string{`{"_id":1,"a":1}`}
	return []writeCase{
		{
			name: "insert", ops: []store.Op{insert(`{"_id":1,"a":1}`)},
			want: []string{"ok"}, then: one,
		}, {
			name: "insert with a taken id", given: one, ops: []store.Op{insert(`{"_id":1,"a":2}`)},
			want: []string{"dup _id[_id]"}, then: one,
		}, {
			name: "ids are equal across number types", given: one,
			ops:  []store.Op{insert(`{"_id":1.0}`), insert(`{"_id":{"$numberLong":"1"}}`), insert(`{"_id":"1"}`)},
			want: []string{"dup _id[_id]", "dup _id[_id]", "ok"}, then: []string{`{"_id":1,"a":1}`, `{"_id":"1"}`},
		}, {
			name: "replace puts the whole document", given: []string{`{"_id":1,"a":1,"b":2}`},
			ops: []store.Op{replace(`{"_id":1,"c":3}`)}, want: []string{"ok"}, then: []string{`{"_id":1,"c":3}`},
		}, {
			name: "replace with the same document", given: one, ops: []store.Op{replace(`{"_id":1,"a":1}`)},
			want: []string{"ok"}, then: one,
		}, {
			name: "replace a missing document", given: one, ops: []store.Op{replace(`{"_id":2}`)},
			want: []string{"missing"}, then: one,
		}, {
			name: "delete", given: []string{`{"_id":1}`, `{"_id":2}`}, ops: []store.Op{remove(`1`)},
			want: []string{"ok"}, then: []string{`{"_id":2}`},
		}, {
			name: "delete a missing document", given: one, ops: []store.Op{remove(`2`)},
			want: []string{"missing"}, then: one,
		}, {
			name: "replace if: matches", given: one,
			ops:  []store.Op{when(`{"a":1}`, replace(`{"_id":1,"a":2}`))},
			want: []string{"ok"}, then: []string{`{"_id":1,"a":2}`},
		}, {
			name: "replace if: differs", given: one,
			ops:  []store.Op{when(`{"a":2}`, replace(`{"_id":1,"a":2}`))},
			want: []string{"stale"}, then: one,
		}, {
			name: "replace if: missing", ops: []store.Op{when(`{"a":1}`, replace(`{"_id":1}`))},
			want: []string{"missing"},
		}, {
			name: "delete if: matches", given: one, ops: []store.Op{when(`{"a":{"$gte":1}}`, remove(`1`))},
			want: []string{"ok"},
		}, {
			name: "delete if: differs", given: one, ops: []store.Op{when(`{"a":{"$gt":1}}`, remove(`1`))},
			want: []string{"stale"}, then: one,
		}, {
			name: "delete if: missing", given: one, ops: []store.Op{when(`{"a":1}`, remove(`2`))},
			want: []string{"missing"}, then: one,
		}, {
			name: "a condition on another document does not count", given: []string{`{"_id":1,"a":1}`, `{"_id":2,"a":2}`},
			ops:  []store.Op{when(`{"a":2}`, remove(`1`)), when(`{"_id":2}`, remove(`1`))},
			want: []string{"stale", "stale"}, then: []string{`{"_id":1,"a":1}`, `{"_id":2,"a":2}`},
		}, {
			name: "conditions are filters", given: []string{`{"_id":1,"a":[1,5]}`},
			ops: []store.Op{
				when(`{"b":null,"a":5}`, replace(`{"_id":1,"a":[{"b":1}]}`)),
				when(`{"$or":[{"x":1},{"a.b":{"$in":[1]}}]}`, replace(`{"_id":1}`)),
				when(`{"a":{"$exists":true}}`, remove(`1`)),
			},
			want: []string{"ok", "ok", "stale"}, then: []string{`{"_id":1}`},
		},
	}
}

func batchWrites() []writeCase {
	three := []string{`{"_id":1,"a":1}`, `{"_id":2,"a":2}`, `{"_id":3,"a":3}`}
	all := []writeCase{
		{
			name: "ops apply in order",
			ops: []store.Op{
				insert(`{"_id":1,"a":1}`), replace(`{"_id":1,"a":2}`), remove(`1`), insert(`{"_id":1,"a":3}`),
				when(`{"a":3}`, replace(`{"_id":1,"a":4}`)), insert(`{"_id":2}`), remove(`2`),
			},
			want: []string{"ok", "ok", "ok", "ok", "ok", "ok", "ok"}, then: []string{`{"_id":1,"a":4}`},
		}, {
			name: "a unique value changes hands", indexes: []store.Index{unique(on("a"))}, given: three,
			ops: []store.Op{
				replace(`{"_id":1,"a":10}`), replace(`{"_id":2,"a":1}`), remove(`3`), insert(`{"_id":4,"a":3}`),
			},
			want: []string{"ok", "ok", "ok", "ok"},
			then: []string{`{"_id":1,"a":10}`, `{"_id":2,"a":1}`, `{"_id":4,"a":3}`},
		},
	}
	// Whatever succeeds as a whole does so with and without atomic.
	for _, c := range all {
		c.name, c.atomic = c.name+", atomic", true
		all = append(all, c)
	}
	all = append(all, writeCase{
		name: "each op stands by itself", indexes: []store.Index{unique(on("a"))}, given: three,
		ops: []store.Op{
			insert(`{"_id":1}`), insert(`{"_id":4,"a":4}`), replace(`{"_id":9}`), remove(`9`), remove(`2`),
			when(`{"a":0}`, remove(`1`)), replace(`{"_id":3,"a":1}`), insert(`{"_id":5,"a":4}`), insert(`{"_id":6,"a":2}`),
		},
		want: []string{"dup _id[_id]", "ok", "missing", "missing", "ok", "stale", "dup a[a]", "dup a[a]", "ok"},
		then: []string{`{"_id":1,"a":1}`, `{"_id":3,"a":3}`, `{"_id":4,"a":4}`, `{"_id":6,"a":2}`},
	})
	// An atomic batch with one failing op changes nothing, wherever that op is and whatever it fails with.
	for _, failing := range []struct {
		op   store.Op
		want string
	}{
		{insert(`{"_id":1}`), "dup _id[_id]"},
		{insert(`{"_id":9,"a":3}`), "dup a[a]"},
		{replace(`{"_id":2,"a":3}`), "dup a[a]"},
		{replace(`{"_id":9,"a":9}`), "missing"},
		{remove(`9`), "missing"},
		{when(`{"a":0}`, replace(`{"_id":2}`)), "stale"},
		{when(`{"a":0}`, remove(`2`)), "stale"},
	} {
		for at, position := range []string{"first", "middle", "last"} {
			ops := []store.Op{insert(`{"_id":4,"a":4}`), replace(`{"_id":1,"a":10}`)}
			want := []string{"aborted", "aborted", "aborted"}
			want[at] = failing.want
			all = append(all, writeCase{
				name: "atomic, " + position + " fails: " + failing.want, indexes: []store.Index{unique(on("a"))},
				given: three, atomic: true, want: want, then: three,
				ops: append(append(append([]store.Op{}, ops[:at]...), failing.op), ops[at:]...),
			})
		}
	}
	return append(all, writeCase{
		name: "atomic: the first of two failures is told", given: three, atomic: true,
		ops:  []store.Op{insert(`{"_id":4}`), remove(`9`), insert(`{"_id":1}`)},
		want: []string{"aborted", "missing", "aborted"}, then: three,
	}, writeCase{
		name: "atomic: uniqueness is checked op by op", indexes: []store.Index{unique(on("a"))}, given: three, atomic: true,
		ops:  []store.Op{replace(`{"_id":1,"a":2}`), replace(`{"_id":2,"a":1}`)},
		want: []string{"dup a[a]", "aborted"}, then: three,
	}, writeCase{
		name: "atomic: two inserts of one id", atomic: true,
		ops:  []store.Op{insert(`{"_id":1}`), insert(`{"_id":1}`)},
		want: []string{"aborted", "dup _id[_id]"},
	}, writeCase{
		name: "atomic: a condition sees earlier ops", given: three, atomic: true,
		ops:  []store.Op{replace(`{"_id":1,"a":7}`), when(`{"a":1}`, remove(`1`))},
		want: []string{"aborted", "stale"}, then: three,
	})
}

// testManyOps sends a batch that no adapter sends in one piece, with failures spread over it.
func testManyOps(t *testing.T, s store.Store, atomic bool) {
	const n = 700
	f := newFixture(t, s)
	inserts := make([]store.Op, n)
	for i := range inserts {
		inserts[i] = store.Op{Kind: store.Insert, Doc: numbered(i, 0)}
	}
	for i, got := range f.write(atomic, inserts...) {
		if got != "ok" {
			t.Fatalf("insert %d: %s", i, got)
		}
	}

	replaces := make([]store.Op, n)
	for i := range replaces {
		replaces[i] = store.Op{Kind: store.Replace, Doc: numbered(i, 1)}
	}
	replaces[n/2].Doc = numbered(n, 1)
	wantRest, changed := "ok", int64(n-1)
	if atomic {
		wantRest, changed = "aborted", 0
	}
	for i, got := range f.write(atomic, replaces...) {
		want := wantRest
		if i == n/2 {
			want = "missing"
		}
		if got != want {
			t.Fatalf("atomic %v: replace %d: got %s, want %s", atomic, i, got, want)
		}
	}
	got, err := f.Count(t.Context(), filter(`{"n":1}`), 0)
	if err != nil || got != changed {
		t.Errorf("atomic %v: %d documents changed (%v), want %d", atomic, got, err, changed)
	}
}
