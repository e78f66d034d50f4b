// Package mcp is svcctl mcp: the service's endpoint for agents from a terminal, as a bridge for programs that speak by standard input and
// output, and what to write into the config of those. The service has the tools; here they are only carried.
//
// Start at NewCmd; the bridge is Bridge.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/client"
)

// NewCmd makes svcctl mcp.
func NewCmd(st *command.State) *cobra.Command {
	cmd := command.Group("mcp", "Use the endpoint for agents (MCP), and connect them to it", newServe(st), newProbe(st), newTools(st), newCall(st), newConfig(st))
	cmd.Long = `Use the endpoint for agents (Model Context Protocol), and connect them to it.

The endpoint takes a personal access token and nothing else, whoever you are logged in as: svcctl token create makes one with the scopes
that an agent is to have. Give it by --token-file, SVCCTL_TOKEN or the context.`
	return cmd
}

func newProbe(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:     "probe",
		Short:   "Say whether the endpoint answers, and how",
		Example: `  svcctl mcp probe --token-file agent.token`,
		Args:    command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			probe, err := probe(cmd.Context(), st)
			if err != nil {
				return err
			}
			t := output.NewTable("SERVER", "VERSION", "PROTOCOL", "TOOLS")
			t.Row(probe.ServerInfo.Name, probe.ServerInfo.Version, probe.ProtocolVersion, fmt.Sprint(len(probe.Tools)))
			return st.Printer().Print(output.Result{Value: probe, Table: t, Names: []string{"mcp/" + probe.ServerInfo.Name}})
		},
	}
}

func newTools(st *command.State) *cobra.Command {
	return &cobra.Command{
		Use:     "tools",
		Short:   "List the tools, and what they take",
		Long:    "List the tools, and what they take: * marks what a tool needs. -o json has the schema of each.",
		Example: "  svcctl mcp tools\n  svcctl mcp tools -o wide",
		Args:    command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			probe, err := probe(cmd.Context(), st)
			if err != nil {
				return err
			}
			t := output.NewTable("NAME", "CHANGES", "ARGUMENTS", "+DESCRIPTION")
			result := output.Result{Value: probe, Table: t}
			for _, tool := range probe.Tools {
				changes := "yes"
				if tool.Annotations["readOnlyHint"] == true {
					changes = "no"
				}
				t.Row(tool.Name, changes, strings.Join(takes(tool), ", "), tool.Description)
				result.Names = append(result.Names, "tool/"+tool.Name)
			}
			return st.Printer().Print(result)
		},
	}
}

// takes names what a tool takes, first what it needs.
func takes(tool api.MCPTool) []string {
	needs := map[string]bool{}
	list, _ := tool.InputSchema["required"].([]any)
	var out []string
	for _, v := range list {
		name, _ := v.(string)
		needs[name] = true
		out = append(out, name+"*")
	}
	properties, _ := tool.InputSchema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !needs[name] {
			out = append(out, name)
		}
	}
	return out
}

func probe(ctx context.Context, st *command.State) (*api.MCPProbe, error) {
	c, err := st.Client()
	if err != nil {
		return nil, err
	}
	return c.ProbeMCP(ctx)
}

func newCall(st *command.State) *cobra.Command {
	var data command.Input
	var args []string
	cmd := &cobra.Command{
		Use:   "call TOOL",
		Short: "Call a tool as an agent would, and print its result",
		Long: `Call a tool as an agent would, and print its result.

Arguments are given by name with --arg, or all together as JSON with --data. What reads as JSON is that; all else is a text. -n is
short for --arg namespace=.`,
		Example: `  svcctl mcp call projects_list
  svcctl mcp call documents_list -n blog --arg collection=articles --arg 'filter={"status": "published"}' --arg limit=5
  svcctl mcp call document_create -d '{"namespace": "blog", "collection": "articles", "data": {"title": "Hello"}, "dryRun": true}'`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			arguments, err := arguments(st, data, args)
			if err != nil {
				return err
			}
			c, err := st.Client()
			if err != nil {
				return err
			}
			return call(cmd.Context(), st, c, given[0], arguments)
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return st.Offer(cmd, func(ctx context.Context, c *client.Client) []string {
			probe, err := c.ProbeMCP(ctx)
			if err != nil {
				return nil
			}
			var names []string
			for _, tool := range probe.Tools {
				names = append(names, tool.Name)
			}
			return names
		})
	}
	data.Register(cmd)
	cmd.Flags().StringArrayVar(&args, "arg", nil, "an argument, as name=value; repeat it for more")
	return cmd
}

// arguments are those of --data, with those of --arg over them.
func arguments(st *command.State, data command.Input, args []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if namespace := st.GivenNamespace(); namespace != "" {
		args = slices.Insert(slices.Clone(args), 0, "namespace="+namespace)
	}
	if data.Given() {
		raw, err := data.Read(st)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return nil, command.Usagef("the arguments must be a JSON object: %v", err)
		}
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, command.Usagef("--arg %q: want name=value", arg)
		}
		if out[name] = json.RawMessage(value); !json.Valid(out[name]) || isID(value) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, command.Usagef("--arg %s: %v", name, err)
			}
			out[name] = text
		}
	}
	return out, nil
}

// isID says that a text is an id of 24 hex digits, of which some read as a number.
func isID(text string) bool {
	return len(text) == 24 && strings.Trim(text, "0123456789abcdefABCDEF") == ""
}

func call(ctx context.Context, st *command.State, c *client.Client, tool string, arguments map[string]json.RawMessage) error {
	message, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments},
	})
	if err != nil {
		return err
	}
	raw, err := c.SendMCP(ctx, message)
	if err != nil {
		return err
	}
	var answer struct {
		Error  *rpcError `json:"error"`
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Error == nil && len(answer.Result.Content) == 0 {
		return fmt.Errorf("the answer is none of this protocol: %.200s", raw)
	}
	if answer.Error != nil {
		return answer.Error.asError(st)
	}
	var text bytes.Buffer
	for _, content := range answer.Result.Content {
		text.WriteString(content.Text)
	}
	p := st.Printer()
	if p.Format != output.FormatYAML {
		p.Format = output.FormatJSON
	}
	return p.Print(output.Result{Value: json.RawMessage(text.Bytes())})
}

// rpcError is a refusal in the words of JSON-RPC.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Status int    `json:"status"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	} `json:"data"`
}

// asError is the refusal as this command ends with it.
func (e *rpcError) asError(st *command.State) error {
	out := &command.Error{Exit: command.ExitFailed, Code: e.Data.Code, Message: e.Message, Hint: e.Data.Detail}
	if out.Code == "" {
		out.Code = fmt.Sprintf("mcp_%d", e.Code)
	}
	if strings.HasSuffix(out.Message, out.Hint) {
		out.Hint = ""
	}
	switch {
	case e.Code == -32601 && e.Message == "unknown tool":
		out.Exit, out.Hint = command.ExitUsage, "svcctl mcp tools lists them"
	case e.Code == -32602:
		out.Exit = command.ExitUsage
	case e.Code == -32003 || e.Data.Status == 403:
		out.Exit = command.ExitDenied
	case e.Data.Status == 404:
		out.Exit = command.ExitNotFound
	case e.Data.Status == 409 || e.Data.Status == 412:
		out.Exit = command.ExitConflict
	}
	return out
}
