package api

// Asset is a folder of a project whose every file is public.
type Asset struct {
	Name string `json:"name"`
	Path string `json:"path"` // of the folder, in the project's directory
	Src  string `json:"src"`  // what the path of a file in it goes behind
}
