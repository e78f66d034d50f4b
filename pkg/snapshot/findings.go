package snapshot

import (
	"strconv"
	"strings"
)

// Finding is something that a check or a drill has found.
type Finding struct {
	Path string `json:"path"` // of the file in the snapshot, or what names it
	Text string `json:"text"`
}

// maxNamed is how many findings a message names.
const maxNamed = 5

// Named names the first findings for a message, and says how many more there are of all that were counted.
func Named(found []Finding, all int64) string {
	named := found[:min(len(found), maxNamed)]
	texts := make([]string, 0, len(named)+1)
	for _, f := range named {
		texts = append(texts, f.Path+": "+f.Text)
	}
	if more := all - int64(len(named)); more > 0 {
		texts = append(texts, "and "+strconv.FormatInt(more, 10)+" more")
	}
	return strings.Join(texts, "; ")
}
