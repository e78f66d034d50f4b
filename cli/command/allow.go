package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/pkg/api"
)

// AllowFlag adds the flag that caps the risk.
func AllowFlag(cmd *cobra.Command, allow *string) {
	cmd.Flags().StringVar(allow, "allow", "", "greatest risk: safe, slow, breaking or destructive")
}

// CheckAllow refuses a risk that there is not.
func CheckAllow(allow string) error {
	if allow == "" || slices.Contains(api.Risks(), api.Risk(allow)) {
		return nil
	}
	return Usagef("--allow is a risk: safe, slow, breaking or destructive")
}
