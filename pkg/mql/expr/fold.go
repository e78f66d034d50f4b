package expr

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/errs"
)

// folder computes what is constant in a tree, as a MongoDB server does before it looks at any document: so the errors of
// constants come up even if there is none.
type folder struct{ env Env }

func isConstant(n node) bool {
	_, ok := n.(*constant)
	return ok
}

func (f *folder) fold(n node) (node, error) {
	if own, ok := n.(folding); ok {
		return own.fold(f)
	}
	all, err := f.operands(n)
	if err != nil || !all {
		return n, err
	}
	return f.compute(n)
}

// operands folds the operands of a node and says whether all are constant then.
func (f *folder) operands(n node) (all bool, err error) {
	all = true
	err = n.each(func(p *node) error {
		folded, err := f.fold(*p)
		*p = folded
		all = all && isConstant(folded)
		return err
	})
	return all, err
}

// foldedMemory is what may be computed ahead: nothing ends that.
const foldedMemory = 1 << 20

// compute makes a constant of a node, unless that takes much.
func (f *folder) compute(n node) (node, error) {
	f.env.Memory = foldedMemory
	v, err := n.eval(&f.env)
	if e := errs.From(err); err != nil && e != nil && e.Code == errTooLarge { // it is left for when somebody waits for it, and ends it
		f.env.Forget()
		return n, nil
	}
	if err != nil {
		return n, err
	}
	v.Value = bytes.Clone(v.Value)
	if v.Type != 0 && v.Value == nil {
		v.Value = []byte{}
	}
	f.env.Forget()
	return &constant{v: v}, nil
}

func constantOf(n node) bson.RawValue {
	if c, ok := n.(*constant); ok {
		return c.v
	}
	return missing
}
