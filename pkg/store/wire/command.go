package wire

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/store"
)

// command is what the server knows about a command.
type command struct {
	run func(c *call) (bson.D, error)
	// takes are the fields that it may have, besides those that any command may have.
	takes []string
	// needs are those of them that it must have.
	needs []string
	// refuses are fields that MongoDB has and this server does not.
	refuses []string
	open    bool // also before a login
	writes  bool // refused where the endpoint is only for reading
	within  bool // may be in a transaction
	retried bool // may be sent again, to be done once
	admin   bool // is run against the database admin only
	global  bool // does not look at the database it is sent to
	// unstable says that it is not in the first version of the stable API.
	unstable bool
}

// words makes the lists of the table readable.
func words(s string) []string { return strings.Fields(s) }

// commandTable has every command. Names are those of MongoDB.
func commandTable() map[string]*command {
	t := map[string]*command{}
	maps.Copy(t, sessionCommands())
	maps.Copy(t, documentCommands())
	maps.Copy(t, collectionCommands())
	maps.Copy(t, serverCommands())
	for _, alias := range [][2]string{
		{"ismaster", "isMaster"},
		{"buildinfo", "buildInfo"},
		{"findandmodify", "findAndModify"},
		{"dbstats", "dbStats"},
		{"collstats", "collStats"},
		{"deleteIndexes", "dropIndexes"},
	} {
		t[alias[0]] = t[alias[1]]
	}
	return t
}

func sessionCommands() map[string]*command {
	hello := &command{run: runHello, open: true, global: true}
	return map[string]*command{
		"hello":             hello,
		"isMaster":          hello,
		"ping":              {run: runNothing, open: true, global: true},
		"saslStart":         {run: runSaslStart, open: true, global: true, takes: words("mechanism payload options autoAuthorize db")},
		"saslContinue":      {run: runSaslContinue, open: true, global: true, takes: words("conversationId payload")},
		"logout":            {run: runLogout, global: true},
		"startSession":      {run: runStartSession, global: true},
		"endSessions":       {run: runEndSessions, global: true, open: true},
		"refreshSessions":   {run: runNothing, global: true},
		"killSessions":      {run: runEndSessions, global: true},
		"killAllSessions":   {run: runKillAll, global: true},
		"commitTransaction": {run: runCommit, admin: true, global: true, within: true, takes: words("recoveryToken")},
		"abortTransaction":  {run: runAbort, admin: true, global: true, within: true, takes: words("recoveryToken")},
	}
}

func documentCommands() map[string]*command {
	return map[string]*command{
		"find": {
			run: runFind, within: true,
			takes: words("filter sort projection hint skip limit batchSize singleBatch noCursorTimeout allowDiskUse allowPartialResults " +
				"oplogReplay returnKey showRecordId tailable awaitData mirrored let"),
			refuses: words("collation min max"),
		},
		"getMore":     {run: runGetMore, within: true, takes: words("collection batchSize term lastKnownCommittedOpTime"), needs: words("collection")},
		"killCursors": {run: runKillCursors, within: true, takes: words("cursors"), needs: words("cursors")},
		"count":       {run: runCount, takes: words("query limit skip hint fields"), refuses: words("collation")},
		"distinct":    {run: runDistinct, within: true, unstable: true, takes: words("key query hint"), needs: words("key"), refuses: words("collation")},
		"aggregate": {
			run: runAggregate, within: true,
			takes:   words("pipeline cursor allowDiskUse hint bypassDocumentValidation explain let"),
			refuses: words("collation"),
		},
		"insert": {run: runInsert, writes: true, within: true, retried: true, takes: words("documents ordered bypassDocumentValidation"), needs: words("documents")},
		"update": {
			run: runUpdate, writes: true, within: true, retried: true,
			takes: words("updates ordered bypassDocumentValidation let"), needs: words("updates"),
		},
		"delete": {run: runDelete, writes: true, within: true, retried: true, takes: words("deletes ordered let"), needs: words("deletes")},
		"findAndModify": {
			run: runFindAndModify, writes: true, within: true, retried: true,
			takes:   words("query sort remove update new fields upsert arrayFilters hint bypassDocumentValidation let"),
			refuses: words("collation"),
		},
		"explain": {run: runExplain, takes: words("verbosity")},
	}
}

