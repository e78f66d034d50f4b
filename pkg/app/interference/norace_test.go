//go:build !race

package interference_test

// requests is how many there are where nobody says.
const requests = 20_000
