package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
	"github.com/svcctl/svc/pkg/randtest"
)

// Orders take from the stock and are in the ledger, by a hook that is in one transaction with each write of them; so does
// an action in a transaction of its own. All of them want the same record of the stock.
const ordersConfig = `
namespace: blog
actions:
  - name: take
    hooks: {handle: {type: javascript, file: take.js, timeout: 1m}}
    permissions: {public: {methods: {}}, user: {methods: {}}}
    meta: {methods: {post: {data: [{name: k, type: string}]}}}
collections:
  - name: stock
    fields: [{name: name, type: string, index: [unique]}, {name: taken, type: number}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: ledger
    fields: [{name: k, type: string, index: [unique]}]
    permissions: {public: {methods: {}}, user: {methods: {}}}
  - name: orders
    audit: {enabled: true}
    fields: [{name: k, type: string, index: [unique]}, {name: number, type: number, index: [unique]}]
    hooks: {post: {create: {type: javascript, file: order.js, timeout: 1m}}}
    permissions: {public: {methods: {}}, user: {methods: {}}}
`

const orderScript = `module.exports = async (ctx) => {
  const stock = await db.collection('stock').findOne({name: 'all'})
  await db.collection('stock').update(stock.id, {$inc: {taken: 1}})
  await db.collection('ledger').insert({k: ctx.doc.k})
  ctx.doc.number = stock.taken + 1
}`

const takeScript = `module.exports = async (ctx) => {
  await db.transaction((tx) => tx.collection('orders').insert({k: ctx.data.k}))
  return {}
}`

// orders are the writers of orders, and what they were told.
type orders struct {
	mu    sync.Mutex
	acked map[string]bool
	tries atomic.Int64
}

// write makes orders until stop is closed.
func (o *orders) write(ctx context.Context, c *client.Client, name string, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		k := fmt.Sprint(name, "/", i)
		o.tries.Add(1)
		if err := order(ctx, c, k, i%2 == 0); err == nil {
			o.mu.Lock()
			o.acked[k] = true
			o.mu.Unlock()
		}
	}
}

func (o *orders) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.acked)
}

func order(ctx context.Context, c *client.Client, k string, byAction bool) error {
	body := api.Record(fmt.Sprintf(`{"k":%q}`, k))
	if !byAction {
		_, err := c.CreateRecord(ctx, "blog", "orders", body)
		return err
	}
	resp, err := c.CallAction(ctx, "blog", "take", nil, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// check holds that the three agree, and have all that was acknowledged.
func (o *orders) check(t *testing.T, c *client.Client) {
	t.Helper()
	keys := func(collection string) map[string]float64 {
		found := map[string]float64{}
		for rec, err := range c.Records(t.Context(), "blog", collection, client.Query{Limit: 1000}) {
			var r struct {
				K      string  `json:"k"`
				Number float64 `json:"number"`
				Taken  float64 `json:"taken"`
			}
			if err == nil {
				err = json.Unmarshal(rec, &r)
			}
			if err != nil {
				t.Fatal(err)
			}
			found[r.K] = r.Number + r.Taken
		}
		return found
	}
	made, ledger, taken := keys("orders"), keys("ledger"), keys("stock")[""]
	if len(made) != len(ledger) || int(taken) != len(made) {
		t.Errorf("%d orders, %d in the ledger, %v taken", len(made), len(ledger), taken)
	}
	for k, number := range made {
		if _, ok := ledger[k]; !ok || number < 1 || number > taken {
			t.Errorf("order %s has number %v, in the ledger: %v", k, number, ok)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.acked {
		if _, ok := made[k]; !ok {
			t.Errorf("%s was acknowledged, and is not there", k)
		}
	}
	entries := 0
	for _, err := range c.ProjectAudit(t.Context(), "blog", client.Query{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
	}
	if entries != len(made) {
		t.Errorf("%d entries of %d orders", entries, len(made))
	}
	report, err := c.VerifyAudit(t.Context(), "blog", nil)
	if err != nil || !report.OK {
		t.Errorf("%+v, %v", report, err)
	}
}

func startOrders(t *testing.T, env ...string) (svcd, *server) {
	t.Helper()
	s := newReleased(t, env...)
	s.write("projects/blog/project.yaml", ordersConfig)
	s.write("projects/blog/order.js", orderScript)
	s.write("projects/blog/take.js", takeScript)
	srv := s.start()
	srv.register(t)
	until(t, "the stock is there", func() bool {
		_, err := srv.CreateRecord(t.Context(), "blog", "stock", api.Record(`{"name":"all","taken":0}`))
		return err == nil
	})
	return s, srv
}

// TestKillInHooks kills the service in the midst of writes with hooks that write, too: what a hook wrote is there exactly
// where its record is, and what was acknowledged stays.
func TestKillInHooks(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("SOAK") != "" {
		rounds = 100
	}
	test := func(t *testing.T, env ...string) {
		s, srv := startOrders(t, env...)
		o := &orders{acked: map[string]bool{}}
		for round := range rounds {
			var writers sync.WaitGroup
			stop := make(chan struct{})
			for i := range 4 {
				writers.Go(func() { o.write(t.Context(), srv.Client, fmt.Sprint(round, "-", i), stop) })
			}
			until(t, "orders are made", func() bool { return o.count() > 4*(round+1) })
			time.Sleep(time.Duration(randtest.Of(t).IntN(250)) * time.Millisecond) // the random moment
			if _, _, err := srv.stop(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			close(stop)
			writers.Wait()
			srv = s.start()
			until(t, "the project is served", func() bool {
				_, err := srv.CountRecords(t.Context(), "blog", "stock", "")
				return err == nil
			})
			o.check(t, srv.Client)
			if t.Failed() {
				t.Fatalf("round %d", round)
			}
		}
		t.Logf("%d of %d orders were acknowledged over %d kills", len(o.acked), o.tries.Load(), rounds)
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run("mongo", func(t *testing.T) {
		t.Parallel()
		test(t, ownMongoDB(t, time.Second))
	})
}

// TestStoreFailsInHooks kills MongoDB, and has it step down, in the midst of writes with hooks that write, too.
func TestStoreFailsInHooks(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("SOAK") != "" {
		rounds = 30
	}
	mongod := startMongoDB(t)
	_, srv := startOrders(t, "STORE_URI="+mongod.URI)
	o := &orders{acked: map[string]bool{}}
	for round := range rounds {
		for name, fail := range map[string]func() error{
			"kill":      func() error { return errors.Join(mongod.Kill(), mongod.Restart()) },
			"step down": func() error { return mongod.StepDown(t.Context()) },
		} {
			var writers sync.WaitGroup
			stop := make(chan struct{})
			for i := range 4 {
				writers.Go(func() { o.write(t.Context(), srv.Client, fmt.Sprint(round, "-", name, "-", i), stop) })
			}
			goesOn := func() {
				before := o.count()
				until(t, "orders are made", func() bool { return o.count() > before+5 })
			}
			goesOn()
			if err := fail(); err != nil {
				t.Fatal(err)
			}
			goesOn()
			close(stop)
			writers.Wait()
			o.check(t, srv.Client)
			if t.Failed() {
				t.Fatalf("%s, round %d", name, round)
			}
		}
	}
	t.Logf("%d of %d orders were acknowledged", len(o.acked), o.tries.Load())
}
