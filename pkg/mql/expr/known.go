package expr

// Known says whether there is an operator of this name.
func Known(name string) bool {
	_, ok := operators[name]
	return ok
}
