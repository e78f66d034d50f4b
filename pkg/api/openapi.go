package api

// ParamFormat says in what form an OpenAPI document is wanted: FormatJSON or FormatYAML.
const (
	ParamFormat = "format"

	FormatJSON = "json"
	FormatYAML = "yaml"
)
