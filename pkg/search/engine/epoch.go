package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/store"
)

// How often the index of a search was asked for anew is its epoch. It is kept in the project's database, so that every instance makes
// its own anew: when it serves the project, which it does every now and then.

// epochsCollection has a document for each search that was ever asked for anew: {_id: "<collection> <search>", epoch}.
const epochsCollection = "svc.search"

type epochKey struct{ stored, search string }

func (k epochKey) id() string { return k.stored + " " + k.search } // neither has a space

// readEpochs reads the epochs of a project.
func (t *tenant) readEpochs(ctx context.Context) (map[epochKey]int64, error) {
	out := map[epochKey]int64{}
	err := t.db.Collection(epochsCollection).Find(ctx, store.Query{}, func(doc bson.Raw) error {
		id, _ := document.Field(doc, "_id")
		text, _ := id.StringValueOK()
		stored, search, _ := strings.Cut(text, " ")
		v, _ := document.Field(doc, "epoch")
		epoch, _ := v.AsInt64OK()
		out[epochKey{stored, search}] = epoch
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read which search indexes are to be made anew: %w", err)
	}
	return out, nil
}

// raise asks for indexes anew.
func (t *tenant) raise(ctx context.Context, keys []epochKey) error {
	update := mql.MustCompileUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "epoch", Value: int64(1)}}}})
	ops := make([]store.Op, len(keys))
	for i, k := range keys {
		ops[i] = store.Op{Kind: store.Update, Filter: mql.MustCompile(bson.D{{Key: "_id", Value: k.id()}}), Update: update, Upsert: true}
	}
	results, err := t.db.Collection(epochsCollection).Write(ctx, ops, true)
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

// epoch is that of a search, as it was read last.
func (t *tenant) epoch(stored, search string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epochs[epochKey{stored, search}]
}

// making gives the index of a search that is being made, or else the one that answers; nil: there is neither.
func (t *tenant) making(k epochKey) *built {
	t.mu.Lock()
	s := t.shelves[k.stored]
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.searches[k.search]; one != nil {
		return cmp.Or(one.next, one.live)
	}
	return nil
}

// instead gives the index in place of one whose making was given up; nil: it is made, or there is none.
func (t *tenant) instead(k epochKey, b *built) *built {
	if next := t.making(k); b.ctx.Err() != nil && next != b {
		return next
	}
	return nil
}
