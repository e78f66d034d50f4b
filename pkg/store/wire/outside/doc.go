// Package outside runs tests of other projects against the MongoDB endpoint: the unified tests and the corpus of
// mongodb/specifications, the former by the runner that the Go driver has for them, and the integration tests of
// FerretDB v1, which compare the endpoint with a MongoDB.
//
// The suites are not here: TestOutside runs those that are in the folder of -suites (make outside), and with -update
// writes the table of docs/store.md and remainder.txt, the list of what fails and why. A failure that is not on
// the list fails the test.
//
// Start reading at outside_test.go. What does not live here: anything of the suites themselves, and our own tests of the
// endpoint (pkg/store/wire).
package outside
