package snapshot_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

func TestRoomFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ bytes, were, disk, want int64 }{
		"nothing is known":                        {1000, 0, 0, 1050},
		"as many as there were":                   {1000, 1000, 200, 300},
		"fewer":                                   {500, 1000, 200, 150},
		"those that have come may be compact":     {3000, 1000, 200, 300 + 2100},
		"they were hardly compressed":             {1000, 1000, 900, 1050},
		"they became larger":                      {1000, 1000, 1100, 1650},
		"there is nothing":                        {0, 1000, 200, 0},
		"there was nothing":                       {1000, 0, 13, 1050},
		"large numbers are no less than they are": {1 << 50, 1 << 50, 1 << 48, 3 << 47},
	} {
		if got := snapshot.RoomFor(tt.bytes, tt.were, tt.disk); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestRoom: what a restore asks for is not less than its safety snapshot takes, and, where a snapshot says how well records are compressed, much less than these take.
func TestRoom(t *testing.T) {
	t.Parallel()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		w := newWorld(t, s)
		text := strings.Repeat("the same again and again ", 40)
		many := func(from int, random bool) (bytes int64) {
			var docs []bson.D
			for n := from; n < from+200; n++ {
				d := bson.D{{Key: "_id", Value: idOf(n)}, {Key: "title", Value: text + fmt.Sprint(n)}}
				if random {
					d[1].Value = bson.Binary{Data: noise(1000)}
				}
				docs = append(docs, d)
				bytes += int64(len(encode(t, d)))
			}
			w.insert("posts", docs...)
			return bytes
		}
		need := func(id string) int64 {
			n, err := w.snaps.Need(t.Context(), w.p, id)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		safety := func(id string) int64 {
			w.clock.Pass(time.Second)
			done, err := w.snaps.Restore(t.Context(), w.p, id, w.p, snapshot.RestoreOptions{Collections: []string{"posts"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			info, err := w.snaps.Show(t.Context(), w.p, done.Safety)
			if err != nil {
				t.Fatal(err)
			}
			return size(info, "collections/posts.jsonl.zst")
		}
		bytes := many(0, false)
		first := w.create("db") // which says nothing of how well lines are compressed
		if got := need(first.ID); got < bytes {
			t.Errorf("it asks for %d bytes, and nobody knows how well %d are compressed", got, bytes)
		}
		known := w.create("posts")
		asked := need(known.ID)
		if asked > bytes/4 {
			t.Errorf("it asks for %d bytes of %d, which become %d", asked, bytes, size(known, "collections/posts.jsonl.zst"))
		}
		// What is damaged says nothing, and what has come in as an archive, or may have, says what somebody has made it say.
		name := filepath.Join(w.path(known), "collections/posts.jsonl.zst")
		right := contents(t, w.path(known))["collections/posts.jsonl.zst"]
		w.rot(name, right[:len(right)-1]+"\x00")
		w.check(known)
		if got := need(first.ID); got < bytes {
			t.Errorf("it asks for %d bytes, as one that is damaged says", got)
		}
		w.rot(name, right)
		if err := os.WriteFile(w.path(known)+".state.json", []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.verify(known)
		if got := need(first.ID); got < bytes {
			t.Errorf("it asks for %d bytes, as one says of which nobody knows where it is from", got)
		}
		known = w.create("posts")
		if takes := safety(known.ID); takes > asked {
			t.Errorf("it has asked for %d bytes, and takes %d", asked, takes)
		}
		more := many(1000, true) // which can't be made smaller
		asked = need(known.ID)
		if asked < more || asked > more+bytes/2 {
			t.Errorf("it asks for %d bytes where %d have come, of which nobody knows", asked, more)
		}
		if takes := safety(known.ID); takes > asked {
			t.Errorf("it has asked for %d bytes, and takes %d", asked, takes)
		}
	})
}

func noise(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.Read(out)
	return out
}
