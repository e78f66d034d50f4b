package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

type apiOptions struct {
	st      *command.State
	Method  string
	Path    string
	Query   url.Values
	Header  http.Header
	Data    string
	Include bool
}

func newAPI(st *command.State) *cobra.Command {
	opts := &apiOptions{st: st}
	var method string
	var queries, headers []string
	cmd := &cobra.Command{
		Use:   "api [METHOD] PATH",
		Short: "Send any request to the service, with your credential",
		Long: `Send a request and print the answer's body as it is. PATH is below /api/v1, unless it begins with /api/ or is one of
/healthz, /readyz and /metrics. Without METHOD, which -X names too, it is GET, or POST with --data. A refusal goes to
stderr, with the exit code of its kind.`,
		Example: `  svcctl api /_/blog/articles --jq '.items[].title'
  svcctl api GET /_/blog/articles -Q limit=2 -Q sort=-publishedAt
  svcctl api PUT /_/blog/articles/65f0c2a1b3d4e5f60718293a -d '{"status": "published"}'`,
		Args: command.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return apiMethods(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[len(args)-1]
			if err := opts.chooseMethod(method, args[:len(args)-1]); err != nil {
				return err
			}
			if err := opts.complete(path, queries, headers); err != nil {
				return err
			}
			return runAPI(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&method, "method", "X", "", "method, as METHOD is")
	cmd.Flags().StringArrayVarP(&queries, "query", "Q", nil, "query parameter name=value (repeat)")
	cmd.Flags().StringArrayVarP(&headers, "header", "H", nil, "header 'Name: value' (repeat)")
	cmd.Flags().StringVarP(&opts.Data, "data", "d", "", "body: the text itself, @file, or - for stdin")
	cmd.Flags().BoolVarP(&opts.Include, "include", "i", false, "print status and headers too")
	command.CompleteFlags(cmd, map[string]command.CompleteFunc{"method": cobra.FixedCompletions(apiMethods(), cobra.ShellCompDirectiveNoFileComp)})
	return cmd
}

func apiMethods() []string { return []string{"GET", "POST", "PUT", "PATCH", "DELETE"} }

// chooseMethod takes the method of the flag or of the argument before the path.
func (opts *apiOptions) chooseMethod(flag string, before []string) error {
	switch {
	case flag != "" && len(before) > 0:
		return command.Usagef("the method is given twice: %q as an argument and %q with -X", before[0], flag)
	case len(before) > 0:
		flag = before[0]
	case flag == "" && opts.Data != "":
		flag = http.MethodPost
	case flag == "":
		flag = http.MethodGet
	}
	opts.Method = strings.ToUpper(flag)
	return nil
}

func (opts *apiOptions) complete(path string, queries, headers []string) error {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	bare, _, _ := strings.Cut(path, "?")
	root := []string{api.RootHealth, api.RootReady, api.RootMetrics}
	if !strings.HasPrefix(path, "/api/") && !slices.Contains(root, bare) {
		path = api.Prefix + path
	}
	opts.Path = path
	opts.Query, opts.Header = url.Values{}, http.Header{}
	for _, q := range queries {
		name, value, ok := strings.Cut(q, "=")
		if !ok || name == "" {
			return command.Usagef("--query %s: want name=value", q)
		}
		opts.Query.Add(name, value)
	}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return command.Usagef("--header %s: want 'Name: value'", h)
		}
		opts.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return nil
}

func runAPI(ctx context.Context, opts *apiOptions) error {
	st := opts.st
	body, closeBody, err := opts.body()
	if err != nil {
		return err
	}
	defer closeBody()
	c, err := st.Client()
	if err != nil {
		return err
	}
	if opts.Data != "" && opts.Header.Get("Content-Type") == "" {
		opts.Header.Set("Content-Type", api.MediaJSON)
	}
	ctx, cancel := command.WithTimeout(ctx, st.Flags.RequestTimeout)
	defer cancel()
	resp, err := c.Do(ctx, client.Request{
		Method: opts.Method, Path: opts.Path, Query: opts.Query, Header: opts.Header, Body: body,
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	out := st.Stdout()
	if opts.Include {
		if err := writeHead(out, resp); err != nil {
			return err
		}
	}
	return opts.write(ctx, c, out, resp)
}

func (opts *apiOptions) body() (io.Reader, func(), error) {
	name, isFile := strings.CutPrefix(opts.Data, "@")
	switch {
	case opts.Data == "":
		return nil, func() {}, nil
	case opts.Data == "-" || name == "-":
		return opts.st.Stdin(), func() {}, nil
	case !isFile:
		return strings.NewReader(opts.Data), func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, command.Usagef("%v", err)
	}
	return f, func() { _ = f.Close() }, nil
}

func writeHead(w io.Writer, resp *http.Response) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", resp.Proto, resp.Status)
	names := make([]string, 0, len(resp.Header))
	for name := range resp.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range resp.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, output.Escape(value))
		}
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// write prints the body: byte for byte, unless it goes to a terminal or -o asks for a form of the JSON in it.
func (opts *apiOptions) write(ctx context.Context, c *client.Client, w io.Writer, resp *http.Response) error {
	st := opts.st
	p := st.Printer()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an unreadable type is no JSON
	if media == api.MediaJSON && (st.OutTTY || p.Structured()) {
		data, err := c.ReadAnswer(ctx, resp)
		if err != nil {
			return err
		}
		if json.Valid(data) {
			if p.Format == output.FormatYAML {
				return p.YAML(json.RawMessage(data))
			}
			return p.JSON(json.RawMessage(data))
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
	}
	if st.OutTTY {
		w = output.EscapeWriter(w)
	}
	body := &reading{Reader: resp.Body}
	if _, err := io.Copy(w, body); body.failed != nil {
		return brokeOff(resp, body.failed)
	} else if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// reading keeps the error of reading apart from that of writing.
type reading struct {
	io.Reader

	failed error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	return n, err
}

// brokeOff is the error of an answer that did not come whole.
func brokeOff(resp *http.Response, err error) error {
	return &client.UnreachableError{Server: resp.Request.URL.Host, Err: fmt.Errorf("the answer broke off: %w", err)}
}
