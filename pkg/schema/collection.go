package schema

import "go.mongodb.org/mongo-driver/v2/bson"

// Collection is a collection's config (interface "Collection config"). Fields is nil when none are declared: then any
// field may be stored.
type Collection struct {
	Name             string                 `cfg:"name,required" pattern:"collection" doc:"The name in paths and in the store."`
	DefaultLanguage  string                 `cfg:"defaultLanguage" pattern:"textlang" doc:"Language of text search, such as en, de-AT, german or none; that of meta.i18n when absent."`
	LanguageOverride string                 `cfg:"languageOverride" pattern:"fieldpath" doc:"Field of type string that names a record's language, for text search."`
	UploadPath       string                 `cfg:"uploadPath" pattern:"path" doc:"Directory of uploads."`
	Upload           *Upload                `cfg:"upload" doc:"Limits of uploads."`
	Permissions      *Permissions           `cfg:"permissions,required" doc:"Who may do what."`
	Projections      map[string]*Projection `cfg:"projections" keys:"projection" doc:"Named selections of fields."`
	Hooks            *Hooks                 `cfg:"hooks" doc:"Scripts that run on operations."`
	Meta             *CollectionMeta        `cfg:"meta" doc:"Presentation, defaults, guidance."`
	ImageFilter      ImageFilter            `cfg:"imageFilter" keys:"filter" doc:"Named image pipelines."`
	Fields           []*Field               `cfg:"fields,listref" doc:"The fields; without them, any field may be stored."`
	Indexes          []*Index               `cfg:"indexes,listref" doc:"Indexes beside those that fields declare."`
	Audit            *Audit                 `cfg:"audit" doc:"The audit log of writes."`
	Bulk             *Bulk                  `cfg:"bulk" doc:"Limits of bulk writes."`
	CORS             *CORS                  `cfg:"cors" doc:"Cross-origin access from browsers."`
	QueryLimits      *QueryLimits           `cfg:"queryLimits" doc:"Limits of queries."`
	ReadonlyFields   []string               `cfg:"readonlyFields" pattern:"fieldpath" doc:"Field paths that clients can't write."`
	HiddenFields     []string               `cfg:"hiddenFields" pattern:"fieldpath" doc:"Field paths that clients never see."`
	StrictFields     *bool                  `cfg:"strictFields" doc:"Refuse fields that are not declared."`
	Search           []*SearchConfig        `cfg:"search" doc:"Search configs, at most 16; q uses the first."`
	RenamedFrom      string                 `cfg:"renamedFrom" pattern:"collection" doc:"The name it had before, whose data it keeps."`
}

// Projection is a named selection. Select is nil for the whole record.
type Projection struct {
	Select bson.D `cfg:"select,required,nullable" doc:"Paths with 1 to take or 0 to leave out; null for the whole record."`
}

// Index is indexConfig. An element of Key is a field path, -path for descending, $text:path for text.
type Index struct {
	Name             string   `cfg:"name" pattern:"indexname" doc:"Name; made from the key when absent."`
	Key              []string `cfg:"key,required" pattern:"indexkey" min:"1" doc:"Field paths; -path descends, $text:path is text."`
	Unique           bool     `cfg:"unique" doc:"No two records may have the same key."`
	DropDups         bool     `cfg:"dropDups" doc:"Refused: it would delete data."`
	Background       bool     `cfg:"background" doc:"Accepted; index builds never block writes."`
	Sparse           bool     `cfg:"sparse" doc:"Leave out records without any of the fields."`
	DefaultLanguage  string   `cfg:"defaultLanguage" pattern:"textlang" doc:"Language of the text of $text:path keys; that of the collection when absent."`
	LanguageOverride string   `cfg:"languageOverride" pattern:"fieldpath" doc:"Field of type string that names a record's language, for text search."`
	RenamedFrom      string   `cfg:"renamedFrom" pattern:"indexname" doc:"The name it had before."`
}

// Bulk limits bulk writes. The right to them is methods.<method>.bulk of a permission set.
type Bulk struct {
	MaxItems    int    `cfg:"maxItems" default:"1000" min:"1" doc:"Most items of one bulk create."`
	MaxAffected int    `cfg:"maxAffected" default:"10000" min:"1" doc:"Most records of one bulk update or delete."`
	Mode        string `cfg:"mode" enum:"continue,atomic" default:"continue" doc:"Each item by itself, or all or nothing."`
	Hooks       string `cfg:"hooks" enum:"bulk,each" default:"bulk" doc:"Whether bulk writes run the bulk stages of hooks alone, or for each item those of a single write, too."`
}

