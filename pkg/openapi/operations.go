package openapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/api"
	"github.com/svcctl/svc/pkg/schema"
)

// operation is one that a document is to have.
type operation struct {
	id, summary, description string
	tags                     []string
	parameters               []parameter
	body                     bson.D // the schema of the body, and of the part data of a form; nil: none
	form                     bson.A // names of fields that take files: the body may be a form
	formData                 bson.D // the schema of its part data, which has to be there; nil: that of the body, and it need not
	patch                    bool   // the body is a merge patch or a JSON patch
	optional                 bool   // a body need not be
	answers                  []answer
	refusals                 []int // besides those of every operation
	open                     bool  // anybody may, without a credential
}

// answer is one that says that all went well.
type answer struct {
	status      int
	description string
	schema      bson.D            // nil: no body
	media       string            // of the body; "": JSON
	headers     map[string]string // name: what it says
}

// operation gives the form of an operation in a document, with what the config says of it instead.
func (b *builder) operation(op operation, o *schema.Operation) bson.D {
	if o == nil {
		o = &schema.Operation{}
	}
	out := bson.D{{Key: "operationId", Value: op.id}, {Key: "tags", Value: listOf(op.tags)}}
	if len(o.Tags) > 0 {
		out[1].Value = listOf(o.Tags)
	}
	out = append(out, bson.E{Key: "summary", Value: b.labelOf(o.Summary, op.summary)})
	if text := b.labelOf(o.Description, op.description); text != "" {
		out = append(out, bson.E{Key: "description", Value: text})
	}
	if parameters := append(parametersOf(op.parameters), o.Parameters...); len(parameters) > 0 {
		out = append(out, bson.E{Key: "parameters", Value: parameters})
	}
	if body := op.requestBody(); body != nil {
		out = append(out, bson.E{Key: "requestBody", Value: body})
	}
	out = append(out, bson.E{Key: "responses", Value: responsesOf(op, o.Responses)})
	needs := o.Security
	if needs == nil {
		needs = security(op.open)
	}
	out = append(out, bson.E{Key: "security", Value: needs})
	if len(o.CodeSamples) > 0 {
		out = append(out, bson.E{Key: "x-codeSamples", Value: o.CodeSamples})
	}
	return out
}

func (op *operation) requestBody() bson.D {
	if op.body == nil {
		return nil
	}
	media := func(name string, s bson.D) bson.E {
		return bson.E{Key: name, Value: bson.D{{Key: "schema", Value: s}}}
	}
	content := bson.D{media(api.MediaJSON, op.body)}
	if op.patch {
		content = bson.D{media(api.MediaMergePatch, op.body), media(api.MediaJSONPatch, reference("schemas", "svc.JSONPatch"))}
	}
	if len(op.form) > 0 && !op.patch {
		form := formOf(op.body, op.form)
		if op.formData != nil {
			form = formOf(op.formData, op.form, api.PartData)
		}
		content = append(content, media(api.MediaForm, form))
	}
	return bson.D{{Key: "required", Value: !op.optional}, {Key: "content", Value: content}}
}

// formOf is the schema of a form: the record, and files by the fields that they are for.
func formOf(record bson.D, fields bson.A, required ...string) bson.D {
	properties := bson.D{{Key: api.PartData, Value: record}}
	for _, f := range fields {
		if path, ok := f.(string); ok {
			properties = append(properties, bson.E{Key: path, Value: bson.D{{Key: "type", Value: "string"}, {Key: "format", Value: "binary"}}})
		}
	}
	return append(object(properties, required...), bson.E{Key: "additionalProperties", Value: false}, bson.E{Key: "minProperties", Value: 1})
}

