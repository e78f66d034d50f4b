package doc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
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
		ValidArgsFunction: st.CompletePlace(true),
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
	opts   *editOptions
	st     *command.State
	client *client.Client
	editor string
	draft  *draft
}

func runEdit(ctx context.Context, opts *editOptions) error {
	st := opts.st
	e := &edit{opts: opts, st: st}
	var err error
	if e.editor, err = editorCommand(st); err != nil {
		return err
	}
	if e.client, err = st.Client(); err != nil {
		return err
	}
	now, etag, err := getOne(ctx, e.client, opts.place, opts.ID, client.Query{Lang: opts.Lang})
	if err != nil {
		return err
	}
	opts.ID = recordID(now)
	current := opened{ETag: etag, Record: now}
	intro := []string{fmt.Sprintf("Record %s of %s.", opts.ID, opts.place)}
	if opts.Lang != "" {
		intro[0] = fmt.Sprintf("Record %s of %s, in the language %s.", opts.ID, opts.place, opts.Lang)
	}
	if opts.Draft != "" {
		d, clashes, err := resumeDraft(opts.Draft, current)
		if err != nil {
			return err
		}
		e.draft, intro = d, append(intro, clashes...)
	} else if e.draft, err = newDraft(opts.Collection+"-"+opts.ID, current); err != nil {
		return err
	}
	return e.loop(ctx, append(intro, "Lines that begin with # here at the top are left out. What you don't change stays; a file without a change does nothing."))
}

// loop opens the editor until what it leaves is accepted, or the same again.
func (e *edit) loop(ctx context.Context, intro []string) error {
	refused := ""
	for {
		if err := e.draft.write(intro); err != nil {
			return err
		}
		e.st.Notef("editing %s", e.draft.path)
		if err := runEditor(e.st, e.editor, e.draft.path); err != nil {
			return e.failed(err)
		}
		if err := ctx.Err(); err != nil {
			return e.kept(err, "interrupted")
		}
		text, err := e.draft.read()
		if err != nil {
			return err
		}
		patch, fields, err := e.draft.patch()
		if err == nil && len(fields) == 0 {
			e.st.Notef("nothing changed")
			return e.draft.remove()
		}
		if err == nil {
			err = e.send(ctx, patch, fields)
		}
		reasons := refusedBecause(err)
		switch {
		case err == nil:
			return e.draft.remove()
		case reasons == nil || text == refused:
			return e.kept(err, "not saved")
		}
		refused, intro = text, append([]string{"Not saved:"}, reasons...)
		intro = append(intro, "Change it and save, or leave it as it is to give up.")
	}
}

// failed ends an edit whose editor has failed, as one that is not there. A draft without a change is not kept.
func (e *edit) failed(err error) error {
	if _, readErr := e.draft.read(); readErr == nil {
		if _, fields, patchErr := e.draft.patch(); patchErr == nil && len(fields) == 0 {
			return errors.Join(err, e.draft.remove())
		}
	}
	return e.kept(err, "the editor failed")
}

// send patches the record, if it is still the one that was opened.
func (e *edit) send(ctx context.Context, patch api.Record, fields []string) error {
	o := e.opts
	record, err := e.client.PatchRecord(ctx, o.Namespace, o.Collection, o.ID, api.MediaMergePatch, patch, client.WriteOptions{IfMatch: e.draft.etag, Lang: o.Lang})
	refused, ok := errors.AsType[*client.Error](err)
	if ok && (refused.Status == http.StatusPreconditionFailed || refused.Status == http.StatusConflict && !taken(&refused.Problem, "")) {
		if showErr := e.showBoth(ctx); showErr != nil {
			return errors.Join(err, showErr)
		}
	}
	if err != nil {
		return err
	}
	p := e.st.Printer()
	if p.Structured() {
		return p.Print(output.Result{Value: record})
	}
	t := output.NewTable("COLLECTION", "UPDATED", "FIELDS")
	t.Row(o.place.String(), o.ID, strings.Join(fields, ", "))
	return p.Print(output.Result{Table: t, Names: []string{o.Collection + "/" + o.ID}})
}

// showBoth shows what differs between the record as it was opened, the draft, and what is stored now.
func (e *edit) showBoth(ctx context.Context) error {
	o := e.opts
	stored, _, err := e.client.GetRecord(ctx, o.Namespace, o.Collection, o.ID, client.Query{Lang: o.Lang})
	if err != nil {
		return err
	}
	was, yours, now := leaves(e.draft.base), leaves(e.draft.edited), leaves(stored)
	t := output.NewTable("FIELD", "IT WAS", "YOURS", "STORED NOW")
	for _, path := range paths(was, yours, now) {
		before := was[path]
		if reserved(path) || yours[path] == before && now[path] == before {
			continue
		}
		t.Row(path, output.Cut(before, maxCell), output.Cut(yours[path], maxCell), output.Cut(now[path], maxCell))
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
	e.st.Warnf("%s: your draft is in %s", what, e.draft.path)
	lang := ""
	if o.Lang != "" {
		lang = " --lang " + o.Lang
	}
	e.st.Notef("go on with it by: svcctl doc edit %s %s %s%s --draft %s", o.Namespace, o.Collection, o.ID, lang, e.draft.path)
	return err
}

// refusedBecause are the reasons of a refusal that another edit can mend, or nil.
func refusedBecause(err error) []string {
	if unread, ok := errors.AsType[*draftError](err); ok {
		return strings.Split(strings.TrimSpace(unread.Error()), "\n")
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return nil
	}
	switch {
	case refused.Status == http.StatusBadRequest, refused.Status == http.StatusUnprocessableEntity, taken(&refused.Problem, ""):
	default:
		return nil
	}
	var reasons []string
	for _, f := range refused.Problem.Errors {
		reasons = append(reasons, "  "+f.Path+": "+f.Message)
	}
	if reasons == nil {
		reasons = []string{"  " + refused.Problem.Detail}
	}
	return reasons
}

// leaves gives the values of a record by their paths, as table cells. Objects are taken apart.
func leaves(record api.Record) map[string]string {
	out := map[string]string{}
	var walk func(prefix string, value api.Record)
	walk = func(prefix string, value api.Record) {
		list, err := members(value)
		if err != nil {
			return
		}
		for _, m := range list {
			if len(m.value) > 0 && m.value[0] == '{' {
				walk(prefix+m.name+".", m.value)
				continue
			}
			out[prefix+m.name] = bareText(canonical(m.value))
		}
	}
	walk("", record)
	return out
}

// paths are the keys of several maps, sorted.
func paths(all ...map[string]string) []string {
	var out []string
	for _, m := range all {
		for path := range m {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
