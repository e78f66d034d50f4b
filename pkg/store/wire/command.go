package wire

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

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
	shapes  bool // changes collections or indexes by themselves, and not by writes of the port
	within  bool // may be in a transaction
	retried bool // may be sent again, to be done once
	admin   bool // is run against the database admin only
	global  bool // does not look at the database it is sent to
	// unstable says that it is not in the first version of the stable API.
	unstable bool
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
