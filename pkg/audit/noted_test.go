package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/lease"
)

// forget does away with a log, as somebody with the store would who then writes another one.
func (f *fixture) forget(seqs ...int64) {
	f.Helper()
	f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(seqs...), Many: true})
	f.tamper("svc.audit_head", store.Op{Kind: store.Delete, Filter: mql.MustCompile(nil), Many: true})
}

// reseal has the service chain all entries anew, as they are now.
func (f *fixture) reseal() {
	f.Helper()
	for _, d := range f.entries() {
		d = document.Set(document.Unset(document.Unset(d, "prev"), "hash"), "seq", int64(0))
		f.tamper("svc.audit", store.Op{Kind: store.Replace, Doc: marshal(f.T, d)})
	}
	f.tamper("svc.audit_head", store.Op{Kind: store.Delete, Filter: mql.MustCompile(nil), Many: true})
	if err := f.log.Seal(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// TestNoted holds a log against a place that was noted earlier: what was done to it meanwhile is intact by itself.
func TestNoted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		noted  func(r *audit.Report) audit.Place // of a log of 5 entries
		tamper func(f *fixture)
		want   []string
	}{
		{"the head", head, nothing, []string{}},
		{"the log has grown", head, func(f *fixture) { f.fill(3) }, []string{}},
		{"another hash", func(*audit.Report) audit.Place { return audit.Place{Seq: 5, Hash: strings.Repeat("0", 64)} }, nothing, []string{"replaced 5"}},
		{"the empty log", func(*audit.Report) audit.Place { return audit.Place{} }, nothing, []string{}},
		{"another log, as long", head, func(f *fixture) { f.forget(1, 2, 3, 4, 5); f.fill(5) }, []string{"replaced 5"}},
		{"another log, longer", head, func(f *fixture) { f.forget(1, 2, 3, 4, 5); f.fill(9) }, []string{"replaced 5"}},
		{"an empty log", head, func(f *fixture) { f.forget(1, 2, 3, 4, 5) }, []string{"replaced 5"}},
		{"the end cut off, and chained anew", head, func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(5)})
			f.reseal()
		}, []string{"replaced 5"}},
		{"one changed, and chained anew", head, func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(2), Update: set("after.n", int64(99))})
			f.reseal()
		}, []string{"replaced 5"}},
		{"the noted one changed", head, func(f *fixture) {
			f.tamper("svc.audit", store.Op{Kind: store.Update, Filter: of(5), Update: set("after.n", int64(99))})
		}, []string{"changed 5", "replaced 5"}},
		{"the noted one taken away", head, func(f *fixture) {
			f.fill(1)
			f.tamper("svc.audit", store.Op{Kind: store.Delete, Filter: of(5)})
		}, []string{"missing 5-5", "replaced 5"}},
		{"the last that has expired", head, func(f *fixture) { f.expire() }, []string{}},
		{"one that has expired", head, func(f *fixture) { f.fill(1); f.expire() }, []string{"expired 5"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, s store.Store) {
				f := newFixture(t, s)
				f.fill(5)
				noted := tt.noted(f.verify())
				tt.tamper(f)
				report, err := f.log.Verify(t.Context(), &noted)
				if err != nil {
					t.Fatal(err)
				}
				got := []string{}
				for _, p := range report.Problems {
					got = append(got, short(p))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func head(r *audit.Report) audit.Place { return r.Head }

func nothing(*fixture) {}

// expire has all that is there expire and cuts it off.
func (f *fixture) expire() {
	f.Helper()
	f.clock.Pass(keep)
	if err := f.log.Prune(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// TestVerifyWithoutSealing has a log that another process is sealing, and does not get on with: what is sealed can be
// verified nevertheless.
func TestVerifyWithoutSealing(t *testing.T) {
	eachStore(t, func(t *testing.T, s store.Store) {
		f := newFixture(t, s)
		f.fill(3)
		before := f.verify()
		if _, err := lease.New(s.Database(f.database), "another", nil).Acquire(t.Context(), "audit", time.Hour); err != nil {
			t.Fatal(err)
		}
		entry := audit.Entry{Kind: audit.Records, Op: audit.OpUpdate, Collection: "articles", RecordID: "4"}
		f.append(entry, entry)
		got := f.verify()
		if got.Head != before.Head || got.Entries != 3 || got.Unsealed != 2 || len(got.Problems) > 0 {
			t.Errorf("got %+v, want 3 entries, 2 that are not sealed, and the head %v", got, before.Head)
		}
	})
}
