package records_test

import (
	"strings"
	"testing"

	"github.com/svcctl/svc/pkg/store/teststore"
)

// What a hook makes of a record can be wrong in ways that nothing the caller could send would mend: that is the script's
// failing, and the log names script and field. What a rule refuses is the caller's to read, and noted once.
func TestHooksAnswerForTheirOwnMistakes(t *testing.T) {
	t.Parallel()
	const strict = "  strictFields: true"
	set := func(what string) string { return "module.exports = (ctx) => { " + what + " }" }
	for name, tt := range map[string]struct {
		stages map[string]string
		do     func(w *world, id string) string
		want   string // what the caller gets begins so
		log    string // a line of the log has this; "": there is none about the hook
	}{
		"an undeclared field": {
			map[string]string{"post.bind": set("ctx.data.words = 3")},
			creates(`{"title": "A"}`),
			"script_failed: a script of the project failed", "at=post_bind.js reason=exception error=\"what the hook gives can't be stored: words: unknown field\"",
		},
		"an undeclared field of an update": {
			map[string]string{"put.bind": set("ctx.data.seo = {words: 3}")},
			updates(`{"title": "A"}`),
			"script_failed", "at=put_bind.js reason=exception error=\"what the hook gives can't be stored: seo.words: unknown field\"",
		},
		"an undeclared field within a write": {
			map[string]string{"put.update": set("ctx.doc.words = 3")},
			updates(`{"title": "A"}`),
			"script_failed", "at=put_update.js reason=exception error=\"what the hook gives can't be stored: words: unknown field\"",
		},
		"a value of another type": {
			map[string]string{"post.bind": set("ctx.data.n = ctx.data.title")},
			creates(`{"title": "A"}`),
			"script_failed", "n: must be a number, is a string",
		},
		"two mistakes": {
			map[string]string{"post.bind": set("ctx.data.a = 1; ctx.data.b = 1")},
			creates(`{"title": "A"}`),
			"script_failed", "a: unknown field; b: unknown field",
		},
		"what the caller sent stays theirs": {
			map[string]string{"post.bind": set("ctx.data.slug = 'a'")},
			creates(`{"title": "A", "n": "x"}`),
			"validation_failed: n: must be a number, is a string", "",
		},
		"what the caller sent, which the hook has looked at": {
			map[string]string{"put.bind": set("ctx.data.n = '!' + ctx.data.n")},
			updates(`{"n": "x"}`),
			"validation_failed: n: must be a number, is a string", "",
		},
		"a mistake of each": {
			map[string]string{"post.bind": set("ctx.data.words = 3")},
			creates(`{"title": "A", "color": "red"}`),
			"validation_failed: color: unknown field", "",
		},
		"a rule": {
			map[string]string{"post.bind": set("ctx.data.title = ctx.data.title.repeat(41)")},
			creates(`{"title": "A"}`),
			"validation_failed: title: must have at most 40 characters", "stage=post.bind script=post_bind.js field=title rule=max problem=\"must have at most 40 characters, has 41\"",
		},
		"a rule within a write": {
			map[string]string{"post.create": set("ctx.doc.title = 'x'.repeat(41)")},
			creates(`{"title": "A"}`),
			"validation_failed: title: must have at most 40 characters", "stage=post.create script=post_create.js field=title rule=max",
		},
		"a wrong key of a problem": {
			map[string]string{"post.validate": "module.exports = () => ({pth: 'title', message: 'is taken'})"},
			creates(`{"title": "A"}`),
			"script_failed", "at=post_validate.js reason=exception error=\"a problem has path, message and rule, but no pth\"",
		},
		"a message that is none": {
			map[string]string{"post.validate": "module.exports = () => [{path: 'title', message: 5}]"},
			creates(`{"title": "A"}`),
			"script_failed", "error=\"a problem's message must be a string\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := hooked(t, teststore.Memory(t), strict, tt.stages)
			id := w.put(`{"title": "Old"}`)
			for range 2 {
				if got := tt.do(w, id); !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			}
			log := w.log.String()
			times := 2
			if strings.HasPrefix(tt.want, "validation_failed") {
				times = 1 // whatever callers send
			}
			switch {
			case tt.log == "" && log != "":
				t.Errorf("the log has %s", log)
			case tt.log != "" && (strings.Count(log, tt.log) != times || strings.Count(log, "\n") != times):
				t.Errorf("the log has not %d times %s alone:\n%s", times, tt.log, log)
			}
		})
	}
}
