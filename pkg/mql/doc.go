// Package mql is MongoDB's query language on raw documents: filters, sorts and (with later needs) updates, projections
// and aggregation. It means exactly what MongoDB 6.0 means, for the operators on its allow-list; anything else is
// refused when it is compiled, whatever store runs it.
//
// Start reading at Compile and Filter. What does not live here: which fields a caller may name and how values are
// cast by a schema (pkg/records does it through Rewrite, before Compile), and indexes (pkg/store/embedded).
package mql
