package cache_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/script/cache"
)

func TestCache(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c := cache.New(func() time.Time { return now })
	do := func(op string, args ...any) any {
		t.Helper()
		v, err := c.Call(t.Context(), "cache."+op, args)
		if err != nil {
			return errs.From(err).Code
		}
		return v
	}
	value := bson.D{{Key: "a", Value: bson.A{int64(1), "x"}}}
	do("set", "k", value, nil)
	do("set", "short", "v", int32(10))
	got := []any{do("get", "k"), do("get", "short"), do("get", "none")}
	value[0].Value = "changed" // the cache has a copy
	now = now.Add(10 * time.Second)
	got = append(got, do("get", "short"), do("get", "k"))
	do("delete", "k")
	got = append(got, do("get", "k"), do("set", "large", strings.Repeat("x", cache.MaxBytes/4)), do("set", strings.Repeat("k", 2000), 1), do("set", "k"), do("get"), do("nothing", "k"))
	kept := bson.D{{Key: "a", Value: bson.A{int64(1), "x"}}}
	want := []any{kept, "v", nil, nil, kept, nil, "cache_too_large", "cache_invalid", "cache_invalid", "cache_invalid", "no_module"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCacheIsBounded fills it: what was used last stays.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := cache.New(time.Now)
	text := strings.Repeat("x", 1<<20)
	for i := range 100 {
		if _, err := c.Call(t.Context(), "cache.set", bson.A{strconv.Itoa(i), text}); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Call(t.Context(), "cache.get", bson.A{"0"})
	}
	kept := 0
	for i := range 100 {
		if v, _ := c.Call(t.Context(), "cache.get", bson.A{strconv.Itoa(i)}); v != nil {
			kept++
		} else if i == 0 || i == 99 {
			t.Errorf("%d was dropped", i)
		}
	}
	if kept < 10 || kept > 16 {
		t.Errorf("%d entries are kept", kept)
	}
}
