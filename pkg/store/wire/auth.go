package wire

import (
	"crypto/rand"
	"errors"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	mechanism = "SCRAM-SHA-256"
	rounds    = 15000 // of the hash, as a MongoDB server has them
	saltSize  = 28
)

// credentials check a password without its being sent.
type credentials struct{ server *scram.Server }

func newCredentials(password string) (*credentials, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt) // it never fails
	client, err := scram.SHA256.NewClient(User, password, "")
	if err != nil {
		return nil, errors.New("the admin token has characters that no password of MongoDB can have")
	}
	stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: rounds})
	if err != nil {
		return nil, err
	}
	server, err := scram.SHA256.NewServer(func(name string) (scram.StoredCredentials, error) {
		if name != User {
			return scram.StoredCredentials{}, errors.New("there is no such user")
		}
		return stored, nil
	})
	if err != nil {
		return nil, err
	}
	return &credentials{server: server}, nil
}

// login is a conversation in which a client proves that it knows the password.
type login struct {
	conversation *scram.ServerConversation
	// silent is what the client said about the last exchange, in which nothing is said: leave it out.
	silent bool
	proven bool
}

const conversationID = 1

const whoGetsIn = "the user is " + User + ", the password the server admin token, authSource is admin"

// errAuthentication says no more than that it has failed.
func errAuthentication() *failure {
	return fail(codeAuthenticationFailed, "Authentication failed: %s", whoGetsIn)
}

// startLogin takes the first message of a client.
func (c *conn) startLogin(mech string, payload []byte, silent bool) (bson.D, error) {
	if mech != mechanism {
		return nil, fail(codeBadValue, "the mechanism is %s, no other one", mechanism)
	}
	c.login = &login{conversation: c.server.scram.server.NewConversation(), silent: silent}
	return c.stepLogin(payload)
}

// stepLogin takes the next one.
func (c *conn) stepLogin(payload []byte) (bson.D, error) {
	l := c.login
	if l == nil {
		return nil, fail(codeProtocolError, "No SASL session state found")
	}
	if l.proven {
		return c.loggedIn(nil), nil
	}
	said, err := l.conversation.Step(string(payload))
	switch {
	case err != nil:
		c.login = nil
		c.failures++
		c.log.Warn("a login to the MongoDB endpoint failed", "failures", c.failures)
		if c.failures >= maxFailures {
			c.finishing.Store(true)
		}
		return nil, errAuthentication()
	case l.conversation.Done() && l.conversation.Valid():
		l.proven = true
		if l.silent {
			return c.loggedIn([]byte(said)), nil
		}
	}
	return loginReply([]byte(said), false), nil
}

func (c *conn) loggedIn(said []byte) bson.D {
	c.login = nil
	c.user = true
	c.server.nowKnown(c)
	c.log.Debug("an administrator uses the MongoDB endpoint")
	return loginReply(said, true)
}

func loginReply(said []byte, done bool) bson.D {
	return bson.D{
		{Key: "conversationId", Value: int32(conversationID)},
		{Key: "done", Value: done},
		{Key: "payload", Value: bson.Binary{Data: said}},
	}
}

func runSaslStart(c *call) (bson.D, error) {
	mech, payload := c.args.text("mechanism"), c.args.binary("payload")
	options := c.args.document("options")
	if c.args.err != nil {
		return nil, c.args.err
	}
	silent, _ := options.Lookup("skipEmptyExchange").BooleanOK()
	return c.conn.startLogin(mech, payload, silent)
}

func runSaslContinue(c *call) (bson.D, error) {
	payload := c.args.binary("payload")
	if c.args.err != nil {
		return nil, c.args.err
	}
	return c.conn.stepLogin(payload)
}

func runLogout(c *call) (bson.D, error) {
	c.conn.user, c.conn.login = false, nil
	return bson.D{}, nil
}
