package differ_test

import (
	"flag"
	"os"
	"testing"

	"github.com/svcctl/svc/pkg/store/storetest/differ"
)

var update = flag.Bool("update", false, "ask a MongoDB for the answers of testdata/golden.gz anew")

const goldenFile = "testdata/golden.gz"

// TestGolden holds the embedded store and package mql against answers of MongoDB 6.0.5.
func TestGolden(t *testing.T) {
	local := openEmbedded(t)
	if *update {
		record(t, differ.Config{Store: local, Start: starter(t), Seed: 6, Ops: 20_000})
	}
	file, err := os.Open(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases, err := differ.ReadGolden(file)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	ops := 0
	for i := range cases {
		g := &cases[i]
		names[g.Name] = true
		if g.Name == "" && testing.Short() && i%8 > 0 {
			continue
		}
		ops += len(g.Case.Ops)
		if diff := g.Check(t.Context(), local); diff != "" {
			t.Errorf("%s: embedded: %s", g.Name, diff)
		}
		if diff := g.Check(t.Context(), nil); diff != "" {
			t.Errorf("%s: mql: %s", g.Name, diff)
		}
	}
	if least := 2_000; ops < least {
		t.Errorf("only %d calls, want %d and more", ops, least)
	}
	for _, f := range findings() {
		if !names[f.name] {
			t.Errorf("%s has no answer of a server: run the test with -update", f.name)
		}
	}
}

func record(t *testing.T, config differ.Config) {
	t.Helper()
	var named []differ.Golden
	for _, f := range findings() {
		c, err := differ.Parse(f.text)
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		named = append(named, differ.Golden{Name: f.name, Case: *c})
	}
	cases, err := differ.Record(t.Context(), config, named)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := differ.WriteGolden(file, cases); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
