package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/media"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// writer changes a project all the time, and keeps what holds of it at each moment: the amounts of all items sum up to 0, the post n and
// the item n have one version, and a post's file is what the post says.
type writer struct {
	*world

	posts int
	wrote chan struct{} // a value for each write
	count atomic.Int64  // of writes

	over   context.Context //nolint:containedctx // ends when a write has failed
	broken context.CancelFunc
}

const (
	accounts = 20
	sides    = 8 // from which it writes
)

func newWriter(w *world) *writer {
	out := &writer{world: w, posts: 10, wrote: make(chan struct{}, 1000)}
	out.over, out.broken = context.WithCancel(w.Context())
	w.Cleanup(out.broken)
	return out
}

// live gives the files that posts name, as the service does.
func (w *writer) live(ctx context.Context, _, record string) (map[string]bool, error) {
	id, err := bson.ObjectIDFromHex(record)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	doc, err := w.records("posts").Get(ctx, bson.RawValue{Type: bson.TypeObjectID, Value: id[:]})
	if errors.Is(err, errs.ErrNotFound) {
		return named, nil
	}
	if err != nil {
		return nil, err
	}
	w.p.Collections["posts"].FileAddresses(w.p.Namespace, id).Keys(doc, named)
	return named, nil
}

func (w *writer) begin() {
	w.Helper()
	for n := range accounts {
		w.insert("items", bson.D{{Key: "_id", Value: n}, {Key: "amount", Value: int64(0)}})
	}
}

// move moves an amount from one item to another, in one transaction.
func (w *writer) move(ctx context.Context, r *rand.Rand) error {
	from, to, amount := r.IntN(accounts), r.IntN(accounts), r.Int64N(1000)
	if from == to {
		return nil
	}
	return w.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		for id, by := range map[int]int64{from: -amount, to: amount} {
			kind, data, err := bson.MarshalValue(id)
			if err != nil {
				return err
			}
			inc := mql.MustCompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "amount", Value: by}}}})
			op := store.Op{Kind: store.Update, ID: bson.RawValue{Type: kind, Value: data}, Update: inc}
			if err := store.WriteAll(ctx, tx.Collection("items"), op); err != nil {
				return err
			}
		}
		return nil
	})
}

