package expr

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/document"
)

// each is $map and $filter: in is computed for each element of input, which is a variable in it.
type each struct {
	filter    bool
	slot      int
	input, in node
	limit     node // of $filter; nil: none
}

// eachCodes are a server's codes: no object, an unknown part, no input, no in, no list.
type eachCodes [5]document.ServerCode

func parseMap(c *compiler, name string, v bson.RawValue) (node, error) {
	n := &each{}
	err := n.parse(c, name, "in", v, eachCodes{16878, 16879, 16880, 16882})
	return n, err
}

func parseFilter(c *compiler, name string, v bson.RawValue) (node, error) {
	n := &each{filter: true}
	err := n.parse(c, name, "cond", v, eachCodes{28646, 28647, 28648, 28650})
	return n, err
}

func (n *each) parse(c *compiler, name, part string, v bson.RawValue, codes eachCodes) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return bad(codes[0], "%s needs an object, not %s", name, typeName(v.Type))
	}
	var input, in, as, limit bson.RawValue
	for it := items(v); it.Next(); {
		switch key := string(it.Key()); {
		case key == "input":
			input = it.Value()
		case key == "as":
			as = it.Value()
		case key == part:
			in = it.Value()
		case key == "limit" && n.filter:
			limit = it.Value()
		default:
			return bad(codes[1], "%s does not know %s", name, document.Readable(key))
		}
	}
	switch {
	case input.Type == 0:
		return bad(codes[2], "%s needs input", name)
	case in.Type == 0:
		return bad(codes[3], "%s needs %s", name, part)
	}
	var err error
	if n.input, err = c.expression(input); err != nil {
		return err
	}
	variable, err := variableName(as)
	if err != nil {
		return err
	}
	if err := c.with([]string{variable}, func(slot int) (err error) {
		n.slot = slot
		n.in, err = c.expression(in)
		return err
	}); err != nil || limit.Type == 0 {
		return err
	}
	n.limit, err = c.expression(limit)
	return err
}

// variableName reads how the variable of each element is called.
func variableName(as bson.RawValue) (string, error) {
	if as.Type == 0 {
		return "this", nil
	}
	name := ""
	if as.Type == bson.TypeString {
		name = string(bytesOf(as))
	}
	return name, CheckVariable(name)
}

func (n *each) eval(env *Env) (bson.RawValue, error) {
	list, err := n.input.eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(list.Type):
		return null, nil
	case list.Type != bson.TypeArray && n.filter:
		return missing, fail(28651, "$filter takes a list, not %s", typeName(list.Type))
	case list.Type != bson.TypeArray:
		return missing, fail(16883, "$map takes a list, not %s", typeName(list.Type))
	}
	limit := -1
	if n.limit != nil && count(list) > 0 {
		if limit, err = n.limitOf(env); err != nil {
			return missing, err
		}
	}
	mark := len(env.stack)
	for it := items(list); it.Next(); {
		env.bind(n.slot, it.Value())
		v, err := n.in.eval(env)
		if err == nil {
			err = env.step()
		}
		if err != nil {
			return missing, err
		}
		if !n.filter {
			env.push(v)
		} else if Truth(v) {
			env.push(it.Value())
			if limit--; limit == 0 {
				break
			}
		}
	}
	return env.popped(mark)
}

func (n *each) limitOf(env *Env) (int, error) {
	v, err := n.limit.eval(env)
	if err != nil || isNull(v.Type) {
		return -1, err
	}
	if !isIntegral(v) {
		return 0, fail(327391, "$filter needs a whole number of 32 bits as limit")
	}
	limit, err := toLong(v)
	if err == nil && limit <= 0 {
		err = fail(327392, "$filter needs a limit above 0")
	}
	return int(limit), err
}

func (n *each) each(fn func(*node) error) error {
	return operands3(&n.input, &n.in, &n.limit, fn)
}

func operands3(a, b, c *node, fn func(*node) error) error {
	for _, p := range []*node{a, b, c} {
		if *p == nil {
			continue
		}
		if err := fn(p); err != nil {
			return err
		}
	}
	return nil
}

// fold leaves the loop to be run, as servers do.
func (n *each) fold(f *folder) (node, error) {
	_, err := f.operands(n)
	return n, err
}

// reduce is $reduce.
type reduce struct {
	slot               int // of $$this; that of $$value is the next one
	input, initial, in node
}

func parseReduce(c *compiler, name string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, bad(40075, "%s needs an object, not %s", name, typeName(v.Type))
	}
	n := &reduce{}
	for it := items(v); it.Next(); {
		var err error
		switch string(it.Key()) {
		case "input":
			n.input, err = c.expression(it.Value())
		case "initialValue":
			n.initial, err = c.expression(it.Value())
		case "in":
			err = c.with([]string{"this", "value"}, func(slot int) (err error) {
				n.slot = slot
				n.in, err = c.expression(it.Value())
				return err
			})
		default:
			err = bad(40076, "%s does not know %s", name, document.Readable(it.Key()))
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case n.input == nil:
		return nil, bad(40077, "%s needs input", name)
	case n.initial == nil:
		return nil, bad(40078, "%s needs initialValue", name)
	case n.in == nil:
		return nil, bad(40079, "%s needs in", name)
	}
	return n, nil
}

func (n *reduce) eval(env *Env) (bson.RawValue, error) {
	const tidyAbove = 1 << 20
	list, err := n.input.eval(env)
	switch {
	case err != nil:
		return missing, err
	case isNull(list.Type):
		return null, nil
	case list.Type != bson.TypeArray:
		return missing, fail(40080, "$reduce takes a list, not %s", typeName(list.Type))
	}
	v, err := n.initial.eval(env)
	if err != nil {
		return missing, err
	}
	start := len(env.arena)
	for it := items(list); it.Next(); {
		env.bind(n.slot, it.Value())
		env.bind(n.slot+1, v)
		if v, err = n.in.eval(env); err == nil {
			err = env.step()
		}
		if err != nil {
			return missing, err
		}
		if len(env.arena)-start > tidyAbove { // what came before this value is not needed any more
			v.Value = bytes.Clone(v.Value)
			env.arena = env.arena[:start]
		}
	}
	return v, nil
}

func (n *reduce) each(fn func(*node) error) error {
	return operands3(&n.input, &n.initial, &n.in, fn)
}

func (n *reduce) fold(f *folder) (node, error) {
	_, err := f.operands(n)
	return n, err
}
