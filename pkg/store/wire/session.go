package wire

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	maxSessions = 10_000
	// maxKept is how large the answer to a findAndModify may be that is kept for when it is sent again.
	maxKept = 1 << 20
	// maxOutcomes bounds the statements of one write whose results are kept.
	maxOutcomes = 100_000
)

// session is what belongs together in the eyes of a client.
type session struct {
	id string

	// turn is held by commands that have a number: they are one after the other.
	turn chan struct{}
	// These are guarded by turn.
	number   int64
	outcomes map[int32]outcome // of the statements of the write with that number

	// These are guarded by sessions.mu.
	used    time.Time
	tx      *transaction // the last one
	running map[*call]context.CancelFunc
}

// outcome is what a statement did that may be sent again.
type outcome struct {
	matched, modified int64
	upserted          bson.RawValue
	reply             bson.Raw // of a findAndModify; nil where it was too large to be kept
}

// retry is what a session knows of the write that runs.
type retry struct{ session *session }

// known gives the outcome of a statement that has been done before.
func (r *retry) known(statement int) (outcome, bool) {
	if r == nil {
		return outcome{}, false
	}
	o, ok := r.session.outcomes[int32(statement)] //nolint:gosec // less than a message has bytes
	return o, ok
}

// keep remembers what a statement did.
func (r *retry) keep(statement int, o outcome) {
	if r == nil || len(r.session.outcomes) >= maxOutcomes {
		return
	}
	o.upserted.Value = append([]byte(nil), o.upserted.Value...)
	r.session.outcomes[int32(statement)] = o //nolint:gosec // less than a message has bytes
}

// sessions are those of all connections: a client may go on with one on another.
type sessions struct {
	now func() time.Time

	mu  sync.Mutex
	all map[string]*session
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: map[string]*session{}}
}

// use gives a session and has it remember the command.
func (t *sessions) use(id string, k *call, cancel context.CancelFunc) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.all[id]
	if s == nil {
		if len(t.all) >= maxSessions {
			return nil, fail(codeExceededMemory, "there are %d sessions: end those that are not used", maxSessions)
		}
		s = &session{id: id, turn: make(chan struct{}, 1), number: -1, running: map[*call]context.CancelFunc{}}
		t.all[id] = s
	}
	s.used = t.now()
	s.running[k] = cancel
	return s, nil
}

func (t *sessions) leave(s *session, k *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(s.running, k)
	s.used = t.now()
}

// transaction gives a session's last transaction.
func (t *sessions) transaction(s *session) *transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.tx
}

func (t *sessions) setTransaction(s *session, tx *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.tx != nil {
		s.tx.cancel()
	}
	s.tx = tx
}

// kill ends everything that a session does, but for the command that asks for it.
func (t *sessions) kill(id string, by *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.all[id]
	if s == nil {
		return
	}
	if s.tx != nil {
		s.tx.cancel()
	}
	for k, cancel := range s.running {
		if k != by {
			cancel()
		}
	}
	if len(s.running) == 0 {
		delete(t.all, id)
	}
}

// expire forgets the sessions that nobody has used for so long, and gives their ids.
func (t *sessions) expire(after time.Duration) (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.now().Add(-after)
	for id, s := range t.all {
		if len(s.running) > 0 || !s.used.Before(before) {
			continue
		}
		if s.tx != nil {
			s.tx.cancel()
		}
		delete(t.all, id)
		ids = append(ids, id)
	}
	return ids
}

// abortAll ends all transactions.
func (t *sessions) abortAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.all {
		if s.tx != nil {
			s.tx.cancel()
		}
	}
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// enter finds the command's session, waits for its turn if it has a number, and finds its transaction or what is known of
// an earlier try. release has to be called at its end.
func (k *call) enter(cancel context.CancelFunc) (release func(), err error) {
	lsid := k.args.document("lsid")
	number, autocommit := k.args.value("txnNumber"), k.args.value("autocommit")
	if lsid == nil {
		if number.Type != 0 || autocommit.Type != 0 {
			return nil, fail(codeInvalidOptions, "Transaction number requires a session ID to also be specified")
		}
		return func() {}, nil
	}
	id, err := sessionID(lsid)
	if err != nil {
		return nil, err
	}
	s, err := k.server.sessions.use(id, k, cancel)
	if err != nil {
		return nil, err
	}
	k.session = s
	leave := func() { k.server.sessions.leave(s, k) }
	if number.Type == 0 {
		if autocommit.Type != 0 {
			leave()
			return nil, fail(codeInvalidOptions, "'autocommit' field requires a transaction number to also be specified")
		}
		return leave, nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-k.ctx.Done():
		leave()
		return nil, fail(codeInterrupted, "the session is busy with another command")
	}
	releaseTurn := func() { <-s.turn; leave() }
	releaseTx, err := k.enterNumbered(k.args.integer("txnNumber", 0), autocommit)
	if err != nil {
		releaseTurn()
		return nil, err
	}
	return func() { releaseTx(); releaseTurn() }, nil
}

// enterNumbered is enter for a command with a number, which is part of a transaction or may be sent again.
func (k *call) enterNumbered(number int64, autocommit bson.RawValue) (release func(), err error) {
	s := k.session
	if number < s.number {
		return nil, fail(codeTransactionTooOld, "Cannot start transaction %d on session because a newer transaction %d has already started", number, s.number)
	}
	if autocommit.Type != 0 {
		return k.enterTransaction(number)
	}
	if !k.command.retried {
		return nil, fail(codeIllegalOperation, "txnNumber may only be provided for multi-document transactions and retryable write commands. %s is neither", k.name)
	}
	if number > s.number {
		s.number, s.outcomes = number, map[int32]outcome{}
		k.server.sessions.setTransaction(s, nil)
	}
	if s.outcomes == nil {
		return nil, fail(codeIllegalOperation, "transaction %d has been started as one of several statements", number)
	}
	k.write = &retry{session: s}
	return func() {}, nil
}

// sessionID reads the id of a session, which is a UUID.
func sessionID(lsid bson.Raw) (string, error) {
	_, id, ok := lsid.Lookup("id").BinaryOK()
	if !ok || len(id) != 16 {
		return "", fail(codeTypeMismatch, "BSON field 'OperationSessionInfo.lsid.id' is not a UUID")
	}
	return string(id), nil
}

func runStartSession(k *call) (bson.D, error) {
	id := newUUID()
	return bson.D{
		{Key: "id", Value: bson.D{{Key: "id", Value: id}}},
		{Key: "timeoutMinutes", Value: int32(k.server.opts.SessionTime / time.Minute)}, //nolint:gosec // minutes
	}, nil
}

// runEndSessions ends sessions with all that belongs to them; so does killSessions.
func runEndSessions(k *call) (bson.D, error) {
	if !k.conn.user {
		return bson.D{}, nil
	}
	list := k.args.documents(k.name)
	if k.args.err != nil {
		return nil, k.args.err
	}
	for _, lsid := range list {
		id, err := sessionID(lsid)
		if err != nil {
			return nil, err
		}
		k.server.cursors.closeSession(id)
		k.server.sessions.kill(id, k)
	}
	return bson.D{}, nil
}

// runKillAll is killSessions for all sessions. There is one user: a list of users is everybody.
func runKillAll(k *call) (bson.D, error) {
	for _, id := range k.server.sessions.ids() {
		if k.session == nil || id != k.session.id {
			k.server.cursors.closeSession(id)
			k.server.sessions.kill(id, k)
		}
	}
	return bson.D{}, nil
}

func (t *sessions) ids() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.all))
}
