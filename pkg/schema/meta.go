package schema

import "go.mongodb.org/mongo-driver/v2/bson"

// CollectionMeta is how a collection is presented, and its defaults and guidance.
type CollectionMeta struct {
	Label         Label                  `cfg:"label" doc:"Name for people."`
	MuiIcon       string                 `cfg:"muiIcon" doc:"Icon."`
	Group         Label                  `cfg:"group" doc:"Group in navigation."`
	Exports       any                    `cfg:"exports" types:"boolean,list,object" doc:"Export forms offered."`
	DesignGuide   any                    `cfg:"designGuide" types:"string,list,object" doc:"Guidance on design."`
	ImageURL      string                 `cfg:"imageUrl" doc:"Picture."`
	Hide          any                    `cfg:"hide" types:"boolean,object" doc:"Where it is not shown."`
	Singleton     bool                   `cfg:"singleton" doc:"One record; GET and PUT on the collection itself work."`
	SubNavigation any                    `cfg:"subNavigation" types:"boolean,list,object" doc:"Navigation below it."`
	Preview       any                    `cfg:"preview" types:"boolean,string,object" doc:"How a record is previewed."`
	I18n          *I18n                  `cfg:"i18n" doc:"Languages of the records, or false. Fields of type string, string[], object, object[] and any are translated, unless they are unique, relations, or have meta.i18n: false."`
	DefaultSort   any                    `cfg:"defaultSort" types:"string,list,object" doc:"Sort when none is given, such as -publishedAt,title."`
	ViewHint      any                    `cfg:"viewHint" types:"string,object" enum:"table,cards" doc:"How a list is shown."`
	Pagebuilder   any                    `cfg:"pagebuilder" types:"boolean,object" doc:"Settings of the page builder."`
	Sidebar       any                    `cfg:"sidebar" types:"boolean,list,object" doc:"The sidebar of the editor."`
	Sections      any                    `cfg:"sections" types:"list,object" doc:"Sections of the editor."`
	OpenAPI       *CollectionOpenAPI     `cfg:"openapi" doc:"How it is described."`
	Query         map[string]*QueryParam `cfg:"query" keys:"queryparam" doc:"Extra query parameters that hooks may read."`
	Agent         bson.D                 `cfg:"agent" doc:"Free guidance for editors and agents."`
	Raw           bson.D                 `cfg:",raw"`
}

// I18n names the languages of a collection's translatable fields; false in the file is Off.
type I18n struct {
	Off       bool
	Languages []string `cfg:"languages,required" pattern:"language" min:"1" doc:"Language tags."`
	Default   string   `cfg:"default" pattern:"language" doc:"The language of the fields themselves; the first when absent."`
}

// QueryParam describes one extra query parameter.
type QueryParam struct {
	Type        string `cfg:"type" enum:"string,number,integer,boolean,array,object" default:"string" doc:"Type of the value."`
	Description Label  `cfg:"description" doc:"What it does."`
	Required    bool   `cfg:"required" doc:"Agents must give it."`
	Enum        bson.A `cfg:"enum" doc:"Allowed values."`
	Default     any    `cfg:"default" doc:"What its hooks take when it is absent, for agents to know; the service does not fill it in."`
	Example     any    `cfg:"example" doc:"An example value."`
}

// CollectionOpenAPI says how a collection's operations are described in the OpenAPI document.
type CollectionOpenAPI struct {
	Disabled bool       `cfg:"disabled" doc:"Leave the collection out."`
	Get      *Operation `cfg:"get" doc:"The list."`
	GetOne   *Operation `cfg:"getOne" doc:"One record."`
	Post     *Operation `cfg:"post" doc:"Create."`
	Put      *Operation `cfg:"put" doc:"Update."`
	Delete   *Operation `cfg:"delete" doc:"Delete."`
}

// Operation overrides the description of one operation.
type Operation struct {
	Disabled    bool     `cfg:"disabled" doc:"Leave it out."`
	Tags        []string `cfg:"tags" doc:"Tags."`
	Summary     Label    `cfg:"summary" doc:"One line."`
	Description Label    `cfg:"description" doc:"What it does."`
	CodeSamples bson.A   `cfg:"x-codeSamples" doc:"Samples: {lang, label, source}."`
	Parameters  bson.A   `cfg:"parameters" doc:"More parameters."`
	Responses   bson.D   `cfg:"responses" doc:"Responses by status."`
	Security    bson.A   `cfg:"security" doc:"Security requirements."`
}
