package recordtypes

// Written gives the types of a document, for tests.
func Written(raw []byte) (ts, golangText string, err error) {
	doc, err := read(raw)
	if err != nil {
		return "", "", err
	}
	golangText, err = golang("p", "p", doc)
	return typescript("p", doc), golangText, err
}
