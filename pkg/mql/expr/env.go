package expr

import (
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Env is what an expression is evaluated in: the document, variables, and the memory for what is computed. One goroutine
// may use it at a time. The zero Env is ready.
type Env struct {
	Root   bson.RawValue   // what $$ROOT and field paths mean; in most stages a document
	Vars   []bson.RawValue // of the variables that Compile was told, in that order
	Now    time.Time       // $$NOW
	Memory int             // bytes that may be computed before the next Reset; 0: 100 MiB
	Ended  func() error    // asked now and then; an error ends the evaluation with it. nil: never
	Random func() float64  // from 0 up to 1, for $rand; nil: that of package math/rand/v2

	arena []byte
	slots []bson.RawValue // of the variables that expressions bind themselves
	stack []bson.RawValue // items of lists that are being computed
	steps uint

	patterns map[[2]string]*compiledPattern // that are no constants
}

const (
	defaultMemory = 100 << 20
	keptArena     = 1 << 20 // a larger arena is not kept for the next document
	stepsPerCheck = 16      // a step may be to go through a long text or list
)

// Reset gives Env the next document. What was computed before is overwritten by what follows.
func (env *Env) Reset(root bson.Raw) {
	env.Root = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: root}
	env.Forget()
}

// Forget lets Env use the memory of what was computed again; Root stays.
func (env *Env) Forget() {
	if cap(env.arena) > keptArena {
		env.arena = nil
	}
	env.arena, env.stack = env.arena[:0], env.stack[:0]
}

func (env *Env) memory() int {
	if env.Memory > 0 {
		return env.Memory
	}
	return defaultMemory
}

// room fails if n more bytes are too many.
func (env *Env) room(n int) error {
	const valueSize = 40 // of a bson.RawValue
	if limit := env.memory(); n > limit || len(env.arena)+n+valueSize*len(env.stack) > limit {
		return errMemory(limit)
	}
	return nil
}

// step is to be called in loops: it fails when the work has to end.
func (env *Env) step() error {
	env.steps++
	if env.steps%stepsPerCheck != 0 {
		return nil
	}
	if err := env.room(0); err != nil || env.Ended == nil {
		return err
	}
	return env.Ended()
}

func (env *Env) random() float64 {
	if env.Random != nil {
		return env.Random()
	}
	return rand.Float64() //nolint:gosec // no secret comes of it
}

// bind gives a variable of an expression its value.
func (env *Env) bind(slot int, v bson.RawValue) {
	for len(env.slots) <= slot {
		env.slots = append(env.slots, bson.RawValue{})
	}
	env.slots[slot] = v
}
