package schema

import (
	"cmp"
	"slices"
	"strconv"
)

// Position is a place in a config file. Line and Column count from 1; Column counts characters. File is the
// slash-separated path inside the project's directory.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String gives file:line:column.
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// The codes of problems: stable slugs that programs switch on.
const (
	CodeSyntax       = "syntax"       // the file is not YAML or JSON
	CodeUnknownKey   = "unknown_key"  // a key that the object does not have
	CodeType         = "wrong_type"   // a value of another type
	CodeRequired     = "required"     // a required member is missing
	CodeEnum         = "enum"         // a value outside a closed list
	CodePattern      = "pattern"      // a string of the wrong form
	CodeRange        = "range"        // a number out of bounds, a list too short
	CodeReference    = "reference"    // a referenced file is missing, outside, too large or part of a cycle
	CodeSubstitution = "substitution" // a ${env:} or ${file:} that has no value
	CodeDuplicate    = "duplicate"    // a name or key that is taken
	CodeReserved     = "reserved"     // a name that belongs to the service
	CodeConflict     = "conflict"     // two members that exclude each other
	CodeUnknownField = "unknown_field"
	CodeUnsupported  = "unsupported" // valid, but this version does not do it
	CodeIgnored      = "ignored"     // a warning: the member has no effect
	CodeScript       = "script"      // a script that does not compile; the position is its own
	CodeInvalid      = "invalid"     // anything else that does not compile
)

// Problem is one thing wrong in one place of a config. Its texts never contain secret values or file contents.
type Problem struct {
	Position

	Path    string `json:"path"` // such as collections[0].fields[2].type; "" is the whole file
	Code    string `json:"code"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"` // a warning does not refuse the config
}

// String gives file:line:column: path: message.
func (p Problem) String() string {
	s := p.Position.String() + ": "
	if p.Warning {
		s += "warning: "
	}
	if p.Path != "" {
		s += p.Path + ": "
	}
	return s + p.Message
}

// MaxProblems is how many errors of a config are told, and how many warnings: a file of some bytes can have millions.
const MaxProblems = 1000

// Problems is everything wrong in a config, as far as it is told.
type Problems []Problem

// Err reports whether any problem is more than a warning.
func (p Problems) Err() bool {
	return slices.ContainsFunc(p, func(x Problem) bool { return !x.Warning })
}

// Warnings gives the problems that do not refuse the config.
func (p Problems) Warnings() Problems {
	var out Problems
	for _, x := range p {
		if x.Warning {
			out = append(out, x)
		}
	}
	return out
}

// Sort orders problems by file, line, column, path and message, in place, and drops repetitions; it returns the
// shortened list.
func (p Problems) Sort() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(p, func(a, b Problem) bool { return a == b })
}

// Bounded sorts problems, as Sort does, and leaves out what is more than anybody reads.
func (p Problems) Bounded() Problems {
	errors, warnings := 0, 0
	return slices.DeleteFunc(p.Sort(), func(x Problem) bool {
		n := &errors
		if x.Warning {
			n = &warnings
		}
		*n++
		return *n > MaxProblems+1 // and the one that says that there are more
	})
}
