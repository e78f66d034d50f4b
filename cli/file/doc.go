// Package file holds svcctl file: the files of records. record.go says what the arguments mean and which files a record has.
package file
