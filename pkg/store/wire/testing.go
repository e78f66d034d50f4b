package wire

import (
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Testing is what suites of other projects ask of a server, and no service offers.
type Testing struct {
	// FailPoints lets clients make commands fail (configureFailPoint).
	FailPoints bool
	// Names gives the store's name of a database that clients call otherwise than a store's are called; nil: they can't.
	Names func(client string) string
	// Explain is what every explain tells, in place of a plan: suites look for what their own server tells.
	Explain bson.D
	// NoTimes leaves the time of the cluster out of answers.
	NoTimes bool
}

// aliases are the names that clients have for databases, by those of the store.
type aliases struct {
	mu  sync.Mutex
	all map[string]string
}

// storeName is what the store calls a database of clients.
func (s *Server) storeName(client string) string {
	if s.opts.Testing.Names == nil {
		return client
	}
	name := s.opts.Testing.Names(client)
	s.aliases.mu.Lock()
	defer s.aliases.mu.Unlock()
	if s.aliases.all == nil {
		s.aliases.all = map[string]string{}
	}
	s.aliases.all[name] = client
	return name
}

// clientName is what clients call a database of the store.
func (s *Server) clientName(name string) string {
	s.aliases.mu.Lock()
	defer s.aliases.mu.Unlock()
	if client, ok := s.aliases.all[name]; ok {
		return client
	}
	return name
}

// failPoint makes commands fail. There is one at a time, as in the suites.
type failPoint struct {
	commands []string
	skip     int64 // times that it does not act yet
	times    int64 // that it still acts; below 0: always
	hangUp   bool
	code     code // 0: no error
	labels   []string
	labeled  bool // labels were given, be they none
	concern  bson.Raw
	appName  string
	block    time.Duration
	cursor   bool // failGetMoreAfterCursorCheckout: it fails as a cursor does
	write    bool // onPrimaryTransactionalWrite: it acts on the statements of writes that may be sent again
}

// runFailPoint is configureFailPoint of failCommand.
func runFailPoint(k *call) (bson.D, error) {
	if !k.server.opts.Testing.FailPoints {
		return nil, fail(codeCommandNotFound, "no such command: '%s'", k.name)
	}
	var commands []string
	switch name := k.args.text(k.name); name {
	case "failCommand":
	case "onPrimaryTransactionalWrite":
	case "failGetMoreAfterCursorCheckout":
		commands = words("getMore")
	default:
		return nil, notImplemented("the fail point " + clip(name))
	}
	var p *failPoint
	if mode, off := k.args.value("mode").StringValueOK(); !off || mode != "off" {
		p = &failPoint{times: -1}
		if d, ok := k.args.value("mode").DocumentOK(); ok {
			var limited bool
			if p.times, limited = d.Lookup("times").AsInt64OK(); !limited {
				p.times = -1
			}
			p.skip, _ = d.Lookup("skip").AsInt64OK()
		}
		p.read(k.args.document("data"))
		p.write = k.args.text(k.name) == "onPrimaryTransactionalWrite"
		if commands != nil {
			p.commands, p.cursor = commands, true
		}
	}
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	k.server.failPoint = p
	return bson.D{}, k.args.err
}

func (p *failPoint) read(data bson.Raw) {
	a := args{body: data}
	p.commands = texts(a.value("failCommands"))
	p.hangUp = a.boolean("closeConnection", false)
	p.code = code(a.integer("errorCode", a.integer("failBeforeCommitExceptionCode", 0))) //nolint:gosec // a suite's
	p.labels, p.labeled = texts(a.value("errorLabels")), a.value("errorLabels").Type != 0
	p.concern, p.appName = a.document("writeConcernError"), a.text("appName")
	if a.boolean("blockConnection", false) {
		p.block = time.Duration(a.integer("blockTimeMS", 0)) * time.Millisecond
	}
}

// failing gives the fail point that a command meets.
func (k *call) failing() *failPoint {
	return k.failPoint(func(p *failPoint) bool {
		app, _ := k.conn.client.Lookup("application", "name").StringValueOK()
		return !p.write && slices.Contains(p.commands, k.name) && (p.appName == "" || p.appName == app)
	})
}

// failPoint gives the fail point if it acts on what meets it.
func (k *call) failPoint(meets func(p *failPoint) bool) *failPoint {
	if !k.server.opts.Testing.FailPoints {
		return nil
	}
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	p := k.server.failPoint
	switch {
	case p == nil || !meets(p):
		return nil
	case p.skip > 0:
		p.skip--
		return nil
	case p.times == 0:
		return nil
	case p.times > 0:
		p.times--
	}
	return p
}

// errHungUp ends a command that a fail point leaves without an answer.
var errHungUp = fail(codeShutdown, "Connection closed by the fail point")

// statement does a statement of a write, unless a fail point has it fail before. One that acts hangs up.
func (k *call) statement(do func() error) error {
	if k.write == nil {
		return do()
	}
	p := k.failPoint(func(p *failPoint) bool { return p.write })
	if p == nil {
		return do()
	}
	k.hangUp = true
	if p.code == 0 {
		_ = do() // nobody is told
	}
	return errHungUp
}

// run runs a command as the fail point has it. hangUp says that there is no answer.
func (p *failPoint) run(k *call, run func() (bson.D, error)) (reply bson.D, hangUp bool, err error) {
	if p == nil {
		reply, err = run()
		return reply, k.hangUp, err
	}
	time.Sleep(p.block)
	switch {
	case p.hangUp:
		return nil, true, nil
	case p.code != 0 && p.concern == nil:
		f := fail(p.code, "Failing command via 'failCommand' failpoint")
		f.labels, f.labeledOnce = p.labels, p.labeled || k.name == "getMore" && !p.cursor
		return nil, false, f
	}
	if reply, err = run(); err == nil && p.concern != nil {
		reply = append(reply, bson.E{Key: "writeConcernError", Value: p.concern})
		labels := p.labels
		within := k.args.value("autocommit").Type != 0 && !k.endsTransaction()
		if c, _ := p.concern.Lookup("code").AsInt64OK(); !p.labeled && !within && isRetryable(code(c)) { //nolint:gosec // a suite's
			labels = []string{labelRetry}
		}
		if len(labels) > 0 {
			reply = append(reply, bson.E{Key: "errorLabels", Value: labels})
		}
	}
	return reply, false, err
}
