package project_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/project"
)

// TestS46ParseErrors: a file that is no config is not shown to whoever has it read as one.
func TestS46ParseErrors(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	for name, content := range map[string]string{
		"environment":  "PASSWORD=" + secret + "\nTOKEN=" + secret + "\n",
		"users":        "root:x:0:0:" + secret + ":/root:/bin/sh\ndaemon:x:1:1:" + secret + "::/\n",
		"key":          "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n",
		"open bracket": "[" + secret,
		"open quote":   "\"" + secret,
		"tab":          "a: b\n\t" + secret + ": 1\n",
		"anchor":       "*" + secret,
		"tag":          "!!" + secret + " [",
		"indentation":  "a:\n  b: 1\n c: " + secret + "\n  d: [\n",
		"alias":        "a: &a [*" + secret + "]\n",
		"list":         "- " + secret + "\n- [" + secret + "\n",
		"words":        secret + "\n",
		"binary":       "\x00\x01" + secret,
		"no utf-8":     "a: \xff" + secret + "\n",
		"documents":    "---\n" + secret + "\n---\n" + secret + ": [\n",
	} {
		for _, ending := range []string{"yaml", "json"} {
			t.Run(name+" as "+ending, func(t *testing.T) {
				t.Parallel()
				dir := write(t, "-- project.yaml --\nnamespace: blog\ncollections: [c."+ending+"]\n-- c."+ending+" --\n"+content)
				p, problems := project.Load(dir, "project.yaml", nil)
				if p != nil || len(problems) == 0 {
					t.Fatalf("it loads: %v", problems)
				}
				if text := fmt.Sprint(problems); strings.Contains(text, secret) {
					t.Error(text)
				}
			})
		}
	}
}
