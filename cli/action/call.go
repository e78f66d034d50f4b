package action

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/cli/runs"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type callOptions struct {
	Namespace, Action string
	Get               bool
	Data              command.Input
	Query, Files      []string
	Wait              bool
	Timeout           time.Duration
}

func newCall(st *command.State, runF func(context.Context, *callOptions) error) *cobra.Command {
	opts := &callOptions{}
	cmd := onAction(st, &cobra.Command{
		Use: "call", Short: "Call an action",
		Long: `Call an action, and print what it gives: JSON in the format of -o, anything else, such as a CSV file, as it is.

An action that runs in the background gives its run; svcctl action logs follows that, and svcctl action result prints what it gave. With --wait the command shows the run's progress on stderr, ends with the run, and
prints what that gave: with exit code 1 if it did not succeed, 8 when it takes longer than --timeout. With -o json it prints each event
as a line, and the run at the end. The run goes on when the command is interrupted.`,
		Example: `  svcctl action call shop export-products --wait > products.csv
  svcctl action call shop restock -d '{"sku": "A-1", "count": 5}'
  svcctl action call shop search --get --query q=boots
  svcctl action call shop import-products --file source=products.csv`,
	}, func(ctx context.Context, c *client.Client, namespace, action string) error {
		opts.Namespace, opts.Action = namespace, action
		if runF != nil {
			return runF(ctx, opts)
		}
		return runCall(ctx, st, c, opts)
	})
	cmd.Flags().BoolVar(&opts.Get, "get", false, "call by GET (by itself where the action has nothing else)")
	cmd.Flags().StringVarP(&opts.Data.Data, "data", "d", "", "the data as JSON, or @file")
	cmd.Flags().StringArrayVar(&opts.Query, "query", nil, "a parameter, as name=value; repeat it for more")
	cmd.Flags().StringArrayVar(&opts.Files, "file", nil, "a file of the data, as field=path; repeat it for more")
	cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until the run has ended, and print what it gave")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 0, "longest wait, 0 for no limit")
	cmd.MarkFlagsMutuallyExclusive("get", "data")
	cmd.MarkFlagsMutuallyExclusive("get", "file")
	return cmd
}

func runCall(ctx context.Context, st *command.State, c *client.Client, opts *callOptions) error {
	query, err := pairs("query", opts.Query)
	if err != nil {
		return err
	}
	bounded, cancel := command.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	var resp *http.Response
	if opts.Get {
		resp, err = c.GetAction(bounded, opts.Namespace, opts.Action, query)
	} else {
		var data api.Record
		if data, err = opts.data(st); err != nil {
			return err
		}
		resp, err = c.CallAction(bounded, opts.Namespace, opts.Action, query, data)
		if client.IsStatus(err, http.StatusMethodNotAllowed) {
			if opts.Data.Given() || len(opts.Files) > 0 {
				return command.Usagef("%s takes no data: it is called by GET, with --query name=value", opts.Action)
			}
			resp, err = c.GetAction(bounded, opts.Namespace, opts.Action, query)
		}
	}
	if err != nil {
		return unanswered(bounded, err, opts)
	}
	defer resp.Body.Close() //nolint:errcheck // what matters has been read
	if resp.StatusCode != http.StatusAccepted || resp.Header.Get(api.HeaderLocation) == "" {
		return show(bounded, st, c, resp)
	}
	var run api.Run
	answer, err := c.ReadAnswer(bounded, resp)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &run); err != nil {
		return fmt.Errorf("the answer is no run: %w", err)
	}
	if !opts.Wait {
		of := runs.OfAction(c, opts.Namespace, opts.Action)
		st.Notef("the run goes on; %s --follow comes back to it", of.Command("logs", run.ID))
		return runs.Show(st, run, run)
	}
	return await(ctx, bounded, st, c, opts, run.ID)
}

// unanswered is the error of a call that failed with err. Where it is that --timeout was over, the action may have begun all the same.
func unanswered(bounded context.Context, err error, opts *callOptions) error {
	return runs.Late(bounded, err, "the service has not answered within --timeout, so that it is not known what "+opts.Action+" has done",
		"svcctl action runs "+opts.Namespace+" "+opts.Action+" shows whether a run goes on; or allow more with --timeout")
}

