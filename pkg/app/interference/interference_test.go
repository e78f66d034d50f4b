// Package interference_test asks the service whether callers can find out what they may not see: it has two services that
// differ in nothing else, asks both the same, and compares all that they answer.
//
// Start reading at TestNonInterference. What can be asked is the table doors; who asks, callers. docs/testing.md says how to
// run more of it.
package interference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/project"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// A round is so many requests of one caller, to one pair of services.
const roundLength = 250

// effort is what whoever runs the test sets: how many requests, which random ones, and at which round of a caller to begin.
type effort struct {
	requests, round int
	seed            uint64
}

func readEffort(t *testing.T) effort {
	t.Helper()
	e := effort{requests: requests, seed: uint64(time.Now().UnixNano())}
	number := func(name string) (n uint64, ok bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%s: %v", name, text, err)
		}
		return n, true
	}
	if n, ok := number("REQUESTS"); ok {
		e.requests = int(n)
	}
	if n, ok := number("SEED"); ok {
		e.seed = n
	}
	if n, ok := number("ROUND"); ok {
		e.round = int(n)
	}
	return e
}

// What callers may not see makes no difference to any answer: its status, its headers, its body to the byte.
func TestNonInterference(t *testing.T) {
	t.Parallel()
	var served projects
	for i := range served {
		served[i].logged = load(t, config, i == 1)
		served[i].plain = load(t, strings.Replace(config, "audit: {enabled: true", "audit: {enabled: false", 1), i == 1)
	}
	e := readEffort(t)
	teststore.Each(t, func(t *testing.T, s store.Store) {
		e := e
		if s.Name() == "mongodb" {
			e.requests = max(e.requests/50, 300)
		}
		t.Logf("%d requests, SEED=%d", e.requests, e.seed)
		run := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixMicro()%1e6)
		total := &tally{tries: map[string]int{}, good: map[string]int{}}
		t.Run("as", func(t *testing.T) {
			for i, c := range callers() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					x := &experiment{t: t, effort: e, caller: &c, served: served, pair: newPair(t, s, served[0].plain, &c, fmt.Sprint(run, "-", i)), total: total}
					x.run(e.requests/len(callers()), uint64(i))
				})
			}
		})
		total.judge(t)
	})
}

// tally counts what is asked by each door, and how much of that is answered with 2xx: a generator whose requests are all refused
// would find nothing.
type tally struct {
	failed      atomic.Bool // a caller has found something out: the others need not go on
	mu          sync.Mutex
	tries, good map[string]int
}

func (n *tally) add(door, answer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tries[door]++
	if strings.HasPrefix(answer, "2") || strings.HasPrefix(answer, strconv.Itoa(http.StatusNotModified)) {
		n.good[door]++
	}
}

func (n *tally) judge(t *testing.T) {
	t.Helper()
	if n.failed.Load() {
		return
	}
	var out strings.Builder
	for _, d := range doors() {
		tries, good := n.tries[d.name], n.good[d.name]
		fmt.Fprintf(&out, " %s %d/%d", d.name, good, tries)
		// Three standard deviations of a rare event, or a seed in some hundreds fails by chance.
		least := float64(d.least*tries) / 100
		if tries > 100 && float64(good) < least-3*math.Sqrt(least) {
			t.Errorf("of %d requests by the door %s, %d were answered with 2xx: that is less than %d %%", tries, d.name, good, d.least)
		}
	}
	t.Log("answered with 2xx:" + out.String())
}

// experiment is what one caller tries.
type experiment struct {
	t      *testing.T
	effort effort
	caller *caller
	served projects
	pair   *pair
	total  *tally
}

func (x *experiment) run(n int, who uint64) {
	for round := x.effort.round; n > 0 && !x.total.failed.Load(); round++ {
		rnd := rand.New(rand.NewPCG(x.effort.seed, who<<32|uint64(round)))
		n -= x.round(rnd, round, min(n, roundLength))
	}
}

// round makes requests until there were n, or the services have become different, and says how many there were.
func (x *experiment) round(rnd *rand.Rand, round, n int) int {
	x.t.Helper()
	x.pair.clock.Store(0)
	g := &generator{Rand: rnd, t: x.t, caller: x.caller, logged: round%4 == 0}
	serve := x.served[(round+round/4)%2] // each with and without the log
	p := serve.plain
	if g.logged {
		p = serve.logged
	}
	for i, w := range x.pair.worlds {
		w.empty(p, rand.New(rand.NewPCG(rnd.Uint64(), uint64(i))))
	}
	g.ids = x.pair.populate(rnd)
	for _, w := range x.pair.worlds {
		if err := w.search.Serve(p); err != nil {
			w.t.Fatal(err)
		}
	}
	var all []door // each as often as its weight
	for _, d := range doors() {
		if d.name == "audit" { // of a log that is there
			d.weight *= map[bool]int{true: 4}[g.logged]
		}
		all = append(all, slices.Repeat([]door{d}, d.weight)...)
	}
	for i := range n {
		x.pair.clock.Add(1)
		g.bold = g.one(3)
		g.fresh = len(x.pair.worlds[0].fresh)
		if g.one(6) {
			act := g.behind()
			for _, w := range x.pair.worlds {
				act(w)
			}
			if g.logged {
				x.seal(g)
			}
		}
		d := pick(g, all...)
		for slices.Contains(x.caller.shut, d.name) && !g.one(4) {
			d = pick(g, all...)
		}
		q := d.make(g)
		var answers [2]string
		for side, w := range x.pair.worlds {
			answers[side] = w.common(q.ask(w, x.caller))
		}
		a, b := answers[0], answers[1]
		if a != b && oneSidedConflict(a, b, q.what) {
			return i + 1
		}
		if a != b || strings.HasPrefix(a, "5") {
			x.total.failed.Store(true)
			x.t.Fatalf("SEED=%d ROUND=%d, request %d as %s, %s: %s\n%s", x.effort.seed, round, i, x.caller.name, d.name, q.what, difference(a, b))
		}
		x.total.add(d.name, a)
	}
	return n
}

