package mql

import "go.mongodb.org/mongo-driver/v2/bson"

// MustCompile is Compile for filters that are constants of the program, but for plain values that they compare with; it
// panics if doc does not compile.
func MustCompile(doc bson.D) *Filter {
	f, err := Compile(doc)
	if err != nil {
		panic(err)
	}
	return f
}

// MustCompileUpdate is CompileUpdate for updates that are constants of the program, but for plain values that they set;
// it panics if doc does not compile.
func MustCompileUpdate(doc bson.D, arrayFilters ...bson.D) *Update {
	u, err := CompileUpdate(doc, arrayFilters)
	if err != nil {
		panic(err)
	}
	return u
}

// MustCompileProjection is CompileProjection for projections that are constants of the program; it panics if doc does
// not compile.
func MustCompileProjection(doc bson.D) *Projection {
	p, err := CompileProjection(doc)
	if err != nil {
		panic(err)
	}
	return p
}
