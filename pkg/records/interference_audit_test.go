package records_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/audit"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/records"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/teststore"
)

// auditPage is what a caller is told of the log of a world, but for the random ids of entries.
func auditPage(w *world, who string, p query.Params) string {
	var out strings.Builder
	for range 2 {
		page, err := w.service.Audit(w.t.Context(), w.project, as(who), p)
		if err != nil {
			return out.String() + show(err)
		}
		fmt.Fprintln(&out, page.Limit, page.Offset, page.HasMore, page.Next == "")
		if page.Total != nil {
			fmt.Fprintln(&out, *page.Total)
		}
		for _, e := range page.Items {
			fmt.Fprintln(&out, e.At, e.Kind, e.Op, e.Namespace == w.project.Namespace, e.Collection, e.RecordID, e.Actor, e.TokenID, e.RequestID, e.Address)
			fmt.Fprintln(&out, e.Expires, e.Seq, e.Prev, e.Hash)
			for _, state := range []bson.Raw{e.Before, e.After} {
				if state != nil {
					fmt.Fprintf(&out, "%s\n", document.AppendJSON(nil, state, e.View))
				}
			}
		}
		if p.After = page.Next; p.After == "" {
			break
		}
	}
	return out.String()
}

// auditParams are random questions to the log.
func (g *generator) auditParams() query.Params {
	limit := int64(pick(g, 0, 1, 3, 20, 1000))
	p := query.Params{Limit: &limit, Offset: int64(pick(g, 0, 0, 2)), Count: g.IntN(2) == 0, Sort: pick(g, "", "at", "recordId,-at", "op,at", "-actor.name", "before.secret")}
	switch g.IntN(6) {
	case 0:
		p.Filter = bson.D{{Key: "op", Value: pick(g, "create", "update", "delete")}}
	case 1:
		p.Filter = bson.D{{Key: "recordId", Value: pick(g, g.ids...)}}
	case 2:
		p.Filter = bson.D{{Key: "actor.name", Value: bson.D{{Key: pick(g, "$eq", "$ne"), Value: pick(g, "alice", "admin token")}}}}
	case 3:
		p.Filter = bson.D{{Key: pick(g, "after.secret", "before.parts.cost", "hash", "after", "seq", "expires"), Value: bson.D{{Key: "$exists", Value: true}}}}
	}
	return p
}

// hiddenMembers are other values for what is hidden from callers.
func (g *generator) hiddenMembers() bson.D {
	d := secretMember(g.Rand, "secret", bson.D{})
	d = slices.DeleteFunc(d, func(e bson.E) bool { _, text := e.Value.(string); return !text && e.Value != nil })
	for i := range d {
		if d[i].Value != nil {
			d[i].Value = strings.Repeat("s", 1+g.IntN(1000))
		}
	}
	return d
}

// behind writes to both worlds what callers can't tell apart: to a record that they see, the same but for what is hidden;
// and anything to others, in each world as often as it likes.
func (g *generator) behind(pair *twin) {
	id, name := pick(g, pair.ids...), string(rune('a'+g.IntN(5)))
	leaves := g.IntN(40) == 0 // goes out of their sight
	for _, w := range pair.worlds {
		by := w.call("admin")
		ctx := audit.With(g.t.Context(), audit.NewCaller(&access.Principal{Kind: access.KindAdmin, Name: "admin token"}, "req", "192.0.2.1"))
		change := append(bson.D{{Key: "name", Value: name}}, g.hiddenMembers()...)
		if name == "a" { // it is seen from now on
			change = append(change, bson.E{Key: "mood", Value: int64(1)}, bson.E{Key: "_i18n", Value: nil})
		}
		if leaves {
			change = append(change, bson.E{Key: "on", Value: false})
		}
		if _, err := w.service.Update(ctx, by, id, records.Change{Body: change}); err != nil && !strings.Contains(show(err), "not found") {
			g.t.Fatal(show(err), change)
		}
		for range g.IntN(4) {
			res, err := w.service.Create(ctx, by, append(bson.D{{Key: "n", Value: int64(g.IntN(8))}, {Key: "on", Value: false}}, g.hiddenMembers()...))
			if err == nil && g.IntN(2) == 0 {
				_, err = w.service.Update(ctx, by, res.ID, records.Change{Body: bson.D{{Key: "name", Value: "unseen"}}})
			}
			if err == nil && g.IntN(2) == 0 {
				_, err = w.service.Delete(ctx, by, res.ID)
			}
			if err != nil {
				g.t.Fatal(show(err))
			}
		}
	}
	if g.IntN(4) > 0 {
		return
	}
	for _, w := range pair.worlds {
		if err := w.logs.Of(w.database()).Seal(g.t.Context()); err != nil {
			g.t.Fatal(err)
		}
	}
}

// TestAuditNonInterference lets callers ask the audit log, amid all that they can do: what they may not see makes no
// difference to what they are told. The log of the service itself is not theirs at all: see pkg/app.
func TestAuditNonInterference(t *testing.T) {
	n, seed := effort()
	teststore.Each(t, func(t *testing.T, s store.Store) {
		n := n / 2
		if s.Name() == "mongodb" {
			n = max(n/5, 200)
		}
		t.Logf("%d requests, SEED=%d", n, seed)
		rnd := rand.New(rand.NewPCG(seed, 2))
		g := &generator{Rand: rnd, t: t}
		var pair *twin
		var at atomic.Int64 // one clock for both worlds, which goes on between requests
		now := func() time.Time { return start.Add(time.Duration(at.Load()) * time.Second) }
		asked, lines := 0, 0
		for i := range n {
			if i%250 == 0 {
				config := "audit: {enabled: true, excludeFields: [tags]}\n" + secretive
				pair = &twin{worlds: [2]*world{newWorldAt(t, s, config, now), newWorldAt(t, s, config, now)}}
				pair.populate(t, rnd)
				g.ids = slices.Concat(pair.ids, []string{bson.ObjectID{0: 1, 11: 200}.Hex(), "zz"})
			}
			at.Add(1)
			who := pick(g, "public", "alice")
			switch g.IntN(4) {
			case 0:
				g.behind(pair)
			case 1:
				p := g.auditParams()
				a, b := auditPage(pair.worlds[0], who, p), auditPage(pair.worlds[1], who, p)
				if a != b {
					t.Fatalf("SEED=%d, request %d as %s, %v:\n%s\n\n%s", seed, i, who, p, a, b)
				}
				asked++
				lines += strings.Count(a, "\n")
			default:
				ask := g.request()
				a, b := ask(pair.worlds[0], pair.worlds[0].call(who)), ask(pair.worlds[1], pair.worlds[1].call(who))
				if a != b {
					t.Fatalf("SEED=%d, request %d as %s:\n%s\n\n%s", seed, i, who, a, b)
				}
			}
		}
		if lines < 3*asked {
			t.Errorf("the log told %d lines in %d answers: it is of no use", lines, asked)
		}
	})
}
