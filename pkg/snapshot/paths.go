package snapshot

import (
	"bytes"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// maxPaths is how many paths are told of a record that has changed.
const maxPaths = 20

// paths gathers where two documents differ.
type paths struct {
	found []string
	more  bool
}

// changedPaths gives the paths of what differs, at most maxPaths of them, and whether there are more. Where one side has a value alone,
// its path is given, not those inside of it. Documents that differ in the order of their fields alone give the path "".
func changedPaths(a, b bson.Raw) (found []string, more bool) {
	p := &paths{}
	p.compare(a, b, "")
	if len(p.found) == 0 && !bytes.Equal(a, b) {
		p.add("")
	}
	return p.found, p.more
}

func (p *paths) add(path string) {
	if len(p.found) == maxPaths {
		p.more = true
		return
	}
	p.found = append(p.found, path)
}

// compare compares objects, or lists, whose names are positions. Fields come in the order of a, then those that b has alone.
func (p *paths) compare(a, b []byte, at string) {
	there := map[string]bson.RawValue{}
	for it := document.NewIter(b); it.Next(); {
		there[string(it.Key())] = it.Value()
	}
	seen := map[string]bool{}
	for it := document.NewIter(a); it.Next(); {
		name := string(it.Key())
		if seen[name] {
			continue
		}
		seen[name] = true
		before, path := it.Value(), join(at, name)
		after, ok := there[name]
		switch {
		case p.more:
			return
		case !ok:
			p.add(path)
		case before.Type == after.Type && bytes.Equal(before.Value, after.Value):
		case before.Type == after.Type && isNested(before.Type):
			n := len(p.found)
			p.compare(before.Value, after.Value, path)
			if len(p.found) == n && !p.more { // their order alone
				p.add(path)
			}
		default:
			p.add(path)
		}
	}
	for it := document.NewIter(b); it.Next() && !p.more; {
		if name := string(it.Key()); !seen[name] {
			seen[name] = true
			p.add(join(at, name))
		}
	}
}

// join gives a path. Names that would be taken for several are quoted.
func join(at, name string) string {
	if name == "" || bytes.ContainsAny([]byte(name), ".\"\n") {
		name = strconv.Quote(name)
	}
	if at == "" {
		return name
	}
	return at + "." + name
}
