// Package teststore is for the tests of what is above the stores: it opens stores, and has the clock that such tests set.
//
// Start reading at Each. What does not live here: what a store has to do (store/storetest), and a MongoDB
// (store/mongotest).
package teststore
