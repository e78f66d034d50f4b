package schema

import "go.mongodb.org/mongo-driver/v2/bson"

// Render gives the config as one object: what references name in their place, and what ${…} stands for. Unless secrets are to be
// shown, what was substituted and what may be a credential is ***.
func (l *Loaded) Render(secrets bool) any { return l.render(l.root, secrets) }

func (l *Loaded) render(n *node, secrets bool) any {
	if target, ok := l.refs[n]; ok {
		n = target
	}
	switch n.kind {
	case kindMap:
		doc := make(bson.D, 0, len(n.entries))
		for _, e := range n.entries {
			if e.key == "$schema" { // what editors read
				continue
			}
			key := e.key
			if !secrets {
				key = e.label()
			}
			doc = append(doc, bson.E{Key: key, Value: l.render(e.value, secrets)})
		}
		return doc
	case kindList:
		list := make(bson.A, 0, len(n.items))
		for _, item := range n.items {
			list = append(list, l.render(item, secrets))
		}
		return list
	case kindNull, kindBool, kindInt, kindFloat, kindString:
	}
	if n.secret && !secrets {
		return "***"
	}
	return n.value(nil)
}
