package snapshot_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/teststore"
)

const mixedRestores = 12

// TestRestoreNoMix: who reads one collection after the other while restores go on is never shown an old record behind a new one, and a record that
// stays as it is has its file.
func TestRestoreNoMix(t *testing.T) {
	teststore.EachParallel(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		w.useGate()
		w.fillWith(3, 3)
		id := idOf(5000)
		collections := []string{"items", "posts", "empty"}
		state := func(name string) snapshot.Info {
			for _, c := range collections {
				doc := bson.D{{Key: "_id", Value: id}, {Key: "state", Value: name}}
				if c == "posts" {
					doc = append(doc, bson.E{Key: "cover", Value: w.upload(c, id, "cover", "cover.txt", "this is "+name)})
				}
				w.write(c, store.Op{Kind: store.Replace, Doc: encode(w, doc), Filter: mql.MustCompile(bson.D{{Key: "_id", Value: id}}), Upsert: true})
			}
			w.clock.Pass(time.Second)
			return w.create("daily")
		}
		snaps := []snapshot.Info{state("one"), state("two")}
		ctx, stop := context.WithCancel(t.Context())
		seen := make(chan string, 1)
		go func() { seen <- w.watch(ctx, id, collections) }()
		for n := range mixedRestores {
			w.restore(snaps[n%2], replaceAll)
		}
		stop()
		if problem := <-seen; problem != "" {
			t.Error(problem)
		}
	})
}

// watch reads until ctx ends, and says what it was shown that can't be. The state of records changes with each restore once, and no more.
func (w *world) watch(ctx context.Context, id bson.ObjectID, collections []string) string {
	last, changes, reads := "", 0, 0
	var trace strings.Builder
	for ctx.Err() == nil {
		for _, c := range collections {
			doc, err := w.records(c).Get(context.WithoutCancel(ctx), objectID(5000))
			if errors.Is(err, gate.ErrShut) {
				continue
			}
			if err != nil {
				return c + ": " + err.Error()
			}
			reads++
			now, _ := doc.Lookup("state").StringValueOK()
			if now != last {
				fmt.Fprintf(&trace, " %s of %s,", now, c)
				last, changes = now, changes+1
			}
			if c != "posts" {
				continue
			}
			if problem := w.fileOf(ctx, id, doc); problem != "" {
				return problem
			}
		}
	}
	switch {
	case changes > mixedRestores+1:
		return fmt.Sprintf("%d changes by %d restores:%s", changes, mixedRestores, trace.String())
	case changes < 3:
		return fmt.Sprintf("%d reads saw %d changes: too few to tell", reads, changes)
	}
	return ""
}

// fileOf looks for the file of a record, and reads the record again: only if that is the same, so has to be the file.
func (w *world) fileOf(ctx context.Context, id bson.ObjectID, doc bson.Raw) string {
	cover, _ := document.Field(doc, "cover")
	file := cover.Document()
	src, _ := file.Lookup("src").StringValueOK()
	name := strings.TrimPrefix(src, project.FileRoot(w.p.Namespace, "posts", id))
	text, err := os.ReadFile(filepath.Join(w.media, w.p.Namespace, "posts", id.Hex(), filepath.FromSlash(name)))
	again, errAgain := w.records("posts").Get(context.WithoutCancel(ctx), objectID(5000))
	if errAgain != nil || string(again) != string(doc) {
		return ""
	}
	sum := sha256.Sum256(text)
	if want, _ := file.Lookup("hash").StringValueOK(); err != nil || hex.EncodeToString(sum[:]) != want {
		return fmt.Sprintf("the file of %s is %q (%v)", doc, text, err)
	}
	return ""
}
