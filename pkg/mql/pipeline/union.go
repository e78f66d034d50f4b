package pipeline

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// union is $unionWith: the results of another pipeline come behind.
type union struct {
	collection string
	chain      chain
}

func compileUnionWith(c *compiler, name string, spec any) (stage, any, error) {
	var list bson.A
	coll, isName := spec.(string)
	if !isName {
		d, ok := asObject(spec)
		if !ok {
			return nil, nil, bad(codeFailedToParse, "%s needs the name of a collection, or an object", name)
		}
		var err error
		if coll, list, err = unionOptions(name, d); err != nil {
			return nil, nil, err
		}
	}
	if err := checkCollection(name, coll); err != nil {
		return nil, nil, err
	}
	coll = c.reads(coll)
	inner, raw, err := c.inner(name, list, nil)
	return &union{coll, inner}, bson.D{{Key: "coll", Value: coll}, {Key: "pipeline", Value: raw}}, err
}

func unionOptions(name string, d bson.D) (coll string, list bson.A, err error) {
	given := false
	for _, e := range d {
		var ok bool
		switch e.Key {
		case "coll":
			if coll, ok = e.Value.(string); !ok {
				return "", nil, bad(codeTypeMismatch, "%s: coll has to be the name of a collection", name)
			}
			given = true
		case "pipeline":
			if list, ok = asList(e.Value); !ok {
				return "", nil, bad(codeTypeMismatch, "%s: pipeline has to be a list of stages", name)
			}
		default:
			return "", nil, bad(codeUnknownField, "%s does not know %s", name, document.Readable(e.Key))
		}
	}
	if !given {
		return "", nil, bad(codeFailedToParse, "%s needs coll, the name of a collection", name)
	}
	return coll, list, nil
}

// checkCollection refuses what can't be the name of a collection that a pipeline may read.
func checkCollection(stage, name string) error {
	if name == "" || strings.ContainsAny(name, "$\x00") || strings.HasPrefix(name, "system.") {
		return bad(codeNamespace, "%s: %q can't be the name of a collection", stage, document.Readable(name))
	}
	return nil
}

func (u *union) open(r *run, next sink) sink { return &uniting{union: u, r: r, next: next} }

type uniting struct {
	*union
	r      *run
	next   sink
	enough bool
}

func (u *uniting) push(doc bson.Raw) error {
	err := u.r.give(u.next, doc)
	u.enough = u.enough || errors.Is(err, errEnough)
	return err
}

func (u *uniting) end() error {
	if !u.enough {
		err := u.r.pipe(u.chain, u.collection, func(doc bson.Raw) error { return u.next.push(doc) })
		if err != nil {
			return err
		}
	}
	return u.next.end()
}
