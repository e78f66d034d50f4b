package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// Kinds of message that are understood.
const (
	opReply = 1
	opQuery = 2004 // only for the first hello of a connection
	opMsg   = 2013
)

// Flags of an OP_MSG. A peer that sets another one of the lower 16 has to be told that it is not understood.
const (
	flagChecksum   = 1 << 0
	flagMoreToCome = 1 << 1
	flagExhaust    = 1 << 16

	requiredFlags = 0xffff
)

const (
	headerSize   = 16
	checksumSize = 4
	// maxMessage is what the server says in its hello, as MongoDB does.
	maxMessage = 48_000_000
	// maxBefore is the largest message of those who have not authenticated yet.
	maxBefore  = 64 << 10
	firstChunk = 64 << 10
	maxNesting = 4 // levels of a command around the documents in it

	// A client that wants TLS begins with these two bytes, and the version behind them makes a length above maxBefore.
	tlsHandshake = 22
	tlsMajor     = 3
)

// errMessage is what ends a connection: where a message does not hold what it says, nobody knows where the next begins.
var errMessage = errors.New("the message is not MongoDB's wire protocol")

func badMessage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMessage, fmt.Sprintf(format, args...))
}

// message is one request.
type message struct {
	id        int32
	flags     uint32
	legacy    bool   // an OP_QUERY, to be answered by an OP_REPLY
	db        string // that of an OP_QUERY
	body      bson.Raw
	sequences []sequence
}

// sequence is a field of a command whose documents came beside its body.
type sequence struct {
	name string
	docs []bson.Raw
}

// readMessage reads one message of at most limit bytes. An end before the first byte is io.EOF. started is called once the
// header is there.
func readMessage(r io.Reader, limit int, started func()) (*message, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	started()
	size := int64(int32(binary.LittleEndian.Uint32(header[:]))) //nolint:gosec // the protocol's lengths have a sign
	if size < headerSize || size > int64(limit) {
		if header[0] == tlsHandshake && header[1] == tlsMajor {
			return nil, badMessage("the client speaks TLS, which the endpoint does not: leave tls=true out of its address")
		}
		return nil, badMessage("a length of %d bytes, where %d to %d are taken", size, headerSize, limit)
	}
	payload, err := readChunks(r, int(size)-headerSize)
	if err != nil {
		return nil, err
	}
	return parseMessage(header[:], payload)
}

// readChunks reads n bytes. Memory is taken as they come: a length alone costs nothing.
func readChunks(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, 0, min(n, firstChunk))
	for len(buf) < n {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(n, 2*cap(buf)))
			copy(grown, buf)
			buf = grown
		}
		got, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+got]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func parseMessage(header, payload []byte) (*message, error) {
	m := &message{id: int32(binary.LittleEndian.Uint32(header[4:]))} //nolint:gosec // any number will do
	switch op := binary.LittleEndian.Uint32(header[12:]); op {
	case opMsg:
		err := m.parseMsg(header, payload)
		return m, err
	case opQuery:
		err := m.parseQuery(payload)
		return m, err
	default:
		return nil, badMessage("operation %d is not understood", op)
	}
}

