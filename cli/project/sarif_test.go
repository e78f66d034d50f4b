package project

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/svcctl/svc/pkg/schema"
)

// sarifRequired is what the JSON Schema of SARIF 2.1.0 requires of what is written here: members that have to be there, and their values.
const sarifRequired = `{
	"type": "object", "required": ["version", "runs"],
	"properties": {
		"$schema": {"type": "string", "format": "uri"},
		"version": {"enum": ["2.1.0"]},
		"runs": {"type": "array", "items": {
			"type": "object", "required": ["tool"],
			"properties": {
				"columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
				"tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
					"type": "object", "required": ["name"],
					"properties": {
						"name": {"type": "string", "minLength": 1}, "version": {"type": "string"},
						"rules": {"type": "array", "uniqueItems": true, "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "minLength": 1}}}}
					}
				}}},
				"results": {"type": "array", "items": {
					"type": "object", "required": ["message"],
					"properties": {
						"ruleId": {"type": "string"}, "level": {"enum": ["none", "note", "warning", "error"]},
						"message": {"type": "object", "anyOf": [{"required": ["text"]}, {"required": ["id"]}], "properties": {"text": {"type": "string", "minLength": 1}}},
						"locations": {"type": "array", "items": {"type": "object", "properties": {"physicalLocation": {
							"type": "object", "anyOf": [{"required": ["address"]}, {"required": ["artifactLocation"]}],
							"properties": {
								"artifactLocation": {"type": "object", "properties": {"uri": {"type": "string", "format": "uri-reference"}}},
								"region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}}}
							}
						}}}}
					}
				}}
			}
		}}
	}
}`

// Code scanning takes what is written: also of a problem of a whole file, and of a file whose name has to be escaped in a URI.
func TestSARIF(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(sarifRequired))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	want, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, results := range map[string][]validation{
		"nothing": nil,
		"valid":   {{Path: "a", Valid: true}},
		"problems": {{Problems: schema.Problems{
			{Position: schema.Position{File: "a b/100%.yaml", Line: 3, Column: 5}, Code: "unknown_key", Path: "fields[0]", Message: "m", Warning: true},
			{Position: schema.Position{File: "project.yaml"}, Code: "unknown_key", Message: "m"},
		}}},
	} {
		raw, err := json.Marshal(sarif("v1", results))
		if err != nil {
			t.Fatal(err)
		}
		got, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if err := want.Validate(got); err != nil {
			t.Errorf("%s: %v\n%s", name, err, raw)
		}
	}
}
