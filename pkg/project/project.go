package project

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/svcctl/svc/pkg/access"
	"github.com/svcctl/svc/pkg/document"
	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/imagefilter"
	"github.com/svcctl/svc/pkg/mql"
	"github.com/svcctl/svc/pkg/query"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search"
)

// Project is one project compiled from its config files. It is immutable but for the fields that its maker fills in
// before it goes into a Registry: ID, OrgID and Generation, and where records are (Names).
type Project struct {
	ID         string // hex id of the registration
	Namespace  string
	OrgID      string // of the registration: the org that it belongs to in hex, "" for none
	Suspended  bool   // of the registration: what is served stays as it is
	Generation int64  // grows by one with each config that is swapped in

	Dir         string // of its files; empty where it was made without one
	Revision    string // sha256 in hex over all files of the config and what was substituted in them
	Config      *schema.Project
	Files       []schema.File // the config files that were read, by name
	Bundle      Bundle        // their contents
	Collections map[string]*Collection
	FieldNames  map[string]*document.Names // what the fields of collections are stored as, by StoredName; without those that are stored by their names
	Actions     map[string]*Action
	Jobs        []*Job
	Snapshots   []*SnapshotProfile
	Assets      []Asset
	SnapshotDir string // of its snapshots, inside Dir, with slashes
	AdminTokens *access.AdminTokens
	Hook        *schema.Hook    // settings of scripts, with their defaults
	Observe     bool            // what is not as declared is told of, and not mended (mode: observe)
	LooseQuery  bool            // unknown query parameters are ignored (legacy.looseQuery)
	Warnings    schema.Problems // what the config says without effect

	redactor schema.Redactor
	places   map[schema.Place]bool // where what is from outside stands in the config
}

// Redact takes values that were substituted in the config, which may be secrets, out of a text.
func (p *Project) Redact(text string) string { return p.redactor.Redact(text) }

// Collection is one compiled collection. It is immutable, as its project is.
type Collection struct {
	Name        string
	Stored      string          // the name that the store has for it, see Names; "": Name
	Before      []string        // other names that it had
	FieldNames  *document.Names // what its fields are stored as, see Names; nil: their names
	Config      *schema.Collection
	Tree        *fieldtype.Tree
	Permissions *access.Permissions
	Indexes     []Index
	Searches    []*search.Config // the first is that of q without a qName
	Projections map[string]Projection
	Limits      Limits
	Bulk        Bulk
	DefaultSort mql.Sort // nil: by id
	Singleton   bool
	Hidden      *document.PathSet // hidden from everyone but project admins: the collection's own and its fields'
	Readonly    *document.PathSet
	Undeclared  *document.PathSet             // what is no field where strictFields allows only fields; nobody sees it
	QueryParams map[string]*schema.QueryParam // extra query parameters (meta.query)
	Audit       *Audit                        // nil: writes are not logged
	Uploads     Uploads
	known       Names // what fields were called

	ImageFilters map[string]*imagefilter.Filter // what pictures among the files can be asked for as, by name

	Hooks        map[string][]*Script       // by stage ("post.create"), in the order they run; nil: none
	Filters      map[*schema.Script]*Script // those that make filters of permission sets; nil: none
	Evals        []Eval                     // what hides fields and makes them readonly for each request
	HiddenByEval *document.PathSet          // the paths that some of them hide; nil: none
	Validators   map[string]*Script         // those that judge values, by the path of their field

	SearchScripts map[string]*Script // those that give the text of records to searches, by their names
}

// Ordered gives a record's own fields in an order that tells nothing of what is hidden in it.
func (c *Collection) Ordered(doc bson.D) bson.D { return c.Tree.Tidy(c.HiddenByEval.Behind(doc)) }

// Scripted says that the collection has scripts of any kind.
func (c *Collection) Scripted() bool {
	return len(c.Hooks) > 0 || len(c.Evals) > 0 || len(c.Filters) > 0 || len(c.Validators) > 0
}

// Uploads says where the files of a collection's records are, and which may be stored. Limits.MaxBodySize bounds them, too.
type Uploads struct {
	Dir    string   // media.Place.Dir: the uploadPath, else the collection's name in the store
	Types  []string // media types or globs of them; none: all
	Fields []string // paths of the file fields, without list positions; none: records have no files
}

// Audit says which writes of a collection go to the audit log.
type Audit struct {
	Methods   []access.Method
	Secret    *document.PathSet // paths whose values are left out of entries: hidden and undeclared ones and excludeFields
	Retention time.Duration     // 0: for ever
}

// Index is one index to have, with the same meaning as the store's.
type Index struct {
	Name        string
	Keys        []IndexKey
	Unique      bool
	Sparse      bool
	RenamedFrom string // the name it had before, or ""
	Path        string // where the config declares it, for conditions
}

// IndexKey is one field of an index.
type IndexKey struct {
	Path string
	Desc bool
}

// Projection is a named selection of fields: Include or Exclude, never both. Both empty is the whole record.
type Projection struct {
	Include []string
	Exclude []string
}

// Limits bounds queries; see schema.QueryLimits for the members.
type Limits struct {
	List query.Limits

	MaxTime           time.Duration
	MaxPipelineStages int
	AllowAggregate    *bool
	MaxBodySize       int64  // bytes of a request body; 0: the server's limit
	MaxBodyOf         string // whose limit that is, in words
}

// Bulk bounds bulk writes.
type Bulk struct {
	MaxItems    int
	MaxAffected int
	Atomic      bool // all or nothing, instead of each item by itself
	EachHooks   bool // the hooks of single writes run for each item, too
}

// DatabaseName is the store's database of a namespace. System models live in another one, "svc".
func DatabaseName(namespace string) string { return "svc_" + namespace }

// Search gives a search by its name, the first one for ""; nil: there is none.
func (c *Collection) Search(name string) *search.Config {
	for _, s := range c.Searches {
		if name == "" || s.Name == name {
			return s
		}
	}
	return nil
}
