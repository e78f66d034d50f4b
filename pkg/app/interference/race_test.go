//go:build race

package interference_test

// requests is how many there are where nobody says. The race detector makes each many times as long, and finds little here:
// make test runs all of them without it.
const requests = 2_000
