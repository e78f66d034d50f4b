package project

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/svcctl/svc/pkg/fieldtype"
	"github.com/svcctl/svc/pkg/schema"
	"github.com/svcctl/svc/pkg/search"
)

// eval compiles the script that gives the text of records, and the fields that it is given: any, for it makes the text of them.
func (c *searchCompiler) eval(s *schema.SearchConfig, out *search.Config, list []string, language, at, listAt string) {
	out.Eval = &search.Eval{}
	switch {
	case len(list) == 0:
		c.c.fail(listAt, schema.CodeRequired, "is required with eval: the fields of a record that ctx.doc has")
	case len(list) > maxSearchFields:
		c.c.fail(listAt, schema.CodeRange, "has %d fields; %d are possible", len(list), maxSearchFields)
		return
	}
	for i, path := range list {
		here := listAt + "[" + strconv.Itoa(i) + "]"
		switch {
		case slices.Contains(list[:i], path):
			c.c.fail(here, schema.CodeDuplicate, "%q is there twice", path)
		case c.isGiven(path, here):
			out.Fields = append(out.Fields, c.field(path, language))
			out.Eval.Paths = append(out.Eval.Paths, path)
		}
	}
	if s.Eval == "" { // which has been said
		return
	}
	script, text := c.c.eval(s.Eval, at+".eval", s.Name+" eval")
	if script == nil {
		return
	}
	sum := sha256.Sum256([]byte(text))
	out.Eval.Print = hex.EncodeToString(sum[:16])
	c.scripts[s.Name] = script
}

// isGiven says whether there is a field that a script can be given; a problem tells if not.
func (c *searchCompiler) isGiven(path, at string) bool {
	if _, ok := c.resolve(path, at); !ok {
		return false
	}
	var problem string
	switch f, _ := c.tree.Resolve(path); {
	case f.Path == fieldtype.I18n || strings.HasPrefix(path, fieldtype.I18n+"."):
		problem = "name the field itself: the script is run for each of its translations"
	case path == "id":
		problem = "is called _id here"
	case f.Path != path:
		problem = "name the field without positions in lists"
	case c.nobody.Reaches(path):
		c.c.warn(at, "is hidden from everybody, and with it the search: only who manages the project finds something by it")
	}
	if problem != "" {
		c.c.fail(at, schema.CodeInvalid, "%s", problem)
	}
	return problem == ""
}
