package project

import (
	"strconv"

	"github.com/svcctl/svc/pkg/errs"
	"github.com/svcctl/svc/pkg/schema"
)

// ConfigError refuses a config, with everything that is wrong in it.
type ConfigError struct{ Problems schema.Problems }

// Error gives the first problem, with its place, and how many more there are.
func (e *ConfigError) Error() string {
	first, more := "", -1
	for _, p := range e.Problems {
		if p.Warning {
			continue
		}
		if more++; more == 0 {
			first = p.String()
		}
	}
	text := "the config is not valid: " + first
	if more > 0 {
		text += " (and " + strconv.Itoa(more) + " more)"
	}
	return text
}

// Unwrap gives the refusal for the doors, which map its kind.
func (e *ConfigError) Unwrap() error { return errs.New(errs.Limit, "invalid_config", "%s", e.Error()) }