func collectionCommands() map[string]*command {
	return map[string]*command{
		"create": {run: runCreate, writes: true, within: true, takes: words("autoIndexId idIndex flags encryptedFields changeStreamPreAndPostImages"), refuses: words(
			"capped size max collation validator validationLevel validationAction viewOn pipeline timeseries expireAfterSeconds clusteredIndex storageEngine indexOptionDefaults")},
		"collMod": {run: runCollMod, writes: true, takes: words("changeStreamPreAndPostImages"), refuses: words(
			"index validator validationLevel validationAction viewOn pipeline expireAfterSeconds timeseries cappedSize cappedMax dryRun")},
		"drop":             {run: runDrop, writes: true},
		"dropDatabase":     {run: runDropDatabase, writes: true},
		"renameCollection": {run: runRename, writes: true, admin: true, global: true, takes: words("to dropTarget"), needs: words("to")},
		"listCollections":  {run: runListCollections, takes: words("filter nameOnly cursor authorizedCollections")},
		"listDatabases":    {run: runListDatabases, admin: true, global: true, takes: words("filter nameOnly authorizedDatabases")},
		"createIndexes":    {run: runCreateIndexes, writes: true, within: true, takes: words("indexes commitQuorum ignoreUnknownIndexOptions"), needs: words("indexes")},
		"listIndexes":      {run: runListIndexes, takes: words("cursor includeBuildUUIDs includeIndexBuildInfo")},
		"dropIndexes":      {run: runDropIndexes, writes: true, takes: words("index"), needs: words("index")},
		"collStats":        {run: runCollStats, takes: words("scale")},
		"dbStats":          {run: runDBStats, takes: words("scale freeStorage")},
		"dataSize":         {run: runDataSize, takes: words("keyPattern min max estimate")},
		"validate":         {run: runValidate, takes: words("full scandata background metadata repair checkBSONConformance")},
	}
}

func serverCommands() map[string]*command {
	return map[string]*command{
		"buildInfo":                {run: runBuildInfo, open: true, global: true},
		"hostInfo":                 {run: runHostInfo, global: true},
		"serverStatus":             {run: runServerStatus, global: true, takes: nil},
		"connectionStatus":         {run: runConnectionStatus, open: true, global: true, takes: words("showPrivileges")},
		"getParameter":             {run: runGetParameter, admin: true, global: true, takes: nil},
		"getCmdLineOpts":           {run: runGetCmdLineOpts, admin: true, global: true},
		"getLog":                   {run: runGetLog, admin: true, global: true},
		"whatsmyuri":               {run: runWhatsMyURI, global: true},
		"currentOp":                {run: runCurrentOp, global: true, takes: nil},
		"listCommands":             {run: runListCommands, global: true},
		"replSetGetStatus":         {run: runReplSetGetStatus, global: true, takes: words("initialSync")},
		"replSetGetConfig":         {run: runReplSetGetConfig, global: true, takes: words("commitmentStatus")},
		"usersInfo":                {run: runUsersInfo, global: true, takes: words("showPrivileges showCredentials filter showCustomData showAuthenticationRestrictions")},
		"rolesInfo":                {run: runRolesInfo, global: true, takes: words("showPrivileges showBuiltinRoles showAuthenticationRestrictions")},
		"top":                      {run: runTop, global: true},
		"configureFailPoint":       {run: runFailPoint, admin: true, global: true, takes: words("mode data")},
		"dropAllUsersFromDatabase": {run: runDropUsers, writes: true, global: true},
	}
}

// takesAny says whether a command is one whose fields need not be known: what to leave out of an answer, or what a driver offers.
func takesAny(name string) bool {
	switch name {
	case "serverStatus", "getParameter", "currentOp", "hello", "isMaster", "ismaster", "ping":
		return true
	}
	return false
}

// isCommon says whether any command may have a field. Read and write concerns are accepted: what is acknowledged is on disk,
// and reads see all of that, which is more than any of them asks for.
func isCommon(field string) bool {
	switch field {
	case "$db", "lsid", "txnNumber", "autocommit", "startTransaction", "$clusterTime", "$readPreference", "readConcern", "writeConcern",
		"maxTimeMS", "comment", "apiVersion", "apiStrict", "apiDeprecationErrors", "$configServerState", "$audit", "$client",
		"maxTimeMSOpOnly", "stmtId", "stmtIds", "help", "mayBypassWriteBlocking":
		return true
	}
	return false
}

