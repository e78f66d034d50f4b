package snapshot

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type verifyOptions struct {
	Namespace, ID string
	Sample        float64 // 0: all
	Wait          Wait
}

func newVerify(st *command.State, runF func(context.Context, *verifyOptions) error) *cobra.Command {
	opts := &verifyOptions{}
	var sample string
	cmd := onSnapshot(st, &cobra.Command{
		Use: "verify", Short: "Check that a snapshot is what was written",
		Long: `Check that a snapshot is what was written: every file is read and compared with its sum, every record is parsed and counted. --sample reads a part of
the files, drawn anew each time: 10%, or 0.1.

Exit code 1 means that it is damaged, and the files are named; that it could not be checked has another one.` + waitingBeside,
		Example: `  svcctl snapshot verify blog 20260301T031500Z-k3x9q2
  svcctl snapshot verify blog 20260301T031500Z-k3x9q2 --sample 10%`,
	}, func(ctx context.Context, c *client.Client, namespace, id string) error {
		opts.Namespace, opts.ID = namespace, id
		var err error
		if opts.Sample, err = parseSample(sample); err != nil {
			return err
		}
		if runF != nil {
			return runF(ctx, opts)
		}
		return opts.Wait.Run(ctx, st, c, namespace, func(ctx context.Context) (*api.Run, error) {
			run, err := c.VerifySnapshot(ctx, namespace, id, api.SnapshotVerify{Sample: opts.Sample})
			if err != nil {
				return nil, command.NotRun(err)
			}
			return run, nil
		})
	})
	cmd.Flags().StringVar(&sample, "sample", "", "the part of the files that is read, such as 10% (default all)")
	opts.Wait.Register(cmd)
	return cmd
}

// parseSample reads a part of a whole, as 10% or as 0.1; "" is 0.
func parseSample(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	part, err := strconv.ParseFloat(number, 64)
	if percent {
		part /= 100
	}
	if err != nil || !(part > 0 && part <= 1) {
		return 0, command.Usagef("--sample %s: want a part of the files, such as 10%% or 0.1, above 0 and at most 100%%", text)
	}
	return part, nil
}

// showVerified prints what a check of a snapshot has found.
func (f *follower) showVerified(ctx context.Context, run *api.Run, result *api.SnapshotResult, id string) error {
	if v := result.Verified; v != nil && v.Dangling > 0 {
		f.st.Warnf("files that records name and that are not in it: %d; svcctl snapshot show %s %s names them", v.Dangling, f.namespace, id)
	}
	if run.Status != api.RunSucceeded {
		_, err := showFound(f.st, run, result)
		return err
	}
	s, err := f.client.Snapshot(ctx, f.namespace, id, false)
	if err != nil {
		return err
	}
	f.st.Notef("%s was checked %s", id, verified(f.st, s.Verified))
	if damage := DamageOf(s); damage != nil { // which a check of a part has missed
		for _, x := range damage.Found[:min(len(damage.Found), 5)] {
			f.st.Warnf("found before: %s: %s", x.Path, x.Text)
		}
		if err := Print(f.st, s, *s); err != nil {
			return err
		}
		return &command.Error{
			Exit: command.ExitFailed, Code: "snapshot_damaged", Message: id + " is known to be damaged: " + output.Count(damage.Problems, "problem") + ", which this check has not looked at",
			Hint: "svcctl snapshot verify " + f.namespace + " " + id + " checks all of it",
		}
	}
	if s.Counts.Warnings > 0 {
		f.st.Notef("it is what there was when it was taken, with %s then; svcctl snapshot show %s %s names what was missing or damaged already", output.Count(s.Counts.Warnings, "warning"), f.namespace, id)
	}
	return Print(f.st, s, *s)
}

func isDamaged(run *api.Run) bool { return run.Error != nil && run.Error.Code == "snapshot_damaged" }
