package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store/wire"
)

// answer runs a command that has the fields of a session besides.
func answer(t *testing.T, s *server, command, session string) bson.Raw {
	t.Helper()
	d := append(object(t, command), bson.E{Key: "$db", Value: "test"},
		bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("a session's id 1")}}}})
	d = append(d, object(t, session)...)
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	out, err := bson.Marshal(s.Answer(t.Context(), b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWritesSentAgain sends each write twice: it is done once, and answered alike.
func TestWritesSentAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for i, command := range []string{
		`{"insert":"things","documents":[{"_id":1,"n":0},{"_id":2,"n":0}]}`,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$inc":{"n":1}}},{"q":{"_id":7},"u":{"$inc":{"n":1}},"upsert":true}]}`,
		`{"findAndModify":"things","query":{"_id":2},"update":{"$inc":{"n":1}},"new":true}`,
		`{"delete":"things","deletes":[{"q":{"n":1},"limit":1}]}`,
	} {
		number := text(t, bson.D{{Key: "txnNumber", Value: int64(i)}})
		first, second := answer(t, s, command, number), answer(t, s, command, number)
		for _, field := range []string{"ok", "n", "nModified", "upserted", "value", "writeErrors"} {
			a, b := first.Lookup(field), second.Lookup(field)
			if a.String() != b.String() || field == "ok" && a.Double() != 1 {
				t.Errorf("%s: %s is %v, then %v", command, field, a, b)
			}
		}
	}
	coll := s.client(t).Database("test").Collection("things")
	if got := strings.Join(all(t, coll), " "); got != `{"_id":2,"n":1} {"_id":7,"n":1}` {
		t.Errorf("there is %s", got)
	}
	if old := answer(t, s, `{"insert":"things","documents":[{"_id":9}]}`, `{"txnNumber":{"$numberLong":"1"}}`); old.Lookup("code").Int32() != 225 {
		t.Errorf("an older number: %v", old)
	}
}

// TestHalfSentAgain does what of a write was not done the first time.
func TestHalfSentAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const write, number = `{"insert":"things","documents":[{"_id":1},{"_id":2},{"_id":3}]}`, `{"txnNumber":{"$numberLong":"5"}}`
	coll := s.client(t).Database("test").Collection("things")
	insert(t, coll, `{"_id":2}`)
	if first := answer(t, s, write, number); first.Lookup("n").Int32() != 1 || first.Lookup("writeErrors", "0", "code").Int32() != 11000 {
		t.Errorf("the first time: %v", first)
	}
	if _, err := coll.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 2}}); err != nil {
		t.Fatal(err)
	}
	if second := answer(t, s, write, number); second.Lookup("n").Int32() != 3 || second.Lookup("writeErrors").Type != 0 {
		t.Errorf("the second time: %v", second)
	}
}

func transaction(t *testing.T, client *mongo.Client) (*mongo.Session, context.Context) {
	t.Helper()
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.EndSession(context.WithoutCancel(t.Context())) })
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	return session, mongo.NewSessionContext(t.Context(), session)
}

func hasLabel(err error, label string) bool {
	var e mongo.LabeledError
	return errors.As(err, &e) && e.HasErrorLabel(label)
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.client(t)
	coll, other := client.Database("test").Collection("things"), client.Database("test").Collection("other")
	insert(t, coll, `{"_id":1,"n":0}`)

	session, in := transaction(t, client)
	for _, c := range []*mongo.Collection{coll, other} {
		if _, err := c.InsertOne(in, bson.D{{Key: "_id", Value: 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := coll.CountDocuments(in, bson.D{}); n != 2 || err != nil {
		t.Errorf("inside there are %d, %v", n, err)
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("outside there are %d, %v", n, err)
	}
	if err := session.CommitTransaction(in); err != nil {
		t.Fatal(err)
	}
	if err := session.CommitTransaction(in); err != nil { // as one does who has not got the answer
		t.Errorf("commit again: %v", err)
	}
	if n, err := other.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("after the commit there are %d, %v", n, err)
	}

	session, in = transaction(t, client)
	if _, err := coll.DeleteMany(in, bson.D{}); err != nil {
		t.Fatal(err)
	}
	if err := session.AbortTransaction(in); err != nil {
		t.Fatal(err)
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 2 || err != nil {
		t.Errorf("after the abort there are %d, %v", n, err)
	}

	// The second to write to a document has lost.
	first, in1 := transaction(t, client)
	_, in2 := transaction(t, client)
	if _, err := coll.UpdateOne(in1, bson.D{{Key: "_id", Value: 1}}, object(t, `{"$set":{"n":1}}`)); err != nil {
		t.Fatal(err)
	}
	_, err := coll.UpdateOne(in2, bson.D{{Key: "_id", Value: 1}}, object(t, `{"$set":{"n":2}}`))
	if codeOf(err) != 112 || !hasLabel(err, "TransientTransactionError") {
		t.Errorf("the second: %v", err)
	}
	if _, err := coll.CountDocuments(in2, bson.D{}); codeOf(err) != 251 || !hasLabel(err, "TransientTransactionError") {
		t.Errorf("after it has lost: %v", err)
	}
	if err := first.CommitTransaction(in1); err != nil {
		t.Error(err)
	}

	// A key that is taken ends a transaction.
	session, in = transaction(t, client)
	if _, err := coll.InsertOne(in, bson.D{{Key: "_id", Value: 3}}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertOne(in, bson.D{{Key: "_id", Value: 3}}); codeOf(err) != 11000 {
		t.Errorf("a key that is taken: %v", err)
	}
	if err := session.CommitTransaction(in); codeOf(err) != 251 {
		t.Errorf("commit after that: %v", err)
	}
	// It is of one database.
	_, in = transaction(t, client)
	if _, err := coll.InsertOne(in, bson.D{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Database("test2").Collection("things").InsertOne(in, bson.D{}); codeOf(err) != 263 {
		t.Errorf("another database: %v", err)
	}
}

// TestTransactionsAgain has many want one document: the driver tries them again until all have had it.
func TestTransactionsAgain(t *testing.T) {
	t.Parallel()
	client := serve(t, nil).client(t)
	coll := client.Database("test").Collection("things")
	insert(t, coll, `{"_id":1,"n":0}`)
	const all = 8
	done := make(chan error, all)
	for range all {
		go func() {
			done <- client.UseSession(t.Context(), func(ctx context.Context) error {
				_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
					var d struct{ N int }
					if err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Decode(&d); err != nil {
						return nil, err
					}
					return coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: d.N + 1}}}})
				})
				return err
			})
		}()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var d struct{ N int }
	if err := coll.FindOne(t.Context(), bson.D{}).Decode(&d); err != nil || d.N != all {
		t.Errorf("n is %d, %v", d.N, err)
	}
}

// TestSnapshots reads one state in several reads.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	client := serve(t, nil).client(t)
	coll := client.Database("test").Collection("things")
	insert(t, coll, `{"_id":1}`)
	session, err := client.StartSession(options.Session().SetSnapshot(true))
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	in := mongo.NewSessionContext(t.Context(), session)
	for range 2 {
		if n, err := coll.CountDocuments(in, bson.D{}); n != 1 || err != nil {
			t.Errorf("there are %d, %v", n, err)
		}
		insert(t, coll, `{}`)
	}
}