func responsesOf(op operation, own bson.D) bson.D {
	var out bson.D
	for _, a := range op.answers {
		r := bson.D{{Key: "description", Value: a.description}}
		if len(a.headers) > 0 {
			var headers bson.D
			for _, name := range slices.Sorted(keysOf(a.headers)) {
				headers = append(headers, bson.E{Key: name, Value: bson.D{{Key: "description", Value: a.headers[name]}, {Key: "schema", Value: text()}}})
			}
			r = append(r, bson.E{Key: "headers", Value: headers})
		}
		if a.schema != nil {
			media := a.media
			if media == "" {
				media = api.MediaJSON
			}
			r = append(r, bson.E{Key: "content", Value: bson.D{{Key: media, Value: bson.D{{Key: "schema", Value: a.schema}}}}})
		}
		out = append(out, bson.E{Key: strconv.Itoa(a.status), Value: r})
	}
	refusals := append([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable}, op.refusals...)
	slices.Sort(refusals)
	for _, status := range slices.Compact(refusals) {
		out = append(out, bson.E{Key: strconv.Itoa(status), Value: reference("responses", fmt.Sprint("svc.", status))})
	}
	out = append(out, bson.E{Key: "default", Value: reference("responses", "svc.problem")})
	for _, e := range own { // what the config says of a status takes its place
		if i := slices.IndexFunc(out, func(o bson.E) bool { return o.Key == e.Key }); i >= 0 {
			out[i] = e
			continue
		}
		out = append(out, e)
	}
	return out
}

func listOf(names []string) bson.A {
	out := bson.A{}
	for _, n := range names {
		out = append(out, n)
	}
	return out
}

// keyed is the header of writes that are done once however often they are sent.
func keyed() parameter {
	return parameter{in: "header", name: api.HeaderIdempotencyKey, description: "A name of this request: it is carried out once, however often it is sent.",
		schema: bson.D{{Key: "type", Value: "string"}, {Key: "pattern", Value: "^[\\x21-\\x7e]{1,255}$"}}}
}

func conditional() parameter {
	return parameter{in: "header", name: api.HeaderIfMatch, description: "The ETag of a read: the write fails with 412 where the record has changed since.", schema: text()}
}

func minimal() parameter {
	return parameter{in: "header", name: api.HeaderPrefer, description: "return=minimal leaves records out of the answer.", schema: text()}
}

// open says that callers without a credential may.
func (c *Collection) open(m access.Method) bool {
	return slices.Contains(c.Permissions.Sets()["public"], m)
}

func (b *builder) list(c *Collection, label string) operation {
	op := operation{
		id: "list", summary: "List " + label, open: c.open(access.Get), parameters: b.listParameters(c),
		answers: []answer{{status: http.StatusOK, description: "A page of the list; with facet or aggregate what they describe.", schema: reference("schemas", c.Name+".page"),
			headers: map[string]string{api.HeaderLink: `The next page, as rel="next".`}}},
	}
	if c.Singleton {
		op.id, op.summary, op.parameters = "get", "Get "+label, append(b.oneParameters(c), b.extraParameters(c)...)
		op.answers[0] = answer{status: http.StatusOK, description: "The record.", schema: reference("schemas", c.Name), headers: map[string]string{api.HeaderETag: "The record's revision."}}
	}
	return op
}

func (b *builder) get(c *Collection, label string) operation {
	id := "get"
	if c.Singleton {
		id = "get_one" // get is that of the collection's path, which needs no id
	}
	return operation{
		id: id, summary: "Get one of " + label, open: c.open(access.Get), parameters: append(byID(), b.oneParameters(c)...),
		answers: []answer{
			{status: http.StatusOK, description: "The record.", schema: reference("schemas", c.Name), headers: map[string]string{api.HeaderETag: "The record's revision."}},
			{status: http.StatusNotModified, description: "It is as it was, by If-None-Match."},
		},
	}
}

// written is the answer to a write of one record: the record, or its id where the caller may not read it.
func written(c *Collection, status int, description string) answer {
	a := answer{status: status, description: description, schema: reference("schemas", "svc.Written")}
	if _, reads := c.Grants[access.Get]; reads {
		a.schema = reference("schemas", c.Name)
		a.headers = map[string]string{api.HeaderETag: "The record's revision."}
	}
	return a
}

