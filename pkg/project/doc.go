// Package project turns a project's directory into the immutable compiled Project that requests are served from, and
// keeps the served ones in a Registry.
//
// Load reads the files through an os.Root, lets pkg/schema decode and check them, refuses what this version does not
// do (unsupported.go) and compiles the rest: field trees, permissions, indexes, projections, limits (compile_*.go),
// scripts (scripts.go; scriptcache.go keeps them from reload to reload), actions and jobs.
// It either gives a Project or says everything that is wrong, with file, line and column.
//
// Start reading at Project and Load. What does not live here: when to load and what to do with conditions
// (controllers), and serving requests (pkg/records).
package project
