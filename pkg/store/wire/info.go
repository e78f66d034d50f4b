package wire

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// counters are what serverStatus tells.
type counters struct{ commands atomic.Int64 }

func runBuildInfo(*call) (bson.D, error) {
	return bson.D{
		{Key: "version", Value: serverVersion},
		{Key: "versionArray", Value: bson.A{int32(6), int32(0), int32(5), int32(0)}},
		{Key: "gitVersion", Value: "svc"},
		{Key: "modules", Value: bson.A{}},
		{Key: "allocator", Value: "go"},
		{Key: "javascriptEngine", Value: "none"},
		{Key: "sysInfo", Value: "deprecated"},
		{Key: "openssl", Value: bson.D{{Key: "running", Value: "disabled"}}},
		{Key: "buildEnvironment", Value: bson.D{{Key: "target_os", Value: runtime.GOOS}, {Key: "target_arch", Value: runtime.GOARCH}}},
		{Key: "bits", Value: int32(64)},
		{Key: "debug", Value: false},
		{Key: "maxBsonObjectSize", Value: int32(maxBatch)},
		{Key: "storageEngines", Value: bson.A{"svc"}},
	}, nil
}

// runHostInfo says of the machine what a client has to know to work, and nothing else.
func runHostInfo(k *call) (bson.D, error) {
	return bson.D{
		{Key: "system", Value: bson.D{
			{Key: "currentTime", Value: k.server.opts.Now()},
			{Key: "hostname", Value: k.conn.nc.LocalAddr().String()},
			{Key: "cpuAddrSize", Value: int32(64)},
			{Key: "numCores", Value: int32(runtime.NumCPU())}, //nolint:gosec // few
			{Key: "cpuArch", Value: runtime.GOARCH},
			{Key: "numaEnabled", Value: false},
		}},
		{Key: "os", Value: bson.D{{Key: "type", Value: runtime.GOOS}, {Key: "name", Value: runtime.GOOS}, {Key: "version", Value: ""}}},
		{Key: "extra", Value: bson.D{}},
	}, nil
}

func runServerStatus(k *call) (bson.D, error) {
	s := k.server
	now := s.opts.Now()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.mu.Lock()
	current := len(s.conns)
	s.mu.Unlock()
	uptime := now.Sub(s.started)
	return bson.D{
		{Key: "host", Value: k.conn.nc.LocalAddr().String()},
		{Key: "version", Value: serverVersion},
		{Key: "process", Value: "svcd"},
		{Key: "pid", Value: int64(os.Getpid())},
		{Key: "uptime", Value: uptime.Seconds()},
		{Key: "uptimeMillis", Value: uptime.Milliseconds()},
		{Key: "uptimeEstimate", Value: int64(uptime.Seconds())},
		{Key: "localTime", Value: now},
		{Key: "connections", Value: bson.D{
			{Key: "current", Value: int32(current)}, {Key: "available", Value: int32(s.opts.Connections - current)}, //nolint:gosec // few
		}},
		{Key: "network", Value: bson.D{{Key: "numRequests", Value: s.counters.commands.Load()}}},
		{Key: "logicalSessionRecordCache", Value: bson.D{{Key: "activeSessionsCount", Value: int32(s.sessions.count())}}}, //nolint:gosec // bounded
		{Key: "metrics", Value: bson.D{{Key: "cursor", Value: bson.D{{Key: "open", Value: bson.D{{Key: "total", Value: int64(s.cursors.count())}}}}}}},
		{Key: "mem", Value: bson.D{{Key: "bits", Value: int32(64)}, {Key: "resident", Value: int32(memory.Sys >> 20)}}}, //nolint:gosec // MiB
		{Key: "repl", Value: bson.D{{Key: "setName", Value: setName}, {Key: "isWritablePrimary", Value: true}, {Key: "secondary", Value: false}}},
		{Key: "storageEngine", Value: bson.D{
			{Key: "name", Value: "svc"}, {Key: "supportsCommittedReads", Value: true}, {Key: "readOnly", Value: s.opts.ReadOnly}, {Key: "persistent", Value: true},
		}},
	}, nil
}

func runConnectionStatus(k *call) (bson.D, error) {
	users, roles := bson.A{}, bson.A{}
	if k.conn.user {
		users = append(users, bson.D{{Key: "user", Value: User}, {Key: "db", Value: "admin"}})
		roles = append(roles, bson.D{{Key: "role", Value: k.server.role()}, {Key: "db", Value: "admin"}})
	}
	info := bson.D{{Key: "authenticatedUsers", Value: users}, {Key: "authenticatedUserRoles", Value: roles}}
	if k.args.boolean("showPrivileges", false) {
		info = append(info, bson.E{Key: "authenticatedUserPrivileges", Value: k.server.privileges()})
	}
	return bson.D{{Key: "authInfo", Value: info}}, k.args.err
}

