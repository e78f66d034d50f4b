package app

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/svcctl/svc/pkg/snapshot"
	"github.com/svcctl/svc/pkg/store/embedded"
	"github.com/svcctl/svc/pkg/store/wire"
	"github.com/svcctl/svc/pkg/system"
)

// errOnMongo refuses the endpoint where there is a MongoDB already.
var errOnMongo = errors.New("is for the embedded store only: this store is a MongoDB, which mongosh and the others reach without svcd")

// CheckMongoListen says what is wrong with MongoListen, for whoever set it.
func (cfg Config) CheckMongoListen() error {
	if cfg.MongoListen == "" {
		return nil
	}
	if _, ok := cfg.embeddedDir(); !ok {
		return errOnMongo
	}
	_, err := wire.CheckAddress(cfg.MongoListen)
	return err
}

// hiddenDatabase is one that clients of the endpoint don't reach: that of the system models, and those that drills restore into.
func hiddenDatabase(name string) bool {
	return name == system.DatabaseName || snapshot.IsScratch(name)
}

// listenMongo opens the MongoDB endpoint, if there is to be one. The system models are out of its reach: they hold
// what credentials are checked by.
func (a *App) listenMongo(ctx context.Context, adminToken string) error {
	if a.cfg.MongoListen == "" {
		return nil
	}
	st, ok := a.opened.(*embedded.Store)
	if !ok {
		return fmt.Errorf("store.mongoListen %w", errOnMongo)
	}
	endpoint, err := wire.Listen(ctx, wire.Options{
		Store: a.gate,
		Databases: func(context.Context) ([]string, error) {
			names, _ := st.Contents()
			return names, nil
		},
		Hidden: hiddenDatabase, Moment: a.gate.Moment, Feeds: st, Address: a.cfg.MongoListen, Password: adminToken, ReadOnly: a.cfg.MongoReadOnly,
		MaxTime: a.cfg.MongoMaxTime,
		Logger:  a.cfg.Logger, Now: a.cfg.Now,
	})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the program that uses the port, or set another store.mongoListen", err)
	case err != nil:
		return fmt.Errorf("store.mongoListen: %w", err)
	}
	a.endpoint = endpoint
	a.cfg.Logger.InfoContext(ctx, "MongoDB endpoint", "address", endpoint.Addr().String(), "read_only", a.cfg.MongoReadOnly)
	return nil
}

// MongoAddr is the address of the MongoDB endpoint, "" if there is none.
func (a *App) MongoAddr() string {
	if a.endpoint == nil {
		return ""
	}
	return a.endpoint.Addr().String()
}

// serveMongo has the endpoint answer. broken is told if it can't; done is closed when it does not answer any more.
func (a *App) serveMongo(broken chan<- error) (done <-chan struct{}) {
	ended := make(chan struct{})
	if a.endpoint == nil {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		if err := a.endpoint.Serve(); err != nil {
			broken <- err
		}
	}()
	return ended
}

func (a *App) stopMongo(ctx context.Context, done <-chan struct{}) error {
	if a.endpoint == nil {
		return nil
	}
	err := a.endpoint.Shutdown(ctx)
	<-done
	return err
}
