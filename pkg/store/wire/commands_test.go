package wire_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/mongotest"
)

// onBoth runs a test on the endpoint, and on a real server where there is one, which shows that the test is right.
func onBoth(t *testing.T, test func(t *testing.T, coll *mongo.Collection, isReal bool)) {
	t.Helper()
	t.Run("endpoint", func(t *testing.T) {
		t.Parallel()
		test(t, things(t), false)
	})
	t.Run("mongod", func(t *testing.T) {
		t.Parallel()
		client, err := mongo.Connect(options.Client().ApplyURI(mongotest.URI(t)))
		if err != nil {
			t.Fatal(err)
		}
		db := client.Database("wire_" + bson.NewObjectID().Hex())
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			if err := errors.Join(db.Drop(ctx), client.Disconnect(ctx)); err != nil {
				t.Error(err)
			}
		})
		test(t, db.Collection("things"), true)
	})
}

// answered runs a command and gives the code of its error, or of that of its first statement.
func answered(t *testing.T, coll *mongo.Collection, command string) (code int, reply bson.Raw, err error) {
	t.Helper()
	reply, err = coll.Database().RunCommand(t.Context(), object(t, command)).Raw()
	if err != nil {
		return codeOf(err), reply, err
	}
	n, _ := reply.Lookup("writeErrors", "0", "code").AsInt64OK()
	return int(n), reply, nil
}

// TestErrorCodes runs the commands of testdata/errors.txt, each behind the code that MongoDB 6.0.5 has given for it; 0 is none.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	lines, err := os.ReadFile(filepath.Join("testdata", "errors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, coll *mongo.Collection, _ bool) {
		t.Helper()
		insert(t, coll, `{"_id":1,"n":1,"s":"text","l":[1,2],"o":{"a":1}}`, `{"_id":2,"n":2,"l":[{"a":1},{"a":2}]}`)
		for line := range strings.Lines(string(lines)) {
			want, command, _ := strings.Cut(strings.TrimSpace(line), " ")
			if code, reply, err := answered(t, coll, command); strconv.Itoa(code) != want {
				t.Errorf("%s: %d, want %s (%v %v)", command, code, want, err, reply)
			}
		}
	})
}

// TestErrors has commands that are wrong, or refused.
func TestErrors(t *testing.T) {
	t.Parallel()
	onBoth(t, testErrors)
}

