package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/mongo"
)

// embeddedScheme begins the store URI of the embedded store; the rest is its directory.
const embeddedScheme = "embedded:"

// openStore opens the store that the settings name. how says whether an embedded one is only to be read, or has to be
// there.
func openStore(ctx context.Context, cfg Config, how embedded.Options) (store.Store, error) {
	if dir, ok := cfg.embeddedDir(); ok {
		how.Dir, how.Logger, how.OnFatal = dir, cfg.Logger, cfg.OnFatal
		if how.CacheSize = cfg.CacheSize; how.CacheSize == 0 {
			how.CacheSize = cacheFor(memory())
		}
		how.MemTableSize = memTableFor(how.CacheSize)
		st, err := embedded.Open(ctx, how)
		if e := errs.From(err); e != nil && e.Code == "store_open" {
			return nil, fmt.Errorf("%w: svcd must be able to read and write there; data.dir and store.uri name the place", err)
		} else if err != nil {
			return nil, err
		}
		return st, nil
	}
	st, err := mongo.Open(ctx, mongo.Options{URI: cfg.StoreURI, Logger: cfg.Logger})
	if e := errs.From(err); e != nil && e.Code == "store_unavailable" {
		return nil, fmt.Errorf("MongoDB can't be reached: check that it runs, that its replica set was initiated (rs.initiate()), and the setting store.uri with its user and password: %w", err)
	} else if err != nil {
		return nil, err
	}
	return st, nil
}

// embeddedDir gives the directory of the embedded store; ok is false when the store is another one.
func (cfg Config) embeddedDir() (dir string, ok bool) {
	if cfg.StoreURI == "" {
		return filepath.Join(cfg.DataDir, "store"), true
	}
	return strings.CutPrefix(cfg.StoreURI, embeddedScheme)
}