func (m *message) parseMsg(header, payload []byte) error {
	if len(payload) < 4 {
		return badMessage("no flags")
	}
	m.flags = binary.LittleEndian.Uint32(payload)
	rest := payload[4:]
	if unknown := m.flags & requiredFlags &^ (flagChecksum | flagMoreToCome); unknown != 0 {
		return badMessage("flags %#x are not understood", unknown)
	}
	if m.flags&flagChecksum != 0 {
		if len(rest) < checksumSize {
			return badMessage("no checksum")
		}
		sum := crc32.Update(0, castagnoli(), header)
		sum = crc32.Update(sum, castagnoli(), payload[:len(payload)-checksumSize])
		if sum != binary.LittleEndian.Uint32(payload[len(payload)-checksumSize:]) {
			return badMessage("the checksum is wrong")
		}
		rest = rest[:len(rest)-checksumSize]
	}
	for len(rest) > 0 {
		var err error
		if rest, err = m.parseSection(rest); err != nil {
			return err
		}
	}
	if m.body == nil {
		return badMessage("no body")
	}
	return nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// parseSection reads one section and gives what is behind it.
func (m *message) parseSection(data []byte) ([]byte, error) {
	kind, data := data[0], data[1:]
	switch kind {
	case 0:
		doc, rest, err := parseDocument(data)
		if err == nil && m.body != nil {
			err = badMessage("two bodies")
		}
		m.body = doc
		return rest, err
	case 1:
		if len(data) < 4 {
			return nil, badMessage("a sequence without a length")
		}
		size := int64(binary.LittleEndian.Uint32(data))
		if size < 4 || size > int64(len(data)) {
			return nil, badMessage("a sequence of %d bytes in %d", size, len(data))
		}
		return data[size:], m.parseSequence(data[4:size])
	default:
		return nil, badMessage("a section of kind %d", kind)
	}
}

func (m *message) parseSequence(data []byte) error {
	name, data, ok := cutText(data)
	if !ok {
		return badMessage("a sequence without a name")
	}
	s := sequence{name: name}
	for len(data) > 0 {
		doc, rest, err := parseDocument(data)
		if err != nil {
			return err
		}
		s.docs, data = append(s.docs, doc), rest
	}
	m.sequences = append(m.sequences, s)
	return nil
}

// parseQuery reads what drivers begin with as long as they don't know whom they talk to.
func (m *message) parseQuery(payload []byte) error {
	m.legacy = true
	if len(payload) < 4 {
		return badMessage("no flags")
	}
	ns, data, ok := cutText(payload[4:])
	if !ok || len(data) < 8 {
		return badMessage("a query without a collection")
	}
	doc, _, err := parseDocument(data[8:]) // behind it may be a selector
	if err != nil {
		return err
	}
	const commands = ".$cmd"
	if len(ns) <= len(commands) || ns[len(ns)-len(commands):] != commands {
		return badMessage("a query of a collection, which was before OP_MSG")
	}
	m.db, m.body = ns[:len(ns)-len(commands)], doc
	return nil
}

// parseDocument cuts one document off data. It may hold documents that are as deep as those that are stored.
func parseDocument(data []byte) (doc bson.Raw, rest []byte, err error) {
	if len(data) < 5 {
		return nil, nil, badMessage("a document that is cut off")
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if size < 5 || size > int64(len(data)) {
		return nil, nil, badMessage("a document of %d bytes in %d", size, len(data))
	}
	doc, rest = bson.Raw(data[:size]), data[size:]
	if !intact(doc, maxNesting) {
		return nil, nil, badMessage("a document that is not BSON, or nested too deep")
	}
	return doc, rest, nil
}

// intact says whether a document is whole, and below some levels no deeper than one that is stored.
func intact(doc []byte, levels int) bool {
	it := document.NewIter(doc)
	for it.Next() {
		v := it.Value()
		nested := v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray
		if nested && levels > 0 {
			if !intact(v.Value, levels-1) {
				return false
			}
		} else if !document.WellFormed(v) {
			return false
		}
	}
	return it.Valid()
}

// cutText cuts a text that ends in NUL off data.
func cutText(data []byte) (text string, rest []byte, ok bool) {
	for i, c := range data {
		if c == 0 {
			return string(data[:i]), data[i+1:], true
		}
	}
	return "", nil, false
}

// appendReply appends the answer to a message: an OP_MSG with the flags given, or an OP_REPLY to an OP_QUERY.
func appendReply(dst []byte, id, responseTo int32, flags uint32, legacy bool, body []byte) []byte {
	start := len(dst)
	op := uint32(opMsg)
	if legacy {
		op = opReply
	}
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(id))         //nolint:gosec // any number will do
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo)) //nolint:gosec // the one that came
	dst = binary.LittleEndian.AppendUint32(dst, op)
	if legacy {
		dst = binary.LittleEndian.AppendUint32(dst, 8) // knows await
		dst = append(dst, make([]byte, 12)...)         // no cursor, from the start
		dst = binary.LittleEndian.AppendUint32(dst, 1) // one document
		dst = append(dst, body...)
		binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start)) //nolint:gosec // no longer than maxMessage
		return dst
	}
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = append(dst, 0)
	dst = append(dst, body...)
	length := len(dst) - start
	if flags&flagChecksum != 0 {
		length += checksumSize
	}
	binary.LittleEndian.PutUint32(dst[start:], uint32(length)) //nolint:gosec // no longer than maxMessage
	if flags&flagChecksum != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli()))
	}
	return dst
}
