package outside_test

// failRules are the reasons for which tests fail. What meets none of them is not to fail.
func failRules() []rule {
	return []rule{}
}

// skipRules are the reasons for which suites leave out tests, as far as they are worth telling apart.
func skipRules() []rule {
	return []rule{}
}