// call is one command that runs.
type call struct {
	ctx     context.Context //nolint:containedctx // lives as long as the command
	server  *Server
	conn    *conn
	name    string // as it came
	command *command
	msg     *message
	db      string
	args    args
	session *session // nil: none
	write   *retry   // what is known of a write that may be sent again; nil: it may not
	tx      *transaction
	// position is where the feed of the database stood before the command.
	position store.Position
	ofStream bool // it fetches more of a change stream
	hangUp   bool // a fail point leaves it without an answer
	again    bool // the client wants another answer when something has changed
}

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

// newCall reads what all commands have in common. The call that it gives is never nil.
func (c *conn) newCall(m *message) (*call, error) {
	k := &call{server: c.server, conn: c, msg: m, args: args{body: m.body, sequences: m.sequences}}
	first, err := m.body.IndexErr(0)
	if err != nil {
		return k, fail(codeCommandNotFound, "the command is empty")
	}
	k.name = first.Key()
	k.db = m.db
	if db, ok := m.body.Lookup("$db").StringValueOK(); ok {
		k.db = db
	}
	if m.legacy && k.name != "hello" && !strings.EqualFold(k.name, "isMaster") {
		return k, fail(codeProtocolError, "Unsupported OP_QUERY command: %s. The client driver may require an upgrade", clip(k.name))
	}
	k.command = c.server.commands[k.name]
	if k.command == nil {
		return k, fail(codeCommandNotFound, "no such command: '%s'", clip(k.name))
	}
	if !c.user && !k.command.open {
		return k, fail(codeUnauthorized, "command %s requires authentication: %s", k.name, whoGetsIn)
	}
	err = k.checkFields()
	if err == nil && k.command.admin && k.db != "admin" {
		err = fail(codeUnauthorized, "%s may only be run against the admin database.", k.name)
	}
	return k, err
}

// checkFields refuses what the command does not have, rather than to do something else than it was asked to.
func (k *call) checkFields() error {
	if takesAny(k.name) {
		return nil
	}
	elements, err := k.msg.body.Elements()
	if err != nil {
		return fail(codeFailedToParse, "the command is not valid BSON")
	}
	for i, e := range elements {
		name := e.Key()
		switch {
		case i == 0 || isCommon(name) || slices.Contains(k.command.takes, name):
		case slices.Contains(k.command.refuses, name):
			if !isNothing(e.Value()) {
				return notImplemented("'" + k.name + "." + name + "'")
			}
		default:
			return fail(codeUnknownField, "BSON field '%s.%s' is an unknown field.", k.name, clip(name))
		}
	}
	for _, s := range k.msg.sequences {
		if !slices.Contains(k.command.takes, s.name) {
			return fail(codeUnknownField, "BSON field '%s.%s' is an unknown field.", k.name, clip(s.name))
		}
	}
	return k.checkNeeds()
}

func (k *call) checkNeeds() error {
	for _, name := range k.command.needs {
		beside := slices.ContainsFunc(k.msg.sequences, func(s sequence) bool { return s.name == name })
		if k.args.value(name).Type == 0 && !beside {
			return fail(codeMissingField, "BSON field '%s.%s' is missing but a required field", k.name, name)
		}
	}
	return nil
}

