package api

// Request and response headers.
const (
	HeaderToken               = "Token"         //nolint:gosec // collection token or project admin token: its name only
	HeaderAuthToken           = "X-Auth-Token"  // JWT of a login, or a personal access token
	HeaderAdminToken          = "X-Admin-Token" // server admin token
	HeaderAuthorization       = "Authorization" // "Bearer <server admin token>"
	HeaderRequestID           = "X-Request-Id"  // in and out
	HeaderGeneration          = "X-Svc-Generation"
	HeaderSnapshot            = "X-Svc-Snapshot" // of an archive: the id of the snapshot that it is
	HeaderRun                 = "X-Svc-Run"      // of an archive that was made for the request: the id of the run that made it
	HeaderETag                = "ETag"
	HeaderIfMatch             = "If-Match"
	HeaderIfNoneMatch         = "If-None-Match"
	HeaderLocation            = "Location"
	HeaderLink                = "Link"
	HeaderPrefer              = "Prefer" // "return=minimal" asks for no more than ids in the answer to a write
	HeaderIdempotencyKey      = "Idempotency-Key"
	HeaderIdempotencyReplayed = "Idempotency-Replayed" // "true": the answer is that of an earlier request with the key
	HeaderPreferenceApplied   = "Preference-Applied"
	HeaderRetryAfter          = "Retry-After"
	HeaderLastEventID         = "Last-Event-ID" // of a stream: the id of the event that the reader had last
)

// CookieSession is the cookie that holds the JWT of a login, for browsers.
const CookieSession = "svc_session"

// ParamToken is the query parameter that carries a collection token, for testing only.
const ParamToken = "token"

// Query parameters of record requests.
const (
	ParamFilter      = "filter"
	ParamSort        = "sort"
	ParamLimit       = "limit"
	ParamOffset      = "offset"
	ParamAfter       = "after"
	ParamSelect      = "select"
	ParamProjection  = "projection"
	ParamLookup      = "lookup"
	ParamDownload    = "download" // of a file: "true" has it be saved, not shown
	ParamCount       = "count"
	ParamReplace     = "replace"
	ParamDryRun      = "dryRun"      // a write says what it would do, and does nothing
	ParamMaxAffected = "maxAffected" // a write to more records than that is refused
	ParamBulk        = "bulk"        // the body of a create is a bulk one, also where a collection has a field named items
	ParamLang        = "lang"        // a language: of records, or of the texts of a description
	ParamPretty      = "pretty"
	ParamAggregate   = "aggregate" // a pipeline, in place of a list
	ParamFacet       = "facet"     // names of fields: their values, in place of a list
	ParamFields      = "fields"    // the same on a route of its own
	ParamQ           = "q"         // words to look for
	ParamQName       = "qName"     // the search that looks for them
	ParamQLimit      = "qLimit"    // how many of the best that were found are counted; "all"
	ParamHighlight   = "highlight" // "true": with texts in which what was found is marked
	ParamExplain     = "explain"   // "true": with why a record was found
)

// ParamWait makes a reload, or the run of a job, answer when it is done.
const ParamWait = "wait"

// ParamWatch makes the events of a project a stream, and EventProject is the kind of each of them there.
const (
	ParamWatch   = "watch"
	EventProject = "event"
)

// ParamStatus selects runs by their status.
const ParamStatus = "status"

// ParamResult asks for the result of a run itself, as a call that waits would have given it.
const ParamResult = "result"

// ParamProject names a project.
const ParamProject = "project"

// ParamExpect is a place that an audit log had earlier.
const ParamExpect = "expect"

// ParamAll makes a logout void personal access tokens, too.
const ParamAll = "all"

// PartData is the part of a form (MediaForm) that is the record. It comes first; the others are files, each named by the path of
// its field.
const PartData = "data"

// Media types.
const (
	MediaJSON       = "application/json"
	MediaYAML       = "application/yaml" // RFC 9512
	MediaTar        = "application/x-tar"
	MediaZstd       = "application/zstd"    // RFC 8878: archives of snapshots, which are tar inside
	MediaForm       = "multipart/form-data" // RFC 7578
	MediaProblem    = "application/problem+json"
	MediaEvents     = "text/event-stream"
	MediaMergePatch = "application/merge-patch+json" // RFC 7396
	MediaJSONPatch  = "application/json-patch+json"  // RFC 6902
)
