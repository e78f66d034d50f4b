package script

import (
	"github.com/dop251/goja"
)

// contextObject is ctx. Its members are converted when the script first touches them.
type contextObject struct {
	r       *run
	object  *goja.Object
	members []contextMember
}

type contextMember struct {
	Member
	v     goja.Value // nil: not converted yet
	added bool       // by the script
}

// newContext makes a ctx of the call's members and more.
func (r *run) newContext(more []Member) *contextObject {
	c := &contextObject{r: r, members: make([]contextMember, 0, len(r.call.Ctx)+len(more)+2)}
	for _, m := range r.call.Ctx {
		c.members = append(c.members, contextMember{Member: m})
	}
	for _, m := range more {
		c.members = append(c.members, contextMember{Member: m})
	}
	c.object = r.vm.NewDynamicObject(c)
	return c
}

func (c *contextObject) find(name string) *contextMember {
	for i := range c.members {
		if c.members[i].Name == name {
			return &c.members[i]
		}
	}
	return nil
}

// Get gives a member of ctx.
func (c *contextObject) Get(name string) goja.Value {
	if m := c.find(name); m != nil {
		if m.v == nil {
			m.v = c.r.js(m.Value)
		}
		return m.v
	}
	var v goja.Value
	switch name {
	case "error":
		v = c.r.vm.ToValue(c.r.newThrown)
	case "log":
		v = c.r.logger()
	case "progress":
		if c.r.call.Progress == nil {
			return nil
		}
		v = c.r.vm.ToValue(c.r.progress)
	default:
		return nil
	}
	c.Set(name, v)
	return v
}

// Set sets a member of ctx.
func (c *contextObject) Set(name string, v goja.Value) bool {
	if m := c.find(name); m != nil {
		m.v = v
		return true
	}
	c.members = append(c.members, contextMember{Member: Member{Name: name}, v: v, added: true})
	return true
}

// Has says whether ctx has a member.
func (c *contextObject) Has(name string) bool {
	return c.find(name) != nil || name == "error" || name == "log" || name == "progress" && c.r.call.Progress != nil
}

// Delete takes a member out: it is undefined from then on.
func (c *contextObject) Delete(name string) bool {
	if m := c.find(name); m != nil {
		m.v = goja.Undefined()
	}
	return true
}

// Keys lists the members.
func (c *contextObject) Keys() []string {
	keys := make([]string, len(c.members))
	for i := range c.members {
		keys[i] = c.members[i].Name
	}
	return keys
}

// collect gives the Out members that the script has changed.
func (c *contextObject) collect(o *out) (map[string]any, error) {
	var changed map[string]any
	for i := range c.members {
		m := &c.members[i]
		if !m.Out || m.v == nil {
			continue
		}
		v, same, err := o.value(m.v, m.Value, true, 0)
		if err != nil {
			return nil, inMember("ctx."+m.Name, err)
		}
		if !same {
			if changed == nil {
				changed = map[string]any{}
			}
			changed[m.Name] = v
		}
	}
	return changed, nil
}
