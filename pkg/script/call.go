package script

import (
	"context"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Call is one run of a program.
type Call struct {
	Project string            // its namespace: for fair queues and logs
	Program *Program          // what runs: its exported function, or its expression
	Args    []any             // what the function gets before ctx: a validator is (value, ctx)
	Common  []Member          // members of ctx that calls share; never written to, and none of them Out
	Ctx     []Member          // the other members of ctx
	Each    [][]Member        // if set, the function is called once for each, with these members beside these; Result.Values has the answers
	Host    Host              // what modules call; nil: db, http and the like are not there
	Env     map[string]string // env: what the project's config names
	Limits  Limits
	Isolate bool // run in a worker process
	Long    bool // it may take minutes, and the caller bounds how many there are: with Isolate it takes no place from short runs
	// Still is the time that stays for the script, with random numbers that are the same in each run; zero: neither is so.
	Still  time.Time
	Filter bool // what the script returns is a filter: what would be left out of another value is an error
	// Progress takes what the script gives to ctx.progress; nil: that is not there. Called as Log is.
	Progress func(v any)
	Log      func(Line) // console.* and ctx.log.*; nil drops them. Called from the goroutine of the run
}

// Member is one member of ctx. Value is a BSON value: nil, bool, numbers, string, bson.D, bson.A, bson.Raw,
// bson.RawValue, the types of package bson, time.Time, []byte, []string, []any. It is converted when the script first
// touches it, and never written to.
type Member struct {
	Name  string
	Value any
	Make  func() any // makes the value instead, each time that a script touches it first; such a member can't be Out
	Out   bool       // give it back in Result.Out if the script has changed it
}

func (m *Member) value() any {
	if m.Make != nil {
		return m.Make()
	}
	return m.Value
}

// Host is what scripts reach of the outside. args and the answer are BSON values as in Member. A call may come from any
// goroutine, several at once, and must end with ctx. An error becomes an exception that the script can catch: an
// *errs.Error shows its public message, code and kind, any other error is "internal error".
type Host interface {
	Call(ctx context.Context, op string, args bson.A) (any, error)
}

// Limits of one run; zero values are the defaults.
type Limits struct {
	Timeout   time.Duration // default 5 s
	Memory    int64         // bytes the run may make the heap grow by; default 64 MiB
	MaxResult int           // bytes of what comes back; default 16 MiB
}

// The defaults of Limits.
const (
	defaultTimeout   = 5 * time.Second
	defaultMemory    = 64 << 20
	defaultMaxResult = 16 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	if l.Memory <= 0 {
		l.Memory = defaultMemory
	}
	if l.MaxResult <= 0 {
		l.MaxResult = defaultMaxResult
	}
	return l
}

// Line is one line of a script's log. Level is debug, info, warn or error.
type Line struct {
	Time    time.Time
	Level   string
	Message string
}

// SlogLevel is the level as logs have it.
func (l Line) SlogLevel() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// Result is what a run gave back. Values are Go values of the value model: bson.D, bson.A, string, int32, int64,
// float64, bool, nil, bson.ObjectID, bson.DateTime, bson.Binary, bson.Decimal128 and the like.
type Result struct {
	Value    any            // what the function returned
	Returned bool           // false: it returned undefined
	Values   []any          // the answers of Each; undefined is nil
	Out      map[string]any // Out members that the script has changed, by name
}

// Get gives a changed Out member.
func (r Result) Get(name string) (v any, changed bool) {
	v, changed = r.Out[name]
	return v, changed
}