// testErrors is TestErrors. A real server has what the endpoint says that it does not support.
func testErrors(t *testing.T, coll *mongo.Collection, isReal bool) {
	t.Helper()
	insert(t, coll, `{"_id":1,"n":1,"s":"text","l":[1,2]}`, `{"_id":2,"n":2}`)
	if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{
		`{"find":"things","filter":{"$nonsense":1}}`:                                                          2,
		`{"find":"things","filter":1}`:                                                                        14,
		`{"find":"things","sort":{"a":"up"}}`:                                                                 15974,
		`{"find":"things","sort":{"a":1.5}}`:                                                                  0,
		`{"find":"things","sort":{"a":42.5}}`:                                                                 15975,
		`{"find":"things","projection":{"l.$.a":1}}`:                                                          31394,
		`{"find":"things","projection":{"$.l.$.a":1}}`:                                                        31394,
		`{"find":"things","projection":{"":1}}`:                                                               40352,
		`{"find":"things","projection":{"l..$":1}}`:                                                           40353,
		`{"find":"things","projection":{"$l":1}}`:                                                             16410,
		`{"find":"things","projection":{"$":1}}`:                                                              16410,
		`{"find":"things","projection":{"l.$a":1}}`:                                                           16410,
		`{"find":"things","projection":{"$.a.$":1}}`:                                                          16410,
		`{"find":"things","projection":{"l.$":0}}`:                                                            31395,
		`{"aggregate":"things","pipeline":[],"cursor":{"batchSize":-1}}`:                                      51024,
		`{"aggregate":"things","pipeline":[{"$collStats":null}],"cursor":{}}`:                                 5447000,
		`{"aggregate":"nothing","pipeline":[{"$collStats":{"storageStats":{"scale":0}}}],"cursor":{}}`:        51024,
		`{"aggregate":"things","pipeline":[{"$count":"n"},{"$collStats":{}}],"cursor":{}}`:                    40602,
		`{"dropIndexes":"things","index":{"_id":-1}}`:                                                         27,
		`{"dropIndexes":"things","index":{"a":"nonsense"}}`:                                                   27,
		`{"createIndexes":"things","indexes":null}`:                                                           10065,
		`{"createIndexes":"nothing","indexes":[{"key":{"b":1},"name":"b"},{"key":{"b":1},"name":"b"}]}`:       68,
		`{"createIndexes":"things","indexes":[{"key":{"b":1},"name":"b"},{"key":{"c":1},"name":"b"}]}`:        86,
		`{"createIndexes":"things","indexes":[{"key":{"b":1},"name":"b"},{"key":{"b":1},"name":"c"}]}`:        85,
		`{"find":"things","skip":-1}`:                                                                         51024,
		`{"find":"things","nonsense":1}`:                                                                      40415,
		`{"find":"things","collation":{"locale":"de"}}`:                                                       238,
		`{"find":"things","collation":{"locale":"en"}}`:                                                       238,
		`{"find":"things","hint":"nonsense"}`:                                                                 2,
		`{"find":""}`:                                                                                         73,
		`{"find":1}`:                                                                                          2,
		`{"find":"things","tailable":true}`:                                                                   2,
		`{"nonsense":1}`:                                                                                      59,
		`{"getMore":{"$numberLong":"99"},"collection":"things"}`:                                              43,
		`{"insert":"things","documents":[]}`:                                                                  16,
		`{"insert":"things","documents":[{"_id":1}]}`:                                                         11000,
		`{"insert":"things","documents":[{"_id":[1]}]}`:                                                       53,
		`{"insert":"things","documents":[{"n":2}]}`:                                                           11000,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"n":2}}}]}`:                                11000,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"_id":2}}}]}`:                              66,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"s.a":2}}}]}`:                              28,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"a":2},"$inc":{"a":1}}}]}`:                 40,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$inc":{"s":1}}}]}`:                                14,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$nonsense":{"s":1}}}]}`:                           9,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$push":{"s":1}}}]}`:                               2,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$pop":{"l":2}}}]}`:                                9,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"l.$[x]":2}}}]}`:                           2,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"a":2}},"arrayFilters":[{"x":1}]}]}`:       9,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"":2}}}]}`:                                 56,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"l.$":2}}}]}`:                              2,
		`{"update":"things","updates":[{"q":{},"u":{"a":2},"multi":true}]}`:                                   9,
		`{"update":"things","updates":[{"q":{},"u":[{"$group":{"_id":1}}]}]}`:                                 72,
		`{"update":"things","updates":[{"q":{"_id":1},"u":{"$set":{"a":1}},"nonsense":1}]}`:                   40415,
		`{"update":"things","updates":[{"q":{"$and":[{"z":1},{"z":2}]},"u":{"$set":{"a":1}},"upsert":true}]}`: 54,
		`{"delete":"things","deletes":[{"q":{}}]}`:                                                            40414,
		`{"delete":"things","deletes":[{"q":{},"limit":2}]}`:                                                  9,
		`{"findAndModify":"things"}`:                                                                          9,
		`{"findAndModify":"things","remove":true,"update":{"a":1}}`:                                           9,
		`{"create":"things"}`:                                                                                 48,
		`{"create":"others","capped":true,"size":1}`:                                                          238,
		`{"drop":"others"}`: 26,
		`{"createIndexes":"things","indexes":[{"key":{"a":"text"},"name":"a"}]}`:              67,
		`{"createIndexes":"things","indexes":[{"key":{"a":1},"name":"n_1"}]}`:                 86,
		`{"createIndexes":"things","indexes":[{"key":{"n":1},"name":"other","unique":true}]}`: 85,
		`{"dropIndexes":"things","index":"nonsense"}`:                                         27,
		`{"dropIndexes":"things","index":"_id_"}`:                                             72,
		`{"dropIndexes":"others","index":"*"}`:                                                26,
		`{"listIndexes":"others"}`:                                                            26,
		`{"aggregate":"things","pipeline":[{"$redact":"$$PRUNE"}],"cursor":{}}`:               238,
		`{"distinct":"things","key":"$a"}`:                                                    16410,
	} {
		if isReal && (want == 238 || strings.Contains(command, `"text"`)) {
			continue
		}
		code, reply, err := answered(t, coll, command)
		if code != want {
			t.Errorf("%s: %d, want %d (%v %v)", command, code, want, err, reply)
		}
	}
	if got := all(t, coll); len(got) != 2 {
		t.Errorf("there is %v", got)
	}
}

