package trial

import (
	"context"
	"testing"

	"github.com/svcctl/svc/pkg/script"
)

// seen is an engine that takes down what it is to run.
type seen []*script.Program

func (s *seen) Run(_ context.Context, c script.Call) (script.Result, error) {
	*s = append(*s, c.Program)
	return script.Result{}, nil
}

// What is known of a script's runs, such as that it ran away too often, is of one case.
func TestCasesShareNoProgram(t *testing.T) {
	t.Parallel()
	p, problems := script.Compile("a.js", func(string) ([]byte, error) { return []byte("module.exports = () => {}"), nil })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var ran seen
	one, other := newObserver(), newObserver()
	for _, o := range []*observer{one, one, other} {
		o.engine = &ran
		if _, err := o.Run(t.Context(), script.Call{Program: p}); err != nil {
			t.Fatal(err)
		}
	}
	if ran[0] != ran[1] || ran[0] == ran[2] || ran[0] == p {
		t.Errorf("%p is run as %p and %p in a case, as %p in another", p, ran[0], ran[1], ran[2])
	}
}
