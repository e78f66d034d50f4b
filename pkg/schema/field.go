package schema

import "go.mongodb.org/mongo-driver/v2/bson"

// Field is one field of a collection, of an object field, or of an action's query or data.
type Field struct {
	Name         string     `cfg:"name,required" pattern:"field" doc:"The key in records."`
	Type         FieldType  `cfg:"type,required" doc:"The type of values."`
	Index        []string   `cfg:"index" enum:"single,unique,text,sparse,background" doc:"Index of this field alone."`
	SubFields    []*Field   `cfg:"subFields,listref" doc:"Fields of an object; without them, any key may be stored."`
	Validator    *Validator `cfg:"validator" doc:"Rules: an object, or a tag string such as required,min=3."`
	Readonly     BoolOrEval `cfg:"readonly" doc:"Clients can't write it; true, or an expression."`
	Hidden       BoolOrEval `cfg:"hidden" doc:"Clients never see it; true, or an expression."`
	StrictFields *bool      `cfg:"strictFields" doc:"Refuse keys that subFields don't declare."`
	Meta         *FieldMeta `cfg:"meta" doc:"Presentation, default, choices, relation."`
	RenamedFrom  string     `cfg:"renamedFrom" pattern:"field" doc:"The name it had before, whose data it keeps."`
}

// FieldType is the name of a field type, one of fieldtype.Names.
type FieldType string

// Validator holds a field's rules as written: a bson.D, or a tag string. fieldtype.ParseRules reads it.
type Validator struct{ Value any }

// BoolOrEval is true, false, or an expression that decides for each request.
type BoolOrEval struct {
	Value bool
	Eval  string // an expression, or a path that ends in .js or .ts; "" when Value decides
}

// FieldMeta is how a field is presented, and its default, choices and relation.
type FieldMeta struct {
	Label           Label         `cfg:"label" doc:"Name for people."`
	Widget          string        `cfg:"widget" enum:"text,textarea,number,checkbox,switch,select,selectArray,chipArray,date,datetime,file,image,json,richtext,html,foreignKey,foreignKeyChipArray,foreignFile,foreignMedia,pagebuilder,pageBuilder,templateProps,containerLessObject,containerLessObjectArray,color" doc:"How it is edited."`
	I18n            *bool         `cfg:"i18n" only:"false" doc:"false: it has no translations."`
	HelperText      Label         `cfg:"helperText" doc:"Help below the input."`
	HideLabel       bool          `cfg:"hideLabel" doc:"Show the input without its label."`
	Hide            any           `cfg:"hide" types:"boolean,object" doc:"Where it is not shown."`
	Protected       bool          `cfg:"protected" doc:"Editing needs a confirmation."`
	Position        any           `cfg:"position" types:"number,string" doc:"Where it is shown."`
	Section         string        `cfg:"section" doc:"The section it is shown in."`
	ContainerProps  bson.D        `cfg:"containerProps" doc:"Properties of the container."`
	DefaultValue    any           `cfg:"defaultValue" doc:"Value of a created record that gives none."`
	DependsOn       any           `cfg:"dependsOn" types:"string,list,object" doc:"When it is shown."`
	InputProps      bson.D        `cfg:"inputProps" doc:"Properties of the input; freeSolo: true lifts the limit to choices."`
	Choices         bson.A        `cfg:"choices" doc:"Allowed values: plain, or {value, label}."`
	Foreign         *Foreign      `cfg:"foreign" doc:"The record that a value points at."`
	Downscale       any           `cfg:"downscale" types:"boolean,number,object" doc:"Scale images down before upload."`
	ImageEditor     any           `cfg:"imageEditor" types:"boolean,object" doc:"Offer an image editor."`
	DrillDown       any           `cfg:"drillDown" types:"boolean,object" doc:"Edit in a view of its own."`
	PageSize        int           `cfg:"pageSize" min:"1" doc:"Rows of a page."`
	Preview         any           `cfg:"preview" types:"boolean,string,object" doc:"How a value is previewed."`
	AddElementLabel Label         `cfg:"addElementLabel" doc:"Label of the button that adds an element."`
	Filter          any           `cfg:"filter" types:"boolean,object" doc:"Filter of the values offered."`
	Pagebuilder     any           `cfg:"pagebuilder" types:"boolean,object" doc:"Settings of the page builder."`
	SchemaRef       string        `cfg:"schemaRef" doc:"Schema of the value."`
	OpenAPI         *FieldOpenAPI `cfg:"openapi" doc:"How it is described."`
	Raw             bson.D        `cfg:",raw"`
}

// Foreign says which record a field's value points at.
type Foreign struct {
	Collection string `cfg:"collection,required" pattern:"collection" doc:"The collection."`
	Key        string `cfg:"key" default:"_id" pattern:"fieldpath" doc:"The field that the value equals."`
	Namespace  string `cfg:"namespace" pattern:"namespace" doc:"The project; this one when absent."`
	Label      any    `cfg:"label" types:"string,list,object" doc:"What is shown of the record."`
}

// FieldOpenAPI says how a field is described in the OpenAPI document.
type FieldOpenAPI struct {
	Disabled    bool   `cfg:"disabled" doc:"Leave it out."`
	Description Label  `cfg:"description" doc:"What it is."`
	Example     any    `cfg:"example" doc:"An example value."`
	Format      string `cfg:"format" doc:"Format, such as uri."`
	Enum        bson.A `cfg:"enum" doc:"Values."`
	Deprecated  bool   `cfg:"deprecated" doc:"Going away."`
}
