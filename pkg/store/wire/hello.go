package wire

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What a server of the version that the store is compared with says of itself.
const (
	serverVersion  = "6.0.5"
	minWireVersion = 0
	maxWireVersion = 17
	longestAwait   = 30 * time.Second
)

// runHello says what this server is, and with topologyVersion waits for that to change before it says so.
func runHello(k *call) (bson.D, error) {
	version, wait := k.args.document("topologyVersion"), k.args.integer("maxAwaitTimeMS", 0)
	speculative, mechs := k.args.document("speculativeAuthenticate"), k.args.value("saslSupportedMechs")
	if client := k.args.document("client"); client != nil {
		k.conn.client = append(bson.Raw(nil), client...)
	}
	if k.args.err != nil {
		return nil, k.args.err
	}
	if version != nil && wait > 0 {
		k.awaitChange(version, min(time.Duration(wait)*time.Millisecond, longestAwait))
	}
	d := k.server.hello(k.conn)
	if k.name == "hello" {
		d = append(bson.D{{Key: "isWritablePrimary", Value: true}}, d...)
	} else {
		d = append(bson.D{{Key: "ismaster", Value: true}, {Key: "helloOk", Value: true}}, d...)
	}
	if mechs.Type != 0 {
		d = append(d, bson.E{Key: "saslSupportedMechs", Value: bson.A{mechanism}})
	}
	if speculative != nil {
		a := args{body: speculative}
		silent, _ := a.document("options").Lookup("skipEmptyExchange").BooleanOK()
		// A login that does not begin here begins with saslStart.
		if mech, payload := a.text("mechanism"), a.binary("payload"); a.err == nil && mech == mechanism {
			if reply, err := k.conn.startLogin(mech, payload, silent); err == nil {
				d = append(d, bson.E{Key: "speculativeAuthenticate", Value: reply})
			}
		}
	}
	return d, nil
}

// awaitChange waits for the time that the client gives, since nothing changes here but that the server stops. Where the
// client takes more than one answer, there will be another one.
func (k *call) awaitChange(version bson.Raw, wait time.Duration) {
	process, _ := version.Lookup("processId").ObjectIDOK()
	if process != k.server.process {
		return // it knows another run of this server: it is told of this one at once
	}
	k.again = k.msg.flags&flagExhaust != 0
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.server.closing:
		k.again = false
	case <-k.ctx.Done():
		k.again = false
	}
}

func (s *Server) hello(c *conn) bson.D {
	// Clients go to the address that they are told here. The one that they came by they can reach.
	me := c.nc.LocalAddr().String()
	now := s.opts.Now()
	return bson.D{
		{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: s.process}, {Key: "counter", Value: int64(1)}}},
		{Key: "hosts", Value: bson.A{me}},
		{Key: "setName", Value: setName},
		{Key: "setVersion", Value: int32(1)},
		{Key: "secondary", Value: false},
		{Key: "primary", Value: me},
		{Key: "me", Value: me},
		{Key: "electionId", Value: s.process},
		{Key: "maxBsonObjectSize", Value: int32(maxBatch)},
		{Key: "maxMessageSizeBytes", Value: int32(maxMessage)},
		{Key: "maxWriteBatchSize", Value: int32(maxStatements)},
		{Key: "localTime", Value: now},
		{Key: "logicalSessionTimeoutMinutes", Value: int32(s.opts.SessionTime / time.Minute)}, //nolint:gosec // minutes
		{Key: "connectionId", Value: int32(c.id)},                                             //nolint:gosec // it may come again after 2^31
		{Key: "minWireVersion", Value: int32(minWireVersion)},
		{Key: "maxWireVersion", Value: int32(maxWireVersion)},
		{Key: "readOnly", Value: s.opts.ReadOnly},
	}
}

func runReplSetGetStatus(k *call) (bson.D, error) {
	now := k.server.opts.Now()
	return bson.D{
		{Key: "set", Value: setName},
		{Key: "date", Value: now},
		{Key: "myState", Value: int32(1)},
		{Key: "members", Value: bson.A{bson.D{
			{Key: "_id", Value: int32(0)},
			{Key: "name", Value: k.conn.nc.LocalAddr().String()},
			{Key: "health", Value: 1.0},
			{Key: "state", Value: int32(1)},
			{Key: "stateStr", Value: "PRIMARY"},
			{Key: "uptime", Value: int32(now.Sub(k.server.started).Seconds())},
			{Key: "self", Value: true},
		}}},
	}, nil
}

func runReplSetGetConfig(k *call) (bson.D, error) {
	return bson.D{{Key: "config", Value: bson.D{
		{Key: "_id", Value: setName},
		{Key: "version", Value: int32(1)},
		{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: int32(0)}, {Key: "host", Value: k.conn.nc.LocalAddr().String()}}}},
	}}}, nil
}
