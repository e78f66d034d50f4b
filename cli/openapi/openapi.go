// Package openapi is svcctl openapi: the OpenAPI document of a project, as the caller may see it. The service makes it; here it is only shown, and checked.
package openapi

import (
	"context"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/spf13/cobra"

	"github.com/svcctl/svc/cli/command"
	"github.com/svcctl/svc/cli/output"
)

// NewCmd makes the command.
func NewCmd(st *command.State) *cobra.Command {
	var lang string
	var validate bool
	cmd := &cobra.Command{
		Use:   "openapi [NAMESPACE]",
		Short: "Print the OpenAPI 3.1 document of a project, for generated clients",
		Long: `Print the OpenAPI 3.1 document of a project: the collections, files and actions that you may use, with their types. As whom you ask
decides what is in it: without a credential, it is what everybody may.

With --validate it is checked against the OpenAPI Specification instead, and nothing is printed; exit code 1: it is not valid.`,
		Example: `  svcctl openapi blog > blog.openapi.json
  svcctl openapi blog -o yaml --lang de
  svcctl openapi blog --validate`,
		Args:              command.PlaceArgs(0),
		ValidArgsFunction: st.CompletePlace(false),
		RunE: st.AtPlace(0, func(ctx context.Context, namespace string, _ []string) error {
			return run(ctx, st, namespace, lang, validate)
		}),
	}
	cmd.Flags().StringVar(&lang, "lang", "", "the language of its texts, such as de")
	cmd.Flags().BoolVar(&validate, "validate", false, "check it, in place of printing it")
	return cmd
}

func run(ctx context.Context, st *command.State, namespace, lang string, validate bool) error {
	c, err := st.Client()
	if err != nil {
		return err
	}
	raw, err := c.OpenAPI(ctx, namespace, lang)
	if err != nil {
		return err
	}
	if !validate {
		p := st.Printer()
		if p.Format != output.FormatYAML {
			p.Format = output.FormatJSON
		}
		return p.Print(output.Result{Value: raw})
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err == nil {
		err = doc.Validate(ctx, openapi3.EnableExamplesValidation())
	}
	if err != nil {
		return &command.Error{Exit: command.ExitFailed, Code: "openapi_invalid", Message: err.Error(),
			Hint: "what a config says of operations (meta.openapi) goes into the document as it is: look there first"}
	}
	st.Notef("%s: valid, %d paths, %d schemas", namespace, doc.Paths.Len(), len(doc.Components.Schemas))
	return nil
}
