package snapshot

import "go.mongodb.org/mongo-driver/v2/bson"

// ChangedPaths is how records that differ are told of.
func ChangedPaths(a, b bson.Raw) (found []string, more bool) { return changedPaths(a, b) }

// Forged gives the text of a manifest whose root is that of its files, and of its sum.
func Forged(m *Manifest) (manifest, sum []byte, err error) {
	m.Root = m.root()
	text, err := m.encode()
	return text, sumLine(text), err
}
