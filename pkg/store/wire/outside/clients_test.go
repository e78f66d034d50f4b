package outside_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store/wire"
)

var clients = flag.String("clients", "", "the folder that clients are installed in: py (a virtual environment with pymongo), node (node_modules with mongodb and mongosh), bin (mongodump …)")

// installed gives the file of a client, from the folder of -clients or from PATH, or skips the test.
func installed(t *testing.T, inFolder, name string) string {
	t.Helper()
	if *clients != "" {
		file, err := filepath.Abs(filepath.Join(*clients, filepath.FromSlash(inFolder)))
		if _, errStat := os.Stat(file); err == nil && errStat == nil {
			return file
		}
	}
	file, err := exec.LookPath(name)
	if err != nil || name == "node" || name == "python3" { // they are there without the client
		t.Skipf("%s is not installed: -clients (make clients CLIENTS=…) says where", inFolder)
	}
	return file
}

// do runs a client until it ends well.
func do(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(t, env, name, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
	}
	return out
}

func try(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...) // a client of the one who runs the test
	cmd.Env = append(os.Environ(), env...)         // it needs all of it
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// everyday runs a script on an endpoint that takes writes, and then once more on the same store by one that takes none.
func everyday(t *testing.T, run func(env []string, uri string)) {
	t.Helper()
	st := open(t)
	uri := endpoint(t, st, false, wire.Testing{})
	run([]string{"URI=" + uri}, uri)
	uri = endpoint(t, st, true, wire.Testing{})
	run([]string{"URI=" + uri, "READONLY=1"}, uri)
}

func TestPymongo(t *testing.T) {
	python := installed(t, "py/bin/python", "python3")
	everyday(t, func(env []string, _ string) { do(t, env, python, filepath.Join("testdata", "everyday.py")) })
}

func TestNode(t *testing.T) {
	modules := installed(t, "node/node_modules/mongodb", "node")
	everyday(t, func(env []string, _ string) {
		do(t, append(env, "MODULES="+filepath.Dir(modules)), "node", filepath.Join("testdata", "everyday.js"))
	})
}

func TestMongosh(t *testing.T) {
	shell := installed(t, "node/node_modules/.bin/mongosh", "mongosh")
	everyday(t, func(env []string, uri string) {
		do(t, append(env, "HOME="+t.TempDir()), shell, "--quiet", uri, filepath.Join("testdata", "everyday.mongosh.js"))
	})
}

// TestMongodump takes a database away and brings it back.
func TestMongodump(t *testing.T) {
	dump, restore := installed(t, "bin/mongodump", "mongodump"), installed(t, "bin/mongorestore", "mongorestore")
	st := open(t)
	uri := endpoint(t, st, false, wire.Testing{})
	readOnly := endpoint(t, st, true, wire.Testing{})
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	coll := client.Database("dumped").Collection("things")
	docs := make([]any, 3000)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat("x", i%500)}}
	}
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "text", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	do(t, nil, dump, "--uri", readOnly, "--db", "dumped", "--out", dir)
	if err := client.Database("dumped").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := try(t, nil, restore, "--uri", readOnly, dir); err == nil || !strings.Contains(out, "reading only") {
		t.Errorf("a restore where nothing may be written: %v\n%s", err, out)
	}
	do(t, nil, restore, "--uri", uri, "--drop", dir)
	do(t, nil, restore, "--uri", uri, "--nsFrom", "dumped.*", "--nsTo", "again.*", dir)
	for _, name := range []string{"dumped", "again"} {
		back := client.Database(name).Collection("things")
		n, err := back.CountDocuments(t.Context(), bson.D{})
		specs, err2 := back.Indexes().ListSpecifications(t.Context())
		if n != 3000 || len(specs) != 2 || err != nil || err2 != nil {
			t.Errorf("%s: %d documents, %d indexes, %v, %v", name, n, len(specs), err, err2)
		}
	}
}

// TestMongoexport takes documents away as JSON and brings them back.
func TestMongoexport(t *testing.T) {
	export, imports := installed(t, "bin/mongoexport", "mongoexport"), installed(t, "bin/mongoimport", "mongoimport")
	uri := endpoint(t, open(t), false, wire.Testing{})
	file := filepath.Join(t.TempDir(), "things.json")
	if err := os.WriteFile(file, []byte(`{"_id":1,"n":{"$numberLong":"5"}}`+"\n"+`{"_id":2,"at":{"$date":"2026-01-02T03:04:05Z"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, nil, imports, "--uri", uri, "--db", "files", "--collection", "things", "--file", file)
	do(t, nil, imports, "--uri", uri, "--db", "files", "--collection", "things", "--mode", "upsert", "--file", file)
	back := filepath.Join(t.TempDir(), "back.json")
	do(t, nil, export, "--uri", uri, "--db", "files", "--collection", "things", "--jsonFormat", "canonical", "--sort", `{"_id":1}`, "--out", back)
	data, err := os.ReadFile(back) // of this test
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != 2 || !strings.Contains(string(data), `"n":{"$numberLong":"5"}`) {
		t.Errorf("%s", data)
	}
}