// pairs reads name=value.
func pairs(flag string, list []string) (url.Values, error) {
	out := url.Values{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, command.Usagef("--%s %q: want name=value", flag, text)
		}
		out.Add(name, value)
	}
	return out, nil
}

// data is the body: what --data gives, with the files of --file as data URLs.
func (o *callOptions) data(st *command.State) (api.Record, error) {
	if !o.Data.Given() && len(o.Files) == 0 {
		return api.Record(`{}`), nil
	}
	body := map[string]json.RawMessage{}
	if o.Data.Given() {
		raw, err := o.Data.Read(st)
		if err != nil {
			return nil, err
		}
		if len(o.Files) == 0 {
			return raw, nil
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			return nil, command.Usagef("--data must be an object where there are files: %v", err)
		}
	}
	for _, text := range o.Files {
		field, path, ok := strings.Cut(text, "=")
		if !ok || field == "" || path == "" {
			return nil, command.Usagef("--file %q: want field=path", text)
		}
		if _, there := body[field]; there {
			return nil, command.Usagef("the field %s is given twice", field)
		}
		data, err := st.ReadFile(path)
		if err != nil {
			return nil, err
		}
		media := mime.TypeByExtension(filepath.Ext(path))
		if media == "" {
			media = http.DetectContentType(data)
		}
		media, _, _ = strings.Cut(media, ";")
		file, err := json.Marshal(api.ActionFile{Src: "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data), Path: filepath.Base(path)})
		if err != nil {
			return nil, err
		}
		body[field] = file
	}
	return json.Marshal(body)
}

// show prints what an action gave.
func show(ctx context.Context, st *command.State, c *client.Client, resp *http.Response) error {
	p := st.Printer()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != api.MediaJSON {
		_, err := io.Copy(p.W, resp.Body)
		return err
	}
	data, err := c.ReadAnswer(ctx, resp)
	if err != nil {
		return err
	}
	if p.Structured() {
		return p.Print(output.Result{Value: json.RawMessage(data)})
	}
	var text bytes.Buffer
	if err := json.Indent(&text, data, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err = p.W.Write(text.Bytes())
	return err
}

// await follows a run to its end, or until bounded ends, and prints what it gave.
func await(ctx, bounded context.Context, st *command.State, c *client.Client, opts *callOptions, id string) error {
	p := st.Printer()
	lines := p.Format == output.FormatJSON
	bar := st.Progress(opts.Action, "done", 0)
	of := runs.OfAction(c, opts.Namespace, opts.Action)
	err := of.Follow(bounded, id, func(e api.RunEvent) error {
		if lines {
			return output.JSONLine(p.W, e)
		}
		switch {
		case e.Event == api.EventLog:
			bar.Clear()
			runs.Note(st, e)
		case e.Event == api.EventProgress && e.Data.Total > 0:
			bar.Set(e.Data.Done, e.Data.Total)
		}
		return nil
	})
	bar.Clear()
	if errors.Is(err, context.DeadlineExceeded) {
		return runs.GoesOn(id, of.Command("logs", id)+" --follow comes back to it, "+of.Command("result", id)+" prints what it gives")
	}
	if err != nil {
		return err
	}
	run, err := of.Get(ctx, id)
	if err != nil {
		return err
	}
	if lines {
		run.Events = nil // they were printed
		if err := output.JSONLine(p.W, run); err != nil {
			return err
		}
	}
	if run.Status != api.RunSucceeded {
		return runs.Failed(run, of.Command("logs", id)+" shows its log")
	}
	if lines {
		return nil
	}
	return showResult(ctx, st, c, opts.Namespace, opts.Action, id)
}

// showResult prints what a run gave.
func showResult(ctx context.Context, st *command.State, c *client.Client, namespace, action, id string) error {
	resp, err := c.ActionResult(ctx, namespace, action, id)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // what matters has been read
	return show(ctx, st, c, resp)
}
