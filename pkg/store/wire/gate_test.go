package wire_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/gate"
	"github.com/svcctl/svc/pkg/store/wire"
)

const exceededTimeLimit = 262

// gated serves a store through a gate. Its clients try nothing again by themselves.
func gated(t *testing.T) (*gate.Gate, *server, *mongo.Client) {
	t.Helper()
	var g *gate.Gate
	s := serve(t, func(o *wire.Options) {
		g = gate.New(o.Store)
		o.Store, o.Moment = g, g.Moment
	})
	return g, s, s.client(t, func(o *options.ClientOptions) { o.SetRetryWrites(false).SetRetryReads(false) })
}

// TestReplaced: while the records of a database are replaced nothing changes them by the endpoint, nor what goes with them, and then nothing reads
// them; what has begun before ends, and nothing is put together of records of before and after.
func TestReplaced(t *testing.T) {
	t.Parallel()
	g, _, client := gated(t)
	ctx, db := t.Context(), client.Database("test")
	insert(t, db.Collection("things"), `{"_id":1}`, `{"_id":2}`, `{"_id":3}`)
	writes := []string{
		`{"insert":"things","documents":[{"_id":9}]}`, `{"update":"things","updates":[{"q":{},"u":{"$set":{"a":1}}}]}`, `{"delete":"things","deletes":[{"q":{},"limit":0}]}`,
		`{"findAndModify":"things","query":{"_id":1},"remove":true}`, `{"create":"more"}`, `{"drop":"things"}`, `{"dropDatabase":1}`,
		`{"createIndexes":"things","indexes":[{"key":{"a":1},"name":"a"}]}`, `{"dropIndexes":"things","index":"*"}`, `{"collMod":"things","changeStreamPreAndPostImages":{"enabled":true}}`,
		`{"aggregate":"things","pipeline":[{"$out":"more"}],"cursor":{}}`, `{"aggregate":"things","pipeline":[{"$set":{"a":1}},{"$merge":"things"}],"cursor":{}}`,
	}
	reads := []string{
		`{"find":"things"}`, `{"count":"things"}`, `{"distinct":"things","key":"a"}`, `{"aggregate":"things","pipeline":[],"cursor":{}}`,
		`{"explain":{"find":"things"}}`, `{"find":"things","readConcern":{"level":"snapshot"}}`,
	}
	check := func(when string, commands []string, refused bool) {
		t.Helper()
		for _, command := range commands {
			err := db.RunCommand(ctx, object(t, command)).Err()
			if got := codeOf(err); refused != (got == exceededTimeLimit) || !refused && err != nil {
				t.Errorf("%s, %s: %d, %v", when, command, got, err)
			}
		}
	}
	rename := func(when string, refused bool) {
		t.Helper()
		err := client.Database("admin").RunCommand(ctx, object(t, `{"renameCollection":"test.things","to":"test.others"}`)).Err()
		if refused != (codeOf(err) == exceededTimeLimit) {
			t.Errorf("%s, rename: %v", when, err)
		}
	}
	cursor, err := db.Collection("things").Find(ctx, bson.D{}, options.Find().SetBatchSize(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close(ctx) //nolint:errcheck // it was only read
	cursor.Next(ctx)
	stream, err := db.Watch(ctx, mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(ctx) //nolint:errcheck // likewise

	// A transaction that is open is waited for.
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(ctx)
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	within := mongo.NewSessionContext(ctx, session)
	if _, err := db.Collection("things").InsertOne(within, bson.D{{Key: "_id", Value: 4}}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := g.Shut(short, "test"); err == nil {
		t.Fatal("a transaction is open, and nobody waits for it")
	}
	if err := session.CommitTransaction(within); err != nil {
		t.Fatal(err)
	}
	shut, err := g.Shut(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer shut.Open()
	check("shut", writes, true)
	rename("shut", true)
	check("shut", reads, false)
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("things").InsertOne(within, bson.D{{Key: "_id", Value: 5}}); codeOf(err) != exceededTimeLimit {
		t.Errorf("a transaction: %v", err)
	}
	_ = session.AbortTransaction(within) // it has not begun
	if err := client.Database("beside").RunCommand(ctx, object(t, writes[0])).Err(); err != nil {
		t.Errorf("another database: %v", err)
	}
	if names, err := db.ListCollectionNames(ctx, bson.D{}); err != nil || strings.Join(names, " ") != "things" {
		t.Errorf("collections %v, %v", names, err)
	}

	if err := shut.Reads(ctx); err != nil {
		t.Fatal(err)
	}
	check("replaced", append(reads, writes...), true)
	shut.Open()
	for cursor.Next(ctx) {
		t.Errorf("a cursor goes on behind that: %v", cursor.Current)
	}
	if codeOf(cursor.Err()) != exceededTimeLimit {
		t.Errorf("a cursor of before: %v", cursor.Err())
	}
	check("open", append(reads, writes[:5]...), false)
	if !stream.Next(ctx) || stream.Current.Lookup("operationType").StringValue() != "insert" {
		t.Errorf("the stream ends: %v", stream.Err())
	}
}

// heldIndexes is a store whose indexes are made and dropped when held has taken a value, which it tells by begun.
type heldIndexes struct {
	store.Store

	begun, held chan struct{}
}

type heldDatabase struct {
	store.Database

	of *heldIndexes
}

type heldCollection struct {
	store.Collection

	of *heldIndexes
}

func (h *heldIndexes) Database(name string) store.Database {
	return &heldDatabase{h.Store.Database(name), h}
}

func (d *heldDatabase) Collection(name string) store.Collection {
	return &heldCollection{d.Database.Collection(name), d.of}
}

func (c *heldCollection) hold() {
	c.of.begun <- struct{}{}
	<-c.of.held
}

func (c *heldCollection) CreateIndex(ctx context.Context, index store.Index) error {
	c.hold()
	return c.Collection.CreateIndex(ctx, index)
}

func (c *heldCollection) DropIndex(ctx context.Context, name string) error {
	c.hold()
	return c.Collection.DropIndex(ctx, name)
}

// TestIndexesAreWaitedFor: who begins to replace records waits for a command that changes collections or indexes. One that had looked before whether
// it may changed the indexes of the records that came.
func TestIndexesAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		`{"createIndexes":"things","indexes":[{"key":{"a":1},"name":"a"}]}`, `{"dropIndexes":"things","index":"b"}`, `{"create":"more"}`,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var g *gate.Gate
			held := &heldIndexes{begun: make(chan struct{}), held: make(chan struct{})}
			s := serve(t, func(o *wire.Options) {
				if err := o.Store.Database("test").Collection("things").CreateIndex(t.Context(), store.Index{Name: "b", Keys: []store.IndexKey{{Path: "b"}}}); err != nil {
					t.Fatal(err)
				}
				held.Store = o.Store
				g = gate.New(held)
				o.Store, o.Moment = g, g.Moment
			})
			ended := make(chan error, 1)
			go func() { ended <- s.client(t).Database("test").RunCommand(t.Context(), object(t, command)).Err() }()
			<-held.begun
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if early, err := g.Shut(short, "test"); err == nil {
				t.Error("records are replaced while indexes change")
				early.Open()
			}
			go func() {
				for range held.begun { // a collection is made by an index that comes and goes
				}
			}()
			close(held.held)
			shut, err := g.Shut(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			defer shut.Open()
			if err := <-ended; err != nil {
				t.Errorf("it was waited for, and fails: %v", err)
			}
			close(held.begun)
		})
	}
}

// TestTriedAgain: drivers try what was refused so once more by themselves, since nothing was done.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	g, s, _ := gated(t)
	shut, err := g.Shut(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer shut.Open()
	_, err = s.client(t).Database("test").Collection("things").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	if e, ok := err.(mongo.LabeledError); !ok || !e.HasErrorLabel("RetryableWriteError") || !strings.Contains(err.Error(), "are being replaced by those of a snapshot") {
		t.Errorf("%v", err)
	}
}

// TestOutIsLeft: what $out has made, and could not put in its place, goes when that can be again.
func TestOutIsLeft(t *testing.T) {
	t.Parallel()
	g, s, client := gated(t)
	ctx, db := t.Context(), client.Database("test")
	insert(t, db.Collection("things"), `{"_id":1}`)
	shut, err := g.Shut(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer shut.Open()
	if err := s.store.Database("test").Collection("svc_out_1").CreateIndex(ctx, store.Index{Name: "a", Keys: []store.IndexKey{{Path: "a"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.DropMade(ctx, g.Database("test"), "svc_out_1"); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		names, err := db.ListCollectionNames(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(names, "svc_out_1")
	}
	if !there() {
		t.Error("it has gone while nobody may write")
	}
	shut.Open()
	for began := time.Now(); there(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("it stays")
		}
	}
}
