package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/schema"
)

// flagMessage is what is wrong with a flag, without the words of the function that has read its value.
func flagMessage(err error) string {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err.Error()
	}
	want := command.Wanted(bad.GetFlag())
	if want == "" {
		return err.Error()
	}
	return fmt.Sprintf("--%s %s: %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// flagHint says what to write in place of a flag that a command does not have: the nearest of its own, or what does the same here as a flag of
// kubectl or gh.
func flagHint(cmd *cobra.Command, err error) string {
	list := cmd.CommandPath() + " --help lists the flags"
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return list
	}
	name := unknown.GetSpecifiedName()
	other := otherFlags()[name]
	if other.own != "" && cmd.Flags().Lookup(other.own) != nil {
		return other.hint
	}
	if len(name) > 1 { // a letter is near to every other
		var all []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
		if near := schema.Nearest(name, all); near != "" {
			return "did you mean --" + near + "? " + list
		}
	}
	return list
}

// otherFlag is what stands for a flag of another program.
type otherFlag struct {
	own  string // the flag that a command has to have for it
	hint string
}

// otherFlags are flags that users of kubectl, gh and restic try, and names that REST has.
func otherFlags() map[string]otherFlag {
	retention := otherFlag{"dry-run", "what is kept is the retention of each profile in the project's config: svcctl explain project.snapshots.retention"}
	filter := otherFlag{"filter", `--filter selects records, as in --filter '{"status": "published"}'`}
	password := otherFlag{"password-stdin", "--password-stdin and --password-file take a password: everybody on this machine can read what is on a command line"}
	username := otherFlag{"password-stdin", "the username is the argument, as in svcctl login ann"}
	return map[string]otherFlag{
		"password":       password,
		"p":              password,
		"username":       username,
		"user":           username,
		"u":              username,
		"json":           {"output", "-o json gives everything; --jq picks from it, as in --jq '.items[].id'"},
		"yaml":           {"output", "-o yaml does"},
		"format":         {"output", "-o json, -o yaml and the like choose the format"},
		"l":              filter,
		"selector":       filter,
		"field-selector": filter,
		"where":          filter,
		"query":          filter,
		"fields":         {"select", "--select chooses the fields, as in --select title,seo.title"},
		"order-by":       {"sort", "--sort orders records, as in --sort -publishedAt,title"},
		"order":          {"sort", "--sort orders records, as in --sort -publishedAt,title"},
		"wait":           {"no-wait", "it waits by itself; --no-wait does not"},
		"keep-last":      retention,
		"keep-daily":     retention,
		"keep-weekly":    retention,
		"keep-monthly":   retention,
		"keep-within":    retention,
		"read-data":      {"sample", "all files are read by itself; --sample reads a part of them"},
		"full":           {"service", "--service shows the full texts of errors"},
		"qname":          {"output", "svcctl search query looks for words, and its --search says by which search"},
		"force":          {"yes", "--yes goes without the question"},
	}
}
