// Package store is the document-store port: what the rest of the service may ask of a database, and what it may rely on.
//
// Two adapters implement it: store/embedded (Pebble, in process) and store/mongo (a MongoDB replica set or sharded
// cluster). They are indistinguishable through the port; store/storetest is the suite that both run, and that a new
// adapter has to pass. Filters, sorts and documents mean what package mql says they mean.
//
// Start reading at Store. What does not live here: record semantics such as _rev, rights or validation
// (pkg/records), and the names of databases (pkg/system, pkg/project).
package store
