// Command typecheck checks the types of a program for another system, which takes a tenth of what compiling it and all that it imports does.
//
//	typecheck windows ./cmd/svcctl
//
// What it reads are the files that are built there, without cgo, of the program and of all that it imports; of the standard library it leaves
// out the bodies of functions. It does not find what only a linker does.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS PACKAGE")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "%s is not built for %s:\n%v\n", os.Args[2], os.Args[1], err)
		os.Exit(1)
	}
}

// listed is a package as go list gives it.
type listed struct {
	Dir, ImportPath string
	GoFiles         []string
	ImportMap       map[string]string
	Standard        bool
	Module          *struct{ GoVersion string }
}

// check type-checks a package and all that it imports.
func check(system, name string) error {
	list := exec.Command("go", "list", "-deps", "-json=Dir,ImportPath,GoFiles,ImportMap,Standard,Module", name)
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return err
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	var problems []error
	for decoder := json.NewDecoder(out); ; { // what a package imports comes before it
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if p.ImportPath != "unsafe" {
			problems = append(problems, p.check(checked)...)
		}
	}
	return errors.Join(append(problems, list.Wait())...)
}

// check type-checks the package, of which all imports are among checked, and adds it to them.
func (p *listed) check(checked map[string]*types.Package) (problems []error) {
	files := token.NewFileSet()
	note := func(err error) { problems = append(problems, err) }
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			note(err)
			continue
		}
		parsed = append(parsed, f)
	}
	config := types.Config{
		Importer: importer(func(path string) (*types.Package, error) {
			if to, ok := p.ImportMap[path]; ok {
				path = to
			}
			if found := checked[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("%s is not there", path)
		}),
		IgnoreFuncBodies: p.Standard, Sizes: types.SizesFor("gc", runtime.GOARCH), Error: note,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	checked[p.ImportPath], _ = config.Check(p.ImportPath, files, parsed, nil) // Error has its errors
	return problems
}

// importer gives what a path imports.
type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importer) Import(path string) (*types.Package, error) { return f(path) }
