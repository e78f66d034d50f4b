package script

import (
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// module is a global of scripts. glue is a JavaScript function of (call, native) that makes it: call(op, ...args) gives
// the promise of a Host call, native has the functions of natives.go. types is its part of svc.d.ts.
type module struct {
	name  string
	glue  string
	types string
}

// modules is every module there is. A module is made only in runs of programs whose text has its name.
//
// The operations that they ask the Host for; target is {collection, asUser, tx?}, tx what db.begin gave, an id is a
// string of 24 hex digits or an ObjectID, options may be missing, in which case the list of arguments is shorter:
//
//	db.find      target, filter, {sort, limit, offset, select, lookup, q, qName, highlight, explain, lang} -> list of records
//	db.findOne   target, filter or id, as db.find                -> record or null
//	db.count     target, filter, {q, qName, lang}                -> number
//	db.aggregate target, list of stages                          -> list of results; not with asUser
//	db.insert    target, record or list of records               -> record or list of records
//	db.update    target, filter or id, patch or {$inc: …}        -> record, or {matched, modified} for a filter
//	db.delete    target, filter or id                            -> number of records
//	db.begin     -                                               -> tx, a string
//	db.commit    tx                                              -> whether it lost, and has to be done again in the same tx
//	db.rollback  tx                                              -> the same; of a tx that ended, too
//	search.find  as db.find, with q; the target has no tx        -> list of records with _score
//	search.count as db.count, with q                             -> number
//	embeddings.query     group, text                             -> vector: list of numbers, or {token: weight}
//	embeddings.documents group, texts                            -> list of vectors; null for a text without content
//	http.fetch   {url, method, headers, body, timeout}           -> {status, headers, body: binary, url}
//	cache.get    key                                             -> value or null
//	cache.set    key, value, seconds or null                     -> null
//	cache.delete key                                             -> null
//	files.read   path                                            -> binary
//	files.list   directory                                       -> list of {name, directory, size}
//	files.exists path                                            -> boolean
func modules() []module {
	return []module{
		{"db", glueDB, typesDB},
		{"search", glueSearch, typesSearch},
		{"embeddings", glueEmbeddings, typesEmbeddings},
		{"http", glueHTTP, typesHTTP},
		{"crypto", glueCrypto, typesCrypto},
		{"cache", glueCache, typesCache},
		{"files", glueFiles, typesFiles},
		{"env", glueEnv, typesEnv},
		{"console", glueConsole, typesConsole},
		{"timers", glueTimers, typesTimers},
		{"values", glueValues, typesValues},
	}
}

// globalsOf lists the globals that a module makes, where that is not its name.
func (m module) globals() []string {
	switch m.name {
	case "timers":
		return []string{"setTimeout", "setInterval", "clearTimeout", "clearInterval", "sleep"}
	case "values":
		return []string{"ObjectId", "Decimal128"}
	default:
		return []string{m.name}
	}
}

// usedBy says which of a module's globals occur in the text of a program. Too many cost a little time, too few can't be:
// a program can't name what its text doesn't have, but by joining strings.
func (m module) usedBy(text string) bool {
	return slices.ContainsFunc(m.globals(), func(name string) bool { return strings.Contains(text, name) })
}

// globals makes the modules that the program uses.
func (r *run) globals() error {
	for _, i := range r.call.Program.modules {
		f, err := r.vm.RunProgram(r.engine.glue[i])
		if err != nil {
			return err
		}
		call, _ := goja.AssertFunction(f)
		made, err := call(goja.Undefined(), r.vm.ToValue(r.callHost), r.natives())
		if err != nil {
			return err
		}
		m := r.engine.modules[i]
		names := m.globals()
		if len(names) == 1 {
			if err := r.vm.Set(names[0], made); err != nil {
				return err
			}
			continue
		}
		for _, name := range names {
			if err := r.vm.Set(name, made.ToObject(r.vm).Get(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// callHost is call(op, ...args) of the glue.
func (r *run) callHost(call goja.FunctionCall) goja.Value {
	o := &out{r: r, left: r.call.Limits.MaxResult}
	args, op := bson.A{}, call.Argument(0).String()
	for i, a := range call.Arguments[min(1, len(call.Arguments)):] {
		o.filter = i == 1 && takesFilter(op)
		v, _, err := o.value(a, nil, false, 0)
		if err != nil {
			r.throw(err)
		}
		args = append(args, v)
	}
	for len(args) > 0 && args[len(args)-1] == nil && goja.IsUndefined(call.Arguments[len(args)]) {
		args = args[:len(args)-1]
	}
	return r.hostCall(op, args, r.js)
}

// takesFilter says whether the second argument of an operation is a filter.
func takesFilter(op string) bool {
	return strings.HasPrefix(op, "db.") && op != "db.insert" || strings.HasPrefix(op, "search.")
}

// throw raises err in the script. A run that has to stop is stopped by it.
func (r *run) throw(err error) {
	if r.why.Load() != nil {
		panic(&goja.InterruptedError{})
	}
	panic(r.vm.NewTypeError(err.Error()))
}

// envObject is env: what the project's config names.
func (r *run) envObject() *goja.Object {
	env := r.vm.NewObject()
	for _, name := range slices.Sorted(maps.Keys(r.call.Env)) {
		_ = env.Set(name, r.call.Env[name]) // a plain object takes every member
	}
	return env
}
