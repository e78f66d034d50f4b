package doc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

type editOptions struct {
	st *command.State
	place
	ID    string
	Lang  string
	Draft string
}

func newEdit(st *command.State, runF func(context.Context, *editOptions) error) *cobra.Command {
	opts := &editOptions{st: st}
	cmd := &cobra.Command{
		Use:   "edit [NAMESPACE] COLLECTION ID",
		Short: "Change a record in your editor",
		Long: `Open a record as YAML in your editor ($SVCCTL_EDITOR, $VISUAL, $EDITOR, else vi), and send what you have changed when the
editor ends. Only that is sent: what you don't see, or don't touch, stays.

What the service refuses opens again with the reasons above it. When somebody else has changed the record meanwhile,
nothing is sent: both versions are shown, the exit code is 6, and your draft stays in a file, which --draft takes up again
on top of the new version. The draft stays, too, when the editor fails or is killed. The record of a singleton needs no id.`,
		Example: `  svcctl doc edit blog articles 65f0c2a1b3d4e5f60718293a
  svcctl doc edit blog articles 65f0c2a1b3d4e5f60718293a --lang de
  EDITOR="code --wait" svcctl doc edit blog articles 65f0c2a1b3d4e5f60718293a`,
		Args:              command.Args(cobra.RangeArgs(1, 3)),
		ValidArgsFunction: st.CompleteRecords(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.place, opts.ID, err = oneOrOnly(st, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runEdit(cmd.Context(), opts)
		},
	}
	langFlag(st, cmd, &opts.Lang, 2)
	cmd.Flags().StringVar(&opts.Draft, "draft", "", "go on with a draft that an edit has left")
	return cmd
}

// edit is one command's work on a record.
type edit struct {
	*Editing

	opts   *editOptions
	st     *command.State
	editor string
}

func runEdit(ctx context.Context, opts *editOptions) error {
	st := opts.st
	e := &edit{opts: opts, st: st}
	var err error
	if e.editor, err = EditorCommand(st); err != nil {
		return err
	}
	c, err := st.Client()
	if err != nil {
		return err
	}
	if e.Editing, err = openEditing(ctx, c, opts.place, opts.ID, opts.Lang, opts.Draft); err != nil {
		return err
	}
	opts.ID = e.id
	return e.loop(ctx)
}

// loop opens the editor until what it leaves is accepted, or the same again.
func (e *edit) loop(ctx context.Context) error {
	for {
		if err := e.Write(); err != nil {
			return err
		}
		e.st.Notef("editing %s", e.Path())
		if err := runEditor(e.st, e.editor, e.Path()); err != nil {
			return e.failed(err)
		}
		if err := ctx.Err(); err != nil {
			return e.kept(err, "interrupted")
		}
		record, fields, err := e.Save(ctx)
		switch {
		case err == nil && len(fields) == 0:
			e.st.Notef("nothing changed")
			return nil
		case err == nil:
			return e.show(record, fields)
		case Changed(err):
			if showErr := e.showBoth(ctx); showErr != nil {
				err = errors.Join(err, showErr)
			}
		}
		if !e.Again(err) {
			return e.kept(err, "not saved")
		}
	}
}

// failed ends an edit whose editor has failed, as one that is not there. A draft without a change is not kept.
func (e *edit) failed(err error) error {
	if e.Unchanged() {
		return errors.Join(err, e.Remove())
	}
	return e.kept(err, "the editor failed")
}

// show tells that a record was changed.
func (e *edit) show(record api.Record, fields []string) error {
	p := e.st.Printer()
	if p.Structured() {
		return p.Print(output.Result{Value: record})
	}
	t := output.NewTable("COLLECTION", "UPDATED", "FIELDS")
	t.Row(e.place.String(), e.id, strings.Join(fields, ", "))
	return p.Print(output.Result{Table: t, Names: []string{e.place.Collection + "/" + e.id}})
}

// showBoth shows what differs between the record as it was opened, the draft, and what is stored now.
func (e *edit) showBoth(ctx context.Context) error {
	differences, err := e.Differences(ctx)
	if err != nil {
		return err
	}
	t := output.NewTable("FIELD", "IT WAS", "YOURS", "STORED NOW")
	for _, d := range differences {
		t.Row(d.Path, output.Cut(d.Was, maxCell), output.Cut(d.Yours, maxCell), output.Cut(d.Now, maxCell))
	}
	p := output.Printer{W: e.st.Err, Format: output.FormatTable, Style: e.st.Style(e.st.ErrTTY)}
	if err := p.Heading("The record was changed by others meanwhile"); err != nil {
		return err
	}
	if err := p.Print(output.Result{Table: t}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.st.Err)
	return err
}

// kept says where the draft is, and how to go on with it.
func (e *edit) kept(err error, what string) error {
	o := e.opts
	e.st.Warnf("%s: your draft is in %s", what, e.Path())
	lang := ""
	if o.Lang != "" {
		lang = " --lang " + o.Lang
	}
	e.st.Notef("go on with it by: svcctl doc edit %s %s %s%s --draft %s", o.Namespace, o.Collection, o.ID, lang, e.Path())
	return err
}