// clip shortens a text of the client's that it is told again.
func clip(s string) string {
	const longest = 100
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// maxTime is how many milliseconds the command may take; 0: it does not say.
func (k *call) maxTime() (int64, error) {
	v := k.args.value("maxTimeMS")
	switch v.Type { // no others are numbers
	case 0:
		return 0, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
	default:
		if k.name != "aggregate" || v.Type == bson.TypeNull { // which alone is strict about it
			return 0, fail(codeBadValue, "maxTimeMS must be a number")
		}
		return 0, fail(codeTypeMismatch, "BSON field '%s.maxTimeMS' is the wrong type '%s', expected types '[long, int, decimal, double']", k.name, v.Type)
	}
	ms := k.args.integer("maxTimeMS", 0)
	f, _ := v.DoubleOK()
	switch {
	case k.args.err != nil:
		return 0, k.args.err
	case ms < 0 && k.name == "aggregate":
		return 0, fail(codeNegative, "BSON field 'maxTimeMS' value must be >= 0, actual value '%d'", ms)
	case ms < 0, ms > math.MaxInt32:
		return 0, fail(codeBadValue, "%d value for maxTimeMS is out of range [0, 2147483647]", ms)
	case f != math.Trunc(f):
		return 0, fail(codeBadValue, "maxTimeMS has non-integral value")
	}
	return ms, nil
}

// timeLimit is how long the command may take, where ms is its maxTimeMS, which of a getMore is how long it waits; 0: as long as
// it takes.
func (k *call) timeLimit(ms int64) time.Duration {
	switch {
	case ms > 0 && k.name != "getMore":
		return time.Duration(ms) * time.Millisecond
	case k.command.writes, k.command.global, k.watches():
		return 0
	default:
		return k.server.opts.MaxTime
	}
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
	if err := k.writable(); err != nil {
		return nil, err
	}
	k.note()
	reply, err := k.command.run(k)
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

// writable is mayWrite for commands that write to the database they are sent to.
func (k *call) writable() error {
	if !k.command.writes || k.command.global || k.tx != nil || isSystem(k.db) {
		return nil
	}
	return k.mayWrite()
}

// mayWrite refuses what changes collections, their indexes included, while records are replaced: it would go with those that were there before,
// though it was acknowledged.
func (k *call) mayWrite() error {
	db, err := k.server.database(k.db)
	if err != nil {
		return err
	}
	if gated, ok := db.(store.Gated); ok {
		return gated.Writable(k.ctx)
	}
	return nil
}

// wantsMore says whether a write is to be on more servers than there are.
func (k *call) wantsMore() bool {
	w, ok := whole(k.args.document("writeConcern").Lookup("w"))
	return ok && w > 1 && (k.command.writes && k.tx == nil || k.endsTransaction())
}

// checkConcern refuses what no server of this version does in the way that is asked for.
func (k *call) checkConcern() error {
	level := k.readLevel()
	outside := k.args.value("autocommit").Type == 0
	switch {
	case level == "snapshot" && outside && k.name != "find" && k.name != "aggregate" && k.name != "distinct" && k.name != "getMore":
		return fail(codeInvalidOptions, "the read concern snapshot is not supported by the command %s", k.name)
	case k.args.boolean("apiStrict", false) && k.command.unstable:
		return fail(code(323), "Provided apiStrict:true, but the command %s is not in API Version 1", k.name)
	}
	return k.args.err
}

// readLevel is the read concern; "": the command does not say.
func (k *call) readLevel() string {
	level, _ := k.args.document("readConcern").Lookup("level").StringValueOK()
	return level
}

// collection gives the collection that the command's first field names.
func (k *call) collection() (store.Database, string, error) {
	name, ok := k.msg.body.Lookup(k.name).StringValueOK()
	if !ok {
		return nil, "", k.errCollectionType()
	}
	db, err := k.server.database(k.db)
	if err != nil {
		return nil, "", err
	}
	return db, name, k.server.checkCollection(name)
}

func (k *call) errCollectionType() error {
	c := codeBadValue
	if k.name == "count" || k.name == "distinct" {
		c = codeInvalidNamespace
	}
	return fail(c, "collection name has invalid type %s", k.msg.body.Lookup(k.name).Type)
}

// checkCollection refuses what can't be the name of a collection, and those that hold what the service needs for itself.
func (s *Server) checkCollection(name string) error {
	if store.IsBookkeeping(name) && !s.bookkeeping {
		return fail(codeUnauthorized, "collections that begin with svc. belong to the service itself and can't be reached here")
	}
	if store.CheckCollectionName(name) != nil {
		return fail(codeInvalidNamespace, "Invalid namespace specified: '%s' can't be the name of a collection", clip(name))
	}
	return nil
}

// namespace is the full name of a collection in the command's database.
func (k *call) namespace(coll string) string { return k.db + "." + coll }

// reader gives what a read goes to: the collection, or the collection in the command's transaction.
func (k *call) reader(db store.Database, coll string) store.Reader {
	if k.tx != nil {
		return k.tx.collection(coll)
	}
	return db.Collection(coll)
}

// writer is reader for writes.
func (k *call) writer(db store.Database, coll string) store.Writer {
	if k.tx != nil {
		return k.tx.collection(coll)
	}
	return db.Collection(coll)
}

func runNothing(*call) (bson.D, error) { return bson.D{}, nil }
