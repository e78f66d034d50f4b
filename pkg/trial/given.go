package trial

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/schema"
)

// given is what a case begins with: what its suite says, then what it says itself.
type given struct {
	Clock   time.Time
	Env     map[string]string
	Org     string
	Records []fixture
	HTTP    []*schema.TestAnswer
}

// fixture is a collection with records that are there, and where that is written.
type fixture struct {
	collection string
	records    any
	path       string
}

func givenOf(j job) given {
	out := given{Clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Env: map[string]string{}}
	for _, one := range []struct {
		*schema.TestGiven
		path string
	}{{j.of.Given, "given"}, {j.Given, j.Path + ".given"}} {
		if one.TestGiven == nil {
			continue
		}
		if one.Clock != nil {
			out.Clock = *one.Clock
		}
		maps.Copy(out.Env, one.Env)
		if one.Org != "" {
			out.Org = one.Org
		}
		for _, e := range one.Records {
			out.Records = append(out.Records, fixture{e.Key, e.Value, one.path + ".records." + e.Key})
		}
		out.HTTP = append(out.HTTP, one.HTTP...)
	}
	return out
}

func envKey(env map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		b.WriteString(strconv.Quote(name) + "=" + strconv.Quote(env[name]) + ";")
	}
	return b.String()
}

// clock is a time that stands still until it is set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

// insertAll creates the fixtures, and keeps their ids: ${articles[0].id}.
func (b *bench) insertAll() bool {
	for _, f := range b.given.Records {
		value, ok := b.fill(f.records, f.path)
		if !ok {
			return false
		}
		list, ok := value.(bson.A)
		if !ok {
			return b.fail(f.path, "", "must be a list of records")
		}
		ids, _ := member(b.vars, f.collection).(bson.A)
		for i, item := range list {
			at := f.path + "[" + strconv.Itoa(i) + "]"
			doc, ok := item.(bson.D)
			if !ok {
				return b.fail(at, "", "must be a record")
			}
			id, err := b.box.Insert(b.ctx, f.collection, doc)
			if err != nil {
				return b.fail(at, "", "the record that is given can't be created: "+public(err))
			}
			ids = append(ids, bson.D{{Key: "id", Value: id}})
		}
		b.let(f.collection, ids)
	}
	return true
}

// let gives a variable a value.
func (b *bench) let(name string, v any) {
	for i := range b.vars {
		if b.vars[i].Key == name {
			b.vars[i].Value = v
			return
		}
	}
	b.vars = append(b.vars, bson.E{Key: name, Value: v})
}