// role is MongoDB's name for what the one user may do.
func (s *Server) role() string {
	if s.opts.ReadOnly {
		return "readAnyDatabase"
	}
	return "readWriteAnyDatabase"
}

// privileges is what that means, for tools that offer only what is allowed.
func (s *Server) privileges() bson.A {
	actions := bson.A{"find", "listCollections", "listIndexes", "collStats", "dbStats", "dbHash", "changeStream", "killCursors", "validate"}
	if !s.opts.ReadOnly {
		actions = append(actions, "insert", "update", "remove", "createCollection", "dropCollection", "createIndex", "dropIndex",
			"renameCollectionSameDB", "dropDatabase")
	}
	return bson.A{
		bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: ""}, {Key: "collection", Value: ""}}}, {Key: "actions", Value: actions}},
		bson.D{
			{Key: "resource", Value: bson.D{{Key: "cluster", Value: true}}},
			{Key: "actions", Value: bson.A{"listDatabases", "serverStatus", "hostInfo", "replSetGetStatus", "getLog", "inprog"}},
		},
	}
}

// runGetParameter knows the parameters that tools ask for.
func runGetParameter(k *call) (bson.D, error) {
	known := bson.D{
		{Key: "featureCompatibilityVersion", Value: bson.D{{Key: "version", Value: "6.0"}}},
		{Key: "authenticationMechanisms", Value: bson.A{mechanism}},
		{Key: "authSchemaVersion", Value: int32(5)},
		{Key: "quiet", Value: false},
	}
	if all, ok := k.args.value("getParameter").StringValueOK(); ok && all == "*" {
		return known, nil
	}
	d := bson.D{}
	for _, p := range known {
		if k.args.value(p.Key).Type != 0 {
			d = append(d, p)
		}
	}
	if len(d) == 0 {
		return nil, fail(codeInvalidOptions, "no option found to get")
	}
	return d, nil
}

// runGetCmdLineOpts does not tell how the service was started: secrets may be in that.
func runGetCmdLineOpts(*call) (bson.D, error) {
	return bson.D{{Key: "argv", Value: bson.A{"svcd"}}, {Key: "parsed", Value: bson.D{
		{Key: "replication", Value: bson.D{{Key: "replSet", Value: setName}}},
		{Key: "security", Value: bson.D{{Key: "authorization", Value: "enabled"}}},
	}}}, nil
}

// runGetLog has one log, with what a shell shows when it begins.
func runGetLog(k *call) (bson.D, error) {
	switch name := k.args.text("getLog"); name {
	case "*":
		return bson.D{{Key: "names", Value: bson.A{"startupWarnings"}}}, nil
	case "startupWarnings":
		return bson.D{{Key: "totalLinesWritten", Value: int32(0)}, {Key: "log", Value: bson.A{}}}, nil
	default:
		return nil, fail(codeInvalidOptions, "there is no log but startupWarnings here: svcd writes its own")
	}
}

func runWhatsMyURI(k *call) (bson.D, error) {
	return bson.D{{Key: "you", Value: k.conn.nc.RemoteAddr().String()}}, nil
}

func runCurrentOp(*call) (bson.D, error) { return bson.D{{Key: "inprog", Value: bson.A{}}}, nil }

func runListCommands(k *call) (bson.D, error) {
	all := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(k.server.commands)) {
		if c := k.server.commands[name]; !strings.EqualFold(name, "ismaster") || name == "isMaster" {
			all = append(all, bson.E{Key: name, Value: bson.D{
				{Key: "help", Value: ""}, {Key: "requiresAuth", Value: !c.open}, {Key: "secondaryOk", Value: false}, {Key: "adminOnly", Value: false},
			}})
		}
	}
	return bson.D{{Key: "commands", Value: all}}, nil
}

func runUsersInfo(k *call) (bson.D, error) {
	return bson.D{{Key: "users", Value: bson.A{bson.D{
		{Key: "_id", Value: "admin." + User},
		{Key: "user", Value: User},
		{Key: "db", Value: "admin"},
		{Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: k.server.role()}, {Key: "db", Value: "admin"}}}},
		{Key: "mechanisms", Value: bson.A{mechanism}},
	}}}}, nil
}

// runDropUsers drops none: there is one user, which is of the database admin and has no document.
func runDropUsers(*call) (bson.D, error) { return bson.D{{Key: "n", Value: int32(0)}}, nil }

func runRolesInfo(*call) (bson.D, error) { return bson.D{{Key: "roles", Value: bson.A{}}}, nil }

func runTop(*call) (bson.D, error) { return bson.D{{Key: "totals", Value: bson.D{}}}, nil }
