package command

import "github.com/svcctl/svc/pkg/api"

// RunFailed is the error of a command whose run of an action or a job has ended, but has not succeeded. hint may be "".
func RunFailed(run *api.Run, hint string) error {
	message := run.Status
	if run.Error != nil {
		message = run.Error.Message
	}
	return &Error{Exit: ExitFailed, Code: "run_" + run.Status, Message: "run " + run.ID + ": " + message, Hint: hint}
}

// RunGoesOn is the error of a command that has waited for a run as long as it was told to. hint says how to come back to it.
func RunGoesOn(id, hint string) error {
	return &Error{Exit: ExitTimeout, Code: "timeout", Message: "the run " + id + " has not ended yet", Hint: hint}
}
