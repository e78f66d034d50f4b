package audit

import (
	"context"
	"encoding/hex"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
)

// Kind says what an entry is about.
type Kind string

// The kinds of entries.
const (
	System  Kind = "system"  // a system model, a login, an operation of the service
	Records Kind = "records" // a record of a project's collection
	Actions Kind = "action"  // a call of a project's action
)

// What entries tell of. Create, Update and Delete have the states before and after.
const (
	OpCreate      = "create"
	OpUpdate      = "update"
	OpDelete      = "delete"
	OpLogin       = "login"
	OpLoginFailed = "login_failed" // a password was checked and found wrong
	OpLogout      = "logout"
	OpPassword    = "password" // a user's password is set, by themselves or by who manages them; other fields, perhaps, with it
	OpReload      = "reload"
	OpRollback    = "rollback" // After has the generation
	OpSyncIndexes = "sync-indexes"
	OpRotateKeys  = "rotate-keys"
	OpRegenerate  = "regenerate-search"
	OpShutdown    = "shutdown"
	OpRun         = "run"     // a job, by hand
	OpSuspend     = "suspend" // a job
	OpResume      = "resume"  // a job
	OpCancel      = "cancel"  // a run
	OpCall        = "call"    // After has the query and the data

	OpSnapshot       = "snapshot" // one is taken; After of this and what follows has how, and the run
	OpVerifySnapshot = "verify-snapshot"
	OpDrill          = "drill" // a restore on trial
	OpRestore        = "restore"
	OpPrune          = "prune"
	OpImport         = "import"
	OpDownload       = "download" // of a snapshot
	OpBackup         = "backup"
	OpPin            = "pin"
	OpUnpin          = "unpin"
	OpDeleteSnapshot = "delete-snapshot"
)

// Entry is one entry of a log.
type Entry struct {
	ID         bson.ObjectID `bson:"_id"`
	At         time.Time     `bson:"at"`
	Kind       Kind          `bson:"kind"`
	Op         string        `bson:"op"`
	Namespace  string        `bson:"namespace,omitempty"`
	Collection string        `bson:"collection,omitempty"` // or the model, such as "users"
	RecordID   string        `bson:"recordId,omitempty"`
	Actor      Actor         `bson:"actor"`
	TokenID    string        `bson:"tokenId,omitempty"` // of the personal access token that was used
	RequestID  string        `bson:"requestId,omitempty"`
	Address    string        `bson:"address,omitempty"`
	Before     bson.Raw      `bson:"before,omitempty"`
	After      bson.Raw      `bson:"after,omitempty"`
	Note       string        `bson:"note,omitempty"`    // what a script of the project has to say
	Changed    []string      `bson:"changed,omitempty"` // members of Before and After that are not as they were: a script has changed them
	Expires    time.Time     `bson:"expires,omitempty"` // zero: never

	// The place in the chain, which the sealer gives. Seq is 0 until then, and 1 for the first entry ever.
	Seq  int64  `bson:"seq"`
	Prev string `bson:"prev,omitempty"` // the hash of the entry before
	Hash string `bson:"hash,omitempty"` // SHA-256 of the entry without this, in hex

	// View says what of Before and After a reader may see; nil is all.
	View *document.View `bson:"-"`
}

// Actor is who did it.
type Actor struct {
	Kind string `bson:"kind"` // as access.Kind, or "service" for what nobody asked for
	ID   string `bson:"id,omitempty"`
	Name string `bson:"name,omitempty"`
}

// Caller is who makes a request, and how. The door puts it on the request's context; entries that are written on behalf
// of the request have it.
type Caller struct {
	Actor     Actor
	TokenID   string
	RequestID string
	Address   string
}

// NewCaller describes a principal.
func NewCaller(p *access.Principal, requestID, address string) Caller {
	c := Caller{RequestID: requestID, Address: address}
	if p == nil {
		return c
	}
	c.Actor = Actor{Kind: string(p.Kind), ID: p.ID, Name: p.Name}
	c.TokenID = p.TokenID
	if p.Kind == access.KindToken { // named as configs name it: by the beginning of its hash
		c.Actor.ID = hex.EncodeToString(p.TokenHash[:4])
	}
	return c
}

type callerKey struct{}

// With gives a context whose entries are by a caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// WithActor gives a context whose entries are by somebody else than its caller, in the same request: who logs in has no
// principal yet.
func WithActor(ctx context.Context, a Actor) context.Context {
	c := caller(ctx)
	c.Actor = a
	return With(ctx, c)
}

// caller gives the context's caller: the service itself when there is none.
func caller(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	if c.Actor.Kind == "" {
		c.Actor.Kind = "service"
	}
	return c
}

// ActorOf is who makes a context's request: the service itself when nobody does.
func ActorOf(ctx context.Context) Actor { return caller(ctx).Actor }
