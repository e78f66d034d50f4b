package outside_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/svcctl/svc/pkg/store/wire"
)

// corpusFile is a file of the BSON corpus, as far as it is about BSON: what is about extended JSON is the drivers'.
type corpusFile struct {
	Description  string       `json:"description"`
	Valid        []corpusCase `json:"valid"`
	DecodeErrors []corpusCase `json:"decodeErrors"`
}

type corpusCase struct {
	Description string `json:"description"`
	Canonical   string `json:"canonical_bson"`
	Bytes       string `json:"bson"`
}

// runCorpus stores every document of the BSON corpus and reads it back, to the byte; what is no BSON has to be refused.
func runCorpus(t *testing.T, dir string) (results []result) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(serve(t, wire.Testing{})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	coll := client.Database("corpus").Collection("documents")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file) // a suite's
		if err != nil {
			t.Fatal(err)
		}
		var f corpusFile
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		add := func(c corpusCase, check func(doc bson.Raw) error, text string) {
			r := result{Suite: "bson-corpus", Name: filepath.Base(file) + "/" + c.Description, Outcome: passed}
			doc, err := hex.DecodeString(text)
			if err == nil {
				err = check(doc)
			}
			if err != nil {
				r.Outcome, r.Text = failed, err.Error()
			}
			results = append(results, r)
		}
		for _, c := range f.Valid {
			add(c, func(doc bson.Raw) error { return keeps(t, coll, doc) }, c.Canonical)
		}
		for _, c := range f.DecodeErrors {
			add(c, func(doc bson.Raw) error { return refuses(t, coll, doc) }, c.Bytes)
		}
	}
	return results
}

// keeps says whether a document in another one comes back as it went.
func keeps(t *testing.T, coll *mongo.Collection, doc bson.Raw) error {
	t.Helper()
	id := bson.NewObjectID()
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "doc", Value: doc}}); err != nil {
		return err
	}
	got, err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Raw()
	if err != nil {
		return err
	}
	if back := got.Lookup("doc"); !bytes.Equal(back.Value, doc) {
		return errors.New("it comes back as " + hex.EncodeToString(back.Value))
	}
	return nil
}

// refuses says whether what is no document can't be stored.
func refuses(t *testing.T, coll *mongo.Collection, doc bson.Raw) error {
	t.Helper()
	value := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "doc", Value: value}}); err == nil {
		return errors.New("it was stored")
	}
	return nil
}