// QueryLimits bounds what one query may cost. AllowAggregate nil means true for user and token sets, false for public.
type QueryLimits struct {
	DefaultLimit      int      `cfg:"defaultLimit" default:"100" min:"0" doc:"limit of a list that gives none. Left out, it is maxLimit where that is less."`
	MaxLimit          int      `cfg:"maxLimit" default:"1000" min:"1" doc:"Highest limit of a list."`
	MaxOffset         int      `cfg:"maxOffset" default:"10000" min:"0" doc:"Highest offset of a list."`
	MaxTime           Duration `cfg:"maxTime" default:"5000" min:"1" doc:"Time a query may take."`
	MaxFilterBytes    int      `cfg:"maxFilterBytes" default:"8192" min:"1" doc:"Longest filter."`
	MaxFilterDepth    int      `cfg:"maxFilterDepth" default:"8" min:"1" doc:"Deepest filter."`
	MaxFilterClauses  int      `cfg:"maxFilterClauses" default:"100" min:"1" doc:"Most conditions of a filter, logical operators included."`
	MaxInValues       int      `cfg:"maxInValues" default:"1000" min:"1" doc:"Most values of $in and $nin."`
	MaxSortFields     int      `cfg:"maxSortFields" default:"8" min:"1" doc:"Most fields of a sort."`
	MaxLookups        int      `cfg:"maxLookups" default:"5" min:"0" doc:"Most reads of other collections in one query, by relations in its filter and by lookups."`
	MaxLookupDepth    int      `cfg:"maxLookupDepth" default:"2" min:"0" doc:"Most collections behind each other that relations and lookups go through."`
	MaxPipelineStages int      `cfg:"maxPipelineStages" default:"20" min:"1" doc:"Most stages of a pipeline."`
	AllowAggregate    *bool    `cfg:"allowAggregate" doc:"Whether pipelines are allowed; true but for public when absent."`
	Regex             string   `cfg:"regex" enum:"anchored,any,off" default:"any" doc:"Which regular expressions a filter may use."`
}

// fill has the limit that nobody gave fit in the one that somebody gave.
func (q *QueryLimits) fill(given map[string]bool) {
	if !given["defaultLimit"] {
		q.DefaultLimit = min(q.DefaultLimit, q.MaxLimit)
	}
}

// SearchConfig is one way to search a collection.
type SearchConfig struct {
	Name           string        `cfg:"name,required" pattern:"name" doc:"Name for qName."`
	Mode           string        `cfg:"mode,required" enum:"text,ngram,regex,vector,rrf" doc:"How it searches."`
	Fields         []string      `cfg:"fields" pattern:"fieldpath" doc:"Field paths that are searched, at most 100; when absent all fields of type string and string[], but for relations and what is hidden from everybody. With eval they may be of any type, and are required. Not of mode rrf."`
	Meta           bson.D        `cfg:"meta" doc:"Free metadata."`
	Eval           string        `cfg:"eval" doc:"An expression over ctx.doc, which has fields and nothing else, and ctx.lang, or the path of a .js or .ts file. It gives the text to index, or a list of texts. Not of modes regex and rrf."`
	Filter         bson.D        `cfg:"filter" doc:"Which records can be found; all when absent. Not of mode rrf: its sources have theirs."`
	Text           *SearchText   `cfg:"text" doc:"Settings of mode text."`
	Ngram          *SearchNgram  `cfg:"ngram" doc:"Settings of mode ngram."`
	Regex          *SearchRegex  `cfg:"regex" doc:"Settings of mode regex."`
	Score          *SearchScore  `cfg:"score" doc:"How results are weighed. Not of modes regex and rrf."`
	Vector         *SearchVector `cfg:"vector" doc:"Settings of mode vector; it is required there."`
	RRF            *SearchRRF    `cfg:"rrf" doc:"Settings of mode rrf; they are required there."`
	Async          bool          `cfg:"async" doc:"Writes answer before they are indexed."`
	AutoRegenerate bool          `cfg:"autoRegenerate" doc:"Rebuild in the background when this config changes; else the index of before answers until regenerate-search is called."`
}

// SearchText sets how words are searched.
type SearchText struct {
	Language  string `cfg:"language" pattern:"textlang" doc:"Language of the text of all records; when absent the collection's, or what a record says in languageOverride."`
	Fuzziness string `cfg:"fuzziness" enum:"auto,off" default:"auto" doc:"Whether a word that no record has finds those that are spelled nearly so."`
	Prefix    bool   `cfg:"prefix" doc:"The last word may be the beginning of one, for search as you type."`
	Operator  string `cfg:"operator" enum:"or,and" default:"or" doc:"Whether one of the words has to be found, or all."`
}

// SearchNgram sets the lengths of n-grams.
type SearchNgram struct {
	Min int `cfg:"min" min:"1" max:"20" default:"2" doc:"Shortest n-gram."`
	Max int `cfg:"max" min:"1" max:"20" default:"3" doc:"Longest n-gram, at most 8 above min: each length makes the index larger."`
}

// fill has the length that nobody gave fit the one that somebody gave.
func (n *SearchNgram) fill(given map[string]bool) {
	if !given["max"] {
		n.Max = max(n.Min, n.Max)
	}
	if !given["min"] {
		n.Min = min(n.Min, n.Max)
	}
}