// TestIndexes makes, lists and drops indexes of every kind there is.
func TestIndexes(t *testing.T) {
	t.Parallel()
	coll := things(t)
	ctx := t.Context()
	insert(t, coll, `{"_id":1,"l":[1,2]}`, `{"_id":2,"l":[2,3]}`)
	names, err := coll.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}},
		{Keys: bson.D{{Key: "c", Value: 1}}, Options: options.Index().SetName("c").SetSparse(true).SetUnique(true)},
		{Keys: bson.D{{Key: "d", Value: 1}}, Options: options.Index().SetPartialFilterExpression(object(t, `{"d":{"$gt":1}}`))},
		{Keys: bson.D{{Key: "e", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(60)},
	})
	if err != nil || strings.Join(names, " ") != "a_1_b_-1 c d_1 e_1" {
		t.Fatal(names, err)
	}
	specs, err := coll.Indexes().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for specs.Next(ctx) {
		got = append(got, text(t, specs.Current))
	}
	want := []string{
		`{"v":2,"key":{"_id":1},"name":"_id_"}`,
		`{"v":2,"key":{"a":1,"b":-1},"name":"a_1_b_-1"}`,
		`{"v":2,"key":{"c":1},"name":"c","unique":true,"sparse":true}`,
		`{"v":2,"key":{"d":1},"name":"d_1","partialFilterExpression":{"d":{"$gt":1}}}`,
		`{"v":2,"key":{"e":1},"name":"e_1","expireAfterSeconds":60}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the indexes are\n%s", strings.Join(got, "\n"))
	}
	_, err = coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "l", Value: 1}}, Options: options.Index().SetUnique(true)})
	if codeOf(err) != 11000 || !strings.Contains(err.Error(), "dup key: { l: 2 }") {
		t.Errorf("an index that documents keep from being built: %v", err)
	}
	if err := coll.Indexes().DropWithKey(ctx, bson.D{{Key: "c", Value: 1}}); err != nil {
		t.Error(err)
	}
	if err := coll.Indexes().DropAll(ctx); err != nil {
		t.Error(err)
	}
	var plan struct {
		QueryPlanner struct {
			WinningPlan struct{ Stage string } `bson:"winningPlan"`
		} `bson:"queryPlanner"`
	}
	if err := coll.Database().RunCommand(ctx, object(t, `{"explain":{"find":"things","filter":{"a":1}}}`)).Decode(&plan); err != nil || plan.QueryPlanner.WinningPlan.Stage != "COLLSCAN" {
		t.Errorf("without an index: %+v %v", plan, err)
	}
}

// TestCollections makes, renames, lists and drops collections.
func TestCollections(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	client := s.client(t)
	db := client.Database("test")
	ctx := t.Context()
	if err := db.CreateCollection(ctx, "empty"); err != nil {
		t.Fatal(err)
	}
	insert(t, db.Collection("things"), `{"_id":1}`)
	rename := bson.D{{Key: "renameCollection", Value: "test.things"}, {Key: "to", Value: "test.renamed"}}
	if err := client.Database("admin").RunCommand(ctx, rename).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.Database("admin").RunCommand(ctx, rename).Err(); codeOf(err) != 26 {
		t.Errorf("renamed again: %v", err)
	}
	names, err := db.ListCollectionNames(ctx, bson.D{})
	if err != nil || strings.Join(names, " ") != "empty renamed" {
		t.Errorf("there are %v, %v", names, err)
	}
	if names, err = db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: bson.D{{Key: "$regex", Value: "^r"}}}}); err != nil || len(names) != 1 {
		t.Errorf("there are %v, %v", names, err)
	}
	var stats struct{ Count, Nindexes int }
	if err := db.RunCommand(ctx, bson.D{{Key: "collStats", Value: "renamed"}}).Decode(&stats); err != nil || stats.Count != 1 || stats.Nindexes != 1 {
		t.Errorf("collStats: %+v %v", stats, err)
	}
	var valid struct{ Valid bool }
	if err := db.RunCommand(ctx, bson.D{{Key: "validate", Value: "renamed"}}).Decode(&valid); err != nil || !valid.Valid {
		t.Errorf("validate: %+v %v", valid, err)
	}
	kept := s.store.Database("test").Collection("svc.kept")
	if err := store.WriteAll(ctx, kept, store.Op{Kind: store.Insert, Doc: raw(t, `{"_id":1}`)}); err != nil {
		t.Fatal(err)
	}
	if err := db.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := kept.Count(ctx, nil, 0); n != 1 || err != nil {
		t.Errorf("of what the service keeps there are %d, %v", n, err)
	}
	if all, err := client.ListDatabaseNames(ctx, bson.D{}); err != nil || len(all) != 0 {
		t.Errorf("there are %v, %v", all, err)
	}
}

// TestAboutTheServer asks what tools ask when they begin.
func TestAboutTheServer(t *testing.T) {
	t.Parallel()
	client := serve(t, nil).client(t)
	for _, command := range []string{
		`{"hello":1}`, `{"isMaster":1}`, `{"buildInfo":1}`, `{"hostInfo":1}`, `{"serverStatus":1,"repl":0}`, `{"connectionStatus":1,"showPrivileges":true}`,
		`{"getParameter":1,"featureCompatibilityVersion":1}`, `{"getParameter":"*"}`, `{"getCmdLineOpts":1}`, `{"getLog":"startupWarnings"}`, `{"getLog":"*"}`,
		`{"whatsmyuri":1}`, `{"currentOp":1}`, `{"listCommands":1}`, `{"replSetGetStatus":1}`, `{"replSetGetConfig":1}`, `{"usersInfo":1}`, `{"rolesInfo":1}`,
		`{"top":1}`, `{"dbStats":1}`, `{"startSession":1}`, `{"refreshSessions":[]}`, `{"endSessions":[]}`, `{"listDatabases":1}`, `{"listCollections":1}`,
		`{"aggregate":1,"pipeline":[{"$currentOp":{}}],"cursor":{}}`, `{"find":"system.users"}`, `{"count":"x"}`, `{"distinct":"x","key":"a"}`,
	} {
		if err := client.Database("admin").RunCommand(t.Context(), object(t, command)).Err(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
