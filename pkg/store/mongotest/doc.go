// Package mongotest gives tests a real MongoDB: a one-member replica set on a free port, started once per test
// process and gone with it.
//
// Start reading at URI. Command startmongo beside it starts one server for many test processes. What does not live
// here: anything that production code uses.
package mongotest
