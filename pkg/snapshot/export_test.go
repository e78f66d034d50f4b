package snapshot

import "go.mongodb.org/mongo-driver/v2/bson"

// ChangedPaths is how records that differ are told of.
func ChangedPaths(a, b bson.Raw) (found []string, more bool) { return changedPaths(a, b) }
