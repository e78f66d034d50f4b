package mongotest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The frame of an OP_MSG: a header of four integers, flags, and the kind of the one section.
const (
	opMsg     = 2013
	frameSize = 16 + 4 + 1
	maxReply  = 64 << 20
)

// command runs one admin command. It speaks the protocol itself, because a driver can't be told to wait for a server
// that is in no replica set yet.
func command(conn net.Conn, cmd bson.D) (bson.Raw, error) {
	body, err := bson.Marshal(append(cmd, bson.E{Key: "$db", Value: "admin"}))
	if err != nil {
		return nil, err
	}
	return roundTrip(conn, body)
}

// roundTrip sends a command and waits for its reply.
func roundTrip(conn net.Conn, body []byte) (bson.Raw, error) {
	if err := send(conn, body); err != nil {
		return nil, err
	}
	return receive(conn)
}

func send(conn net.Conn, body []byte) error {
	msg := make([]byte, frameSize, frameSize+len(body))
	binary.LittleEndian.PutUint32(msg, uint32(frameSize+len(body)))
	binary.LittleEndian.PutUint32(msg[12:], opMsg)
	_, err := conn.Write(append(msg, body...))
	return err
}

// receive reads one reply; they come in the order of the commands.
func receive(conn net.Conn) (bson.Raw, error) {
	header := make([]byte, frameSize)
	if _, err := io.ReadFull(conn, header); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header)
	if size < frameSize || size > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes", size)
	}
	reply := make([]byte, size-frameSize)
	if _, err := io.ReadFull(conn, reply); err != nil {
		return nil, err
	}
	return reply, bson.Raw(reply).Validate()
}
