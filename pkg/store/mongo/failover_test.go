package mongo_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// TestStepDown makes the primary step down again and again under writes and reads. None fails, and each write is
// applied once.
func TestStepDown(t *testing.T) {
	server, err := mongotest.Start(t.Context())
	if err != nil {
		t.Skipf("NOT TESTED with a primary stepping down: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	s := open(t, server.URI)
	c := s.Database("stepdown").Collection("things")
	admin, err := driver.Connect(options.Client().ApplyURI(server.URI))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Disconnect(t.Context()) }()

	const workers, each, stepDowns = 4, 60, 2
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error {
			for i := range each {
				ops := []store.Op{{Kind: store.Insert, Doc: number(t, 2*(w*each+i))}, {Kind: store.Insert, Doc: number(t, 2*(w*each+i)+1)}}
				results, err := c.Write(t.Context(), ops, w%2 == 0)
				for k := range results {
					if results[k].Err != nil {
						err = results[k].Err // a repeated insert would be a duplicate
					}
				}
				if err != nil {
					return err
				}
				if _, err := c.Get(t.Context(), ops[1].Doc.Lookup("_id")); err != nil {
					return err // what was acknowledged is seen, whoever is primary
				}
				if w == 0 && i%(each/stepDowns) == each/stepDowns/2 {
					if err := stepDown(t, admin); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(t.Context(), nil, 0); err != nil || n != 2*workers*each {
		t.Errorf("%d documents (%v), want %d", n, err, 2*workers*each)
	}
}

func stepDown(t *testing.T, admin *driver.Client) error {
	t.Helper()
	command := bson.D{{Key: "replSetStepDown", Value: 1}, {Key: "force", Value: true}}
	return admin.Database("admin").RunCommand(t.Context(), command).Err()
}
