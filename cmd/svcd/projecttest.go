package main

import (
	"encoding/json"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/pkg/trial"
	trialreport "github.com/svcctl/svc/pkg/trial/report"
)

// projectTestCommand is what svcctl project test runs: the service is in svcd, so the tests are, too.
const projectTestCommand = "project-test"

// newProjectTestCmd runs the tests of a project, and prints what becomes of them as lines of JSON (pkg/trial/report).
func newProjectTestCmd(stdout io.Writer) *cobra.Command {
	pattern := ""
	cmd := &cobra.Command{
		Use:    projectTestCommand + " DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, entry, err := trial.Locate(args[0])
			if err != nil {
				return &usageError{err}
			}
			o := trial.Options{Dir: dir, Entry: entry, Version: versionText(), Worker: workers()}
			if pattern != "" {
				if o.Run, err = regexp.Compile(pattern); err != nil {
					return &usageError{err}
				}
			}
			lines := json.NewEncoder(stdout)
			lines.SetEscapeHTML(false)
			o.Emit = func(e trialreport.Event) error { return lines.Encode(e) }
			return trial.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&pattern, "run", "", "only cases whose suite/name match")
	return cmd
}