// change gives a post another file and version, together with its item, or deletes both.
func (w *writer) change(ctx context.Context, r *rand.Rand, n int) error {
	id := idOf(n)
	key := bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
	files, err := w.library.Store(w.p.Namespace)
	if err != nil {
		return err
	}
	if r.IntN(5) == 0 {
		err := w.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
			for _, name := range []string{"posts", "items"} {
				if err := store.WriteAll(ctx, tx.Collection(name), store.Op{Kind: store.Delete, ID: key}); err != nil && !errors.Is(err, errs.ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return files.RemoveRecord(ctx, "posts", id.Hex(), w.live)
	}
	version := strconv.Itoa(int(r.Int32()))
	file, keep := w.stage("posts", id, "cover", "cover.txt", "version "+version)
	defer keep()
	before, err := w.live(ctx, "posts", id.Hex())
	if err != nil {
		return err
	}
	err = w.db.Transact(ctx, func(ctx context.Context, tx store.Tx) error {
		for name, doc := range map[string]bson.D{
			"posts": {{Key: "_id", Value: id}, {Key: "version", Value: version}, {Key: "cover", Value: file}},
			"items": {{Key: "_id", Value: id}, {Key: "version", Value: version}},
		} {
			same := mql.MustCompile(bson.D{{Key: "_id", Value: id}})
			if err := store.WriteAll(ctx, tx.Collection(name), store.Op{Kind: store.Replace, Doc: encode(w, doc), Filter: same, Upsert: true}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	keep()
	var gone []string
	for k := range before {
		if k != media.Key("cover", file[1].Value.(string)) { //nolint:errcheck,forcetypeassert // it is a name
			gone = append(gone, k)
		}
	}
	return files.Remove(ctx, "posts", id.Hex(), gone, w.live)
}

// run writes from several sides until the end of ctx.
func (w *writer) run(ctx context.Context) (wait func()) {
	var all sync.WaitGroup
	for side := range sides {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(side), 1)) //nolint:gosec // a test
			for ctx.Err() == nil {
				var err error
				if r.IntN(3) == 0 {
					err = w.move(context.WithoutCancel(ctx), r)
				} else {
					err = w.change(context.WithoutCancel(ctx), r, side*w.posts+r.IntN(w.posts)) // each has posts of its own
				}
				if err != nil {
					w.Error(err)
					w.broken()
					return
				}
				w.count.Add(1)
				select {
				case w.wrote <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	return all.Wait
}

// await waits for some writes.
func (w *writer) await(n int) {
	for range n {
		select {
		case <-w.wrote:
		case <-w.over.Done():
		}
	}
}

// check says what does not hold in a snapshot.
func (w *writer) check(info snapshot.Info) error {
	var sum int64
	versions := map[string]string{}
	for _, line := range lines(w, filepath.Join(w.path(info), "collections/items.jsonl.zst")) {
		doc, err := document.ParseExtended([]byte(line))
		if err != nil {
			return err
		}
		if amount, ok := doc.Lookup("amount").AsInt64OK(); ok {
			sum += amount
		} else {
			versions[doc.Lookup("_id").ObjectID().Hex()] = doc.Lookup("version").StringValue()
		}
	}
	if sum != 0 {
		return fmt.Errorf("the amounts sum up to %d", sum)
	}
	n := 0
	for _, line := range lines(w, filepath.Join(w.path(info), "collections/posts.jsonl.zst")) {
		if line == "" {
			continue
		}
		doc, err := document.ParseExtended([]byte(line))
		if err != nil {
			return err
		}
		n++
		id, version := doc.Lookup("_id").ObjectID().Hex(), doc.Lookup("version").StringValue()
		if versions[id] != version {
			return fmt.Errorf("the post %s has version %s, and its item %q", id, version, versions[id])
		}
		data, err := os.ReadFile(filepath.Join(w.path(info), "media", doc.Lookup("cover", "hash").StringValue()))
		if err != nil || string(data) != "version "+version {
			return fmt.Errorf("the file of post %s of version %s is %q, %w", id, version, data, err)
		}
	}
	if n != len(versions) {
		return fmt.Errorf("%d posts, and %d items of posts", n, len(versions))
	}
	return nil
}

// S53: a writer keeps what has to hold at each moment, and it holds in every snapshot that is taken meanwhile. SOAK=1 takes 100, while there are
// 300 writes a second at least.
func TestS53Consistent(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWriter(newWorld(t, s))
		w.begin()
		rounds := 8
		if os.Getenv("SOAK") != "" {
			rounds = 100
		}
		ctx, stop := context.WithCancel(t.Context())
		wait := w.run(ctx)
		var taking time.Duration
		var meanwhile int64
		for range rounds {
			w.await(20 + len(w.wrote))
			since, before := time.Now(), w.count.Load()
			info := w.create("daily")
			taking, meanwhile = taking+time.Since(since), meanwhile+w.count.Load()-before
			if info.Counts.Missing > 0 || len(info.Differing) > 0 || info.Counts.Warnings > 0 {
				t.Errorf("%+v", info.Manifest.Counts)
			}
			if v := w.verify(info); v.Dangling > 0 {
				t.Errorf("%d files are missing", v.Dangling)
			}
			if err := w.check(info); err != nil {
				t.Error(err)
			}
		}
		stop()
		wait()
		t.Logf("%d writes while snapshots were taken, which took %s", meanwhile, taking)
		if perSecond := float64(meanwhile) / taking.Seconds(); meanwhile == 0 || os.Getenv("SOAK") != "" && perSecond < 300 {
			t.Errorf("only %d writes while snapshots were taken, %.0f a second", meanwhile, perSecond)
		}
		for id := range w.posts * sides { // nothing is left of the files that were to be removed meanwhile
			named, err := w.live(t.Context(), "posts", idOf(id).Hex())
			if err != nil {
				t.Fatal(err)
			}
			there := contents(t, mustMake(t, filepath.Join(w.media, w.p.Namespace, "posts", idOf(id).Hex())))
			if len(there) != len(named) {
				t.Errorf("post %d names %v, and has %d files", id, named, len(there))
			}
		}
	})
}

func mustMake(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
