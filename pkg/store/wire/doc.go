// Package wire is MongoDB's wire protocol on any store.Store, for mongosh, Compass, mongodump, drivers, and the tests of
// other projects. It is for administrators: whoever has the password reaches every database that is not hidden, past the
// schemas and rights of projects.
//
// A connection (conn.go) reads messages (message.go) and answers each; what a command may have in it and what it does is
// a row of the table in command.go. Commands compile what they are sent by pkg/mql, and go through the port, so
// both mean the same here as anywhere else. What a client comes back for outlives a command: cursors (cursor.go),
// and sessions with the results of writes that may be sent again (session.go) and an open transaction (transaction.go).
//
// A server presents itself as the primary of a replica set, since only then do drivers use transactions, retryable
// writes and change streams (changestream.go).
//
// # Goroutines
//
// Serve has one for each connection and one that forgets what nobody asks for any more. A cursor over a find has
// none: it is a Find that is stopped between two documents. A transaction and a change stream have one each, which the
// server waits for. Shutdown ends all of them.
//
// Start reading at Listen and Server.Serve, then conn.answer and the table in command.go. What does not live here: what a
// filter or an update means (pkg/mql), and how anything is stored (the adapters of pkg/store).
package wire
