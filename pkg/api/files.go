package api

// File is a file of a record as it is read. Records may have members of their own beside these.
type File struct {
	Src    string `json:"src"`  // the path that it is at
	Path   string `json:"path"` // its name
	Size   int64  `json:"size"` // in bytes
	Type   string `json:"type"` // media type, by its content
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Hash   string `json:"hash"` // SHA-256, in hexadecimal digits
	Alt    string `json:"alt,omitempty"`
}

// FilePath is the path of a file of a record. field is the path of the field, without positions in lists.
func FilePath(namespace, collection, id, field, name string) string {
	return RecordPath(namespace, collection, id) + "/" + escape(field) + "/" + escape(name)
}
