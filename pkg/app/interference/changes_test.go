package interference_test

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/store"
)

// patience is how long an event may be on its way. It only ends tests that fail.
const patience = 2 * time.Minute

// changes is a feed of changes: what others do meanwhile, and while nobody listens, shows as far as the caller sees it.
func changes(g *generator) question {
	q := url.Values{}
	if g.one(2) {
		q.Set("filter", g.json(bson.D{{Key: "$or", Value: bson.A{g.filter(1), bson.D{{Key: "name", Value: "end"}}}}}))
	}
	if g.one(3) {
		q.Set("select", g.selection())
	}
	var live, away []func(w *world)
	for range 3 {
		live, away = append(live, g.behind()), append(away, g.behind())
	}
	r := get(base+"items/_changes", q)
	return question{r.String(), func(w *world, c *caller) string {
		out, last := w.listen(c, r, live)
		if last == "" {
			return out
		}
		for _, act := range away {
			act(w)
		}
		again := r
		again.headers = map[string]string{"Last-Event-ID": last}
		rest, _ := w.listen(c, again, []func(w *world){func(*world) {}})
		return out + rest
	}}
}

// listen follows a feed while something is done, and gives what it tells, and the id of its last event. Behind each thing
// comes a record that the caller sees: when it has come, so has all before.
func (w *world) listen(c *caller, r request, acts []func(w *world)) (out, last string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	s := w.follow(ctx, c.who, r)
	defer s.end()
	lines := bufio.NewScanner(s.from)
	lines.Buffer(nil, 1<<20)
	var told strings.Builder
	until := func(mark string) bool {
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				last = id
				fmt.Fprintln(&told, "id of", len(id)) // it is sealed
				continue
			}
			fmt.Fprintln(&told, lines.Text())
			if strings.Contains(lines.Text(), mark) && lines.Scan() { // with the empty line behind it
				return true
			}
		}
		return false
	}
	ready := until("data: {}")
	fmt.Fprintln(&told, s.status, s.header)
	var ends []bson.ObjectID
	for _, act := range acts {
		if !ready {
			return "400\n" + told.String(), ""
		}
		act(w)
		w.ends++
		end := bson.ObjectID{0: 3, 10: byte(w.ends >> 8), 11: byte(w.ends)}
		ends = append(ends, end)
		w.put("items", c.item(w.rnd, end, face{on: true, n: 1, name: "end", by: bob.Hex(), state: "open", who: bson.A{}}))
		if !until(end.Hex()) {
			w.t.Errorf("the feed ended: %s", told.String())
			return told.String(), ""
		}
	}
	for _, end := range ends {
		w.remove("items", end)
	}
	return "200\n" + told.String(), last
}

// remove takes a record out, past all rules.
func (w *world) remove(collection string, id bson.ObjectID) {
	w.t.Helper()
	op := store.Op{Kind: store.Delete, ID: bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}}
	if _, err := w.collection(collection).Write(w.t.Context(), []store.Op{op}, false); err != nil {
		w.t.Fatal(err)
	}
}
