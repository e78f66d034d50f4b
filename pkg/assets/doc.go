// Package assets reads the files of a project's assets: folders whose every file is public. It gives regular files below
// the folder and nothing else, and tells a file by a hash of its content.
//
// What does not live here: files of records (pkg/media), which folders there are (pkg/project), and how a file is answered
// (pkg/httpapi).
package assets