// difference shows where answers begin to differ.
func difference(a, b string) string {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from := max(0, same-600)
	return fmt.Sprintf("…%s\n…%s", a[from:min(len(a), same+300)], b[from:min(len(b), same+300)])
}

// seal puts what is new in the audit logs into their chains, now and then.
func (x *experiment) seal(g *generator) {
	if !g.one(4) {
		return
	}
	for _, w := range x.pair.worlds {
		if err := w.logs.Of(project.DatabaseName(w.project.Namespace)).Seal(g.t.Context()); err != nil {
			g.t.Fatal(err)
		}
	}
}

// oneSidedConflict says that a create was refused since a record has the same unique value that the caller can't see, and
// that is in one of the services only. That is the one thing that such a record shows by, and by this answer alone.
func oneSidedConflict(a, b, what string) bool {
	if strings.HasPrefix(b, "409") {
		a, b = b, a
	}
	return strings.Contains(what, `"slug":"`+oneSidedSlug+`"`) && strings.HasPrefix(a, "409") && strings.HasPrefix(b, "2") &&
		strings.HasSuffix(a, `"status":409,"code":"unique","detail":"slug is already taken","requestId":"r","errors":[{"path":"slug","rule":"unique","message":"is already taken"}]}`+"\n")
}

// behind gives something that others do to both services, and that the caller can't tell apart: to a record that they may see, the
// same but for what is hidden; and anything to others, in each service as often as it likes.
func (g *generator) behind() func(w *world) {
	id, name := pick(g, slices.Concat(g.ids.seen, g.ids.unseen)...), letter(g.Rand, 5)
	leaves := g.one(20) // goes out of sight of many
	return func(w *world) {
		change := append(bson.D{{Key: "name", Value: name}, {Key: "level", Value: nil}}, g.hiddenMembers(w.rnd)...)
		if name == "a" { // the mood is seen from now on
			change = unique(append(bson.D{{Key: "mood", Value: 1}, {Key: "shot", Value: nil}, {Key: "_i18n", Value: nil}}, change...))
		}
		if leaves {
			change = append(change, bson.E{Key: "on", Value: false})
		}
		w.must(request{method: "PUT", path: base + "items/" + id, body: g.json(change)})
		for range w.rnd.IntN(2) {
			unseen := bson.ObjectID{0: 6, 1: byte(w.rnd.IntN(256)), 2: byte(w.rnd.IntN(256))}
			w.must(request{method: "POST", path: base + "items", body: g.json(append(bson.D{
				{Key: "n", Value: 7}, {Key: "on", Value: false}, {Key: "state", Value: "locked"}, {Key: "name", Value: letter(w.rnd, 5)}, {Key: "ref", Value: unseen},
			}, g.hiddenMembers(w.rnd)...))})
			of := `{"ref":"` + unseen.Hex() + `"}`
			if w.rnd.IntN(2) == 0 {
				w.must(request{method: "PUT", path: base + "items", query: map[string][]string{"filter": {of}}, body: `{"name":"unseen"}`})
			}
			if w.rnd.IntN(2) == 0 {
				w.must(request{method: "DELETE", path: base + "items", query: map[string][]string{"filter": {of}}})
			}
		}
	}
}

// hiddenMembers are other values for what is hidden from the caller.
func (g *generator) hiddenMembers(rnd *rand.Rand) bson.D {
	d := bson.D{}
	for _, name := range []string{"secret", "note"} {
		if name == "secret" || slices.Contains(g.caller.hidden, name) {
			d = append(d, bson.E{Key: name, Value: any1[any](rnd, "s", nil, strings.Repeat("t", rnd.IntN(500)))})
		}
	}
	if rnd.IntN(3) == 0 {
		d = append(d, bson.E{Key: "proof", Value: any1[any](rnd, nil, bson.D{{Key: "src", Value: dataURL(rnd.IntN(pictures))}, {Key: "path", Value: any1(rnd, "proof.png", "b.png")}})})
	}
	return secretMember(rnd, "rank", secretMember(rnd, "mood", d))
}
