// Package schema is what project config files may say: the Go types of every object in them, the strict loader that
// fills those types and reports every problem with its place, and the JSON Schema generated from the same types.
//
// A file becomes a tree of nodes that know their file, line and column (tree.go, yaml.go, jsonc.go); ${env:} and ${file:} are
// replaced in it (substitute.go); the decoder walks the tree along the Go types, follows references to other files
// and collects problems (decode.go); the checks that need more than one member run last (check.go).
//
// Start reading at Project and LoadProject. To add a member, add a struct field with its tags: decoder, JSON Schema
// and tests follow from it. What does not live here: reading disks and compiling a config into what requests are
// served from (pkg/project).
package schema
