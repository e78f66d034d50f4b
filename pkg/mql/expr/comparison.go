package expr

import "go.mongodb.org/mongo-driver/v2/bson"

// comparison makes an operator of what compare may give.
func comparison(is func(c int) bool) operator {
	return two(func(_ *Env, _ string, a, b bson.RawValue) (bson.RawValue, error) {
		return boolean(is(compare(a, b))), nil
	})
}

func compareOperator(env *Env, _ string, a, b bson.RawValue) (bson.RawValue, error) {
	return env.int32(int32(compare(a, b))), nil //nolint:gosec // -1, 0 or 1
}
