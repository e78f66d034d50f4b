// Package search is svcctl search: look for records, see how search indexes stand, have them made anew.
//
// Start reading at NewCmd. What does not live here: the listing of records that were found (cli/doc).
package search
