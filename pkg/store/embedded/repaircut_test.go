package embedded_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
)

// TestR2PowerCutInRepair cuts the power in the middle of a repair: the next one ends it, and no document is another.
func TestR2PowerCutInRepair(t *testing.T) {
	const docs = 300
	r := rand.New(rand.NewPCG(seedOf(t), 0))
	for at := int64(1); at <= int64(figure(t, "REPAIRS", 12, 4)); at++ {
		fs := vfs.NewCrashableMem()
		var left *vfs.MemFS
		var calls atomic.Int64
		calls.Store(-1 << 40)
		inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && calls.Add(1) == at {
				left = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
			}
			return nil
		})
		opts := embedded.Options{Dir: "/store", FS: errorfs.Wrap(fs, inject), Ballast: -1}
		s := open(t, opts)
		createIndex(t, collection(s), index("n", "n"))
		for i := range int32(docs) {
			must(t, collection(s), insert(t, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}}))
		}
		for i := range int32(docs) {
			entry := join(numberedKey(3, 1, 2), keyOf(t, i), keyOf(t, i))
			if err := embedded.Damage(s, entry, nil); err != nil {
				t.Fatal(err)
			}
		}
		if validate(t.Context(), s) == nil {
			t.Fatal("the damage is none")
		}
		calls.Store(0)
		repair(t, s)
		calls.Store(-1 << 40)
		validateAndClose(t, s)
		if left == nil { // the repair has fewer calls
			continue
		}
		after, err := embedded.Open(t.Context(), embedded.Options{Dir: "/store", FS: left, Ballast: -1, OnFatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		repair(t, after)
		if n := len(find(t, collection(after), store.Query{Sort: sortBy("n")})); n != docs {
			t.Errorf("%d documents by the index, want %d", n, docs)
		}
		validateAndClose(t, after)
	}
}

func repair(t *testing.T, s *embedded.Store) {
	t.Helper()
	err := s.Repair(t.Context(), func(p store.Problem) {
		if !p.Repairable {
			t.Errorf("can't be repaired: %+v", p)
		}
	}, nil)
	if err != nil {
		t.Errorf("Repair: %v", err)
	}
}
