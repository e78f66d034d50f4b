package errs

// Texts that the interface gives to the letter, used from more than one package. They are values to return as they
// are, or to copy by With. Treat them as constants.
var (
	ErrDenied             = New(Denied, "permission_denied", "permission denied")
	ErrProjectNotFound    = New(NotFound, "project_not_found", "project not found")
	ErrCollectionNotFound = New(NotFound, "collection_not_found", "collection not found")
	ErrNotFound           = New(NotFound, "not_found", "not found")
)
