package runs

import (
	"context"
	"errors"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/api"
)

// Failed is the error of a command whose run has ended, but has not succeeded. hint may be "".
func Failed(run *api.Run, hint string) error {
	message := run.Status
	if run.Error != nil {
		message = run.Error.Message
	}
	return &command.Error{Exit: command.ExitFailed, Code: "run_" + run.Status, Message: "run " + run.ID + ": " + message, Hint: hint}
}

// Late is the error of a command that failed with err: where it is that bounded was over, which --timeout ends, it has message and hint.
func Late(bounded context.Context, err error, message, hint string) error {
	if !errors.Is(bounded.Err(), context.DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &command.Error{Exit: command.ExitTimeout, Code: "timeout", Message: message, Hint: hint}
}

// NotStarted is the error of a command that was to start a run until bounded ends, which --timeout says, and failed with err. list is the command that shows
// whether a run goes on all the same.
func NotStarted(bounded context.Context, err error, list string) error {
	return Late(bounded, err, "the service has not said within --timeout that it has started the run", list+" shows whether it goes on; or allow more with --timeout")
}

// GoesOn is the error of a command that has waited for a run as long as it was told to. hint says how to come back to it.
func GoesOn(id, hint string) error {
	return &command.Error{Exit: command.ExitTimeout, Code: "timeout", Message: "the run " + id + " has not ended yet", Hint: hint}
}
