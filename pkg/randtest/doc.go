// Package randtest gives tests random numbers that can be had again: each test logs its seed, and SEED=… repeats it. Go shows the log of a test that
// fails, and of all with -v.
//
// What goroutines and processes do at once is not repeated by that, only what a test has chosen: which snapshot, how many steps, how long until a
// kill. Start reading at Of. What does not live here: random documents, filters and pipelines (pkg/mql/mqltest).
package randtest
