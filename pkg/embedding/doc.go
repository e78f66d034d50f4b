// Package embedding turns texts into vectors, by providers that may be down, slow or wrong at any time.
//
// Provider is the port: texts in, a vector for each out. Each type of provider is a package below this one; all has the
// list of them; embeddingtest is what each has to pass, and has a provider that fails on demand.
//
// A Group is what the rest of the service asks: providers of the same vectors, its members. It puts the prefixes before
// texts, asks a member that is known to be good, goes on to the next when one fails, and checks what comes back: number,
// form, dimensions, and that it is numbers; dense vectors leave it with length 1. It never gives a vector that it could not
// check. What each member is, live, degraded, quarantined or offline, is in member.go; how it is verified, at the start and
// every CheckInterval, in verify.go.
//
// A group's Reference says which vectors these are. Vectors of two references are never compared with each other: who keeps
// vectors keeps the reference with them.
//
// Start reading at Provider and Group. What does not live here: when and what is embedded, where vectors are kept, and how
// they are searched.
package embedding
