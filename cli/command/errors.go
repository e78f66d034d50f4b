package command

import (
	"errors"
	"fmt"
)

// Exit codes of svcctl. A code that is not here means that it failed too.
const (
	ExitOK          = 0
	ExitFailed      = 1   // the request was refused; validate: the config is invalid
	ExitUsage       = 2   // the command line makes no sense, or a validate could not run
	ExitPartial     = 3   // some of several were done
	ExitDenied      = 4   // credential missing, wrong, or without the right
	ExitNotFound    = 5   // no such thing
	ExitConflict    = 6   // it is there already, changed meanwhile, or is running
	ExitUnreachable = 7   // no answer from the service, or TLS failed
	ExitTimeout     = 8   // --timeout or --request-timeout is over
	ExitInterrupted = 130 // Ctrl-C
)

// Error is a failure with its exit code. One without a Message has been told already.
type Error struct {
	Exit    int
	Code    string // slug for -o json
	Message string
	Hint    string // what to do next
	Cause   error
}

// Error is the message, with the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// exitError is an error with another exit code than its own.
type exitError struct {
	error
	exit int
}

func (e *exitError) Unwrap() error { return e.error }

// NotRun is the error of a command whose exit code 1 has a meaning of its own, such as a diff's: a failure that would end it
// with that ends it with ExitUsage. What was told already stays as it is.
func NotRun(err error) error {
	if told, ok := errors.AsType[*Error](err); err == nil || ok && told.Message == "" {
		return err
	}
	return &exitError{err, ExitUsage}
}

// Usagef is the error of a command line that makes no sense.
func Usagef(format string, args ...any) error {
	return &Error{Exit: ExitUsage, Code: "usage", Message: fmt.Sprintf(format, args...)}
}

// NoChange is the error of svcctl NOUN update with no flag that says what to change.
func NoChange(noun string) error {
	return Usagef("what is the change? svcctl %s update --help lists the flags", noun)
}

// Told ends the command with an exit code, without another word.
func Told(exit int) error { return &Error{Exit: exit} }
