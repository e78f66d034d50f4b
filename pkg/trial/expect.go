package trial

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/operation"
	"github.com/svcctl/svc/pkg/schema"
)

// check holds what came of a step against what was expected.
func (b *bench) check(s *schema.TestStep, a *answer, expect []*schema.TestExpect) bool {
	ok := b.outbound(s)
	if !b.succeeded(s, a, expect) {
		return false
	}
	for _, e := range expect {
		ok = b.expectation(e, a) && ok
	}
	return ok
}

// outbound fails a case whose scripts have asked for what is not recorded, whatever they made of that.
func (b *bench) outbound(s *schema.TestStep) bool {
	b.answers.mu.Lock()
	defer b.answers.mu.Unlock()
	for _, what := range b.answers.unrecorded {
		b.fail(s.Path, "", "no answer is recorded to "+what+": add it to given.http")
	}
	return len(b.answers.unrecorded) == 0
}

// succeeded says whether a step did what it was to do, where nothing is said of that.
func (b *bench) succeeded(s *schema.TestStep, a *answer, expect []*schema.TestExpect) bool {
	said, saidRun := false, false
	for _, e := range expect {
		said = said || e.Status != 0 || e.Problem != ""
		saidRun = saidRun || e.Run != nil || e.Problem != ""
	}
	if a.status >= http.StatusBadRequest && !said {
		verb, target := s.Verb()
		return b.differ(s.Path, "", []difference{{"", verb + " " + target + " was refused", "a success", refusal(a)}})
	}
	if a.run == nil || saidRun {
		return true
	}
	if status := member(a.run, "status"); status != string(operation.Succeeded) {
		return b.differ(s.Path, "", []difference{{"", "the run did not succeed", "succeeded", textOf(status) + ": " + textOf(at(a.run, "error.message"))}})
	}
	return true
}

// refusal is the answer of an error in a line; of others, it is the status.
func refusal(a *answer) string {
	text := strconv.Itoa(a.status)
	doc, ok := a.body.(bson.D)
	if !ok {
		return text
	}
	code, ok := member(doc, "code").(string)
	if !ok || a.status < http.StatusBadRequest {
		return text
	}
	text += " " + code + ": " + textOf(member(doc, "detail"))
	list, _ := member(doc, "errors").(bson.A)
	for _, item := range list {
		if len(list) == 1 && strings.Contains(text, textOf(at(item, "message"))) { // the detail says it
			continue
		}
		text += fmt.Sprintf("; %s: %s", textOf(at(item, "path")), textOf(at(item, "message")))
	}
	return text
}

// part compares one thing with what is wanted of it, after variables are filled in.
func (b *bench) part(path, what string, want, got any, exactly bool) bool {
	filled, ok := b.fill(want, path)
	return ok && b.differ(path, what, compare(filled, got, exactly))
}

func (b *bench) expectation(e *schema.TestExpect, a *answer) bool {
	ok := true
	if e.Status != 0 && e.Status != a.status {
		ok = b.differ(e.Path+".status", "status", []difference{{"", "differs", strconv.Itoa(e.Status), refusal(a)}})
	}
	if e.Problem != "" {
		ok = b.problem(e, a) && ok
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		got := any(missing{})
		if values := a.header.Values(name); len(values) > 0 {
			got = strings.Join(values, ", ")
		}
		ok = b.part(e.Path+".headers."+name, "headers."+name, e.Headers[name], got, false) && ok
	}
	if e.Body != nil {
		ok = b.part(e.Path+".body", "body", e.Body, a.body, false) && ok
	}
	if e.Exactly != nil {
		ok = b.part(e.Path+".exactly", "body", e.Exactly, a.body, true) && ok
	}
	if e.Run != nil {
		ok = b.part(e.Path+".run", "run", e.Run, orMissing(a.run), false) && ok
	}
	if e.Progress != nil {
		ok = b.part(e.Path+".progress", "progress", bson.A(e.Progress), progressOf(a.run), false) && ok
	}
	return b.traces(e) && ok
}

// problem compares the code of a refusal, or of a run that failed.
func (b *bench) problem(e *schema.TestExpect, a *answer) bool {
	got, actual := at(a.body, "code"), refusal(a)
	if a.run != nil {
		got, actual = at(a.run, "error.code"), textOf(at(a.run, "error.code"))
	} else if a.status < http.StatusBadRequest {
		got = missing{}
	}
	if got == any(e.Problem) {
		return true
	}
	return b.differ(e.Path+".problem", "problem", []difference{{"", "differs", e.Problem, actual}})
}

// traces compares what a step left behind: records, hooks, logs, outbound requests.
func (b *bench) traces(e *schema.TestExpect) bool {
	ok := true
	for _, name := range slices.Sorted(maps.Keys(e.Records)) {
		ok = b.records(e.Path+".records."+name, name, e.Records[name]) && ok
	}
	b.seen.mu.Lock()
	ran, texts := slices.Clone(b.seen.step), slices.Clone(b.seen.texts)
	b.seen.mu.Unlock()
	if e.Hooks != nil && !slices.Equal(e.Hooks, ran) {
		ok = b.differ(e.Path+".hooks", "", []difference{{"", "other hooks ran", list(e.Hooks), list(ran)}})
	}
	if e.HTTP != nil {
		b.answers.mu.Lock()
		got := append(bson.A{}, b.answers.step...)
		b.answers.mu.Unlock()
		ok = b.part(e.Path+".http", "http", bson.A(e.HTTP), got, false) && ok
	}
	return b.logged(e, texts) && ok
}

// records compares the records of a collection, or their number.
func (b *bench) records(path, collection string, want any) bool {
	got, err := b.box.Records(b.ctx, collection)
	if err != nil {
		return b.fail(path, "records."+collection, public(err))
	}
	if n, ok := want.(int64); ok {
		return b.differ(path, "records."+collection, compare(n, int64(len(got)), false))
	}
	return b.part(path, "records."+collection, want, got, false)
}

// logged finds the texts that were expected, in their order.
func (b *bench) logged(e *schema.TestExpect, texts []string) bool {
	rest := texts
	for i, want := range e.Logs {
		path := fmt.Sprintf("%s.logs[%d]", e.Path, i)
		filled, ok := b.fill(want, path)
		if !ok {
			return false
		}
		found := slices.IndexFunc(rest, func(line string) bool {
			if text, ok := filled.(string); ok {
				return strings.Contains(line, text)
			}
			return len(compare(filled, line, false)) == 0
		})
		if found < 0 {
			return b.differ(path, "", []difference{{"", "no such line was logged", show(filled), list(rest)}})
		}
		rest = rest[found+1:]
	}
	return true
}

func list(items []string) string {
	out := make(bson.A, len(items))
	for i, s := range items {
		out[i] = s
	}
	return show(out)
}

func orMissing(doc bson.D) any {
	if doc == nil {
		return missing{}
	}
	return doc
}

// progressOf is the progress that a run told of.
func progressOf(run bson.D) bson.A {
	out := bson.A{}
	events, _ := member(run, "events").(bson.A)
	for _, e := range events {
		if at(e, "event") == string(operation.EventProgress) {
			out = append(out, at(e, "data"))
		}
	}
	return out
}
