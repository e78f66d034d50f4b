// Package auth finds out who a caller is: it checks passwords, makes and reads session tokens, reads personal access
// tokens, compares the admin token, and slows down those who guess.
//
// Start reading at Auth.Authenticate and Auth.Login. What does not live here: what a caller may do (pkg/access), the
// records of users (pkg/system), and collection tokens, which only their project can judge: Authenticate passes on
// their hash. process.go has password hashes made by other processes, so that requests do not wait for them.
package auth