func (b *builder) create(c *Collection, label string) operation {
	record := reference("schemas", c.Name+".create")
	created := written(c, http.StatusCreated, "It is created.")
	op := operation{
		id: "create", summary: "Create one of " + label, open: c.open(access.Post), body: record, form: b.fileFields(c, access.Post),
		parameters: append(b.writeParameters(c), keyed(), minimal()), answers: []answer{created},
		refusals: []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity},
	}
	if len(op.form) > 0 {
		op.formData = reference("schemas", c.Name+".form")
	}
	if c.Grants[access.Post].Bulk && !c.Singleton {
		op.description = "Of many at once, where the body is {items: […]}."
		op.body = bson.D{{Key: "anyOf", Value: bson.A{record, bson.D{
			{Key: "type", Value: "object"},
			{Key: "properties", Value: bson.D{{Key: "items", Value: bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: record}, {Key: "maxItems", Value: int64(c.Bulk.MaxItems)}}}}},
			{Key: "required", Value: bson.A{"items"}}, {Key: "additionalProperties", Value: false},
		}}}}
		op.answers[0].schema = bson.D{{Key: "anyOf", Value: bson.A{created.schema, reference("schemas", "svc.BulkResult")}}}
		op.answers = append(op.answers, answer{status: http.StatusMultiStatus, description: "Some of many have failed.", schema: reference("schemas", "svc.BulkResult")})
	}
	op.answers = append(op.answers, dryRun())
	return op
}

func dryRun() answer {
	return answer{status: http.StatusOK, description: "With dryRun=true: what it would do.", schema: reference("schemas", "svc.DryRunResult")}
}

func (b *builder) update(c *Collection, label string) operation {
	a := written(c, http.StatusOK, "It is changed.")
	a.schema = bson.D{{Key: "anyOf", Value: bson.A{a.schema, reference("schemas", "svc.DryRunResult")}}}
	return operation{
		id: "update", summary: "Change one of " + label, open: c.open(access.Put), body: reference("schemas", c.Name+".update"), form: b.fileFields(c, access.Put),
		description: "Fields that are given are set: objects merge, lists are replaced, null takes a field away. With replace=true the body is the whole record.",
		parameters:  append(append(byID(), b.writeParameters(c)...), flag(api.ParamReplace, "The body is the whole record."), conditional(), minimal()),
		answers:     []answer{a}, refusals: changing(),
	}
}

func (b *builder) patch(c *Collection, label string) operation {
	op := b.update(c, label)
	op.id, op.summary, op.description, op.patch = "patch", "Patch one of "+label, "By a merge patch (RFC 7396) or a JSON patch (RFC 6902).", true
	op.parameters = append(append(byID(), b.writeParameters(c)...), conditional(), minimal())
	return op
}

func changing() []int {
	return []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}
}

func (b *builder) putSingleton(c *Collection, label string) operation {
	op := b.update(c, label)
	op.id, op.summary, op.description = "put", "Change "+label, "Or create the one record that there is."
	op.parameters = op.parameters[1:]
	op.answers = append(op.answers, written(c, http.StatusCreated, "It is created."))
	return op
}

func (b *builder) delete(c *Collection, label string) operation {
	return operation{
		id: "delete", summary: "Delete one of " + label, open: c.open(access.Delete),
		parameters: append(append(byID(), b.writeParameters(c)...), conditional()),
		answers: []answer{{status: http.StatusOK, description: "It is gone.", schema: bson.D{{Key: "anyOf", Value: bson.A{
			reference("schemas", "svc.Written"), reference("schemas", "svc.DryRunResult")}}}}},
		refusals: []int{http.StatusConflict, http.StatusPreconditionFailed},
	}
}

func (b *builder) bulkUpdate(c *Collection, label string) operation {
	return operation{
		id: "update_many", summary: "Change many of " + label, open: c.open(access.Put), body: reference("schemas", c.Name+".update"),
		description: "Those that filter finds.", parameters: b.bulkParameters(c),
		answers: bulkAnswers(), refusals: changing(),
	}
}

func (b *builder) bulkDelete(c *Collection, label string) operation {
	return operation{
		id: "delete_many", summary: "Delete many of " + label, open: c.open(access.Delete), description: "Those that filter finds.",
		parameters: b.bulkParameters(c), answers: bulkAnswers(), refusals: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}
}

