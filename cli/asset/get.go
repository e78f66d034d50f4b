package asset

import (
	"context"
	"path"

	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/pkg/client"
)

type getOptions struct {
	st              *command.State
	Namespace       string
	Asset, FilePath string
	To              command.Destination
}

func newGet(st *command.State, runF func(context.Context, *getOptions) error) *cobra.Command {
	opts := &getOptions{st: st}
	cmd := &cobra.Command{
		Use:   "get [NAMESPACE] ASSET PATH",
		Short: "Get a file of an asset",
		Long: `Get a file of an asset, to stdout or with -f to a file or into a folder. PATH is below the asset's folder, with slashes.

A connection that breaks off is taken up again where it was, as long as the file is still the same. A file appears only when
it is whole.`,
		Example: `  svcctl asset get blog static site.css
  svcctl asset get blog static logo.svg -f logo.svg`,
		Args:              command.PlaceArgs(2),
		ValidArgsFunction: st.CompleteAssets(),
		RunE: st.AtPlace(2, func(ctx context.Context, namespace string, rest []string) error {
			opts.Namespace, opts.Asset, opts.FilePath = namespace, rest[0], rest[1]
			if runF != nil {
				return runF(ctx, opts)
			}
			return runGet(ctx, opts)
		}),
	}
	opts.To.Register(cmd, "-")
	return cmd
}

func runGet(ctx context.Context, opts *getOptions) error {
	c, err := opts.st.Client()
	if err != nil {
		return err
	}
	return opts.st.Download(ctx, opts.To, path.Base(opts.FilePath), func(ctx context.Context) (*client.File, error) {
		return c.Asset(ctx, opts.Namespace, opts.Asset, opts.FilePath)
	})
}
