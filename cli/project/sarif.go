package project

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/svcctl/svc/pkg/schema"
)

// formatSARIF prints a log in the Static Analysis Results Interchange Format, which code scanning takes.
const formatSARIF = "sarif"

// What is written of a SARIF log, in its own words.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn"`
	}
)

// sarif makes the log of validations. The codes of problems are its rules.
func sarif(version string, results []validation) sarifLog {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{Name: "svcctl", Version: version, Rules: []sarifRule{}}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	rules := map[string]bool{}
	for _, v := range results {
		for _, p := range v.Problems {
			if !rules[p.Code] {
				rules[p.Code] = true
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{p.Code})
			}
			run.Results = append(run.Results, sarifProblem(p))
		}
	}
	slices.SortFunc(run.Tool.Driver.Rules, func(a, b sarifRule) int { return cmp.Compare(a.ID, b.ID) })
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}

func sarifProblem(p schema.Problem) sarifResult {
	level, text := "error", p.Message
	if p.Warning {
		level = "warning"
	}
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	at := sarifPhysical{sarifArtifact{(&url.URL{Path: filepath.ToSlash(p.File)}).String()}, sarifRegion{max(p.Line, 1), max(p.Column, 1)}}
	return sarifResult{p.Code, level, sarifText{text}, []sarifLocation{{at}}}
}