// SearchRegex sets how regular expressions are matched.
type SearchRegex struct {
	Options string `cfg:"options" pattern:"regexopts" default:"i" doc:"i: small letters and capitals are the same; m: ^ and $ are the ends of lines; s: a dot stands for the end of a line, too."`
}

// SearchScore weighs results.
type SearchScore struct {
	Weights  map[string]float64 `cfg:"weights" keys:"fieldpath" doc:"Weight by field path, above 0 and at most 1000; 1 for those that are not named."`
	MinScore float64            `cfg:"minScore" min:"0" doc:"Results below are left out."`
	Recency  *SearchRecency     `cfg:"recency" doc:"Boost of recent records."`
}

// SearchRecency boosts recent records.
type SearchRecency struct {
	Field    string   `cfg:"field,required" pattern:"fieldpath" doc:"The date field."`
	HalfLife Duration `cfg:"halfLife,required" min:"1" doc:"Age at which the boost has halved."`
	Weight   float64  `cfg:"weight" default:"1" min:"0" max:"1000" doc:"Strength of the boost."`
}

// SearchVector sets vector search.
type SearchVector struct {
	Group  string   `cfg:"group,required" doc:"The embedding group."`
	Fields []string `cfg:"fields" pattern:"fieldpath" doc:"Field paths whose text is embedded."`
	Metric string   `cfg:"metric" enum:"cosine" default:"cosine" doc:"Distance."`
}

// SearchRRF fuses other search configs by reciprocal rank.
type SearchRRF struct {
	Sources []string           `cfg:"sources,required" min:"1" doc:"Names of the search configs to fuse, of modes text, ngram and vector."`
	K       int                `cfg:"k" default:"60" min:"1" max:"10000" doc:"Constant of the formula: what is found at rank r counts 1/(k+r)."`
	TopK    int                `cfg:"topK" default:"100" min:"1" max:"10000" doc:"Results taken from each source."`
	Weights map[string]float64 `cfg:"weights" keys:"name" doc:"Weight by source, above 0 and at most 1000; 1 for those that are not named."`
}

// ImageFilter maps the name of a filter to its steps.
type ImageFilter map[string][]ImageStep

// ImageStep is one step of an image filter.
type ImageStep struct {
	Width               *float64 `cfg:"width" min:"0" max:"16384" doc:"Pixels. Without it, or with 0, the height and the picture's ratio decide."`
	Height              *float64 `cfg:"height" min:"0" max:"16384" doc:"Pixels. Without it, or with 0, the width and the picture's ratio decide."`
	Fit                 bool     `cfg:"fit" doc:"Scale down to fit inside width and height, keeping the ratio."`
	Fill                bool     `cfg:"fill" doc:"Scale to cover width and height, keeping the ratio, and cut off what is outside."`
	Resampling          string   `cfg:"resampling" enum:"nearestNeighbor,hermite,linear,catmullRom,lanczos,box,mitchellNetravili,bSpline,gaussian,bartlett,hann,hamming,blackman,welch,cosine" default:"lanczos" doc:"Scaling kernel."`
	Anchor              string   `cfg:"anchor" enum:"center,topLeft,top,topRight,left,right,bottomLeft,bottom,bottomRight" default:"center" doc:"What fill keeps."`
	Brightness          *float64 `cfg:"brightness" min:"-100" max:"100" doc:"Percent, from black at -100 to white at 100."`
	Saturation          *float64 `cfg:"saturation" min:"-100" max:"500" doc:"Percent, from gray at -100; 100 doubles."`
	Contrast            *float64 `cfg:"contrast" min:"-100" max:"100" doc:"Percent, from gray at -100 to only full and empty colors at 100."`
	Gamma               *float64 `cfg:"gamma" min:"0.01" max:"10" doc:"1 is unchanged, less is darker, more is lighter."`
	Blur                *float64 `cfg:"blur" min:"0" max:"100" doc:"Standard deviation of the blur, in pixels."`
	Sharpen             *float64 `cfg:"sharpen" min:"0" max:"100" doc:"Standard deviation of the blur that the picture is set apart from, in pixels."`
	Invert              bool     `cfg:"invert" doc:"Negative."`
	Grayscale           bool     `cfg:"grayscale" doc:"Without color."`
	Quality             *float64 `cfg:"quality" min:"0" max:"100" default:"85" doc:"Of lossy output."`
	Lossless            bool     `cfg:"lossless" doc:"Lossless output where the type has it."`
	SkipLargerDimension bool     `cfg:"skipLargerDimension" doc:"Leave the size alone when width or height would grow."`
	SkipLargerFilesize  bool     `cfg:"skipLargerFilesize" doc:"Give the original file when the result has no fewer bytes."`
	OutputType          string   `cfg:"outputType" enum:"jpg,jpeg,png,webp" doc:"Type of the result; without it that of the picture, where it is one of these."`
}
