package embedded

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// The keyspace, in the engine's byte order. Numbers are big-endian; KS is document.AppendKey, whose results are never
// a prefix of one another, so that they can be joined without separators.
//
//	01 00                           -> version of this layout, 4 bytes
//	01 01                           -> next number for a collection or index, 4 bytes
//	01 02 database 00 collection    -> collectionSpec (BSON)
//	01 03                           -> id of the store, 8 random bytes
//	02 coll4 KS(_id)                -> 00, document (BSON)
//	03 coll4 idx4 KS(k1..kn) KS(_id)-> length of KS(_id), uvarint
//	04 database 00 seq8             -> entry of the database's feed (feed.go)
//	05 coll4                        -> counts: documents and their bytes, two varints
//	07 coll4 idx4                   -> progress of a build: multikey bits, 4 bytes, and KS(_id) to go on with
const (
	spaceCatalog byte = 1
	spaceDocs    byte = 2
	spaceIndexes byte = 3
	spaceFeed    byte = 4
	spaceCounts  byte = 5
	spaceBuilds  byte = 7
)

const (
	layoutVersion = 3
	docHeader     = 0 // how the rest of a stored document is encoded: as it is
)

// keyVersion, keyNextID and keyStoreID are the single keys of the catalog, catalogPrefix begins all others.
func keyVersion() []byte    { return []byte{spaceCatalog, 0} }
func keyNextID() []byte     { return []byte{spaceCatalog, 1} }
func keyStoreID() []byte    { return []byte{spaceCatalog, 3} }
func catalogPrefix() []byte { return []byte{spaceCatalog, 2} }

func catalogKey(database, collection string) []byte {
	key := append(catalogPrefix(), database...)
	key = append(key, 0)
	return append(key, collection...)
}

func docPrefix(coll uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceDocs}, coll)
}

func docKey(coll uint32, id []byte) []byte {
	key := make([]byte, 0, 5+len(id))
	key = append(key, spaceDocs)
	key = binary.BigEndian.AppendUint32(key, coll)
	return append(key, id...)
}

// collIndexPrefix begins the entries of all indexes of a collection.
func collIndexPrefix(coll uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceIndexes}, coll)
}

func indexPrefix(coll, index uint32) []byte {
	key := append(make([]byte, 0, 32), spaceIndexes) // callers append keys to it
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(key, coll), index)
}

// feedPrefix begins the feed of a database, whose entries are ordered by number.
func feedPrefix(database string) []byte {
	return append(append([]byte{spaceFeed}, database...), 0)
}

func feedKey(prefix []byte, seq uint64) []byte {
	key := append(make([]byte, 0, len(prefix)+8), prefix...)
	return binary.BigEndian.AppendUint64(key, seq)
}

func countsKey(coll uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceCounts}, coll)
}

func buildKey(coll, index uint32) []byte {
	return binary.BigEndian.AppendUint32(collBuildPrefix(coll), index)
}

// collBuildPrefix begins the progress of the builds in a collection.
func collBuildPrefix(coll uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceBuilds}, coll)
}

// idKey is the key of an _id within its collection.
func idKey(id bson.RawValue) []byte { return document.AppendKey(make([]byte, 0, 16), id, false) }
