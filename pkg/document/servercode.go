package document

import (
	"errors"
	"strconv"
)

// ServerCode is the number that a MongoDB server gives an error. It stands in the chain of an error's causes, for doors
// that speak MongoDB's protocol; the public text and code are our own.
type ServerCode int32 //nolint:errname // a number, which is what it is called

func (c ServerCode) Error() string { return "MongoDB error " + strconv.Itoa(int(c)) }

// ServerCodeOf gives the number that err carries, or 0.
func ServerCodeOf(err error) ServerCode {
	code, _ := errors.AsType[ServerCode](err)
	return code
}
