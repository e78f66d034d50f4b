// Package storetest is the conformance suite of the document-store port: every sentence of pkg/store's contract as a
// test that each adapter runs, so that the adapters can't be told apart through the port.
//
// Start reading at Run, whose list of sections is the table of contents. Differential compares two stores on random
// documents and queries. What does not live here: what only one adapter promises, such as crash safety
// (pkg/store/embedded) or outages of a server (pkg/store/mongo).
package storetest