// TestForgotten lets cursors and sessions grow old.
func TestForgotten(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := serve(t, func(o *wire.Options) { o.Now = clock.now })
	client := s.client(t)
	coll := client.Database("test").Collection("things")
	insert(t, coll, `{"_id":1}`, `{"_id":2}`, `{"_id":3}`)
	cursor, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1))
	if err != nil {
		t.Fatal(err)
	}
	_, in := transaction(t, client)
	if _, err := coll.InsertOne(in, bson.D{{Key: "_id", Value: 4}}); err != nil {
		t.Fatal(err)
	}
	clock.add(9 * time.Minute)
	s.Sweep()
	if n := s.OpenCursors(); n != 1 {
		t.Errorf("after 9 minutes %d cursors are open", n)
	}
	clock.add(2 * time.Minute)
	s.Sweep()
	if n := s.OpenCursors(); n != 0 {
		t.Errorf("after 11 minutes %d cursors are open", n)
	}
	for cursor.Next(t.Context()) {
	}
	if err := cursor.Err(); codeOf(err) != 43 {
		t.Errorf("a cursor that was forgotten: %v", err)
	}
	clock.add(31 * time.Minute)
	s.Sweep()
	if _, err := coll.InsertOne(in, bson.D{{Key: "_id", Value: 5}}); codeOf(err) != 251 {
		t.Errorf("a session that was forgotten: %v", err)
	}
}

// TestCreateInTransaction makes collections and indexes that are there with the commit, or not at all.
func TestCreateInTransaction(t *testing.T) {
	t.Parallel()
	client := serve(t, nil).client(t)
	db, ctx := client.Database("test"), t.Context()
	insert(t, db.Collection("old"), `{"_id":1}`)
	run := func(in context.Context, command string) error { return db.RunCommand(in, object(t, command)).Err() }
	const byA, byB = `"indexes":[{"key":{"a":1},"name":"a","unique":true}]`, `"indexes":[{"key":{"b":1},"name":"b"}]`
	for _, commit := range []bool{false, true} {
		session, in := transaction(t, client)
		for _, command := range []string{`{"create":"empty"}`, `{"create":"things"}`, `{"createIndexes":"things",` + byA + `}`, `{"createIndexes":"more",` + byB + `}`} {
			if err := run(in, command); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
		}
		if _, err := db.Collection("things").InsertOne(in, bson.D{{Key: "a", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		want := 1
		if commit {
			want = 4
			if err := session.CommitTransaction(in); err != nil {
				t.Fatal(err)
			}
		} else if err := session.AbortTransaction(in); err != nil {
			t.Fatal(err)
		}
		if names, err := db.ListCollectionNames(ctx, bson.D{}); len(names) != want || err != nil {
			t.Errorf("committed %v: there are %v, %v", commit, names, err)
		}
	}
	if _, err := db.Collection("things").InsertOne(ctx, bson.D{{Key: "a", Value: 1}}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a key that is taken: %v", err)
	}
	for command, want := range map[string]int{
		`{"create":"old"}`: 48, `{"createIndexes":"old",` + byA + `}`: 263, `{"createIndexes":"things",` + byA + `}`: 0,
		`{"createIndexes":"things","indexes":[{"key":{"c":1},"name":"a"}]}`: 86, `{"drop":"old"}`: 263,
	} {
		session, in := transaction(t, client)
		if err := run(in, command); codeOf(err) != want || (err == nil) != (want == 0) {
			t.Errorf("%s: %v, want the code %d", command, err, want)
		}
		_ = session.AbortTransaction(in) // a command that has failed has ended it
	}
}
