// Package doc holds svcctl doc: records, one by one and in streams. A file per verb; record.go for what a record is to
// the command line, table.go for how records are shown, singleton.go for the collection that has one alone, stream.go for
// reading many from a file.
package doc
