package script_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/script"
)

//go:embed testdata/javascript.txt
var javascript string

// TestBuiltinsAreThoseOfJavaScript holds the built-ins, which are guarded here, to what the language says: each line of the
// file is an expression and, behind //=>, its value as JSON, or the class of the error that it throws.
func TestBuiltinsAreThoseOfJavaScript(t *testing.T) {
	t.Parallel()
	const show = `module.exports = () => {
  try {
    const v = (%s)
    if (v instanceof RegExp) return String(v)
    return ArrayBuffer.isView(v) ? 'bytes ' + [...v] : String(JSON.stringify(v))
  } catch (e) { return 'throws ' + e.name }
}`
	e := engine(t)
	for line := range strings.Lines(javascript) {
		expression, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " //=> ")
		if !ok {
			t.Fatalf("no value: %s", line)
		}
		p, problems := script.Compile("hook.js", files{"hook.js": fmt.Sprintf(show, expression)}.read)
		if len(problems) > 0 {
			t.Errorf("%s: %v", expression, problems)
			continue
		}
		result, err := e.Run(t.Context(), script.Call{Program: p})
		if err != nil || result.Value != want {
			t.Errorf("%s\n got  %v %v\n want %v", expression, result.Value, err, want)
		}
	}
}

// What docs/hooks.md says of differences from Node is so.
func TestDifferencesFromNode(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for expression, want := range map[string]string{
		"[typeof Intl, typeof URL, typeof TextEncoder, typeof structuredClone, typeof btoa, typeof WeakRef, typeof eval].join('')": strings.Repeat("undefined", 7),
		"String(new RegExp('/'))":    `/\u002f/`,
		"[].toString.call('x')":      "x",
		"2n ** 3n":                   "TypeError: ** is for numbers: multiply a BigInt",
		"(1.5).toLocaleString('de')": "RangeError",
	} {
		p, problems := script.CompileExpr("eval", expression)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		result, err := e.Run(t.Context(), script.Call{Program: p, Each: [][]script.Member{{}}})
		if got := fmt.Sprint(result.Values, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}