func bulkAnswers() []answer {
	result := reference("schemas", "svc.BulkResult")
	return []answer{
		{status: http.StatusOK, description: "What became of each.", schema: bson.D{{Key: "anyOf", Value: bson.A{result, reference("schemas", "svc.DryRunResult")}}}},
		{status: http.StatusMultiStatus, description: "The store failed after some.", schema: result},
	}
}

func (b *builder) count(c *Collection, label string) operation {
	return operation{
		id: "count", summary: "Count " + label, open: c.open(access.Get), parameters: append([]parameter{b.filter(c)}, b.searchParameters(c)...),
		answers: []answer{{status: http.StatusOK, description: "How many there are.", schema: reference("schemas", "svc.Count")}},
	}
}

func (b *builder) facet(c *Collection, label string) operation {
	fields := parameter{in: "query", name: api.ParamFields, required: true, joined: true, description: "Fields, whose values are counted.",
		schema: bson.D{{Key: "type", Value: "array"}, {Key: "items", Value: b.names(c, "")}, {Key: "minItems", Value: 1}}}
	parameters := append([]parameter{fields, b.filter(c)}, b.searchParameters(c)...)
	if len(c.Searches) > 0 {
		parameters = append(parameters, parameter{in: "query", name: api.ParamQLimit, description: "With q: how many of the best are counted, or all.",
			schema: append(text(), pattern(`^(?:all|\+?0*[1-9][0-9]{0,17})$`)...)})
	}
	return operation{
		id: "facet", summary: "Count values of fields of " + label, open: c.open(access.Get), parameters: parameters,
		answers: []answer{{status: http.StatusOK, description: "The values of each field, those that most records have first.", schema: reference("schemas", "svc.Facets")}},
	}
}

func (b *builder) changes(c *Collection, label string) operation {
	return operation{
		id: "changes", summary: "Follow changes of " + label, open: c.open(access.Get),
		description: "Server-sent events: ready, create, update, delete, reset, stopping.",
		parameters:  []parameter{b.filter(c), b.selecting(c), {in: "header", name: api.HeaderLastEventID, description: "The id of the last event that was read.", schema: text()}},
		answers:     []answer{{status: http.StatusOK, description: "The events.", schema: event(), media: api.MediaEvents}},
		refusals:    []int{http.StatusGone},
	}
}

// file is the operation that reads files of records.
func (b *builder) file(c *Collection, label string, fields bson.A) operation {
	parameters := append(byID(),
		parameter{in: "path", name: "field", required: true, description: "The field, without positions of lists.", schema: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: fields}}},
		parameter{in: "path", name: "name", required: true, description: "The name of the file, the path of its field.", schema: text()},
		flag(api.ParamDownload, "Have browsers save it."))
	if filters := slices.Sorted(keysOf(c.ImageFilters)); len(filters) > 0 {
		parameters = append(parameters, parameter{in: "query", name: api.ParamFilter, description: "A picture as that filter makes it.",
			schema: bson.D{{Key: "type", Value: "string"}, {Key: "enum", Value: listOf(filters)}}})
	}
	return operation{
		id: "file", summary: "Get a file of one of " + label, open: c.open(access.Get), parameters: parameters,
		answers: []answer{
			{status: http.StatusOK, description: "The file.", media: "*/*", schema: bson.D{}},
			{status: http.StatusPartialContent, description: "A part of it, by Range.", media: "*/*", schema: bson.D{}},
			{status: http.StatusNotModified, description: "It is as it was, by If-None-Match."},
		},
		refusals: []int{http.StatusRequestedRangeNotSatisfiable},
	}
}

// fileFields gives the fields that a form may bring files for.
func (b *builder) fileFields(c *Collection, m access.Method) bson.A {
	s := b.shapeOf(c, m)
	var out bson.A
	for _, path := range c.Uploads.Fields {
		if !s.without.Covers(path) {
			out = append(out, path)
		}
	}
	return out
}
