package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/pkg/app"
	"github.com/svcctl/svc/pkg/embedding"
)

// newGoldenCmd makes svcd golden. It is no command of svcctl: it needs the settings, with the keys of providers, and the file is for
// a directory of the service.
func newGoldenCmd(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "golden GROUP",
		Short: "Write the golden file of an embedding group",
		Long: "Print the golden file of an embedding group, made by its first member, for embedding.goldenPath/<group>.json: what\n" +
			"every member has to give from then on. Texts come on stdin, one a line; one that begins with \"query: \" is embedded\n" +
			"as what is looked for, without these words. The golden file that there is has no say.",
		Example: "  svcd golden texts --config svc.yaml < texts.txt > golden/texts.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return &usageError{fmt.Errorf("%w: name a group of embedding.groups", err)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := readSettings(cmd.Flags(), cmd.ErrOrStderr())
			if err != nil {
				return &usageError{err}
			}
			return golden(cmd.Context(), cfg, args[0], cmd.InOrStdin(), stdout)
		},
	}
}

func golden(ctx context.Context, cfg app.Config, name string, in io.Reader, out io.Writer) (err error) {
	i := slices.IndexFunc(cfg.Embedding.Groups, func(g embedding.GroupConfig) bool { return g.Name == name })
	if i < 0 {
		return &usageError{fmt.Errorf("there is no group %s in embedding.groups", name)}
	}
	var texts, queries []string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if query, ok := strings.CutPrefix(line, "query: "); ok {
			queries = append(queries, query)
		} else if line != "" {
			texts = append(texts, line)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(texts)+len(queries) == 0 {
		return &usageError{errors.New("there is no text: give some on stdin, one a line")}
	}
	alone := cfg.Embedding.Groups[i]
	alone.Members = alone.Members[:min(1, len(alone.Members))]
	cfg.Embedding.Groups, cfg.Embedding.GoldenPath = []embedding.GroupConfig{alone}, ""
	groups, err := embedding.Open(ctx, cfg.Embedding, app.EmbeddingTypes(), embedding.Options{Log: cfg.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, groups.Close()) }()
	group, err := groups.Group(name)
	if err != nil {
		return err
	}
	file, err := group.Golden(ctx, texts, queries)
	if err != nil {
		return err
	}
	return write(out, string(file)+"\n")
}
