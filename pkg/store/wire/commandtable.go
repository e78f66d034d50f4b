package wire

import (
	"maps"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

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
		"create": {run: runCreate, writes: true, shapes: true, within: true, takes: words("autoIndexId idIndex flags encryptedFields changeStreamPreAndPostImages"), refuses: words(
			"capped size max collation validator validationLevel validationAction viewOn pipeline timeseries expireAfterSeconds clusteredIndex storageEngine indexOptionDefaults")},
		"collMod": {run: runCollMod, writes: true, shapes: true, takes: words("changeStreamPreAndPostImages"), refuses: words(
			"index validator validationLevel validationAction viewOn pipeline expireAfterSeconds timeseries cappedSize cappedMax dryRun")},
		"drop":             {run: runDrop, writes: true},
		"dropDatabase":     {run: runDropDatabase, writes: true},
		"renameCollection": {run: runRename, writes: true, admin: true, global: true, takes: words("to dropTarget"), needs: words("to")},
		"listCollections":  {run: runListCollections, takes: words("filter nameOnly cursor authorizedCollections")},
		"listDatabases":    {run: runListDatabases, admin: true, global: true, takes: words("filter nameOnly authorizedDatabases")},
		"createIndexes":    {run: runCreateIndexes, writes: true, shapes: true, within: true, takes: words("indexes commitQuorum ignoreUnknownIndexOptions"), needs: words("indexes")},
		"listIndexes":      {run: runListIndexes, takes: words("cursor includeBuildUUIDs includeIndexBuildInfo")},
		"dropIndexes":      {run: runDropIndexes, writes: true, shapes: true, takes: words("index"), needs: words("index")},
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

func runNothing(*call) (bson.D, error) { return bson.D{}, nil }
