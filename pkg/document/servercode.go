package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/errs"
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

// maxRefusal is the length of a refusal's text in bytes: names from outside may be megabytes long.
const maxRefusal = 1000

// Refuse makes the error of something that a MongoDB server refuses, too, with its number. slug is our own code.
func Refuse(slug string, code ServerCode, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxRefusal {
		message = strings.ToValidUTF8(message[:maxRefusal], "") + "…"
	}
	return errs.New(errs.Invalid, slug, "%s", message).With(code)
}

// Readable cuts a name from outside to what a person can read.
func Readable[S ~string | ~[]byte](name S) string {
	if len(name) <= 64 {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:64]), "") + "…"
}
