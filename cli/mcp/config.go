package mcp

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
	"github.com/svcctl/svc/pkg/api"
)

// placeholder stands where a personal access token belongs: one that was given is not shown.
const placeholder = "svc_pat_…"

func newConfig(st *command.State) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print what connects a program for agents to the service",
		Long: `Print what connects a program for agents to the service: a command for Claude Code, the mcp.json of Cursor, of VS Code, or of programs
that start a server of their own (stdio). Put a personal access token in the place of ` + placeholder + `; svcctl token create makes one.

With --token-file, a server of their own reads the token from there, and there is nothing to put in.`,
		Example: `  svcctl mcp config
  svcctl mcp config --client cursor > .cursor/mcp.json
  svcctl mcp config --client stdio --token-file agent.token -s https://content.example.com`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			server, err := st.Server()
			if err != nil {
				return err
			}
			show, known := clients()[of]
			if !known {
				return command.Usagef("--client %s: want claude, cursor, vscode or stdio", of)
			}
			file := st.Flags.TokenFile
			if file != "" {
				if file, err = filepath.Abs(file); err != nil { // the program starts it elsewhere
					return err
				}
			}
			text, err := show(strings.TrimRight(server.Server, "/"), file)
			if err != nil {
				return err
			}
			switch {
			case !strings.Contains(text, placeholder):
			case file != "":
				st.Notef("put the token of %s in the place of %s", file, placeholder)
			default:
				st.Notef("put a personal access token in the place of %s: svcctl token create agent --scope project.read,namespace.<project> makes one, for a user who is logged in", placeholder)
			}
			if st.Printer().Format == output.FormatJSON && of == "claude" {
				return st.Printer().Print(output.Result{Value: map[string]string{"command": text}})
			}
			_, err = st.Stdout().Write([]byte(text + "\n"))
			return err
		},
	}
	cmd.Flags().StringVar(&of, "client", "claude", "claude, cursor, vscode or stdio")
	return cmd
}

// clients are those that have a way of their own to be told, by name. Only one that starts svcctl can be told of a file with the token; "" is none.
func clients() map[string]func(server, tokenFile string) (string, error) {
	type object = map[string]any
	url := func(server string) string { return server + api.Prefix + api.RouteMCP }
	headers := map[string]string{api.HeaderAuthToken: placeholder}
	return map[string]func(server, tokenFile string) (string, error){
		"claude": func(server, _ string) (string, error) {
			return "claude mcp add --transport http svc " + url(server) + ` --header "` + api.HeaderAuthToken + ": " + placeholder + `"`, nil
		},
		"cursor": func(server, _ string) (string, error) {
			return indented(object{"mcpServers": object{"svc": object{"url": url(server), "headers": headers}}})
		},
		"vscode": func(server, _ string) (string, error) {
			return indented(object{"servers": object{"svc": object{"type": "http", "url": url(server), "headers": headers}}})
		},
		"stdio": func(server, tokenFile string) (string, error) {
			env := object{"SVCCTL_SERVER": server, "SVCCTL_TOKEN": placeholder}
			if tokenFile != "" {
				env = object{"SVCCTL_SERVER": server, "SVCCTL_TOKEN_FILE": tokenFile}
			}
			return indented(object{"mcpServers": object{"svc": object{"command": "svcctl", "args": []string{"mcp", "serve"}, "env": env}}})
		},
	}
}

func indented(v any) (string, error) {
	out, err := json.MarshalIndent(v, "", "  ")
	return string(out), err
}
