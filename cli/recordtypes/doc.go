// Package recordtypes is svcctl types: the records of a project as types of TypeScript or Go. They are made of the schemas in the project's OpenAPI document, which the
// service makes of what it serves; nothing here reads a config. What does not live here: types of what hooks are given (svcctl project types), and clients, which
// public generators make of the same document.
//
// Start reading at recordtypes.go; schema.go reads the document, typescript.go and golang.go write.
package recordtypes
