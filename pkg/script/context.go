package script

import (
	"github.com/dop251/goja"
)

// contextObject is ctx. Its members are converted when the script first touches them.
type contextObject struct {
	r      *run
	object *goja.Object
	given  [3][]Member  // of the call, and more
	values []goja.Value // of given, one list behind the other; nil: not converted yet
	added  []addedMember
}

// addedMember is a member that the script has added.
type addedMember struct {
	name string
	v    goja.Value
}

// newContext makes a ctx of the call's members and more.
func (r *run) newContext(more []Member) *contextObject {
	given := [3][]Member{r.call.Common, r.call.Ctx, more}
	c := &contextObject{r: r, given: given, values: make([]goja.Value, len(given[0])+len(given[1])+len(given[2]))}
	c.object = r.vm.NewDynamicObject(c)
	return c
}

// find gives the place of a member's value, and the member unless the script has added it.
func (c *contextObject) find(name string) (v *goja.Value, m *Member) {
	at := 0
	for _, list := range c.given {
		for i := range list {
			if list[i].Name == name {
				return &c.values[at+i], &list[i]
			}
		}
		at += len(list)
	}
	for i := range c.added {
		if c.added[i].name == name {
			return &c.added[i].v, nil
		}
	}
	return nil, nil
}

// Get gives a member of ctx.
func (c *contextObject) Get(name string) goja.Value {
	if v, m := c.find(name); v != nil {
		if *v == nil {
			*v = c.r.js(m.value())
		}
		return *v
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
	if at, _ := c.find(name); at != nil {
		*at = v
		return true
	}
	c.added = append(c.added, addedMember{name: name, v: v})
	return true
}

// Has says whether ctx has a member.
func (c *contextObject) Has(name string) bool {
	v, _ := c.find(name)
	return v != nil || name == "error" || name == "log" || name == "progress" && c.r.call.Progress != nil
}

// Delete takes a member out: it is undefined from then on.
func (c *contextObject) Delete(name string) bool {
	if v, _ := c.find(name); v != nil {
		*v = goja.Undefined()
	}
	return true
}

// Keys lists the members.
func (c *contextObject) Keys() []string {
	keys := make([]string, 0, len(c.values)+len(c.added))
	for _, list := range c.given {
		for i := range list {
			keys = append(keys, list[i].Name)
		}
	}
	for i := range c.added {
		keys = append(keys, c.added[i].name)
	}
	return keys
}

// collect gives the Out members that the script has changed.
func (c *contextObject) collect(o *out) (map[string]any, error) {
	var changed map[string]any
	at := 0
	for _, list := range c.given {
		values := c.values[at:]
		at += len(list)
		for j := range list {
			m := &list[j]
			if !m.Out || values[j] == nil {
				continue
			}
			v, same, err := o.value(values[j], m.Value, true, 0)
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
	}
	return changed, nil
}
