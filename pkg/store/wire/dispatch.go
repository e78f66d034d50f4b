package wire

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// run runs the command of a message and makes its reply; nil is none, and the end of the connection. again says that it should
// run once more, for another one.
func (c *conn) run(ctx context.Context, m *message) (reply bson.D, again bool) {
	k, err := c.newCall(m)
	if err == nil {
		var hangUp bool
		reply, hangUp, err = k.failing().run(k, func() (bson.D, error) { return c.server.guarded(ctx, k) })
		if hangUp {
			return nil, false
		}
	}
	if err != nil {
		f := k.labeled(failureOf(err))
		if f.code == codeInternal || f.cause != nil && errs.KindOf(f.cause) == errs.Internal {
			c.log.ErrorContext(ctx, "a command of the MongoDB endpoint failed", "command", k.name, "error", err)
		}
		reply = append(bson.D{{Key: "ok", Value: 0.0}}, f.fields()...)
	} else {
		reply = append(reply, bson.E{Key: "ok", Value: 1.0})
	}
	if c.user && !c.server.opts.Testing.NoTimes {
		now := c.server.clock.next()
		reply = append(reply, bson.E{Key: "$clusterTime", Value: bson.D{
			{Key: "clusterTime", Value: now},
			{Key: "signature", Value: bson.D{{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}}, {Key: "keyId", Value: int64(0)}}},
		}}, bson.E{Key: "operationTime", Value: now})
		k.record(now)
	}
	return reply, k.again
}

// guarded contains a panic in the command that it comes from.
func (s *Server) guarded(ctx context.Context, k *call) (reply bson.D, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.opts.Logger.ErrorContext(ctx, "a command of the MongoDB endpoint has failed badly",
				"command", k.name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fail(codeInternal, "internal error")
		}
	}()
	s.counters.commands.Add(1)
	return s.dispatch(ctx, k)
}

func errReadOnly() error {
	return fail(codeUnauthorized, "this endpoint is for reading only: the setting store.mongoReadOnly=false has it take writes")
}

// dispatch runs a command within its session, its time and, if it is in one, its transaction.
func (s *Server) dispatch(ctx context.Context, k *call) (bson.D, error) {
	if k.command.writes && s.opts.ReadOnly {
		return nil, errReadOnly()
	}
	if s.opts.Moment != nil {
		ctx = s.opts.Moment(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ms, err := k.maxTime()
	if err != nil {
		return nil, err
	}
	if limit := k.timeLimit(ms); limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	k.ctx = ctx
	if !k.conn.user {
		return k.command.run(k)
	}
	if err := k.checkConcern(); err != nil {
		return nil, err
	}
	if !k.command.writes && !k.command.global { // nobody needs what is read for one who is gone
		there, stop := k.conn.whileThere(ctx)
		defer stop()
		k.ctx = there
	}
	release, err := k.enter(cancel)
	if err != nil {
		return nil, err
	}
	defer release()
	var reply bson.D
	err = k.gated(func() (err error) {
		k.note()
		reply, err = k.command.run(k)
		return err
	})
	if err != nil && k.tx != nil {
		err = k.tx.failed(k, err)
	}
	if err == nil && k.wantsMore() {
		reply = append(reply, bson.E{Key: "writeConcernError", Value: bson.D{
			{Key: "code", Value: int32(100)},
			{Key: "codeName", Value: "UnsatisfiableWriteConcern"},
			{Key: "errmsg", Value: "there is one server: what is acknowledged is on its disk"},
		}})
	}
	return reply, err
}

// gated does what the command does where the records of its database are not being replaced. Collections and indexes that are made or removed
// meanwhile would be those of before, though that was acknowledged: whoever begins to replace records waits for a command that does so. Other
// writes are held by themselves, each for as long as it takes.
func (k *call) gated(do func() error) error {
	if !k.command.writes || k.command.global || k.tx != nil || isSystem(k.db) {
		return do()
	}
	if k.command.shapes {
		return k.writing(do)
	}
	if err := k.mayWrite(); err != nil {
		return err
	}
	return do()
}

// mayWrite is an error while the records of the database are replaced.
func (k *call) mayWrite() error { return k.writing(func() error { return nil }) }

// writing does something for which whoever replaces the records of the database waits, and refuses it while that is done.
func (k *call) writing(do func() error) error {
	db, err := k.server.database(k.db)
	if err != nil {
		return err
	}
	if gated, ok := db.(store.Gated); ok {
		return gated.Writing(k.ctx, do)
	}
	return do()
}
