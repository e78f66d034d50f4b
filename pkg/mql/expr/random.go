package expr

import "go.mongodb.org/mongo-driver/v2/bson"

// random is $rand.
type random struct{ leaf }

func parseRandom(_ *compiler, name string, v bson.RawValue) (node, error) {
	switch {
	case v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray:
		return nil, bad(10065, "%s needs an empty object", name)
	case count(v) > 0:
		return nil, bad(3040501, "%s takes no operands", name)
	}
	return random{}, nil
}

func (random) eval(env *Env) (bson.RawValue, error) { return env.double(env.random()), nil }

func (r random) fold(*folder) (node, error) { return r, nil }
