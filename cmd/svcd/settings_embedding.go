package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/svcctl/svc/pkg/embedding"
	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// embedding reads the settings of what makes vectors of texts.
func (r *reader) embedding() embedding.Config {
	before := len(r.errs)
	c := embedding.Config{
		Providers:              objects[embedding.ProviderConfig](r, "embedding.providers"),
		Groups:                 objects[embedding.GroupConfig](r, "embedding.groups"),
		GoldenPath:             r.text("embedding.goldenPath"),
		CooldownAfterUnhealthy: r.duration("embedding.cooldownAfterUnhealthy"),
		CheckInterval:          r.durationOrNone("embedding.checkInterval"),
	}
	if len(r.errs) > before { // what is told of them below would be of what could not be read
		return c
	}
	for i := range c.Providers {
		p := &c.Providers[i]
		for _, member := range []struct {
			key   string
			value *string
		}{{"model", &p.Model}, {"modelPath", &p.ModelPath}, {"baseURL", &p.BaseURL}, {"apiKey", &p.APIKey}} {
			text, err := r.substitute(*member.value)
			if err != nil {
				r.fail("embedding.providers", "%s, %s: %v", place(i, p.Name), member.key, err)
			}
			*member.value = text
		}
	}
	if err := c.Check(); err != nil {
		r.errs = append(r.errs, fmt.Errorf("setting %s", errs.From(err).Message))
	}
	return c
}

// objects reads a list of objects. A key that an object can't have is an error with the nearest one.
func objects[T any](r *reader, key string) []T {
	text := r.text(key)
	if text == "" {
		return nil
	}
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil { // its text may hold secrets
		r.fail(key, `is no list of objects: write it as a list in the settings file, or as JSON, [{"name": "…"}, …]`)
		return nil
	}
	var known []string
	for f := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
	}
	out := make([]T, len(raw))
	for i, object := range raw {
		var name string
		_ = json.Unmarshal(object["name"], &name) // what is wrong with it comes below
		unknown := false
		for _, member := range slices.Sorted(maps.Keys(object)) {
			if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, member) }) {
				continue
			}
			unknown = true
			hint := "it can have " + strings.Join(known, ", ")
			if nearest := schema.Nearest(member, known); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			r.fail(key, "%s: unknown key %s; %s", place(i, name), member, hint)
		}
		if unknown {
			continue
		}
		whole, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(whole, &out[i])
		}
		if err != nil {
			r.fail(key, "%s: %s", place(i, name), strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	return out
}

// place names an object of a list.
func place(i int, name string) string {
	if name == "" {
		return fmt.Sprintf("entry %d", i+1)
	}
	return name
}

var reference = regexp.MustCompile(`\$?\$\{[^}]*\}?`)

// substitute replaces ${env:NAME} and ${file:PATH}, as in the configs of projects; $${ stands for ${. What it reads is
// kept from those configs.
func (r *reader) substitute(text string) (string, error) {
	var problem error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		value, err := r.lookUp(strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}"))
		problem = errors.Join(problem, err)
		return value
	})
	if problem != nil {
		return "", problem
	}
	return out, nil
}

func (r *reader) lookUp(ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		value := os.Getenv(name)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		r.secretEnv = append(r.secretEnv, name)
		return value, nil
	case "file":
		data, err := os.ReadFile(name) //nolint:gosec // whoever sets the service up names it
		if err != nil {
			return "", err
		}
		r.secretFiles = append(r.secretFiles, name)
		value := strings.TrimSpace(string(data))
		if value == "" {
			return "", fmt.Errorf("%s is empty", name)
		}
		return value, nil
	}
	return "", errors.New("only ${env:NAME} and ${file:PATH} are replaced; write $${ for the text ${")
}
